// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Products of matrices and vectors, on `Tensor` and `DTensor`. See `factorization.hpp` for
/// factorizations and the solution of linear systems.
///
/// All of these take tensors of one scalar type, any of the twelve: 16-bit types are summed in
/// float, integers wrap around, on bool a sum is "or" and a product "and". They throw `ValueError`
/// when shapes do not fit, `TypeError` for different scalar types. Transposed tensors and blocks of
/// larger ones are used as they are, where BLAS can read them. On DTensors what is sharded alike is
/// multiplied where it is; where both inputs are sharded along the summed dimension, the result is
/// Partial, without communication. On Tensors all of them are local.
#pragma once

#include "dtensor/core/scalar.hpp"
#include "dtensor/ops/any_tensor.hpp"

namespace dtensor {

namespace detail {
Tensor matmul(const Tensor& a, const Tensor& b);
DTensor matmul(const DTensor& a, const DTensor& b);
Tensor mm(const Tensor& a, const Tensor& b);
DTensor mm(const DTensor& a, const DTensor& b);
Tensor bmm(const Tensor& a, const Tensor& b);
DTensor bmm(const DTensor& a, const DTensor& b);
Tensor addmm(const Tensor& bias, const Tensor& a, const Tensor& b, const Scalar& beta,
             const Scalar& alpha);
DTensor addmm(const DTensor& bias, const DTensor& a, const DTensor& b, const Scalar& beta,
              const Scalar& alpha);
Tensor dot(const Tensor& a, const Tensor& b);
DTensor dot(const DTensor& a, const DTensor& b);
Tensor outer(const Tensor& a, const Tensor& b);
DTensor outer(const DTensor& a, const DTensor& b);
Tensor trace(const Tensor& a);
DTensor trace(const DTensor& a);
}  // namespace detail

/// Products of matrices: (..., m, k) times (..., k, n) is (..., m, n), after `numpy.matmul`. The
/// other dimensions count a batch of matrices and are broadcast. A vector of k elements on the left
/// is a row, on the right a column, and that dimension is missing in the result.
template <AnyTensor T>
T matmul(const T& a, const T& b) {
  return detail::matmul(a, b);
}
/// (m, k) times (k, n).
template <AnyTensor T>
T mm(const T& a, const T& b) {
  return detail::mm(a, b);
}
/// (b, m, k) times (b, k, n).
template <AnyTensor T>
T bmm(const T& a, const T& b) {
  return detail::bmm(a, b);
}
/// beta bias + alpha a b for matrices `a` and `b` and a `bias` that can be broadcast to their
/// product. With a beta of 0 the values of `bias` do not matter. On DTensors the product is placed
/// as that of `mm`, and the bias follows: where the product is Partial a whole bias is added on one
/// rank only, without communication. Throws `TypeError` too when alpha or beta is of a higher kind
/// than the tensors' scalar type.
template <AnyTensor T>
T addmm(const T& bias, const T& a, const T& b, const Scalar& beta = 1, const Scalar& alpha = 1) {
  return detail::addmm(bias, a, b, beta, alpha);
}
/// The sum of products of two vectors of equal length. Complex numbers are not conjugated.
template <AnyTensor T>
T dot(const T& a, const T& b) {
  return detail::dot(a, b);
}
/// All products of the elements of two vectors: (m) and (n) give (m, n).
template <AnyTensor T>
T outer(const T& a, const T& b) {
  return detail::outer(a, b);
}
/// The sum of a matrix's diagonal, in the matrix's scalar type. On DTensors each rank sums what it
/// has of the diagonal.
template <AnyTensor T>
T trace(const T& a) {
  return detail::trace(a);
}

DTENSOR_MIXED_OPERATOR(matmul)
DTENSOR_MIXED_OPERATOR(mm)
DTENSOR_MIXED_OPERATOR(bmm)
DTENSOR_MIXED_OPERATOR(addmm)
DTENSOR_MIXED_OPERATOR(dot)
DTENSOR_MIXED_OPERATOR(outer)

}  // namespace dtensor
