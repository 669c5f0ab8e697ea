// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Index sets against std::set and plain lists.
#include "dtensor/layout/index_set.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "dtensor/core/error.hpp"

using namespace dtensor;

namespace {

using List = std::vector<std::int64_t>;

List list_of(const IndexSet& set) {
  List list;
  for (const Interval& i : set.intervals()) {
    for (std::int64_t v = i.begin; v < i.end; ++v) list.push_back(v);
  }
  return list;
}

/// Made one index at a time.
IndexSet set_of(const std::set<std::int64_t>& indices) {
  IndexSet set;
  for (std::int64_t v : indices) set.append({v, v + 1});
  return set;
}

std::set<std::int64_t> random_indices(std::mt19937& random, int below, int percent) {
  std::set<std::int64_t> indices;
  for (int v = 0; v < below; ++v) {
    if (static_cast<int>(random() % 100) < percent) indices.insert(v);
  }
  return indices;
}

void expect_canonical(const IndexSet& set) {
  std::int64_t size = 0;
  for (std::size_t i = 0; i < set.intervals().size(); ++i) {
    EXPECT_GT(set.intervals()[i].length(), 0);
    if (i > 0) {
      EXPECT_GT(set.intervals()[i].begin, set.intervals()[i - 1].end);
    }
    size += set.intervals()[i].length();
  }
  EXPECT_EQ(set.size(), size);
}

}  // namespace

TEST(IndexSet, AppendJoinsNeighbours) {
  IndexSet set(3, 5);
  set.append({5, 7});
  set.append({7, 7});
  set.append({9, 10});
  EXPECT_EQ(set.intervals(), (std::vector<Interval>{{3, 7}, {9, 10}}));
  EXPECT_EQ(set.size(), 5);
  EXPECT_EQ(set.first(99), 3);
  EXPECT_EQ(to_string(set), "{3..6, 9}");
  const IndexSet empty(4, 4);
  EXPECT_TRUE(empty.empty());
  EXPECT_EQ(empty, IndexSet());
  EXPECT_EQ(empty.first(99), 99);
  EXPECT_EQ(to_string(empty), "{}");
  EXPECT_EQ(IndexSet(5, 2), IndexSet());
}

TEST(IndexSet, SliceIsTheListsSlice) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    const auto indices = random_indices(random, 24, 55);
    const IndexSet set = set_of(indices);
    const List list(indices.begin(), indices.end());
    ASSERT_EQ(list_of(set), list);
    const auto n = static_cast<std::int64_t>(list.size());
    for (std::int64_t begin = 0; begin <= n; ++begin) {
      for (std::int64_t end = begin; end <= n; ++end) {
        const IndexSet part = set.slice(begin, end);
        ASSERT_EQ(list_of(part), List(list.begin() + begin, list.begin() + end));
        expect_canonical(part);
      }
    }
  }
}

TEST(IndexSet, IntersectGivesThePositionsOfCommonIndices) {
  std::mt19937 random(4);
  for (int trial = 0; trial < 2000; ++trial) {
    const auto a = random_indices(random, 30, 20 + static_cast<int>(random() % 70));
    const auto b = random_indices(random, 30, 20 + static_cast<int>(random() % 70));
    const List al(a.begin(), a.end()), bl(b.begin(), b.end());
    std::vector<std::pair<std::int64_t, std::int64_t>> expected, found;
    for (std::size_t i = 0; i < al.size(); ++i) {
      for (std::size_t j = 0; j < bl.size(); ++j) {
        if (al[i] == bl[j]) expected.emplace_back(i, j);
      }
    }
    const auto runs = intersect(set_of(a), set_of(b));
    for (std::size_t r = 0; r < runs.size(); ++r) {
      ASSERT_GT(runs[r].length, 0);
      for (std::int64_t k = 0; k < runs[r].length; ++k) {
        found.emplace_back(runs[r].first + k, runs[r].second + k);
      }
      // As long as possible: the next run does not continue this one on both sides.
      if (r + 1 < runs.size()) {
        ASSERT_FALSE(runs[r].first + runs[r].length == runs[r + 1].first &&
                     runs[r].second + runs[r].length == runs[r + 1].second);
      }
    }
    ASSERT_EQ(found, expected);
  }
}

TEST(IndexSet, SplitIsTorchChunkOfTheList) {
  for (std::int64_t n = 0; n <= 17; ++n) {
    IndexSet set;  // every other index from 100
    for (std::int64_t i = 0; i < n; ++i) set.append({100 + 2 * i, 101 + 2 * i});
    for (std::int64_t parts = 1; parts <= 8; ++parts) {
      const std::int64_t step = (n + parts - 1) / parts;
      for (std::int64_t part = 0; part < parts; ++part) {
        List expected;
        for (std::int64_t i = part * step; i < std::min(n, (part + 1) * step); ++i) {
          expected.push_back(100 + 2 * i);
        }
        ASSERT_EQ(list_of(set.split(Shard(0), part, parts)), expected) << n << " " << parts;
        ASSERT_EQ(set.split(Replicate(), part, parts), set);
        ASSERT_EQ(set.split(Partial(), part, parts), set);
      }
    }
  }
}

TEST(IndexSet, SplitByGivenExtents) {
  const IndexSet set(10, 23);
  const Shard shard(0, {2, 6, 0, 5});
  EXPECT_EQ(set.split(shard, 0, 4), IndexSet(10, 12));
  EXPECT_EQ(set.split(shard, 1, 4), IndexSet(12, 18));
  EXPECT_EQ(set.split(shard, 2, 4), IndexSet());
  EXPECT_EQ(set.split(shard, 3, 4), IndexSet(18, 23));
  EXPECT_THROW(set.split(shard, 0, 3), LayoutError);
  EXPECT_THROW(IndexSet(0, 12).split(shard, 0, 4), LayoutError);
}

TEST(IndexSet, SplitsDimensionsOfAnyLength) {
  const std::int64_t n = (std::int64_t{1} << 40) + 7;
  const std::int64_t step = (n + 5) / 6;
  EXPECT_EQ(IndexSet(0, n).split(Shard(0), 2, 6), IndexSet(2 * step, 3 * step));
  EXPECT_EQ(IndexSet(0, n).split(Shard(0), 5, 6), IndexSet(5 * step, n));
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(IndexSet(0, 3).split(StridedShard(0, most), 0, 2), IndexSet(0, 3));
  EXPECT_EQ(IndexSet(0, 3).split(StridedShard(0, most), 1, 2), IndexSet());
  EXPECT_EQ(IndexSet(0, 3).split(Shard(0), 2, most), IndexSet(2, 3));
  EXPECT_EQ(IndexSet(0, 3).split(Shard(0), most - 1, most), IndexSet());
}
