// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layouts with known answers, errors, and sizes that a list of elements could not have.
#include "dtensor/layout/layout.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <string>

#include "dtensor/core/error.hpp"

using namespace dtensor;

namespace {

std::shared_ptr<const ProcessGrid> grid_of(const Shape& shape,
                                           std::vector<std::string> names = {}) {
  std::vector<int> ranks(static_cast<std::size_t>(shape.product()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return std::make_shared<const ProcessGrid>(shape, ranks, std::move(names));
}

using Pairs = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Extent and offset along one tensor dimension, in rank order.
Pairs parts(const Layout& layout, int dim = 0) {
  Pairs result;
  for (std::int64_t p = 0; p < layout.grid()->size(); ++p) {
    const Extents c = layout.grid()->coordinate_at(p);
    result.emplace_back(layout.local_shape(c)[dim], layout.local_offset(c)[dim]);
  }
  return result;
}

/// The indices that each rank holds of dimension 0, in rank order.
std::vector<std::string> sets(const Layout& layout) {
  std::vector<std::string> result;
  for (std::int64_t p = 0; p < layout.grid()->size(); ++p) {
    result.push_back(to_string(layout.index_set(layout.grid()->coordinate_at(p), 0)));
  }
  return result;
}

using Texts = std::vector<std::string>;

template <class E, class F>
std::string given(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.given();
  }
  return "no such error";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST(LayoutCases, UnevenSplitOverTwoMeshDimensions) {
  EXPECT_EQ(parts(Layout({18}, grid_of({4, 2}), {Shard(0), Shard(0)})),
            (Pairs{{3, 0}, {2, 3}, {3, 5}, {2, 8}, {3, 10}, {2, 13}, {2, 15}, {1, 17}}));
}

TEST(LayoutCases, OffsetOfAnEmptyShardIsTheGlobalExtent) {
  EXPECT_EQ(parts(Layout({13}, grid_of({4, 2}), {Shard(0), Shard(0)})),
            (Pairs{{2, 0}, {2, 2}, {2, 4}, {2, 6}, {2, 8}, {2, 10}, {1, 12}, {0, 13}}));
}

TEST(LayoutCases, StridedSplitThenPlainSplit) {
  EXPECT_EQ(parts(Layout({15}, grid_of({4, 2}), {StridedShard(0, 2), Shard(0)})),
            (Pairs{{2, 0}, {2, 8}, {2, 2}, {2, 10}, {2, 4}, {2, 12}, {2, 6}, {1, 14}}));
}

TEST(LayoutCases, StridedShard) {
  EXPECT_EQ(sets(Layout({8}, grid_of({4}), {StridedShard(0, 2)})),
            (Texts{"{0, 4}", "{1, 5}", "{2, 6}", "{3, 7}"}));
  EXPECT_EQ(sets(Layout({8}, grid_of({2, 2}), {StridedShard(0, 2), Shard(0)})),
            (Texts{"{0..1}", "{4..5}", "{2..3}", "{6..7}"}));
}

TEST(LayoutCases, MoreRanksThanRows) {
  const Layout rows({2, 8}, grid_of({4}), {Shard(0)});
  EXPECT_EQ(parts(rows, 0), (Pairs{{1, 0}, {1, 1}, {0, 2}, {0, 2}}));
  EXPECT_EQ(parts(rows, 1), (Pairs{{8, 0}, {8, 0}, {8, 0}, {8, 0}}));
  EXPECT_EQ(parts(Layout({2, 8}, grid_of({4}), {Shard(1)}), 1),
            (Pairs{{2, 0}, {2, 2}, {2, 4}, {2, 6}}));
}

TEST(LayoutCases, GlobalShapeOfLocalOnes) {
  const auto infer = [](const Shape& local, const Shape& mesh, const Placements& placements) {
    return Layout::infer_global_shape(local, *grid_of(mesh), placements);
  };
  EXPECT_EQ(infer({3, 3}, {2, 4}, {Shard(0), Shard(1)}), (Shape{6, 12}));
  EXPECT_EQ(infer({3, 3}, {2, 4}, {Shard(0), Shard(0)}), (Shape{24, 3}));
  EXPECT_EQ(infer({3, 3}, {2, 4}, {Shard(-1), Partial()}), (Shape{3, 6}));
  EXPECT_EQ(infer({3, 3}, {2, 4}, {Replicate(), StridedShard(0, 2)}), (Shape{12, 3}));
  EXPECT_EQ(infer({6, 2}, {4}, {Shard(0, {2, 6, 1, 4})}), (Shape{13, 2}));
  EXPECT_EQ(infer({1, 2}, {2, 2}, {Shard(0, {2, 6}), Shard(0)}), (Shape{8, 2}));
  EXPECT_EQ(infer({6, 2}, {3, 2}, {Shard(0), Shard(0, {2, 6})}), (Shape{24, 2}));
  EXPECT_THROW(infer({3}, {2}, {Shard(1)}), IndexError);
}

TEST(LayoutCases, ShardDimensionsCountFromTheEnd) {
  const Layout layout({4, 6}, grid_of({2}), {Shard(-1)});
  EXPECT_EQ(layout, Layout({4, 6}, grid_of({2}), {Shard(1)}));
  EXPECT_EQ(layout.placement(0), Shard(1));
  EXPECT_TRUE(contains(given<IndexError>([] {
                         Layout({4, 6}, grid_of({2}), {Shard(2)});
                       }),
                       "dimension 2"));
  EXPECT_THROW(Layout({4, 6}, grid_of({2}), {Shard(-3)}), IndexError);
  EXPECT_THROW(Layout({}, grid_of({2}), {Shard(0)}), IndexError);
}

TEST(LayoutCases, OrderOfTheSplits) {
  EXPECT_EQ(sets(Layout({8, 8}, grid_of({2, 2}), {Shard(0), Shard(0)})),
            (Texts{"{0..1}", "{2..3}", "{4..5}", "{6..7}"}));
  const Texts swapped{"{0..1}", "{4..5}", "{2..3}", "{6..7}"};
  EXPECT_EQ(sets(Layout({8, 8}, grid_of({2, 2}), {StridedShard(0, 2), Shard(0)})), swapped);
  const Layout ordered({8, 8}, grid_of({2, 2}), {Shard(0), Shard(0)}, {{0, {1, 0}}});
  EXPECT_EQ(sets(ordered), swapped);
  EXPECT_EQ(ordered.split_by(0), (std::vector<int>{1, 0}));
  EXPECT_EQ(ordered.shard_order(), (ShardOrder{{0, {1, 0}}}));
}

TEST(LayoutCases, ExtentsGivenByTheUser) {
  const Layout layout({13, 2}, grid_of({4}), {Shard(0, {2, 6, 1, 4})});
  EXPECT_EQ(parts(layout), (Pairs{{2, 0}, {6, 2}, {1, 8}, {4, 9}}));
  EXPECT_EQ(layout.chunks({1}), (std::vector<Chunk>{{{2, 0}, {6, 2}}}));
}

TEST(LayoutCases, ChunksOfAStridedShard) {
  const Layout layout({8, 3}, grid_of({4, 2}), {StridedShard(0, 2), Shard(1)});
  EXPECT_EQ(layout.chunks({1, 1}), (std::vector<Chunk>{{{1, 2}, {1, 1}}, {{5, 2}, {1, 1}}}));
  EXPECT_EQ(Layout({2, 8}, grid_of({4}), {Shard(0)}).chunks({3}), std::vector<Chunk>{});
  EXPECT_EQ(Layout({}, grid_of({4}), {Replicate()}).chunks({3}), (std::vector<Chunk>{Chunk{}}));
}

TEST(LayoutCases, LocalShardSizeAndOffset) {
  using Pair = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(local_shard_size_and_offset(14, Shard(0), 3, 4), (Pair{2, 12}));
  EXPECT_EQ(local_shard_size_and_offset(13, Shard(0), 3, 4), (Pair{1, 12}));
  EXPECT_EQ(local_shard_size_and_offset(2, Shard(5), 3, 4), (Pair{0, 2}));
  EXPECT_EQ(local_shard_size_and_offset(8, StridedShard(0, 2), 1, 4), (Pair{2, 1}));
  EXPECT_EQ(local_shard_size_and_offset(13, Shard(0, {2, 6, 1, 4}), 2, 4), (Pair{1, 8}));
  EXPECT_THROW(local_shard_size_and_offset(8, Replicate(), 0, 4), LayoutError);
  EXPECT_THROW(local_shard_size_and_offset(8, Shard(0), 4, 4), IndexError);
  EXPECT_THROW(local_shard_size_and_offset(8, Shard(0), -1, 4), IndexError);
  EXPECT_THROW(local_shard_size_and_offset(-8, Shard(0), 0, 4), ValueError);
}

TEST(LayoutErrors, NumberOfPlacements) {
  const std::string text = given<LayoutError>([] { Layout({8}, grid_of({2, 2}), {Shard(0)}); });
  EXPECT_TRUE(contains(text, "1 placements") && contains(text, "2 dimensions")) << text;
}

TEST(LayoutErrors, MixedPartials) {
  const auto make = [](const Placements& p) { Layout({8}, grid_of({2, 2, 2}), p); };
  const std::string text = given<LayoutError>([&] {
    make({Partial(), Replicate(), Partial(ReduceOp::max)});
  });
  EXPECT_TRUE(contains(text, "P, R, P(max)")) << text;
  EXPECT_THROW(make({Partial(ReduceOp::avg), Shard(0), Partial(ReduceOp::min)}), LayoutError);
  EXPECT_NO_THROW(make({Partial(), Partial(ReduceOp::avg), Partial()}));
  EXPECT_NO_THROW(make({Partial(ReduceOp::min), Shard(0), Partial(ReduceOp::min)}));
}

TEST(LayoutErrors, GivenExtentsThatDoNotFit) {
  EXPECT_TRUE(contains(given<LayoutError>([] {
                         Layout({12}, grid_of({4}), {Shard(0, {2, 6, 1, 4})});
                       }),
                       "extent of 12"));
  EXPECT_THROW(Layout({13}, grid_of({3}), {Shard(0, {2, 6, 1, 4})}), LayoutError);
  EXPECT_THROW(Layout({5}, grid_of({2}), {Shard(0, {})}), LayoutError);
  // The second split must fit whatever the first one leaves, on every coordinate.
  EXPECT_NO_THROW(Layout({8}, grid_of({2, 2}), {Shard(0), Shard(0, {1, 3})}));
  EXPECT_THROW(Layout({7}, grid_of({2, 2}), {Shard(0), Shard(0, {1, 3})}), LayoutError);
  EXPECT_THROW(Layout({7}, grid_of({2, 2}), {Shard(0, {4, 3}), Shard(0, {1, 3})}), LayoutError);
}

TEST(LayoutErrors, ShardOrder) {
  const auto make = [](const ShardOrder& order) {
    Layout({8, 8}, grid_of({2, 2, 2}), {Shard(0), Shard(1), Shard(0)}, order);
  };
  EXPECT_NO_THROW(make({{0, {2, 0}}, {1, {1}}}));
  EXPECT_NO_THROW(make({{-2, {2, 0}}}));
  EXPECT_TRUE(contains(given<LayoutError>([&] { make({{0, {0, 1}}}); }), "[0, 1]"));
  EXPECT_THROW(make({{0, {0}}}), LayoutError);
  EXPECT_THROW(make({{0, {0, 0}}}), LayoutError);
  EXPECT_THROW(make({{0, {0, 2, 1}}}), LayoutError);
  EXPECT_THROW(make({{2, {0, 2}}}), IndexError);
  EXPECT_THROW(make({{0, {0, 2}}, {0, {2, 0}}}), LayoutError) << "one order per dimension";
}

TEST(LayoutErrors, Shapes) {
  EXPECT_THROW(Layout({-1}, grid_of({2}), {Replicate()}), ValueError);
  EXPECT_THROW(Layout({std::int64_t{1} << 40, std::int64_t{1} << 40}, grid_of({2}), {Replicate()}),
               ValueError);
  EXPECT_THROW(Layout::infer_global_shape({std::int64_t{1} << 58}, *grid_of({64}), {Shard(0)}),
               ValueError);
}

TEST(LayoutValue, EqualityAndHash) {
  const auto grid = grid_of({2, 2});
  const Layout layout({8, 8}, grid, {Shard(0), Shard(0)});
  const Layout same({8, 8}, grid_of({2, 2}), {Shard(-2), Shard(0)}, {{0, {0, 1}}});
  EXPECT_EQ(layout, same);
  EXPECT_EQ(layout.hash(), same.hash());
  const std::vector<Layout> all{
      layout,
      Layout({8, 9}, grid, {Shard(0), Shard(0)}),
      Layout({8, 8}, grid, {Shard(0), Shard(1)}),
      Layout({8, 8}, grid, {Shard(0), Shard(0)}, {{0, {1, 0}}}),
      Layout({8, 8}, grid, {StridedShard(0, 2), Shard(0)}),
      Layout({8, 8}, grid, {Shard(0, {4, 4}), Shard(0)}),
      Layout({8, 8}, grid, {Shard(0), Partial()}),
      Layout({8, 8}, grid, {Shard(0), Partial(ReduceOp::max)}),
      Layout({8, 8}, grid, {Shard(0), Replicate()}),
      Layout({8, 8}, grid_of({2, 2}, {"a", "b"}), {Shard(0), Shard(0)}),
      Layout({8, 8}, grid_of({4, 1}), {Shard(0), Shard(0)}),
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < all.size(); ++j) {
      EXPECT_EQ(all[i] == all[j], i == j) << to_string(all[i]) << " and " << to_string(all[j]);
      EXPECT_EQ(all[i].hash() == all[j].hash(), i == j);
    }
  }
  EXPECT_TRUE(all[6].has_partial());
  EXPECT_FALSE(layout.has_partial());
  EXPECT_EQ(all[2].with_placements({Shard(0), Shard(0)}), layout);
}

TEST(LayoutValue, Prints) {
  const auto grid = grid_of({2, 2}, {"dp", "tp"});
  EXPECT_EQ(to_string(Layout({8, 8}, grid, {Shard(0), Replicate()})),
            "(8, 8) as [S(0), R] on (dp=2, tp=2) of ranks [0, 1, 2, 3]");
  EXPECT_EQ(to_string(Layout({8}, grid, {Shard(0), Shard(0)}, {{0, {1, 0}}})),
            "(8,) as [S(0), S(0)] with dimension 0 split by [1, 0] on (dp=2, tp=2) of ranks "
            "[0, 1, 2, 3]");
}

TEST(LayoutSizes, ExtentsBeyondThirtyTwoBits) {
  const std::int64_t n = (std::int64_t{1} << 40) + 5;
  const Layout layout({n, 3}, grid_of({4, 2}), {Shard(0), StridedShard(0, 3)});
  std::int64_t sum = 0;
  for (std::int64_t p = 0; p < 8; ++p) {
    sum += layout.local_shape(layout.grid()->coordinate_at(p))[0];
  }
  EXPECT_EQ(sum, n);
  const std::int64_t quarter = (n + 3) / 4;
  EXPECT_EQ(layout.local_offset({1, 0})[0], quarter);
  const Layout plain({n, 3}, grid_of({4}), {Shard(0)});
  EXPECT_EQ(plain.chunks({3}), (std::vector<Chunk>{{{3 * quarter, 0}, {n - 3 * quarter, 3}}}));
}

TEST(LayoutSizes, ThousandsOfRanks) {
  const auto begin = std::chrono::steady_clock::now();
  const auto grid = grid_of({64, 16, 8});
  const Layout layout({1000003, 4097}, grid, {Shard(0), Shard(1), StridedShard(0, 4)});
  std::int64_t elements = 0;
  for (std::int64_t p = 0; p < grid->size(); ++p) {
    elements += layout.local_shape(grid->coordinate_at(p)).product();
  }
  EXPECT_EQ(elements, std::int64_t{1000003} * 4097);
  std::vector<std::int64_t> extents(8192, 100);
  extents[5] = 0;
  extents[6] = 200;
  const auto line = grid_of({8192});
  const Layout uneven({819200}, line, {Shard(0, extents)});
  elements = 0;
  for (std::int64_t p = 0; p < line->size(); ++p) elements += uneven.local_shape({p})[0];
  EXPECT_EQ(elements, 819200);
  EXPECT_EQ(uneven.local_offset({7})[0], 700);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(seconds.count(), 2.0);
}
