// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/debug/comm_debug_mode.hpp"
#include "dtensor/debug/visualize_sharding.hpp"
#include "dtensor/distributed/factories.hpp"

namespace dtensor {
namespace {

TEST(CommDebugMode, CountsCollectivesAndTheBytesThisRankSends) {
  const std::int64_t w = Runtime::size();
  const DeviceMesh mesh({w});
  const DTensor x = ones({4 * w, 3}, mesh, {Shard(0)});
  CommDebugMode comm;
  const DTensor replicated = x.redistribute({Replicate()});
  EXPECT_EQ(comm.count(Collective::all_gather), w > 1);
  EXPECT_EQ(comm.total_bytes_sent(), (w - 1) * 4 * 3 * 8);
  replicated.redistribute({Shard(1)});  // a slice
  EXPECT_EQ(comm.total_count(), w > 1);
  x.redistribute({Shard(1)});
  EXPECT_EQ(comm.count(Collective::all_to_all), w > 1);
  EXPECT_EQ(comm.by_operation().size(), w > 1 ? 1u : 0u);
  EXPECT_EQ(comm.total_bytes_sent(),
            comm.bytes_sent(Collective::all_gather) + comm.bytes_sent(Collective::all_to_all));
}

TEST(CommDebugMode, SeesNothingAfterItsEnd) {
  const DeviceMesh mesh({Runtime::size()});
  const DTensor x = ones({8}, mesh, {Shard(0)});
  CommDebugMode outer;
  {
    CommDebugMode inner;
    x.full_tensor();
    EXPECT_EQ(inner.total_count(), outer.total_count());
  }
  x.full_tensor();
  EXPECT_EQ(outer.total_count(), Runtime::size() > 1 ? 2 : 0);
}

TEST(VisualizeSharding, ListsWhatEachRankHolds) {
  const auto grid = std::make_shared<const ProcessGrid>(Shape{2, 2}, std::vector<int>{0, 1, 2, 3});
  const std::string text = visualize_sharding(Layout({5, 4}, grid, {Shard(0), StridedShard(1, 2)}));
  EXPECT_EQ(text,
            "(5, 4) as [S(0), SS(1,2)] on (2, 2) of ranks [0, 1, 2, 3]\n"
            "  rank 0 at (0, 0): [0:3, 0:1] [0:3, 2:3]\n"
            "  rank 1 at (0, 1): [0:3, 1:2] [0:3, 3:4]\n"
            "  rank 2 at (1, 0): [3:5, 0:1] [3:5, 2:3]\n"
            "  rank 3 at (1, 1): [3:5, 1:2] [3:5, 3:4]\n");
}

}  // namespace
}  // namespace dtensor
