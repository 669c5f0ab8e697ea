// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// An index set where kernels can look positions up.
#pragma once

#include <vector>

#include "dtensor/core/tensor.hpp"
#include "dtensor/layout/index_set.hpp"

namespace dtensor {

/// The runs of consecutive indices of a set: begin and end in the whole, position of the begin in
/// the set.
struct Runs {
  const std::int64_t* begin;
  const std::int64_t* end;
  const std::int64_t* local;
  std::int64_t count;

  /// The position of an index in the set, -1 when it is not there.
  KOKKOS_INLINE_FUNCTION std::int64_t position(std::int64_t index) const {
    std::int64_t low = 0, high = count;  // the last run that begins at or before
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      if (begin[middle] <= index) {
        low = middle;
      } else {
        high = middle;
      }
    }
    if (count == 0 || index < begin[low] || index >= end[low]) return -1;
    return local[low] + index - begin[low];
  }
  /// The index at a position of the set.
  KOKKOS_INLINE_FUNCTION std::int64_t index(std::int64_t position) const {
    std::int64_t run = 0;
    while (run + 1 < count && local[run + 1] <= position) ++run;
    return begin[run] + position - local[run];
  }
};

/// Keeps the memory of `Runs`.
class RunTable {
 public:
  RunTable(const IndexSet& set, DeviceKind device)
      : count_(static_cast<std::int64_t>(set.intervals().size())) {
    std::vector<std::int64_t> table;
    std::int64_t position = 0;
    for (const Interval& i : set.intervals()) table.push_back(i.begin);
    for (const Interval& i : set.intervals()) table.push_back(i.end);
    for (const Interval& i : set.intervals()) {
      table.push_back(position);
      position += i.length();
    }
    table_ = Tensor::from_vector(table, {3 * count_}, device);
  }
  Runs runs() const {
    const auto* const begin = table_.data_as<std::int64_t>();
    return {begin, begin + count_, begin + 2 * count_, count_};
  }

 private:
  std::int64_t count_;
  Tensor table_;
};

}  // namespace dtensor
