// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// LAPACK on small matrices. All tensors are matrices of float64, float32, complex128 or complex64;
/// results are row-major, in the memory of the arguments.
///
/// LAPACK works in host memory and counts columns first: a row-major matrix is its own transpose,
/// so that nothing has to be transposed where the transposed factorization is asked for instead.
#pragma once

#include <cstdint>

#include "dtensor/core/tensor.hpp"
#include "dtensor/ops/factorization.hpp"

namespace dtensor::lapack {

/// Throws `TypeError` naming `function` for a scalar type that LAPACK does not know, `ValueError`
/// for an extent that it cannot count.
void check(const char* function, DType dtype, const Shape& shape);

struct Cholesky {
  Tensor factor;        ///< zero above the diagonal
  std::int64_t failed;  ///< order of the first leading minor that is not positive; 0 when all are
};
Cholesky cholesky(const Tensor& a);

/// The diagonal of r may have any sign.
QR<Tensor> qr(const Tensor& a);

/// x with op(a) x = b, or x op(a) = b where `on_the_right`.
Tensor solve_triangular(const Tensor& a, const Tensor& b, const TriangularOptions& options,
                        bool on_the_right = false);

struct Solution {
  Tensor x;
  std::int64_t failed;  ///< the first pivot, from 1, that is zero; 0 when none is
};
Solution solve(const Tensor& a, const Tensor& b);

/// The first index, from 1, at which the diagonal is zero; 0 when there is none.
std::int64_t zero_on_diagonal(const Tensor& a);

}  // namespace dtensor::lapack
