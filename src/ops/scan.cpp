// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/scan.hpp"

#include <algorithm>

#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/promotion.hpp"
#include "local/scan.hpp"
#include "reduction_rule.hpp"
#include "states.hpp"

namespace dtensor::detail {

namespace {

// One of the pieces that a sharded dimension is cut into.
struct Piece {
  std::int64_t begin;  // in the whole
  std::int64_t row;    // of the gathered totals
};

// The pieces of all ranks that share lines with this one, and of how many rows each rank's are.
struct Pieces {
  std::int64_t per_rank = 0;
  std::vector<Piece> list;  // in the order of the dimension
};

Pieces pieces_of(const Layout& layout, int dim, const std::vector<Extents>& coordinates) {
  std::vector<IndexSet> sets;
  Pieces pieces;
  for (const Extents& c : coordinates) {
    sets.push_back(layout.index_set(c, dim));
    pieces.per_rank =
        std::max(pieces.per_rank, static_cast<std::int64_t>(sets.back().intervals().size()));
  }
  for (std::size_t rank = 0; rank < sets.size(); ++rank) {
    auto row = static_cast<std::int64_t>(rank) * pieces.per_rank;
    for (const Interval& i : sets[rank].intervals()) pieces.list.push_back({i.begin, row++});
  }
  std::sort(pieces.list.begin(), pieces.list.end(),
            [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  return pieces;
}

Tensor scan_sharded(const char* function, const DTensor& a, int dim, Scan operation) {
  const DeviceMesh& mesh = a.device_mesh();
  const Layout& layout = a.layout();
  const Layout totals_layout = reduced_layout(layout, DimSet().set(static_cast<std::size_t>(dim)));
  const Tensor in = a.to_local();
  const Pieces pieces = pieces_of(
      layout, dim, peers(*mesh.grid(), reducing_mesh_dims(totals_layout), *mesh.coordinate()));
  const IndexSet own = layout.index_set(*mesh.coordinate(), dim);

  Shape shape{pieces.per_rank};
  for (int d = 0; d < in.dim(); ++d) {
    if (d != dim) shape.push_back(in.shape()[d]);
  }
  const Tensor totals =
      Tensor::full(shape, operation == Scan::sum ? 0 : 1, scan_dtype(in.dtype()), in.device());
  std::int64_t position = 0;
  for (std::size_t k = 0; k < own.intervals().size(); ++k) {
    const std::int64_t length = own.intervals()[k].length();
    const Tensor total = scan_total(in.narrow(dim, position, length), dim, operation);
    Shape row = shape;
    row[0] = 1;
    totals.narrow(0, static_cast<std::int64_t>(k), 1).copy_from(total.reshape(row));
    position += length;
  }
  const Tensor all = gather_states(function, mesh, layout, totals_layout, totals).contiguous();

  const Tensor out = Tensor::empty(in.shape(), sum_dtype(in.dtype()), in.device());
  std::vector<std::int64_t> before;
  auto next = pieces.list.begin();
  position = 0;
  for (const Interval& i : own.intervals()) {
    for (; next->begin < i.begin; ++next) before.push_back(next->row);
    scan_into(out.narrow(dim, position, i.length()), in.narrow(dim, position, i.length()), dim,
              operation, fold_rows(all, before, operation));
    position += i.length();
  }
  return out;
}

}  // namespace

DTensor scan(const char* function, const DTensor& a, std::int64_t dim, Scan operation) {
  const int d = normalize_dim(function, dim, a.dim());
  const DType result = sum_dtype(a.dtype());
  // Contributions are handed on only where nothing is: totals travel between ranks that hold
  // contributions of the same kind.
  const bool exact = a.dtype() == result || is_floating(a.dtype()) || is_complex(a.dtype());
  const std::uint32_t passes = !exact || !a.layout().split_by(d).empty() ? 0
                               : operation == Scan::sum                  ? sums
                                                        : PartialPass::bit(ReduceOp::product);
  const Rule& rule = reduction_rule(a.dim(), DimSet(), false, ReduceOp::sum, passes);
  const Operation op{function, rule, result};
  const Prepared ready = prepare(op, {a});
  const DTensor& in = ready.inputs[0];
  return wrap(op, a.device_mesh(), ready.output, [&] {
    std::int64_t parts = 1;
    for (int m : in.layout().split_by(d)) parts *= in.layout().grid()->size(m);
    if (parts > 1) return scan_sharded(function, in, d, operation);
    return scan(function, in.to_local(), d, operation);
  });
}

}  // namespace dtensor::detail
