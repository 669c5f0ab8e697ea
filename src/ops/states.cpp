// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "states.hpp"

#include "dtensor/redistribute/cost_model.hpp"

namespace dtensor::detail {

namespace {

constexpr const char* reason = "the operator merges what ranks found in their parts";

// The layout `from` with dimensions renumbered: `to[d]` is where dimension d goes, `shape` the new
// shape. `extra` are mesh dimensions that split the new dimension 0 and were Partial.
Layout renumbered(const Layout& from, const Shape& shape, const std::vector<int>& to,
                  const std::vector<int>& extra = {}) {
  Placements placements;
  for (const Placement& p : from.placements()) {
    placements.push_back(p.is_shard() ? p.with_dim(to[static_cast<std::size_t>(p.dim())]) : p);
  }
  for (int m : extra) placements[static_cast<std::size_t>(m)] = Shard(0);
  ShardOrder order;
  if (extra.size() > 1) order.emplace_back(0, extra);
  for (const auto& [dim, mesh_dims] : from.shard_order()) {
    order.emplace_back(to[static_cast<std::size_t>(dim)], mesh_dims);
  }
  return Layout(shape, from.grid(), placements, order);
}

std::int64_t group_size(const Layout& output) {
  std::int64_t size = 1;
  for (int m : reducing_mesh_dims(output)) size *= output.grid()->size(m);
  return size;
}

// `rows` rows per rank in front of a result's dimensions, split by what reduces the result.
Layout states_layout(const Layout& output, std::int64_t rows) {
  Shape shape{rows * group_size(output)};
  std::vector<int> to;
  for (int d = 0; d < output.shape().size(); ++d) {
    shape.push_back(output.shape()[d]);
    to.push_back(d + 1);
  }
  const std::vector<int> reducing = reducing_mesh_dims(output);
  return renumbered(output, shape, to, reducing).without_partial();
}

// The same with another placement along the mesh dimensions that split dimension 0.
Layout with_rows(const Layout& layout, const std::vector<int>& reducing, const Placement& rows) {
  Placements placements = layout.placements();
  for (int m : reducing) placements[static_cast<std::size_t>(m)] = rows;
  ShardOrder order = layout.shard_order();
  std::erase_if(order, [](const auto& entry) { return entry.first == 0; });
  return layout.with_placements(placements, order);
}

// The dimension of the states, other than the first, that mesh dimensions can split without any
// being split already; 0 when there is none.
int dim_to_split(const Layout& layout) {
  int best = 0;
  for (int d = 1; d < layout.shape().size(); ++d) {
    const bool longer = best == 0 || layout.shape()[d] > layout.shape()[best];
    if (layout.split_by(d).empty() && longer) best = d;
  }
  return best;
}

}  // namespace

std::vector<int> reducing_mesh_dims(const Layout& output) {
  std::vector<int> result;
  for (int m = 0; m < output.grid()->dim(); ++m) {
    if (output.placement(m).is_partial() && output.grid()->size(m) > 1) result.push_back(m);
  }
  return result;
}

std::vector<Extents> peers(const ProcessGrid& grid, const std::vector<int>& mesh_dims,
                           const Extents& coordinate) {
  std::vector<Extents> result{coordinate};
  for (int m : mesh_dims) {
    std::vector<Extents> finer;
    for (const Extents& c : result) {
      for (std::int64_t i = 0; i < grid.size(m); ++i) {
        finer.push_back(c);
        finer.back()[m] = i;
      }
    }
    result = std::move(finer);
  }
  return result;
}

Layout with_unit_dims(const Layout& layout, DimSet reduced) {
  Shape shape;
  std::vector<int> to;
  const int rank = layout.shape().size() + static_cast<int>(reduced.count());
  for (int d = 0; d < rank; ++d) {
    if (reduced.test(static_cast<std::size_t>(d))) {
      shape.push_back(1);
    } else {
      shape.push_back(layout.shape()[static_cast<int>(to.size())]);
      to.push_back(d);
    }
  }
  return renumbered(layout, shape, to);
}

Layout reduced_layout(const Layout& layout, DimSet dims) {
  const auto is_reduced = [&](int d) { return dims.test(static_cast<std::size_t>(d)); };
  Shape shape;
  std::vector<int> to;
  for (int d = 0; d < layout.shape().size(); ++d) {
    to.push_back(shape.size());
    if (!is_reduced(d)) shape.push_back(layout.shape()[d]);
  }
  Placements placements;
  for (const Placement& p : layout.placements()) {
    if (!p.is_shard()) {
      placements.push_back(p);
    } else if (is_reduced(p.dim())) {
      placements.push_back(Partial());
    } else {
      placements.push_back(p.with_dim(to[static_cast<std::size_t>(p.dim())]));
    }
  }
  ShardOrder order;
  for (const auto& [dim, mesh_dims] : layout.shard_order()) {
    if (!is_reduced(dim)) order.emplace_back(to[static_cast<std::size_t>(dim)], mesh_dims);
  }
  return Layout(shape, layout.grid(), placements, order);
}

Tensor gather_states(const char* operation, const DeviceMesh& mesh, const Layout& input,
                     const Layout& output, const Tensor& states) {
  const Layout layout = states_layout(output, states.shape()[0]);
  const std::vector<int> reducing = reducing_mesh_dims(output);
  const DTensor rows(mesh, layout, states);
  const DTensor all = redistribute(rows, mesh, with_rows(layout, reducing, Replicate()), false,
                                   operation, reason, {0, &input});
  return all.to_local();
}

Tensor merged_states(const char* operation, const DeviceMesh& mesh, const Layout& input,
                     const Layout& output, const Tensor& states, MergeStates merge) {
  const std::vector<int> reducing = reducing_mesh_dims(output);
  if (reducing.empty()) return states;
  const std::int64_t parts = group_size(output), k = states.shape()[0];
  const Layout layout = states_layout(output, k);
  const int split = dim_to_split(layout);
  // The same on every rank: from the global shape.
  const std::int64_t bytes = k * output.shape().product() * size_of(states.dtype());
  const CostModel model;
  const bool gather = split == 0 || model.seconds(parts - 1, (parts - 1) * bytes) <=
                                        2 * model.seconds(parts - 1, (parts - 1) * bytes / parts);
  if (gather) return merge(gather_states(operation, mesh, input, output, states));

  const DTensor rows(mesh, layout, states);
  const DTensor columns = redistribute(rows, mesh, with_rows(layout, reducing, Shard(split)), false,
                                       operation, reason, {0, &input});
  const Tensor part = merge(columns.to_local());
  Shape shape = layout.shape();
  shape[0] = k;
  const Layout whole(shape, layout.grid(), columns.placements(), columns.layout().shard_order());
  return redistribute(DTensor(mesh, whole, part), mesh, with_rows(whole, reducing, Replicate()),
                      false, operation, reason, {0, &input})
      .to_local();
}

}  // namespace dtensor::detail
