// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Factorizations of matrices and the solution of linear systems, on `Tensor` and `DTensor`.
///
/// All of these take matrices of float64, float32, complex128 or complex64 (`TypeError` for others
/// and for two different types) and leave their arguments as they are. They throw `ValueError` for
/// shapes that do not fit and for matrices without the factorization or the solution asked for, on
/// every rank of the mesh alike; a rank outside does not know the elements. On Tensors all are
/// local.
///
/// Factorizations of small blocks are LAPACK's, in host memory; the products of large blocks, which
/// take most of the time, run where the tensors are.
#pragma once

#include "dtensor/ops/any_tensor.hpp"

namespace dtensor {

/// What a matrix is used as.
enum class MatrixOp {
  none,       ///< itself
  transpose,  ///< its transpose
  adjoint,    ///< its conjugate transpose
};

struct TriangularOptions {
  bool upper = false;            ///< which triangle of the matrix counts, before `op`
  MatrixOp op = MatrixOp::none;  ///< what the equations' matrix is
  bool unit_diagonal = false;    ///< take the diagonal as ones, whatever it holds
};

/// q r = a with orthonormal columns of `q` and upper triangular `r`.
template <AnyTensor T>
struct QR {
  T q, r;
};

namespace detail {
Tensor cholesky(const Tensor& a);
DTensor cholesky(const DTensor& a);
QR<Tensor> qr(const Tensor& a);
QR<DTensor> qr(const DTensor& a);
Tensor solve_triangular(const Tensor& a, const Tensor& b, const TriangularOptions& options);
DTensor solve_triangular(const DTensor& a, const DTensor& b, const TriangularOptions& options);
Tensor solve(const Tensor& a, const Tensor& b);
DTensor solve(const DTensor& a, const DTensor& b);
}  // namespace detail

/// The lower triangular matrix L with positive diagonal and L L^H = a, of a Hermitian positive
/// definite matrix of which only the lower triangle is read. Throws `ValueError` naming the first
/// leading minor that is not positive.
///
/// A DTensor whose values are on every rank is factorized there, without communication. Any other
/// is brought into blocks of rows that go round the ranks, factorized panel by panel
/// (right-looking, as ScaLAPACK's `pdpotrf`), and brought back into the placements of `a`, where
/// Partial becomes Replicate. No rank ever holds the matrix: besides its part it holds one panel.
/// Collective.
template <AnyTensor T>
T cholesky(const T& a) {
  return detail::cholesky(a);
}

/// The reduced factorization of (m, n): q is (m, k) and r is (k, n) with k the smaller extent. The
/// diagonal of r is real and not negative, so that for a matrix of full rank the result depends on
/// its placement only in rounding.
///
/// Rows of a DTensor may be sharded in any way: each rank factorizes what it has, and the factors
/// r, stacked, on every rank (TSQR; Demmel, Grigori, Hoemmen, Langou 2012). One all-gather of at
/// most n x n elements per rank is all that is communicated; made for n much smaller than m.
/// Sharded columns and Partial are redistributed first. q is placed as `a` was taken, r is
/// replicated. Collective.
template <AnyTensor T>
QR<T> qr(const T& a) {
  return detail::qr(a);
}

/// The solution x of op(a) x = b for a triangular matrix `a`, (n, n), and one or more right-hand
/// sides `b`, (n) or (n, m). Throws `ValueError` when the diagonal has a zero.
///
/// On DTensors with `a` on every rank, columns of `b` may be sharded and `b` may be Partial,
/// without communication. A sharded `a` stays sharded: rows of both are brought into blocks that go
/// round the ranks, and each block of the solution goes to all ranks once (blocked substitution);
/// the solution has the placements of `b`, where Partial becomes Replicate. Collective.
template <AnyTensor T>
T solve_triangular(const T& a, const T& b, const TriangularOptions& options = {}) {
  return detail::solve_triangular(a, b, options);
}

/// The solution x of a x = b for a square matrix `a`, (n, n), and one or more right-hand sides `b`,
/// (n) or (n, m), by Gaussian elimination with row interchanges. Throws `ValueError` when the
/// matrix is singular.
///
/// Made for a small `a`: each rank factorizes all of it. On DTensors with `a` on every rank,
/// columns of `b` may be sharded and `b` may be Partial, without communication; a sharded `a` is
/// gathered. Collective.
template <AnyTensor T>
T solve(const T& a, const T& b) {
  return detail::solve(a, b);
}

template <class A, class B>
requires detail::Mixed<A, B>
auto solve_triangular(const A& a, const B& b, const TriangularOptions& options = {}) {
  return detail::call_mixed(
      "solve_triangular", [](const auto&... x) { return solve_triangular(x...); }, a, b, options);
}
DTENSOR_MIXED_OPERATOR(solve)

}  // namespace dtensor
