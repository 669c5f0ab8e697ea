// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `ProcessGrid`: an n-dimensional array of ranks with named dimensions, without communication.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dtensor/core/extents.hpp"

namespace dtensor {

/// The arithmetic of a device mesh: which rank has which coordinate. Ranks are those of
/// `MPI_COMM_WORLD`. Positions count the grid's ranks with the last dimension varying fastest.
class ProcessGrid {
 public:
  /// \param shape  extent of each mesh dimension, each 1 or more
  /// \param ranks  one rank per position, none twice
  /// \param names  one per dimension, none twice, or empty for no names
  /// Throws `ValueError` naming the value that does not fit.
  ProcessGrid(const Shape& shape, std::vector<int> ranks, std::vector<std::string> names = {});

  const Shape& shape() const noexcept { return shape_; }
  int dim() const noexcept { return shape_.size(); }
  std::int64_t size() const noexcept { return static_cast<std::int64_t>(ranks_.size()); }
  std::int64_t size(int mesh_dim) const noexcept { return shape_[mesh_dim]; }
  const std::vector<int>& ranks() const noexcept { return ranks_; }
  const std::vector<std::string>& names() const noexcept { return names_; }

  int rank_at(std::int64_t position) const noexcept {
    return ranks_[static_cast<std::size_t>(position)];
  }
  /// Position of a rank; empty when it is not in the grid.
  std::optional<std::int64_t> position_of(int rank) const noexcept;
  /// Coordinate of a rank; empty when it is not in the grid.
  std::optional<Extents> coordinate_of(int rank) const;
  Extents coordinate_at(std::int64_t position) const;
  std::int64_t position_at(const Extents& coordinate) const noexcept;

  /// Mesh dimension with the given name. Throws `ValueError` for an unknown one.
  int dim_of(const std::string& name) const;
  /// The sub-grid that varies over `mesh_dims` (in that order) and contains `coordinate`.
  ProcessGrid slice(const std::vector<int>& mesh_dims, const Extents& coordinate) const;
  /// The same ranks in one dimension.
  ProcessGrid flatten(const std::string& name) const;

  /// Equal shape, ranks and names.
  friend bool operator==(const ProcessGrid& a, const ProcessGrid& b) noexcept {
    return a.hash_ == b.hash_ && a.shape_ == b.shape_ && a.ranks_ == b.ranks_ &&
           a.names_ == b.names_;
  }
  std::size_t hash() const noexcept { return hash_; }

 private:
  Shape shape_;
  std::vector<int> ranks_;
  std::vector<std::string> names_;
  bool consecutive_;  // ranks are first, first + 1, ...: positions need no search
  std::size_t hash_;
};

/// "(dp=2, tp=2) of ranks [0, 1, 2, 3]".
std::string to_string(const ProcessGrid& grid);

}  // namespace dtensor
