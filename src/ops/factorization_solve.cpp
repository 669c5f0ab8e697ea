// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The solution of linear systems.
#include <fmt/format.h>

#include "dtensor/comm/agreement.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/factorization.hpp"
#include "dtensor/ops/local/matmul.hpp"
#include "dtensor/ops/promotion.hpp"
#include "dtensor/ops/shape.hpp"
#include "local/conjugate.hpp"
#include "local/lapack.hpp"
#include "row_blocks.hpp"

namespace dtensor::detail {

namespace {

void check_system(const char* function, const Shape& a, DType a_dtype, const Shape& b,
                  DType b_dtype) {
  lapack::check(function, common_dtype(function, a_dtype, b_dtype), a);
  const bool square = a.size() == 2 && a[0] == a[1];
  if (square && (b.size() == 1 || b.size() == 2) && b[0] == a[0]) return;
  throw ValueError(function, fmt::format("shapes {} and {}", to_string(a), to_string(b)),
                   "a square matrix (n, n) and right-hand sides (n) or (n, m)");
}

void check_pivot(const char* function, std::int64_t zero) {
  if (zero == 0) return;
  throw ValueError(function, fmt::format("a singular matrix: pivot {} is zero", zero),
                   "a matrix with an inverse");
}

// Right-hand sides as columns of a matrix. All placements mean the same.
Tensor as_matrix(const Tensor& b) { return b.dim() == 2 ? b : b.reshape({b.shape()[0], 1}); }
DTensor as_matrix(const DTensor& b) {
  if (b.dim() == 2) return b;
  const Layout& l = b.layout();
  return DTensor(b.device_mesh(),
                 Layout({b.shape()[0], 1}, l.grid(), l.placements(), l.shard_order()),
                 as_matrix(b.to_local()));
}

// The kernel on this rank's right-hand sides, once the matrix is on every rank.
template <class Kernel>
DTensor with_whole_matrix(const char* name, const DTensor& a, const DTensor& b,
                          const Kernel& kernel) {
  static const Rule vector("i!j!,j!->i!", {linear_in({1})});
  static const Rule matrix("i!j!,j!m->i!m", {linear_in({1})});
  return dispatch({name, b.dim() == 1 ? vector : matrix, b.dtype()}, {a, b},
                  [&](Locals x) { return kernel(x[0], x[1]); });
}

Tensor solve_whole(const Tensor& a, const Tensor& b, const TriangularOptions& options) {
  if (!options.unit_diagonal) check_pivot("solve_triangular", lapack::zero_on_diagonal(a));
  return lapack::solve_triangular(a, as_matrix(b), options).reshape(b.shape());
}

// Solves in place for this rank's rows `x` of the right-hand sides, given its rows of the matrix.
void substitute(const RowBlocks& rows, const Tensor& matrix, const Tensor& x, bool upper,
                bool unit_diagonal) {
  const std::int64_t count = x.shape()[0];
  std::vector<RowBlock> blocks = rows.blocks();
  if (upper) std::reverse(blocks.begin(), blocks.end());
  for (const RowBlock& block : blocks) {
    const bool own = rows.is_own(block);
    const Tensor part = x.narrow(0, own ? block.local : 0, own ? block.rows() : 0);
    if (own) {
      const Tensor corner =
          matrix.narrow(0, block.local, block.rows()).narrow(1, block.begin, block.rows());
      part.copy_from(
          lapack::solve_triangular(corner, part, {upper, MatrixOp::none, unit_diagonal}));
    }
    const Tensor solved = rows.broadcast(block, part);
    // The rows that are still to be solved.
    const std::int64_t begin = upper ? 0 : rows.rows_before(block.end);
    const std::int64_t length = upper ? rows.rows_before(block.begin) : count - begin;
    gemm(-1, matrix.narrow(0, begin, length).narrow(1, block.begin, block.rows()), solved, 1,
         x.narrow(0, begin, length));
  }
}

}  // namespace

Tensor solve_triangular(const Tensor& a, const Tensor& b, const TriangularOptions& options) {
  check_system("solve_triangular", a.shape(), a.dtype(), b.shape(), b.dtype());
  check_same_memory("solve_triangular", a, b);
  return solve_whole(a, b, options);
}

DTensor solve_triangular(const DTensor& a, const DTensor& b, const TriangularOptions& options) {
  const char* const name = "solve_triangular";
  check_system(name, a.shape(), a.dtype(), b.shape(), b.dtype());
  const DeviceMesh& mesh = a.device_mesh();
  if (!(mesh == b.device_mesh()) || is_replicated(a.layout())) {
    return with_whole_matrix(
        name, a, b, [&](const Tensor& x, const Tensor& y) { return solve_whole(x, y, options); });
  }
  const Layout layout = b.layout().without_partial();
  if (!mesh.is_member()) return empty_part(mesh, layout, b.dtype());
  const RowBlocks rows(name, a);
  const bool transposed = options.op != MatrixOp::none;
  const Tensor matrix = rows.take(transposed ? dtensor::transpose(a, 0, 1) : a, 0);
  if (options.op == MatrixOp::adjoint) conjugate(matrix);
  if (!options.unit_diagonal) {
    all_or_none(*mesh.communicator(), name, [&] {
      for (const RowBlock& block : rows.blocks()) {
        if (!rows.is_own(block)) continue;
        const std::int64_t zero = lapack::zero_on_diagonal(
            matrix.narrow(0, block.local, block.rows()).narrow(1, block.begin, block.rows()));
        check_pivot(name, zero == 0 ? 0 : block.begin + zero);
      }
    });
  }
  const Tensor x = rows.take(as_matrix(b), 1);
  substitute(rows, matrix, x, options.upper != transposed, options.unit_diagonal);
  if (b.dim() == 2) return rows.give(x, b.shape(), mesh, layout);
  const DTensor column = as_matrix(b);
  const DTensor solution = rows.give(x, column.shape(), mesh, column.layout().without_partial());
  return DTensor(mesh, layout, solution.to_local().reshape({solution.to_local().shape()[0]}));
}

Tensor solve(const Tensor& a, const Tensor& b) {
  check_system("solve", a.shape(), a.dtype(), b.shape(), b.dtype());
  check_same_memory("solve", a, b);
  const auto [x, failed] = lapack::solve(a, as_matrix(b));
  check_pivot("solve", failed);
  return x.reshape(b.shape());
}

DTensor solve(const DTensor& a, const DTensor& b) {
  check_system("solve", a.shape(), a.dtype(), b.shape(), b.dtype());
  return with_whole_matrix("solve", a, b,
                           [](const Tensor& x, const Tensor& y) { return solve(x, y); });
}

}  // namespace dtensor::detail
