// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/redistribute/geometry.hpp"

#include <algorithm>

#include "dtensor/redistribute/plan.hpp"

namespace dtensor {

namespace {

// All ways the mesh dimensions `dims` can be set, others as in `coordinate`; last one fastest.
std::vector<Extents> combinations(const ProcessGrid& grid, const std::vector<int>& dims,
                                  const Extents& coordinate) {
  std::vector<Extents> result{coordinate};
  for (int m : dims) {
    std::vector<Extents> next;
    for (const Extents& c : result) {
      for (std::int64_t i = 0; i < grid.size(m); ++i) {
        next.push_back(c);
        next.back()[m] = i;
      }
    }
    result = std::move(next);
  }
  return result;
}

// Whether the rank at `coordinate` of the destination takes part: under a masked mesh dimension
// only coordinate 0 does.
bool needs_any(const Step& step, const Extents& coordinate) {
  return std::all_of(step.masked.begin(), step.masked.end(),
                     [&](int m) { return coordinate[m] == 0; });
}

// Of the ways to split dimension `d` of the source, those that a rank of the destination takes
// elements from: its own shard only where shards become contributions.
std::vector<Extents> sources(const Step& step, int d, const Extents& to) {
  const ProcessGrid& grid = *step.from.grid();
  auto result = combinations(grid, step.from.split_by(d), Extents::filled(grid.dim(), 0));
  for (int m : step.shards) {
    if (!step.from.placement(m).is_shard(d)) continue;
    std::erase_if(result, [&](const Extents& c) { return c[m] != to[m]; });
  }
  return result;
}

std::int64_t length(const std::vector<Overlap>& overlaps) {
  std::int64_t sum = 0;
  for (const Overlap& o : overlaps) sum += o.length;
  return sum;
}

std::int64_t group_size(const Step& step) {
  std::int64_t size = 1;
  for (int m : step.reduced) size *= step.from.grid()->size(m);
  return size;
}

std::int64_t shared_elements(const Layout& from, const Extents& from_coordinate, const Layout& to,
                             const Extents& to_coordinate) {
  std::int64_t elements = 1;
  for (int d = 0; d < to.shape().size(); ++d) {
    elements *=
        length(intersect(from.index_set(from_coordinate, d), to.index_set(to_coordinate, d)));
  }
  return elements;
}

// Among the ranks that hold the same part of the source, the one that serves `receiver`: itself if
// it is one of them, the one beside it on the same mesh, else the replicas take turns.
// Sets the mesh dimensions of `coordinate` that are neither split nor reduced.
void choose_replica(const Step& step, int receiver, Extents& coordinate) {
  const ProcessGrid& grid = *step.from.grid();
  const auto own = grid.coordinate_of(receiver);
  std::int64_t turn = own ? 0 : step.to.grid()->position_of(receiver).value_or(0);
  for (int m = grid.dim() - 1; m >= 0; --m) {
    if (step.from.placement(m).is_shard()) continue;
    if (std::find(step.reduced.begin(), step.reduced.end(), m) != step.reduced.end()) continue;
    coordinate[m] = own ? (*own)[m] : turn % grid.size(m);
    turn /= grid.size(m);
  }
}

// One way to split a tensor dimension, with what it shares with the other side.
struct Part {
  Extents coordinate;  // only the mesh dimensions that split the tensor dimension matter
  std::vector<Overlap> runs;
};

}  // namespace

bool same_grid(const Layout& a, const Layout& b) noexcept {
  return a.grid() == b.grid() ||
         (a.grid()->shape() == b.grid()->shape() && a.grid()->ranks() == b.grid()->ranks());
}

bool keeps_partial(const Layout& from, const Layout& to, int mesh_dim) noexcept {
  return same_grid(from, to) && from.placement(mesh_dim).is_partial() &&
         from.placement(mesh_dim) == to.placement(mesh_dim);
}

std::int64_t needed_elements(const Step& step, int rank) {
  const auto coordinate = step.to.grid()->coordinate_of(rank);
  if (!coordinate || !needs_any(step, *coordinate)) return 0;
  std::int64_t elements = 1;
  for (int d = 0; d < step.to.shape().size(); ++d) {
    const IndexSet all = step.to.index_set(*coordinate, d);
    const bool own_shard = std::any_of(step.shards.begin(), step.shards.end(),
                                       [&](int m) { return step.from.placement(m).is_shard(d); });
    elements *=
        own_shard ? length(intersect(step.from.index_set(*coordinate, d), all)) : all.size();
  }
  return elements;
}

Received received(const Step& step, int rank) {
  Received result;
  const auto to = step.to.grid()->coordinate_of(rank);
  if (!to || !needs_any(step, *to)) return result;
  const auto from = step.from.grid()->coordinate_of(rank);
  const std::int64_t group = group_size(step);
  if (step.kind == Step::Kind::all_reduce) {
    const std::int64_t n = step.from.local_shape(*from).product();
    std::int64_t index = 0;
    for (int m : step.reduced) index = index * step.from.grid()->size(m) + (*from)[m];
    const std::int64_t own = IndexSet(0, n).split(Shard(0), index, group).size();
    result.elements = (group - 1) * own + (n - own);
    result.messages = 2 * (group - 1);
    return result;
  }
  std::int64_t regions = 1;
  for (int d = 0; d < step.to.shape().size(); ++d) {
    const IndexSet needed = step.to.index_set(*to, d);
    std::int64_t parts = 0;
    for (const Extents& c : sources(step, d, *to)) {
      parts += !intersect(step.from.index_set(c, d), needed).empty();
    }
    regions *= parts;
  }
  const std::int64_t own = from ? shared_elements(step.from, *from, step.to, *to) : 0;
  result.elements = group * needed_elements(step, rank) - own;
  result.messages = group * regions - (own > 0 ? 1 : 0);
  return result;
}

bool keeps_all(const Step& step, int rank) {
  const auto from = step.from.grid()->coordinate_of(rank);
  const auto to = step.to.grid()->coordinate_of(rank);
  if (!from) return true;
  if (!to) return false;
  return shared_elements(step.from, *from, step.to, *to) == step.from.local_shape(*from).product();
}

std::vector<Region> incoming(const Step& step, int rank) {
  std::vector<Region> regions;
  const auto to = step.to.grid()->coordinate_of(rank);
  if (!to || !needs_any(step, *to)) return regions;
  const ProcessGrid& grid = *step.from.grid();
  const int dims = step.to.shape().size();
  std::vector<std::vector<Part>> parts(static_cast<std::size_t>(dims));
  for (int d = 0; d < dims; ++d) {
    const IndexSet needed = step.to.index_set(*to, d);
    for (const Extents& c : sources(step, d, *to)) {
      auto runs = intersect(step.from.index_set(c, d), needed);
      if (!runs.empty()) parts[static_cast<std::size_t>(d)].push_back({c, std::move(runs)});
    }
    if (parts[static_cast<std::size_t>(d)].empty()) return regions;
  }
  std::vector<std::size_t> index(static_cast<std::size_t>(dims), 0);
  while (true) {
    Region region;
    Extents coordinate = Extents::filled(grid.dim(), 0);
    for (int d = 0; d < dims; ++d) {
      const Part& part = parts[static_cast<std::size_t>(d)][index[static_cast<std::size_t>(d)]];
      for (int m : step.from.split_by(d)) coordinate[m] = part.coordinate[m];
      region.transfer.runs.push_back(part.runs);
    }
    region.transfer.count();
    region.source_shape = step.from.local_shape(coordinate);
    choose_replica(step, rank, coordinate);
    for (const Extents& c : combinations(grid, step.reduced, coordinate)) {
      region.contributors.push_back(grid.rank_at(grid.position_at(c)));
    }
    regions.push_back(std::move(region));
    int d = dims - 1;
    while (d >= 0 &&
           ++index[static_cast<std::size_t>(d)] == parts[static_cast<std::size_t>(d)].size()) {
      index[static_cast<std::size_t>(d--)] = 0;
    }
    if (d < 0) return regions;
  }
}

std::vector<Outgoing> outgoing(const Step& step, int rank) {
  std::vector<Outgoing> result;
  const auto from = step.from.grid()->coordinate_of(rank);
  if (!from) return result;
  const ProcessGrid& to_grid = *step.to.grid();
  const int dims = step.to.shape().size();
  // What each part of each tensor dimension of the destination shares with this rank's part.
  std::vector<std::vector<std::vector<Overlap>>> shared(static_cast<std::size_t>(dims));
  std::vector<std::vector<std::int64_t>> lengths(static_cast<std::size_t>(dims));
  for (int d = 0; d < dims; ++d) {
    const IndexSet held = step.from.index_set(*from, d);
    for (const Extents& c :
         combinations(to_grid, step.to.split_by(d), Extents::filled(to_grid.dim(), 0))) {
      const IndexSet needed = step.to.index_set(c, d);
      shared[static_cast<std::size_t>(d)].push_back(intersect(held, needed));
      lengths[static_cast<std::size_t>(d)].push_back(needed.size());
    }
  }
  for (std::int64_t position = 0; position < to_grid.size(); ++position) {
    const int receiver = to_grid.rank_at(position);
    if (receiver == rank) continue;
    const Extents to = to_grid.coordinate_at(position);
    if (!needs_any(step, to)) continue;
    if (std::any_of(step.shards.begin(), step.shards.end(),
                    [&](int m) { return to[m] != (*from)[m]; })) {
      continue;
    }
    Extents chosen = *from;
    choose_replica(step, receiver, chosen);
    if (!(chosen == *from)) continue;
    Outgoing out{receiver, {}, {}};
    for (int d = 0; d < dims; ++d) {
      std::size_t part = 0;
      for (int m : step.to.split_by(d)) {
        part = part * static_cast<std::size_t>(to_grid.size(m)) + static_cast<std::size_t>(to[m]);
      }
      out.transfer.runs.push_back(shared[static_cast<std::size_t>(d)][part]);
      out.destination_shape.push_back(lengths[static_cast<std::size_t>(d)][part]);
    }
    out.transfer.count();
    if (!out.transfer.empty()) result.push_back(std::move(out));
  }
  return result;
}

}  // namespace dtensor
