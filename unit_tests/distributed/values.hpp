// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Global tensors whose elements are known by formula, and what each rank must hold of them.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "dtensor/distributed/dtensor.hpp"
#include "redistribute/reference.hpp"

namespace dtensor::testing {

/// The element with linear global index `i`: different neighbours, both signs, some zeros.
template <class T>
T value_at(std::int64_t i) {
  const std::int64_t value = i * 37 % 101 - 50;
  return scalar_cast<T>(std::is_same_v<T, bool> ? value % 2 : value);
}

template <class T>
std::vector<T> global_values(const Shape& shape) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < shape.product(); ++i) values.push_back(value_at<T>(i));
  return values;
}

template <class T>
Tensor global_tensor(const Shape& shape) {
  return Tensor::from_vector(global_values<T>(shape), shape);
}

/// What a coordinate holds of the global tensor, in row-major order.
template <class T>
std::vector<T> local_values(const Shape& shape, const Placements& placements, const Shape& mesh,
                            const Extents& coordinate) {
  std::vector<int> order(static_cast<std::size_t>(mesh.size()));
  std::iota(order.begin(), order.end(), 0);
  std::vector<T> values;
  for (std::int64_t i :
       naive_elements(shape, naive_indices(shape, placements, mesh, coordinate, order))) {
    values.push_back(value_at<T>(i));
  }
  return values;
}

/// Expects that this rank holds just its part of the global tensor.
template <class T>
void expect_part(const DTensor& tensor, const Shape& shape, const Placements& placements) {
  const DeviceMesh& mesh = tensor.device_mesh();
  EXPECT_EQ(tensor.shape(), shape);
  EXPECT_EQ(tensor.dtype(), dtype_of<T>);
  EXPECT_EQ(tensor.placements(), placements);
  EXPECT_EQ(tensor.to_local().dtype(), dtype_of<T>);
  if (!mesh.is_member()) {
    EXPECT_EQ(tensor.to_local().numel(), shape.size() == 0 ? 1 : 0);
    return;
  }
  EXPECT_TRUE((tensor.to_local().to_vector<T>() ==
               local_values<T>(shape, placements, mesh.shape(), *mesh.coordinate())))
      << to_string(tensor) << " at " << to_string(*mesh.coordinate());
}

/// The number of ranks as a product of two factors, both above 1 where it has such.
inline Shape two_dims(int ranks) {
  for (int a = 2; a * a <= ranks; ++a) {
    if (ranks % a == 0) return {a, ranks / a};
  }
  return {ranks, 1};
}

}  // namespace dtensor::testing
