// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `Layout`: what part of a global tensor each coordinate of a mesh holds, as pure arithmetic.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dtensor/core/extents.hpp"
#include "dtensor/layout/index_set.hpp"
#include "dtensor/layout/placement.hpp"
#include "dtensor/layout/process_grid.hpp"

namespace dtensor {

/// A box of the global tensor: first index and extent per dimension.
struct Chunk {
  Extents offset;
  Shape shape;
  friend bool operator==(const Chunk&, const Chunk&) = default;
};

/// For tensor dimensions that several mesh dimensions split: the order in which they split, the
/// first one coarsest. Tensor dimensions not listed are split in increasing mesh dimension.
using ShardOrder = std::vector<std::pair<int, std::vector<int>>>;

/// An immutable value with shared representation; copying is cheap. Every rank can ask for every
/// coordinate. Coordinates are valid ones of `grid()`.
class Layout {
 public:
  /// \param shape       global shape
  /// \param placements  one per mesh dimension; negative shard dimensions count from the end
  /// Throws `LayoutError` when their number is not the mesh's, when Partial operations are mixed
  /// (sum with avg may be), when given extents do not fit or `order` is not a permutation;
  /// `IndexError` for a shard dimension out of range.
  Layout(const Shape& shape, std::shared_ptr<const ProcessGrid> grid, Placements placements,
         const ShardOrder& order = {});

  const Shape& shape() const noexcept { return impl_->shape; }
  const std::shared_ptr<const ProcessGrid>& grid() const noexcept { return impl_->grid; }
  /// One per mesh dimension, shard dimensions counted from the front.
  const Placements& placements() const noexcept { return impl_->placements; }
  const Placement& placement(int mesh_dim) const noexcept {
    return impl_->placements[static_cast<std::size_t>(mesh_dim)];
  }
  /// The mesh dimensions that split a tensor dimension, coarsest first.
  const std::vector<int>& split_by(int tensor_dim) const noexcept {
    return impl_->split_by[static_cast<std::size_t>(tensor_dim)];
  }
  /// The shard order where it is not the default.
  ShardOrder shard_order() const;

  /// The indices of one tensor dimension that a coordinate holds.
  IndexSet index_set(const Extents& coordinate, int tensor_dim) const;
  Shape local_shape(const Extents& coordinate) const;
  /// First global index per dimension; the global extent where the coordinate holds none.
  Extents local_offset(const Extents& coordinate) const;
  /// The boxes a coordinate holds, in the order of their elements in the local tensor's dimensions.
  /// Empty when it holds nothing.
  std::vector<Chunk> chunks(const Extents& coordinate) const;

  bool has_partial() const noexcept { return impl_->has_partial; }
  /// The same layout with other placements, or for another global shape.
  Layout with_placements(Placements placements, const ShardOrder& order = {}) const {
    return Layout(shape(), grid(), std::move(placements), order);
  }
  /// The same layout with Replicate for every Partial.
  Layout without_partial() const;

  std::size_t hash() const noexcept { return impl_->hash; }
  friend bool operator==(const Layout& a, const Layout& b) noexcept {
    return a.impl_ == b.impl_ || (a.impl_->hash == b.impl_->hash && a.equal(b));
  }

  /// The global shape whose shards have `local_shape` on every rank: extents times the ranks that
  /// split them, or the sum of given extents. Throws `IndexError` for a shard dimension out of
  /// range, `ValueError` for an extent beyond 64 bits.
  static Shape infer_global_shape(const Shape& local_shape, const ProcessGrid& grid,
                                  const Placements& placements, const ShardOrder& order = {});

 private:
  struct Impl {
    Shape shape;
    std::shared_ptr<const ProcessGrid> grid;
    Placements placements;
    std::vector<std::vector<int>> split_by;
    bool has_partial = false;
    std::size_t hash = 0;
  };
  bool equal(const Layout& other) const noexcept;

  std::shared_ptr<const Impl> impl_;
};

/// "(8, 8) as [S(0), R] on (dp=2, tp=2) of ranks [0, 1, 2, 3]".
std::string to_string(const Layout& layout);

/// Extent and first offset of what mesh coordinate `part` of `parts` ranks holds of a dimension of
/// `extent` elements under a Shard or StridedShard. The offset is `extent` for an empty part.
/// Throws `LayoutError` for another placement, `IndexError` for a part out of range.
std::pair<std::int64_t, std::int64_t> local_shard_size_and_offset(std::int64_t extent,
                                                                  const Placement& placement,
                                                                  std::int64_t part,
                                                                  std::int64_t parts);

}  // namespace dtensor
