// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/layout/placement.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "dtensor/core/error.hpp"

using namespace dtensor;

TEST(Placement, KnowsWhatItIs) {
  const Shard shard(1);
  EXPECT_EQ(shard.kind(), Placement::Kind::shard);
  EXPECT_TRUE(shard.is_shard() && shard.is_shard(1));
  EXPECT_FALSE(shard.is_shard(0) || shard.is_replicate() || shard.is_partial());
  EXPECT_EQ(shard.split_factor(), 1);
  EXPECT_FALSE(shard.has_extents());
  const StridedShard strided(0, 4);
  EXPECT_EQ(strided.kind(), Placement::Kind::strided_shard);
  EXPECT_TRUE(strided.is_shard(0));
  EXPECT_EQ(strided.split_factor(), 4);
  EXPECT_TRUE(Replicate().is_replicate());
  EXPECT_FALSE(Replicate().is_shard() || Replicate().is_partial());
  const Partial partial(ReduceOp::max);
  EXPECT_TRUE(partial.is_partial() && partial.is_partial(ReduceOp::max));
  EXPECT_FALSE(partial.is_partial(ReduceOp::sum) || partial.is_shard() || partial.is_replicate());
  EXPECT_TRUE(Partial().is_partial(ReduceOp::sum));
  const Shard uneven(2, {2, 6, 1, 4});
  EXPECT_EQ(uneven.extents(), (std::vector<std::int64_t>{2, 6, 1, 4}));
  EXPECT_EQ(uneven.with_dim(0), Shard(0, {2, 6, 1, 4}));
}

TEST(Placement, EqualsOnlyItsLike) {
  const Placements all{Shard(0),
                       Shard(1),
                       Shard(-1),
                       StridedShard(0, 1),
                       StridedShard(0, 2),
                       StridedShard(1, 2),
                       Replicate(),
                       Partial(),
                       Partial(ReduceOp::avg),
                       Partial(ReduceOp::max),
                       Shard(0, {1, 2}),
                       Shard(0, {2, 1}),
                       Shard(0, {})};
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < all.size(); ++j) EXPECT_EQ(all[i] == all[j], i == j) << i << j;
  }
  EXPECT_EQ(Shard(0, {1, 2}), Shard(0, {1, 2}));
}

TEST(Placement, Prints) {
  EXPECT_EQ(to_string(Shard(0)), "S(0)");
  EXPECT_EQ(to_string(Shard(0, {2, 6, 1, 4})), "S(0,[2, 6, 1, 4])");
  EXPECT_EQ(to_string(StridedShard(0, 2)), "SS(0,2)");
  EXPECT_EQ(to_string(Replicate()), "R");
  EXPECT_EQ(to_string(Partial()), "P");
  EXPECT_EQ(to_string(Partial(ReduceOp::max)), "P(max)");
  EXPECT_EQ(to_string(Placements{Shard(0), Replicate()}), "[S(0), R]");
  EXPECT_EQ(to_string(Placements{}), "[]");
}

TEST(Placement, RefusesImpossibleValues) {
  EXPECT_THROW(StridedShard(0, 0), ValueError);
  EXPECT_THROW(StridedShard(0, -2), ValueError);
  EXPECT_THROW(Shard(0, {2, -1}), ValueError);
  EXPECT_THROW(Shard(0, {std::int64_t{1} << 62, std::int64_t{1} << 62}), ValueError);
}

TEST(ReduceOp, HasAMeaningForSomeTypes) {
  // Rows: sum, avg, min, max, product, band, bor, bxor.
  const struct {
    DType dtype;
    const char* allowed;
  } table[] = {
      {DType::float64, "yyyyynnn"},    {DType::float32, "yyyyynnn"},
      {DType::float16, "yyyyynnn"},    {DType::bfloat16, "yyyyynnn"},
      {DType::complex128, "yynnynnn"}, {DType::complex64, "yynnynnn"},
      {DType::int64, "ynyyyyyy"},      {DType::int32, "ynyyyyyy"},
      {DType::int16, "ynyyyyyy"},      {DType::int8, "ynyyyyyy"},
      {DType::uint8, "ynyyyyyy"},      {DType::boolean, "ynyyyyyy"},
  };
  for (const auto& row : table) {
    for (int op = 0; op < reduce_op_count; ++op) {
      bool allowed = true;
      try {
        check_reduce_op("some_function", static_cast<ReduceOp>(op), row.dtype);
      } catch (const TypeError& e) {
        allowed = false;
        EXPECT_EQ(e.function(), "some_function");
        EXPECT_NE(e.given().find(to_string(row.dtype)), std::string::npos);
        EXPECT_NE(e.given().find(to_string(static_cast<ReduceOp>(op))), std::string::npos);
      }
      EXPECT_EQ(allowed, row.allowed[op] == 'y') << to_string(row.dtype) << " " << op;
    }
  }
}
