// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts to try, and bitwise comparison with a tensor made in one piece.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "comm/collective_checks.hpp"
#include "distributed/values.hpp"
#include "dtensor/random/random.hpp"
#include "ops/distributed_reference.hpp"

namespace dtensor::testing {

/// The bytes of a tensor in row-major order.
inline std::vector<unsigned char> bytes_of(const Tensor& tensor) {
  const Tensor host = tensor.to(DeviceKind::host).contiguous();
  const auto* data = static_cast<const unsigned char*>(host.data());
  return {data, data + host.numel() * size_of(host.dtype())};
}

/// Whether this rank holds just the bits that the whole tensor has at its place.
inline bool is_part_of(const DTensor& tensor, const Tensor& whole) {
  const DTensor expected(
      tensor.device_mesh(), tensor.layout(),
      distribute_tensor(whole, tensor.device_mesh(), tensor.placements(), std::nullopt).to_local());
  return tensor.dtype() == whole.dtype() && tensor.shape() == whole.shape() &&
         bytes_of(tensor.to_local()) == bytes_of(expected.to_local());
}

/// Meshes of all ranks: a line, and a rectangle of two dimensions above 1 where there is one.
inline std::vector<DeviceMesh> meshes() {
  std::vector<DeviceMesh> result{DeviceMesh({world_size()})};
  const Shape two = two_dims(world_size());
  if (two[1] > 1) result.push_back(DeviceMesh(two));
  return result;
}

/// Every combination of even, uneven and strided shards and replicas, for a tensor of that shape.
inline std::vector<Placements> all_placements(const Shape& shape, const DeviceMesh& mesh) {
  std::vector<Placements> result{{}};
  for (int m = 0; m < mesh.dim(); ++m) {
    Placements choices{Replicate()};
    for (int d = 0; d < shape.size(); ++d) {
      choices.push_back(Shard(d));
      choices.push_back(StridedShard(d, 2));
    }
    if (m == 0 && shape.size() > 0 && shape[0] > 0) {
      // All but one element on the last coordinate, the one on the first.
      std::vector<std::int64_t> extents(static_cast<std::size_t>(mesh.shape()[m]), 0);
      extents.back() = shape[0] - 1;
      extents.front() += 1;
      choices.push_back(Shard(0, extents));
    }
    std::vector<Placements> longer;
    for (const Placements& start : result) {
      for (const Placement& choice : choices) {
        longer.push_back(start);
        longer.back().push_back(choice);
      }
    }
    result = std::move(longer);
  }
  return result;
}

/// Expects that `make(mesh, placements)` is, under every layout, the part of `whole`, and that none
/// communicates.
template <class Make>
void expect_layouts_agree(const char* what, const Tensor& whole, const Make& make) {
  const Communication communication;
  for (const DeviceMesh& mesh : meshes()) {
    for (const Placements& placements : all_placements(whole.shape(), mesh)) {
      const DTensor tensor = make(mesh, placements);
      EXPECT_EQ(tensor.placements(), placements);
      EXPECT_TRUE(is_part_of(tensor, whole))
          << what << " of " << to_string(whole.dtype()) << " as " << to_string(tensor.layout());
    }
  }
  EXPECT_EQ(communication.count, 0) << what;
}

inline const std::vector<DType>& floating_types() {
  static const std::vector<DType> types{DType::float64, DType::float32, DType::float16,
                                        DType::bfloat16};
  return types;
}
inline std::vector<DType> fractional_types() {
  std::vector<DType> types = floating_types();
  types.push_back(DType::complex128);
  types.push_back(DType::complex64);
  return types;
}
inline const std::vector<DType>& integer_types() {
  static const std::vector<DType> types{DType::int64, DType::int32, DType::int16, DType::int8,
                                        DType::uint8};
  return types;
}

}  // namespace dtensor::testing
