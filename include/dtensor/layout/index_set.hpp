// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Sets of indices along one tensor dimension, as sorted half-open intervals.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtensor/layout/placement.hpp"

namespace dtensor {

/// Indices `begin` to `end - 1`.
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t length() const noexcept { return end - begin; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// A run of indices that two sets share: where it starts in each set's own numbering.
struct Overlap {
  std::int64_t first;   ///< position in the first set
  std::int64_t second;  ///< position in the second set
  std::int64_t length;
  friend bool operator==(const Overlap&, const Overlap&) = default;
};

/// A set of indices along one dimension: disjoint, non-adjacent, sorted, non-empty intervals.
/// The position of an index in the set is its local index on the rank that holds the set.
class IndexSet {
 public:
  IndexSet() = default;
  /// All of `begin` to `end - 1`.
  IndexSet(std::int64_t begin, std::int64_t end);

  const std::vector<Interval>& intervals() const noexcept { return intervals_; }
  /// Number of indices.
  std::int64_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  /// The first index; `if_empty` for the empty set.
  std::int64_t first(std::int64_t if_empty) const noexcept {
    return empty() ? if_empty : intervals_.front().begin;
  }

  /// The indices at positions `begin` to `end - 1` of this set.
  IndexSet slice(std::int64_t begin, std::int64_t end) const;
  /// Adds the indices of an interval that starts at or after the end of the last one.
  void append(Interval interval);
  /// The part of this set that coordinate `part` of a mesh dimension with `parts` ranks holds.
  /// Throws `LayoutError` when given extents do not fit the set.
  IndexSet split(const Placement& placement, std::int64_t part, std::int64_t parts) const;

  friend bool operator==(const IndexSet&, const IndexSet&) = default;

 private:
  std::vector<Interval> intervals_;
  std::int64_t size_ = 0;
};

/// The runs of indices in both sets, in increasing order, each as long as it is consecutive in
/// both. O(intervals of a + intervals of b).
std::vector<Overlap> intersect(const IndexSet& a, const IndexSet& b);

/// "{0..3, 8..10}" with inclusive ends, "{}" for the empty set.
std::string to_string(const IndexSet& set);

}  // namespace dtensor
