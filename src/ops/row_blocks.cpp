// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "row_blocks.hpp"

#include <algorithm>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/redistribute/program.hpp"

namespace dtensor::detail {

namespace {

// Rows per block: enough for fast products, and several blocks per rank where there are few rows.
constexpr std::int64_t min_block = 32, max_block = 128, blocks_per_rank = 8;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

RowBlocks::RowBlocks(const char* operation, const DTensor& matrix)
    : operation_(operation),
      input_(matrix.layout()),
      line_(matrix.device_mesh().dim() == 1 ? matrix.device_mesh()
                                            : matrix.device_mesh().flatten()),
      rows_(matrix.shape()[0]),
      self_(line_.local_rank(0)) {
  const std::int64_t ranks = line_.size();
  const std::int64_t block =
      std::clamp(ceil_div(rows_, ranks * blocks_per_rank), min_block, max_block);
  rounds_ = std::max<std::int64_t>(ceil_div(rows_, ranks * block), 1);
  const Layout all = layout({rows_, 1});
  for (std::int64_t owner = 0; owner < ranks; ++owner) {
    std::int64_t local = 0;
    const IndexSet has = all.index_set({owner}, 0);
    for (const Interval& i : has.intervals()) {
      for (std::int64_t begin = i.begin; begin < i.end; begin += max_block) {
        const std::int64_t end = std::min(begin + max_block, i.end);
        blocks_.push_back({begin, end, owner, local});
        local += end - begin;
      }
    }
  }
  std::sort(blocks_.begin(), blocks_.end(),
            [](const RowBlock& a, const RowBlock& b) { return a.begin < b.begin; });
}

Layout RowBlocks::layout(const Shape& shape) const {
  return Layout(shape, line_.grid(), {StridedShard(0, rounds_)});
}

std::int64_t RowBlocks::rows_before(std::int64_t begin) const {
  std::int64_t count = 0;
  for (const RowBlock& b : blocks_) count += is_own(b) && b.begin < begin ? b.rows() : 0;
  return count;
}

Tensor RowBlocks::take(const DTensor& matrix, int input) const {
  const Tensor rows = redistribute(matrix, line_, layout(matrix.shape()), false, operation_,
                                   "blocks of rows go round the ranks", input)
                          .to_local();
  return rows.storage() == matrix.to_local().storage() ? rows.clone() : rows.contiguous();
}

DTensor RowBlocks::give(const Tensor& rows, const Shape& shape, const DeviceMesh& mesh,
                        const Layout& destination) const {
  return redistribute(DTensor(line_, layout(shape), rows), mesh, destination, false, operation_,
                      "the result is placed as the argument", {0, &input_});
}

Tensor RowBlocks::gather(const std::vector<std::int64_t>& counts, const Tensor& rows,
                         const char* reason) const {
  std::int64_t total = 0;
  for (std::int64_t c : counts) total += c;
  const Layout sharded({total, rows.shape()[1]}, line_.grid(), {Shard(0, counts)});
  return redistribute(DTensor(line_, sharded, rows), line_, sharded.with_placements({Replicate()}),
                      false, operation_, reason, {0, &input_})
      .to_local();
}

Tensor RowBlocks::broadcast(const RowBlock& block, const Tensor& rows) const {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(line_.size()), 0);
  counts[static_cast<std::size_t>(block.owner)] = block.rows();
  return gather(counts, rows, "every rank needs the block");
}

Tensor RowBlocks::gather_from(std::int64_t begin, const Tensor& rows) const {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(line_.size()), 0);
  for (const RowBlock& b : blocks_) {
    if (b.begin >= begin) counts[static_cast<std::size_t>(b.owner)] += b.rows();
  }
  const Tensor gathered = gather(counts, rows, "every rank needs the panel");
  std::vector<std::int64_t> next(counts.size(), 0);
  for (std::size_t r = 1; r < counts.size(); ++r) next[r] = next[r - 1] + counts[r - 1];
  const Tensor ordered = Tensor::empty(gathered.shape(), gathered.dtype(), gathered.device());
  for (const RowBlock& b : blocks_) {
    if (b.begin < begin) continue;
    std::int64_t& from = next[static_cast<std::size_t>(b.owner)];
    ordered.narrow(0, b.begin - begin, b.rows()).copy_from(gathered.narrow(0, from, b.rows()));
    from += b.rows();
  }
  return ordered;
}

bool is_replicated(const Layout& layout) {
  for (int m = 0; m < layout.grid()->dim(); ++m) {
    if (!layout.placement(m).is_replicate() && layout.grid()->size(m) > 1) return false;
  }
  return true;
}

DTensor empty_part(const DeviceMesh& mesh, const Layout& layout, DType dtype) {
  return DTensor(mesh, layout,
                 Tensor::empty(local_shape_on(layout, Runtime::rank()), dtype, mesh.device()));
}

}  // namespace dtensor::detail
