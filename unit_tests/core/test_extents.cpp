// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/core/extents.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "dtensor/core/error.hpp"

using namespace dtensor;

TEST(Extents, IsAListOfNumbers) {
  Extents e{4, 5};
  EXPECT_EQ(e.size(), 2);
  EXPECT_FALSE(e.empty());
  e.push_back(6);
  EXPECT_EQ(e, (Extents{4, 5, 6}));
  EXPECT_NE(e, (Extents{4, 5}));
  EXPECT_NE(e, (Extents{4, 5, 7}));
  e.erase(1);
  EXPECT_EQ(e, (Extents{4, 6}));
  e.erase(1);
  e.erase(0);
  EXPECT_EQ(e, Extents());
  EXPECT_EQ(Extents::filled(3, -1), (Extents{-1, -1, -1}));
  EXPECT_EQ(Extents(std::vector<std::int64_t>{7, 8}), (Extents{7, 8}));
  std::int64_t sum = 0;
  for (std::int64_t v : Extents{1, 2, 4}) sum += v;
  EXPECT_EQ(sum, 7);
}

TEST(Extents, HoldsEightAndNoMore) {
  Extents e{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(e[7], 8);
  EXPECT_THROW(e.push_back(9), ValueError);
  EXPECT_EQ(e.size(), 8);
  EXPECT_THROW((Extents{1, 2, 3, 4, 5, 6, 7, 8, 9}), ValueError);
  EXPECT_THROW(Extents(std::vector<std::int64_t>(9, 1)), ValueError);
  EXPECT_THROW(Extents::filled(9, 1), ValueError);
}

TEST(Extents, Product) {
  EXPECT_EQ(Extents().product(), 1);
  EXPECT_EQ((Extents{7, 0, 3}).product(), 0);
  EXPECT_EQ((Extents{std::int64_t{1} << 40, 3}).product(), std::int64_t{3} << 40);
}

TEST(Extents, Prints) {
  EXPECT_EQ(to_string(Extents()), "()");
  EXPECT_EQ(to_string(Extents{4}), "(4,)");
  EXPECT_EQ(to_string(Extents{4, std::int64_t{1} << 40}), "(4, 1099511627776)");
}

TEST(Extents, InjectiveStrides) {
  EXPECT_TRUE(is_injective(Shape{}, Extents{}));
  EXPECT_TRUE(is_injective(Shape{4, 5, 6}, Extents{30, 6, 1}));
  EXPECT_TRUE(is_injective(Shape{6, 4}, Extents{1, 6})) << "transposed";
  EXPECT_TRUE(is_injective(Shape{4, 5}, Extents{12, 2})) << "with gaps";
  EXPECT_TRUE(is_injective(Shape{1, 5}, Extents{0, 1})) << "one element does not repeat";
  EXPECT_TRUE(is_injective(Shape{0, 5}, Extents{1, 0})) << "no elements";
  EXPECT_FALSE(is_injective(Shape{4, 5}, Extents{0, 1})) << "expanded";
  EXPECT_FALSE(is_injective(Shape{4, 5}, Extents{1, 1})) << "sliding windows";
  EXPECT_FALSE(is_injective(Shape{4, 5}, Extents{4, 1}));
}

TEST(Extents, RowMajorStrides) {
  EXPECT_EQ(row_major_strides(Shape{}), Extents());
  EXPECT_EQ(row_major_strides(Shape{4, 5, 6}), (Extents{30, 6, 1}));
  EXPECT_EQ(row_major_strides(Shape{4, 0, 6}), (Extents{6, 6, 1}));
  EXPECT_EQ(row_major_strides(Shape{2, std::int64_t{1} << 40, 3}),
            (Extents{std::int64_t{3} << 40, 3, 1}));
}

TEST(NormalizeDim, CountsFromTheEnd) {
  EXPECT_EQ(normalize_dim("f", 0, 3), 0);
  EXPECT_EQ(normalize_dim("f", 2, 3), 2);
  EXPECT_EQ(normalize_dim("f", -1, 3), 2);
  EXPECT_EQ(normalize_dim("f", -3, 3), 0);
  for (std::int64_t dim : {std::int64_t{3}, std::int64_t{-4}, std::int64_t{1} << 32}) {
    EXPECT_THROW(normalize_dim("f", dim, 3), IndexError) << dim;
  }
  EXPECT_THROW(normalize_dim("f", 0, 0), IndexError);
  try {
    normalize_dim("some_function", 5, 3);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.function(), "some_function");
    EXPECT_NE(e.given().find("5"), std::string::npos);
    EXPECT_NE(e.expected().find("-3 to 2"), std::string::npos);
  }
}

TEST(CheckedElementCount, RefusesWhatSixtyFourBitsCannotCount) {
  const std::int64_t big = std::int64_t{1} << 40;
  EXPECT_EQ(checked_element_count("f", Shape{}), 1);
  EXPECT_EQ(checked_element_count("f", Shape{3, 4}), 12);
  EXPECT_EQ(checked_element_count("f", Shape{3, 0, big}), 0);
  EXPECT_EQ(checked_element_count("f", Shape{big, 1 << 18}), big << 18);
  // A byte count of complex128 elements must fit too.
  EXPECT_THROW(checked_element_count("f", Shape{big, 1 << 19}), ValueError);
  EXPECT_THROW(checked_element_count("f", Shape{big, big}), ValueError);
  EXPECT_THROW(checked_element_count("f", Shape{std::numeric_limits<std::int64_t>::max()}),
               ValueError);
  EXPECT_THROW(checked_element_count("f", Shape{3, -1}), ValueError);
  EXPECT_THROW(checked_element_count("f", Shape{0, -1}), ValueError);
  // Strides of an empty tensor are products of the other extents.
  EXPECT_THROW(checked_element_count("f", Shape{0, big, big}), ValueError);
  EXPECT_THROW(checked_element_count("f", Shape{big, big, 0}), ValueError);
  try {
    checked_element_count("some_function", Shape{4, -2});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.function(), "some_function");
    EXPECT_NE(e.given().find("(4, -2)"), std::string::npos);
  }
}
