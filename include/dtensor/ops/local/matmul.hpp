// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Matrix product of local tensors through the BLAS that Kokkos Kernels calls.
#pragma once

#include <cstdint>
#include <limits>

#include "dtensor/core/tensor.hpp"

namespace dtensor {

/// (m, k) times (k, n) is (m, n). A vector of k elements on the left is a row, on the right a
/// column, and that dimension is missing in the result. Transposed views and blocks are used as
/// they are; other strides are copied first. The result is row-major.
/// Throws `ValueError` when shapes do not fit, `TypeError` for other types than float64 and
/// float32, or two different ones. Local.
Tensor matmul(const Tensor& a, const Tensor& b);

namespace detail {
/// Throws what `matmul` throws for tensors like these.
void check_matmul(const Shape& a, DType a_dtype, const Shape& b, DType b_dtype);
/// `matmul` in blocks of at most `max_extent` rows and columns, which is what BLAS can count.
Tensor matmul_blocked(const Tensor& a, const Tensor& b, std::int64_t max_extent);
}  // namespace detail

}  // namespace dtensor
