// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors of any scalar type as plain numbers, and how the ranks hold them under any placement.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "dtensor/core/tensor.hpp"
#include "dtensor/layout/layout.hpp"
#include "ops/reference.hpp"

namespace dtensor::testing {

/// An element of any scalar type.
using Number = std::complex<double>;

/// A tensor as plain numbers in row-major order.
struct Plain {
  Shape shape;
  DType dtype = DType::float64;
  std::vector<Number> values;

  Plain(const Shape& s, DType t)
      : shape(s), dtype(t), values(static_cast<std::size_t>(s.product())) {}
  explicit Plain(const Tensor& tensor);
  Tensor tensor() const;
};

/// Small signed numbers that the type holds exactly, as well as their sums and products: multiples
/// of a fraction. Different neighbours, and zeros.
Plain small_numbers(const Shape& shape, DType dtype, std::uint64_t seed);
/// Integers from 0 to `bound - 1`.
Plain indices_below(const Shape& shape, DType dtype, std::int64_t bound, std::uint64_t seed);

/// The part of a tensor that a coordinate holds under a layout: under Partial a contribution,
/// signed and unlike the others', from a sequence that `seed` says. Every rank can compute every
/// part.
Plain part_of(const Plain& whole, const Layout& layout, const Extents& coordinate,
              std::uint64_t seed);

/// What contributions make up.
Plain combined(const std::vector<Plain>& parts, ReduceOp op);

/// The largest difference of two tensors; 0 for equal NaNs and infinities, infinite for other
/// shapes or scalar types.
double difference(const Plain& a, const Plain& b);
/// A difference that rounding explains, for values up to 1.
double tolerance(DType dtype);

/// A shape of up to four dimensions, with extents of 0 and 1 among them.
Shape random_shape(Numbers& numbers, int max_dims = 4);
/// Any layout that a tensor of this shape and type can have, uneven, empty, strided, Partial.
Layout random_layout(const Shape& shape, DType dtype,
                     const std::shared_ptr<const ProcessGrid>& grid, Numbers& numbers);
/// The reductions that the type has.
std::vector<ReduceOp> reductions_of(DType dtype);

}  // namespace dtensor::testing
