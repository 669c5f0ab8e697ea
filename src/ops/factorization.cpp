// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/factorization.hpp"

#include <fmt/format.h>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/local/matmul.hpp"
#include "local/conjugate.hpp"
#include "local/lapack.hpp"
#include "row_blocks.hpp"

namespace dtensor::detail {

namespace {

void check_square(const char* function, DType dtype, const Shape& shape) {
  lapack::check(function, dtype, shape);
  if (shape.size() == 2 && shape[0] == shape[1]) return;
  throw ValueError(function, fmt::format("shape {}", to_string(shape)), "a square matrix");
}

void check_minors(std::int64_t failed) {
  if (failed == 0) return;
  throw ValueError("cholesky",
                   fmt::format("a matrix whose leading minor of order {} is not positive", failed),
                   "a Hermitian positive definite matrix");
}

// Factorizes this rank's rows in place, panel by panel: the block on the diagonal, the rows below
// it, and what these contribute to the columns on the right.
void factorize(const RowBlocks& rows, const Tensor& local) {
  const std::int64_t n = local.shape()[1];
  for (const RowBlock& block : rows.blocks()) {
    const std::int64_t end = block.end, width = block.rows();
    const bool own = rows.is_own(block);
    const Tensor own_rows = local.narrow(0, own ? block.local : 0, own ? width : 0);
    // Every rank factorizes the block, so that all find the same.
    const auto [corner, failed] =
        lapack::cholesky(rows.broadcast(block, own_rows.narrow(1, block.begin, width)));
    check_minors(failed == 0 ? 0 : block.begin + failed);
    if (own) {
      own_rows.narrow(1, block.begin, width).copy_from(corner);
      own_rows.narrow(1, end, n - end).fill(0);
    }
    if (end == n) break;
    const std::int64_t first = rows.rows_before(end);
    const Tensor panel =
        local.narrow(0, first, local.shape()[0] - first).narrow(1, block.begin, width);
    panel.copy_from(lapack::solve_triangular(corner, panel, {false, MatrixOp::adjoint}, true));
    const Tensor whole = rows.gather_from(end, panel);
    conjugate(whole);
    for (const RowBlock& below : rows.blocks()) {
      if (below.begin < end || !rows.is_own(below)) continue;
      gemm(-1, panel.narrow(0, below.local - first, below.rows()),
           whole.narrow(0, 0, below.end - end).transpose(0, 1), 1,
           local.narrow(0, below.local, below.rows()).narrow(1, end, below.end - end));
    }
  }
}

}  // namespace

Tensor cholesky(const Tensor& a) {
  check_square("cholesky", a.dtype(), a.shape());
  auto [factor, failed] = lapack::cholesky(a);
  check_minors(failed);
  return factor;
}

DTensor cholesky(const DTensor& a) {
  check_square("cholesky", a.dtype(), a.shape());
  const DeviceMesh& mesh = a.device_mesh();
  const Layout layout = a.layout().without_partial();
  if (!mesh.is_member()) return empty_part(mesh, layout, a.dtype());
  if (is_replicated(a.layout())) return DTensor(mesh, layout, cholesky(a.to_local()));
  const RowBlocks rows("cholesky", a);
  const Tensor local = rows.take(a, 0);
  factorize(rows, local);
  return rows.give(local, a.shape(), mesh, layout);
}

}  // namespace dtensor::detail
