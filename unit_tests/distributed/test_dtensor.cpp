// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The handle itself: what it says about the tensor, and what it shares.
#include <gtest/gtest.h>

#include "comm/collective_checks.hpp"
#include "distributed/values.hpp"
#include "dtensor/distributed/factories.hpp"

using namespace dtensor;
using namespace dtensor::testing;

namespace {
DeviceMesh line() { return DeviceMesh({world_size()}); }
}  // namespace

TEST(DTensor, HandlesAlias) {
  const DTensor x = zeros({6, 2}, line(), {Shard(0)});
  const DTensor alias = x;
  x.to_local().fill(4);
  for (double v : alias.to_local().to_vector<double>()) EXPECT_EQ(v, 4.0);
  EXPECT_EQ(alias.to_local().data(), x.to_local().data());
  EXPECT_EQ(x.redistribute({Shard(0)}).to_local().data(), x.to_local().data())
      << "nothing changes: the same tensor";
}

TEST(DTensor, UndefinedThrowsOnUse) {
  const DTensor x;
  EXPECT_FALSE(x.defined());
  EXPECT_THROW(x.shape(), StateError);
  EXPECT_THROW(x.to_local(), StateError);
  EXPECT_THROW(x.full_tensor(), StateError);
  EXPECT_THROW(x.redistribute({Replicate()}), StateError);
  EXPECT_THROW(x.is_ready(), StateError);
  EXPECT_EQ(to_string(x), "DTensor(undefined)");
}

TEST(DTensor, SaysWhatItIs) {
  const DTensor x = zeros({6, 2}, line(), {Shard(0)}, DType::int32);
  EXPECT_EQ(x.dim(), 2);
  EXPECT_EQ(x.numel(), 12);
  EXPECT_EQ(x.stride(), (Extents{2, 1}));
  EXPECT_EQ(x.device_mesh(), line());
  EXPECT_TRUE(x.is_ready());
  if (world_size() == 4) {
    const DeviceMesh mesh({2, 2});
    EXPECT_EQ(to_string(zeros({8, 8}, mesh, {Shard(0), Replicate()})),
              "DTensor(float64, (8, 8), [S(0), R], DeviceMesh(2, 2) of ranks [0, 1, 2, 3], "
              "device)");
  }
}

TEST(DTensor, ChunksOfThisRank) {
  const std::int64_t n = world_size(), r = world_rank();
  EXPECT_EQ(zeros({2 * n, 3}, line(), {Shard(0)}).chunks(),
            (std::vector<Chunk>{{{2 * r, 0}, {2, 3}}}));
  const DTensor strided = zeros({4 * n, 3}, line(), {StridedShard(0, 2)});
  if (n == 1) {
    EXPECT_EQ(strided.chunks(), (std::vector<Chunk>{{{0, 0}, {4, 3}}}));
  } else {
    EXPECT_EQ(strided.chunks(),
              (std::vector<Chunk>{{{2 * r, 0}, {2, 3}}, {{2 * n + 2 * r, 0}, {2, 3}}}));
  }
  EXPECT_EQ(zeros({1}, line(), {Shard(0)}).chunks().size(), r == 0 ? 1u : 0u);
}

TEST(DTensor, TypedViewOfThePart) {
  const DTensor x = zeros({2 * world_size(), 3}, line(), {Shard(0)});
  const auto view = x.local_view<double**, Kokkos::LayoutRight>();
  EXPECT_EQ(view.extent(0), 2u);
  view(1, 1) = 5;
  EXPECT_EQ(x.to_local().to_vector<double>()[4], 5.0);
  EXPECT_THROW(x.local_view<float**>(), TypeError);
  EXPECT_THROW(x.local_view<double*>(), TypeError);
}

TEST(DTensor, OfPartsChecksTheLocalShape) {
  const DeviceMesh mesh = line();
  const Layout layout({2 * world_size()}, mesh.grid(), {Shard(0)});
  EXPECT_NO_THROW(DTensor(mesh, layout, Tensor::zeros({2}, DType::float64)));
  EXPECT_THROW(DTensor(mesh, layout, Tensor::zeros({3}, DType::float64)), LayoutError);
  EXPECT_THROW(DTensor(mesh, layout, Tensor::zeros({2, 1}, DType::float64)), LayoutError);
}

TEST(DTensor, OutlivesItsMesh) {
  const int live = MpiCommunicator::live_count();
  {
    DTensor x;
    {
      const DeviceMesh mesh = line();
      x = distribute_tensor(global_tensor<double>({7, 3}), mesh, {Shard(0)});
    }
    EXPECT_EQ(x.full_tensor().to_vector<double>(), global_values<double>({7, 3}));
    expect_part<double>(x.redistribute({Shard(1)}), {7, 3}, {Shard(1)});
  }
  EXPECT_EQ(MpiCommunicator::live_count(), live);
}
