// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/layout/index_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "dtensor/core/error.hpp"

namespace dtensor {

IndexSet::IndexSet(std::int64_t begin, std::int64_t end) { append({begin, end}); }

void IndexSet::append(Interval interval) {
  if (interval.length() <= 0) return;
  if (!intervals_.empty() && intervals_.back().end == interval.begin) {
    intervals_.back().end = interval.end;
  } else {
    intervals_.push_back(interval);
  }
  size_ += interval.length();
}

IndexSet IndexSet::slice(std::int64_t begin, std::int64_t end) const {
  IndexSet result;
  std::int64_t position = 0;
  for (const Interval& i : intervals_) {
    if (position >= end) break;
    result.append({i.begin + std::max<std::int64_t>(begin - position, 0),
                   i.begin + std::min(end - position, i.length())});
    position += i.length();
  }
  return result;
}

IndexSet IndexSet::split(const Placement& placement, std::int64_t part, std::int64_t parts) const {
  if (!placement.is_shard()) return *this;
  if (placement.has_extents()) {
    const auto& extents = placement.extents();
    const std::int64_t sum = std::accumulate(extents.begin(), extents.end(), std::int64_t{0});
    if (static_cast<std::int64_t>(extents.size()) != parts || sum != size_) {
      throw LayoutError("Layout",
                        fmt::format("{} for an extent of {} split over {} ranks",
                                    to_string(placement), size_, parts),
                        fmt::format("{} extents that add up to {}", parts, size_));
    }
    const std::int64_t begin =
        std::accumulate(extents.begin(), extents.begin() + part, std::int64_t{0});
    return slice(begin, begin + extents[static_cast<std::size_t>(part)]);
  }
  // Piece `index` of `length` positions cut into `count` pieces the way torch.chunk does.
  const auto chunk = [](std::int64_t length, std::int64_t index, std::int64_t count) {
    const std::int64_t step = length / count + (length % count != 0);
    const std::int64_t begin = std::min(index * step, length);
    return Interval{begin, std::min(begin + step, length)};
  };
  IndexSet result;
  const std::int64_t pieces = std::min(placement.split_factor(), std::max<std::int64_t>(size_, 1));
  // The pieces are in order: each is looked for from where the last one was found.
  auto at = intervals_.begin();
  std::int64_t position = 0;
  for (std::int64_t k = 0; k < pieces; ++k) {
    const Interval piece = chunk(size_, k, placement.split_factor());
    const Interval own = chunk(piece.length(), part, parts);
    const std::int64_t begin = piece.begin + own.begin, end = piece.begin + own.end;
    while (at != intervals_.end() && position + at->length() <= begin) {
      position += at->length();
      ++at;
    }
    std::int64_t p = position;
    for (auto i = at; i != intervals_.end() && p < end; ++i) {
      result.append({i->begin + std::max<std::int64_t>(begin - p, 0),
                     i->begin + std::min(end - p, i->length())});
      p += i->length();
    }
  }
  return result;
}

std::vector<Overlap> intersect(const IndexSet& a, const IndexSet& b) {
  std::vector<Overlap> result;
  std::size_t i = 0, j = 0;
  std::int64_t a_position = 0, b_position = 0;  // positions of the current intervals' begins
  const auto& as = a.intervals();
  const auto& bs = b.intervals();
  while (i < as.size() && j < bs.size()) {
    const std::int64_t begin = std::max(as[i].begin, bs[j].begin);
    const std::int64_t end = std::min(as[i].end, bs[j].end);
    if (begin < end) {
      const Overlap next{a_position + begin - as[i].begin, b_position + begin - bs[j].begin,
                         end - begin};
      // Neighbours in both numberings are one run even when their indices are not consecutive.
      if (!result.empty() && result.back().first + result.back().length == next.first &&
          result.back().second + result.back().length == next.second) {
        result.back().length += next.length;
      } else {
        result.push_back(next);
      }
    }
    if (as[i].end < bs[j].end) {
      a_position += as[i++].length();
    } else {
      b_position += bs[j++].length();
    }
  }
  return result;
}

std::string to_string(const IndexSet& set) {
  std::string text = "{";
  for (const Interval& i : set.intervals()) {
    if (text.size() > 1) text += ", ";
    text +=
        i.length() == 1 ? fmt::format("{}", i.begin) : fmt::format("{}..{}", i.begin, i.end - 1);
  }
  return text + "}";
}

}  // namespace dtensor
