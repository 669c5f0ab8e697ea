// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/layout/layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "dtensor/core/error.hpp"
#include "dtensor/layout/hash.hpp"

namespace dtensor {

namespace {

// Calls `f(coordinate)` for every coordinate of the mesh dimensions `dims`, others zero.
template <class F>
void for_each_coordinate(const ProcessGrid& grid, const std::vector<int>& dims, F&& f) {
  Extents coordinate = Extents::filled(grid.dim(), 0);
  while (true) {
    f(coordinate);
    std::size_t i = dims.size();
    while (i > 0) {
      --i;
      if (++coordinate[dims[i]] < grid.size(dims[i])) break;
      coordinate[dims[i]] = 0;
      if (i == 0) return;
    }
    if (dims.empty()) return;
  }
}

void check_partials(const Placements& placements) {
  const Placement* first = nullptr;
  const auto family = [](ReduceOp op) { return op == ReduceOp::avg ? ReduceOp::sum : op; };
  for (const Placement& p : placements) {
    if (!p.is_partial()) continue;
    if (first && family(first->reduce_op()) != family(p.reduce_op())) {
      throw LayoutError("Layout", to_string(placements),
                        "one reduce operation for all Partial placements (sum and avg may mix)");
    }
    if (!first) first = &p;
  }
}

}  // namespace

Layout::Layout(const Shape& shape, std::shared_ptr<const ProcessGrid> grid, Placements placements,
               const ShardOrder& order) {
  checked_element_count("Layout", shape);
  auto impl = std::make_shared<Impl>();
  impl->shape = shape;
  impl->grid = std::move(grid);
  const ProcessGrid& g = *impl->grid;
  if (static_cast<int>(placements.size()) != g.dim()) {
    throw LayoutError("Layout",
                      fmt::format("{} placements {} for a mesh with {} dimensions",
                                  placements.size(), to_string(placements), g.dim()),
                      "one placement per mesh dimension");
  }
  check_partials(placements);
  impl->split_by.resize(static_cast<std::size_t>(shape.size()));
  for (int m = 0; m < g.dim(); ++m) {
    Placement& p = placements[static_cast<std::size_t>(m)];
    if (p.is_shard()) {
      p = p.with_dim(normalize_dim("Layout", p.dim(), shape.size()));
      impl->split_by[static_cast<std::size_t>(p.dim())].push_back(m);
    }
    impl->has_partial |= p.is_partial();
  }
  bool ordered[max_rank] = {};
  for (const auto& [dim, mesh_dims] : order) {
    const int d = normalize_dim("Layout", dim, shape.size());
    if (std::exchange(ordered[d], true)) {
      throw LayoutError("Layout", fmt::format("two shard orders of dimension {}", d),
                        "at most one for each tensor dimension");
    }
    auto& split = impl->split_by[static_cast<std::size_t>(d)];
    if (!std::is_permutation(split.begin(), split.end(), mesh_dims.begin(), mesh_dims.end())) {
      throw LayoutError(
          "Layout",
          fmt::format("shard order [{}] of dimension {} with placements {}",
                      fmt::join(mesh_dims, ", "), d, to_string(placements)),
          fmt::format("an order of the mesh dimensions [{}]", fmt::join(split, ", ")));
    }
    split = mesh_dims;
  }
  impl->placements = std::move(placements);

  Hash h;
  h.add_range(impl->shape);
  h.add(g.hash());
  for (const Placement& p : impl->placements) {
    h.add(static_cast<std::uint64_t>(p.kind()));
    h.add(static_cast<std::uint64_t>(p.dim()));
    h.add(static_cast<std::uint64_t>(p.split_factor()));
    h.add(static_cast<std::uint64_t>(p.reduce_op()));
    h.add_range(p.extents());
  }
  for (const auto& split : impl->split_by) h.add_range(split);
  impl->hash = h.value();
  impl_ = std::move(impl);

  // Given extents must fit whatever the coarser splits left, at every coordinate.
  for (int d = 0; d < shape.size(); ++d) {
    const auto& split = split_by(d);
    const bool given =
        std::any_of(split.begin(), split.end(), [&](int m) { return placement(m).has_extents(); });
    if (given) for_each_coordinate(g, split, [&](const Extents& c) { index_set(c, d); });
  }
}

bool Layout::equal(const Layout& other) const noexcept {
  const Impl& a = *impl_;
  const Impl& b = *other.impl_;
  return a.shape == b.shape && a.placements == b.placements && a.split_by == b.split_by &&
         (a.grid == b.grid || *a.grid == *b.grid);
}

Layout Layout::without_partial() const {
  if (!has_partial()) return *this;
  Placements reduced = placements();
  for (Placement& p : reduced) {
    if (p.is_partial()) p = Replicate();
  }
  return with_placements(std::move(reduced), shard_order());
}

ShardOrder Layout::shard_order() const {
  ShardOrder order;
  for (int d = 0; d < shape().size(); ++d) {
    if (!std::is_sorted(split_by(d).begin(), split_by(d).end())) order.emplace_back(d, split_by(d));
  }
  return order;
}

IndexSet Layout::index_set(const Extents& coordinate, int tensor_dim) const {
  IndexSet set(0, shape()[tensor_dim]);
  for (int m : split_by(tensor_dim)) {
    set = set.split(placement(m), coordinate[m], grid()->size(m));
  }
  return set;
}

Shape Layout::local_shape(const Extents& coordinate) const {
  Shape local = shape();
  for (int d = 0; d < local.size(); ++d) {
    if (!split_by(d).empty()) local[d] = index_set(coordinate, d).size();
  }
  return local;
}

Extents Layout::local_offset(const Extents& coordinate) const {
  Extents offset = Extents::filled(shape().size(), 0);
  for (int d = 0; d < offset.size(); ++d) {
    if (!split_by(d).empty()) offset[d] = index_set(coordinate, d).first(shape()[d]);
  }
  return offset;
}

std::vector<Chunk> Layout::chunks(const Extents& coordinate) const {
  std::vector<Chunk> result{Chunk{}};
  for (int d = 0; d < shape().size(); ++d) {
    const IndexSet set = index_set(coordinate, d);
    std::vector<Chunk> next;
    for (const Chunk& c : result) {
      for (const Interval& i : set.intervals()) {
        Chunk longer = c;
        longer.offset.push_back(i.begin);
        longer.shape.push_back(i.length());
        next.push_back(longer);
      }
    }
    result = std::move(next);
  }
  return result;
}

Shape Layout::infer_global_shape(const Shape& local_shape, const ProcessGrid& grid,
                                 const Placements& placements, const ShardOrder& order) {
  std::vector<int> mesh_dims(static_cast<std::size_t>(grid.dim()));
  std::iota(mesh_dims.begin(), mesh_dims.end(), 0);
  for (const auto& [dim, ordered] : order) {
    std::vector<int> places = ordered;
    std::sort(places.begin(), places.end());
    for (std::size_t i = 0; i < places.size(); ++i) {
      mesh_dims[static_cast<std::size_t>(places[i])] = ordered[i];
    }
  }
  Shape global = local_shape;
  Extents parts = Extents::filled(local_shape.size(), 1);
  bool given[max_rank] = {};
  for (int m : mesh_dims) {
    if (m >= static_cast<int>(placements.size())) continue;
    const Placement& p = placements[static_cast<std::size_t>(m)];
    if (!p.is_shard()) continue;
    const int d = normalize_dim("Layout", p.dim(), local_shape.size());
    if (given[d]) continue;
    if (p.has_extents()) {
      // Given extents list all that the coarser splits left.
      given[d] = true;
      global[d] = std::accumulate(p.extents().begin(), p.extents().end(), std::int64_t{0});
    } else {
      parts[d] *= grid.size(m);
    }
  }
  for (int d = 0; d < global.size(); ++d) {
    if (__builtin_mul_overflow(global[d], parts[d], &global[d])) {
      throw ValueError("Layout",
                       fmt::format("local shape {} on {} as {}", to_string(local_shape),
                                   to_string(grid), to_string(placements)),
                       "a global shape below 2^63");
    }
  }
  return global;
}

std::string to_string(const Layout& layout) {
  std::string text =
      fmt::format("{} as {}", to_string(layout.shape()), to_string(layout.placements()));
  for (const auto& [dim, mesh_dims] : layout.shard_order()) {
    text += fmt::format(" with dimension {} split by [{}]", dim, fmt::join(mesh_dims, ", "));
  }
  return fmt::format("{} on {}", text, to_string(*layout.grid()));
}

std::pair<std::int64_t, std::int64_t> local_shard_size_and_offset(std::int64_t extent,
                                                                  const Placement& placement,
                                                                  std::int64_t part,
                                                                  std::int64_t parts) {
  const char* const function = "local_shard_size_and_offset";
  if (!placement.is_shard()) {
    throw LayoutError(function, to_string(placement), "Shard or StridedShard");
  }
  if (part < 0 || part >= parts) {
    throw IndexError(function, fmt::format("part {} of {}", part, parts),
                     fmt::format("a part from 0 to {}", parts - 1));
  }
  checked_element_count(function, Shape{extent});
  const IndexSet set = IndexSet(0, extent).split(placement, part, parts);
  return {set.size(), set.first(extent)};
}

}  // namespace dtensor
