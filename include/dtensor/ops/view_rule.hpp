// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Layouts after operators that leave every element on the rank that holds it: views, slices,
/// repetition, diagonals. Pure arithmetic, which every rank does alike.
///
/// What each coordinate holds afterwards is known exactly, as index sets. Placements are then
/// looked for under which a coordinate holds just that, and compared on every coordinate: a layout
/// that is found is right for uneven, empty and strided shards alike.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dtensor/core/function_ref.hpp"
#include "dtensor/layout/layout.hpp"

namespace dtensor {

/// Consecutive dimensions of two shapes with the same number of elements: `[in_begin, in_end)` of
/// one are `[out_begin, out_end)` of the other, read row by row. A flattened dimension is a group
/// of several to one, a split one is one to several; a group without input dimensions has new
/// dimensions of extent 1.
struct DimGroup {
  int in_begin, in_end;
  int out_begin, out_end;
  bool is_same() const noexcept { return in_end - in_begin == 1 && out_end - out_begin == 1; }
  friend bool operator==(const DimGroup&, const DimGroup&) = default;
};

/// The smallest groups that two shapes of the same number of elements fall into, in order.
/// Everything is one group where there are no elements.
std::vector<DimGroup> dim_groups(const Shape& in, const Shape& out);

/// The most intervals, of all ranks together, that the indices of uneven shards are written down in
/// when a view is looked for: it bounds the time and memory that a view takes. Even shards need
/// none.
inline constexpr std::int64_t max_view_intervals = std::int64_t{1} << 16;

/// The indices, in a dimension that flattens dimensions of these extents, of a product of index
/// sets. Empty when that takes more than `max_intervals` intervals.
std::optional<IndexSet> flatten(const Shape& extents, const std::vector<IndexSet>& sets,
                                std::int64_t max_intervals = max_view_intervals);
/// The reverse: a product of sets of indices of dimensions of these extents. Empty when the set is
/// no product; the empty set has none either.
std::optional<std::vector<IndexSet>> unflatten(const Shape& extents, const IndexSet& set);

/// The layout of the same elements in the same places, seen with another shape. Empty when no
/// placements describe that, or where that takes more than `max_view_intervals`. Throws nothing for
/// shapes of the same number of elements.
std::optional<Layout> view_layout(const Layout& layout, const Shape& shape);

/// What becomes of the set of indices that a rank holds along one dimension.
using IndexMap = FunctionRef<IndexSet(const IndexSet&)>;

/// The layout after dimension `dim` has got `extent` indices, of which each coordinate holds what
/// `map` makes of those it held. Empty when no placements describe that.
std::optional<Layout> mapped_layout(const Layout& layout, int dim, std::int64_t extent,
                                    IndexMap map);

/// The indices `start`, `start + step`, ... (`length` of them) that are in `set`, numbered from 0.
IndexSet sliced(const IndexSet& set, std::int64_t start, std::int64_t step, std::int64_t length);

/// What coordinates hold of some dimensions.
struct Holdings {
  Shape shape;                       ///< extents of the dimensions
  std::vector<int> mesh_dims;        ///< that may split them, the coarser ones first
  std::vector<Extents> coordinates;  ///< all combinations along `mesh_dims`, others zero
  /// One set per dimension for each coordinate; absent where the coordinate holds nothing.
  std::vector<std::optional<std::vector<IndexSet>>> sets;
};
/// A mesh dimension and how it splits a dimension.
struct Split {
  int mesh_dim;
  Placement placement;
};
/// For each dimension the mesh dimensions that split it, coarsest first, such that every coordinate
/// holds what `holdings` says. Empty when there are none.
std::optional<std::vector<std::vector<Split>>> find_splits(const ProcessGrid& grid,
                                                           const Holdings& holdings);

/// All coordinates that differ from `origin` in the given mesh dimensions only; the last one of
/// them varies fastest.
std::vector<Extents> coordinates_along(const ProcessGrid& grid, const std::vector<int>& mesh_dims,
                                       const Extents& origin);

}  // namespace dtensor
