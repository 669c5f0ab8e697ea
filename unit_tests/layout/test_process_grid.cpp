// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/layout/process_grid.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "dtensor/core/error.hpp"

using namespace dtensor;

namespace {

template <class F>
std::string value_error(F&& f) {
  try {
    f();
  } catch (const ValueError& e) {
    return e.given();
  }
  return "no error";
}

}  // namespace

TEST(ProcessGrid, CoordinatesAreRowMajor) {
  const ProcessGrid grid({2, 3}, {5, 3, 1, 0, 2, 9}, {"dp", "tp"});
  EXPECT_EQ(grid.dim(), 2);
  EXPECT_EQ(grid.size(), 6);
  EXPECT_EQ(grid.size(1), 3);
  EXPECT_EQ(grid.rank_at(2), 1);
  EXPECT_EQ(grid.position_of(2), 4);
  EXPECT_EQ(grid.position_of(4), std::nullopt);
  EXPECT_EQ(grid.position_of(-1), std::nullopt);
  EXPECT_EQ(grid.coordinate_of(2), (Extents{1, 1}));
  EXPECT_EQ(grid.coordinate_of(7), std::nullopt);
  for (std::int64_t p = 0; p < 6; ++p) EXPECT_EQ(grid.position_at(grid.coordinate_at(p)), p);
  EXPECT_EQ(grid.dim_of("tp"), 1);
  EXPECT_EQ(to_string(grid), "(dp=2, tp=3) of ranks [5, 3, 1, 0, 2, 9]");
}

TEST(ProcessGrid, ConsecutiveRanksNeedNotStartAtZero) {
  const ProcessGrid grid({3}, {4, 5, 6});
  EXPECT_EQ(grid.position_of(3), std::nullopt);
  EXPECT_EQ(grid.position_of(4), 0);
  EXPECT_EQ(grid.position_of(6), 2);
  EXPECT_EQ(grid.position_of(7), std::nullopt);
}

TEST(ProcessGrid, Slices) {
  const ProcessGrid grid({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {"a", "b", "c"});
  const ProcessGrid b = grid.slice({1}, {1, 2, 1});
  EXPECT_EQ(b.ranks(), (std::vector<int>{7, 9, 11}));
  EXPECT_EQ(b.names(), (std::vector<std::string>{"b"}));
  const ProcessGrid ca = grid.slice({2, 0}, {1, 2, 1});
  EXPECT_EQ(ca.shape(), (Shape{2, 2}));
  EXPECT_EQ(ca.ranks(), (std::vector<int>{4, 10, 5, 11}));
  EXPECT_EQ(ca.names(), (std::vector<std::string>{"c", "a"}));
  const ProcessGrid flat = grid.flatten("all");
  EXPECT_EQ(flat.shape(), (Shape{12}));
  EXPECT_EQ(flat.ranks(), grid.ranks());
  EXPECT_EQ(flat.names(), (std::vector<std::string>{"all"}));
  EXPECT_TRUE(grid.flatten("").names().empty());
}

TEST(ProcessGrid, EqualityIsOfShapeRanksAndNames) {
  const ProcessGrid grid({2, 2}, {0, 1, 2, 3}, {"a", "b"});
  const ProcessGrid same({2, 2}, {0, 1, 2, 3}, {"a", "b"});
  EXPECT_EQ(grid, same);
  EXPECT_EQ(grid.hash(), same.hash());
  EXPECT_FALSE(grid == ProcessGrid({2, 2}, {0, 1, 2, 3}));
  EXPECT_FALSE(grid == ProcessGrid({2, 2}, {0, 1, 2, 3}, {"a", "c"}));
  EXPECT_FALSE(grid == ProcessGrid({2, 2}, {0, 1, 3, 2}, {"a", "b"}));
  EXPECT_FALSE(ProcessGrid({4, 1}, {0, 1, 2, 3}) == ProcessGrid({1, 4}, {0, 1, 2, 3}));
}

TEST(ProcessGrid, ErrorsNameTheValue) {
  EXPECT_NE(value_error([] { ProcessGrid({2, 2}, {0, 1, 2}); }).find("3 ranks"), std::string::npos);
  EXPECT_NE(value_error([] {
              ProcessGrid({2, 2}, {0, 1, 2, 1});
            }).find("rank 1 twice"),
            std::string::npos);
  EXPECT_NE(value_error([] { ProcessGrid({2}, {0, -3}); }).find("-3"), std::string::npos);
  EXPECT_NE(value_error([] { ProcessGrid({0}, {}); }).find("(0,)"), std::string::npos);
  EXPECT_NE(value_error([] { ProcessGrid({}, {0}); }).find("without dimensions"),
            std::string::npos);
  EXPECT_NE(value_error([] {
              ProcessGrid({1, 2}, {0, 1}, {"x", "x"});
            }).find("\"x\" twice"),
            std::string::npos);
  EXPECT_NE(value_error([] {
              ProcessGrid({1, 2}, {0, 1}, {"x"});
            }).find("1 names"),
            std::string::npos);
  const ProcessGrid grid({1, 2}, {0, 1}, {"x", "y"});
  EXPECT_NE(value_error([&] { grid.dim_of("z"); }).find("\"z\""), std::string::npos);
  EXPECT_NE(value_error([&] { grid.slice({0, 0}, {0, 0}); }).find("twice"), std::string::npos);
}

TEST(ProcessGrid, IsFastForManyRanks) {
  std::vector<int> ranks(100000);
  std::iota(ranks.begin(), ranks.end(), 0);
  const ProcessGrid grid({100, 1000}, ranks);
  std::int64_t sum = 0;
  for (int r = 0; r < 100000; ++r) sum += grid.coordinate_of(r).value()[1];
  EXPECT_EQ(sum, 100 * 999 * 500);
  EXPECT_EQ(to_string(grid), "(100, 1000) of 100000 ranks from 0");
}
