// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Meshes of all ranks, and every way to lay out a tensor on them.
#pragma once

#include "dtensor/comm/device_mesh.hpp"
#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/layout/layout.hpp"
#include "ops/reference.hpp"

namespace dtensor::testing {

inline DeviceMesh flat_mesh() { return DeviceMesh(Shape{Runtime::size()}); }

/// (2, 2) of 4 ranks, (2, 3) of 6, else (1, n): more than one rank in both where that is possible.
inline DeviceMesh square_mesh() {
  const std::int64_t n = Runtime::size();
  return DeviceMesh(n % 2 == 0 ? Shape{2, n / 2} : Shape{1, n});
}

/// Extents for each rank that add up, some of them zero and none like another's neighbour.
inline std::vector<std::int64_t> uneven(std::int64_t extent, std::int64_t parts) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(parts), 0);
  for (std::int64_t i = 0; i < extent; ++i) ++extents[static_cast<std::size_t>((i * i) % parts)];
  return extents;
}

/// The contributions that are tried.
inline const Placements& partials() {
  static const Placements list{Partial(), Partial(ReduceOp::avg), Partial(ReduceOp::max),
                               Partial(ReduceOp::min)};
  return list;
}

/// What a mesh dimension can do with a tensor.
inline Placements choices(const Shape& shape, std::int64_t parts,
                          const Placements& contributions = partials()) {
  Placements list{Replicate()};
  list.insert(list.end(), contributions.begin(), contributions.end());
  for (int d = 0; d < shape.size(); ++d) {
    list.push_back(Shard(d));
    list.push_back(Shard(d, uneven(shape[d], parts)));
    list.push_back(StridedShard(d, 2));
  }
  return list;
}

/// Some layout out of all.
inline Layout any_layout(const Shape& shape, const DeviceMesh& mesh, Numbers& numbers,
                         const Placements& contributions = partials()) {
  while (true) {
    Placements placements;
    for (int m = 0; m < mesh.dim(); ++m) {
      const Placements list = choices(shape, mesh.size(m), contributions);
      placements.push_back(
          list[static_cast<std::size_t>(numbers.below(static_cast<int>(list.size())))]);
    }
    ShardOrder order;
    for (int d = 0; mesh.dim() == 2 && d < shape.size(); ++d) {
      if (placements[0].is_shard(d) && placements[1].is_shard(d) && numbers.below(2)) {
        order.push_back({d, {1, 0}});
      }
    }
    try {
      return Layout(shape, mesh.grid(), placements, order);
    } catch (const LayoutError&) {
      // Given extents do not fit, or contributions of two kinds.
    }
  }
}

/// All layouts on one mesh dimension; a sample of those on several.
inline std::vector<Layout> layouts(const Shape& shape, const DeviceMesh& mesh, Numbers& numbers,
                                   std::size_t sample = 12) {
  std::vector<Layout> result;
  if (mesh.dim() == 1) {
    for (const Placement& p : choices(shape, mesh.size())) {
      result.emplace_back(shape, mesh.grid(), Placements{p});
    }
    return result;
  }
  while (result.size() < sample) result.push_back(any_layout(shape, mesh, numbers));
  return result;
}

}  // namespace dtensor::testing
