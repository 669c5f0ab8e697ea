// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// QR of tall and skinny matrices.
#include <fmt/format.h>

#include <algorithm>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/factorization.hpp"
#include "dtensor/ops/local/matmul.hpp"
#include "local/lapack.hpp"
#include "row_blocks.hpp"

namespace dtensor::detail {

namespace {

// \param local  the largest that a rank factorizes
void check_matrix(DType dtype, const Shape& shape, const Shape& local) {
  lapack::check("qr", dtype, local);
  if (shape.size() == 2) return;
  throw ValueError("qr", fmt::format("shape {}", to_string(shape)), "a matrix");
}

// Makes the diagonal of r, which LAPACK leaves real, not negative, in place on the host: changes
// the signs of rows of r, and of columns of q.
template <class T>
void make_unique(const Tensor& q_matrix, const Tensor& r_matrix) {
  const std::int64_t m = q_matrix.shape()[0], k = r_matrix.shape()[0], n = r_matrix.shape()[1];
  T* const q = static_cast<T*>(q_matrix.data());
  T* const r = static_cast<T*>(r_matrix.data());
  for (std::int64_t i = 0; i < k; ++i) {
    if (scalar_cast<double>(r[i * n + i]) >= 0) continue;
    for (std::int64_t j = i; j < n; ++j) r[i * n + j] = -r[i * n + j];
    for (std::int64_t j = 0; j < m; ++j) q[j * k + i] = -q[j * k + i];
  }
}

QR<Tensor> unique_qr(const Tensor& a) {
  const QR<Tensor> host = lapack::qr(a.to(DeviceKind::host));
  dispatch_dtype(a.dtype(), [&]<class T>() {
    if constexpr (std::is_floating_point_v<T> || is_complex_scalar<T>) {
      make_unique<T>(host.q, host.r);
    }
  });
  return {host.q.to(a.device()), host.r.to(a.device())};
}

// The layout of a matrix with this many rows, the same number on all ranks that split them.
Layout evenly(const Layout& rows, const Shape& shape) {
  Placements placements = rows.placements();
  for (Placement& p : placements) {
    if (p.is_shard()) p = Shard(0);
  }
  return Layout(shape, rows.grid(), std::move(placements));
}

}  // namespace

QR<Tensor> qr(const Tensor& a) {
  check_matrix(a.dtype(), a.shape(), a.shape());
  return unique_qr(a);
}

QR<DTensor> qr(const DTensor& a) {
  static const Rule rule("mk!->mk!");
  check_matrix(a.dtype(), a.shape(), {});
  const Operation operation{"qr", rule, a.dtype()};
  const DTensor tall = prepare(operation, {a}).inputs[0];
  const DeviceMesh& mesh = a.device_mesh();
  const Layout& layout = tall.layout();
  std::vector<std::int64_t> rows;  // by position in the mesh
  for (std::int64_t p = 0; p < mesh.size(); ++p) {
    rows.push_back(layout.local_shape(layout.grid()->coordinate_at(p))[0]);
  }
  check_matrix(a.dtype(), a.shape(), {*std::max_element(rows.begin(), rows.end()), a.shape()[1]});
  const std::int64_t m = a.shape()[0], n = a.shape()[1], k = std::min(m, n);
  const Layout q_layout({m, k}, layout.grid(), layout.placements(), layout.shard_order());
  const Layout r_layout({k, n}, layout.grid(),
                        Placements(static_cast<std::size_t>(mesh.dim()), Replicate()));
  QR<Tensor> factors;
  if (mesh.is_member() && is_replicated(layout)) {
    factors = unique_qr(tall.to_local());
  } else if (mesh.is_member()) {
    const QR<Tensor> own = lapack::qr(tall.to_local());
    const std::int64_t own_rows = own.r.shape()[0];
    // Every rank puts n rows into the stack, of which it may have fewer.
    std::int64_t parts = 1;
    for (int d : layout.split_by(0)) parts *= layout.grid()->size(d);
    const Tensor padded = Tensor::zeros({n, n}, a.dtype(), own.r.device());
    padded.narrow(0, 0, own_rows).copy_from(own.r);
    const Layout stacked = evenly(layout, {parts * n, n});
    const Tensor stack =
        redistribute(DTensor(mesh, stacked, padded), mesh,
                     stacked.with_placements(r_layout.placements()), false, "qr",
                     "every rank combines the triangular factors of all", {0, &layout})
            .to_local();
    // Without the padding. The parts are found by where they begin in the stack.
    std::vector<std::int64_t> counts(static_cast<std::size_t>(parts), 0);
    const auto part_of = [&](const Extents& coordinate) {
      return static_cast<std::size_t>(n == 0 ? 0 : stacked.local_offset(coordinate)[0] / n);
    };
    for (std::int64_t p = 0; p < mesh.size(); ++p) {
      counts[part_of(layout.grid()->coordinate_at(p))] =
          std::min(rows[static_cast<std::size_t>(p)], n);
    }
    std::int64_t total = 0, own_begin = 0;
    for (std::int64_t count : counts) total += count;
    const Tensor dense = Tensor::empty({total, n}, a.dtype(), stack.device());
    const std::size_t self = part_of(*mesh.coordinate());
    std::int64_t begin = 0;
    for (std::size_t p = 0; p < counts.size(); begin += counts[p++]) {
      dense.narrow(0, begin, counts[p])
          .copy_from(stack.narrow(0, static_cast<std::int64_t>(p) * n, counts[p]));
      if (p == self) own_begin = begin;
    }
    const QR<Tensor> combined = unique_qr(dense);
    factors.r = combined.r;
    factors.q = Tensor::empty({own.q.shape()[0], k}, a.dtype(), own.q.device());
    gemm(1, own.q, combined.q.narrow(0, own_begin, own_rows), 0, factors.q);
  }
  return {wrap(operation, mesh, q_layout, [&] { return factors.q; }),
          wrap(operation, mesh, r_layout, [&] { return factors.r; })};
}

}  // namespace dtensor::detail
