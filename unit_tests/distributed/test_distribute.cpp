// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "comm/collective_checks.hpp"
#include "distributed/values.hpp"
#include "dtensor/distributed/dtensor.hpp"

using namespace dtensor;
using namespace dtensor::testing;

namespace {

DeviceMesh line() { return DeviceMesh({world_size()}); }
DeviceMesh plane() { return DeviceMesh(two_dims(world_size())); }

/// The global tensor on the source, one of other values elsewhere.
Tensor only_on(int source, const Shape& shape) {
  return world_rank() == source ? global_tensor<double>(shape)
                                : Tensor::full(shape, -1000, DType::float64);
}

}  // namespace

TEST(DistributeTensor, GivesEveryRankItsPart) {
  const DeviceMesh mesh = plane();
  const std::vector<Placements> layouts{{Shard(0), Shard(1)},          {Shard(0), Shard(0)},
                                        {Shard(1), Shard(0)},          {Replicate(), Shard(0)},
                                        {Shard(-1), Replicate()},      {Replicate(), Replicate()},
                                        {StridedShard(0, 2), Shard(0)}};
  for (const Shape& shape : {Shape{12, 8}, Shape{7, 5}, Shape{1, 3}, Shape{2, 2}, Shape{0, 4}}) {
    for (const Placements& p : layouts) {
      const DTensor x = distribute_tensor(only_on(0, shape), mesh, p);
      Placements expected = p;
      if (p[0] == Shard(-1)) expected[0] = Shard(1);
      expect_part<double>(x, shape, expected);
      EXPECT_EQ(x.full_tensor().to_vector<double>(), global_values<double>(shape));
    }
  }
}

TEST(DistributeTensor, FromAnyRankAndFromEveryRank) {
  const Shape shape{5, 3, 4};
  for (int source = 0; source < world_size(); ++source) {
    expect_part<double>(distribute_tensor(only_on(source, shape), line(), {Shard(2)}, source),
                        shape, {Shard(2)});
    const Tensor own = world_rank() == source ? global_tensor<double>(shape) : Tensor();
    expect_part<double>(distribute_tensor(own, line(), {Shard(0)}, source), shape, {Shard(0)});
    expect_part<double>(distribute_tensor(own, line(), {Replicate()}, source), shape,
                        {Replicate()});
  }
  // Everyone slices its own tensor.
  const Tensor own = Tensor::full(shape, world_rank(), DType::float64);
  const DTensor x = distribute_tensor(own, line(), {Shard(0)}, std::nullopt);
  for (double v : x.to_local().to_vector<double>()) EXPECT_EQ(v, world_rank());
  expect_part<double>(
      distribute_tensor(global_tensor<double>(shape), line(), {Shard(1)}, std::nullopt), shape,
      {Shard(1)});
}

TEST(DistributeTensor, TakesStridedTensors) {
  const Shape shape{6, 5};
  const Tensor column_major =
      global_tensor<double>(shape).transpose(0, 1).contiguous().transpose(0, 1);
  ASSERT_EQ(column_major.strides(), (Extents{1, 6}));
  expect_part<double>(distribute_tensor(column_major, line(), {Shard(0)}), shape, {Shard(0)});
  expect_part<double>(distribute_tensor(column_major, line(), {Shard(1)}), shape, {Shard(1)});
  expect_part<double>(distribute_tensor(column_major, line(), {Replicate()}), shape, {Replicate()});
}

TEST(DistributeTensor, IsAPartOfItsOwn) {
  for (const std::optional<int> source : {std::optional<int>(0), std::optional<int>()}) {
    for (const Placement& p : Placements{Shard(0), Replicate()}) {
      const Tensor own = global_tensor<double>({6, 2});
      const DTensor x = distribute_tensor(own, line(), {p}, source);
      own.fill(-1000);
      expect_part<double>(x, {6, 2}, {p});
    }
  }
}

TEST(DistributeTensor, ZeroDimensionsAndNoElements) {
  expect_part<double>(distribute_tensor(only_on(0, {}), line(), {Replicate()}), {}, {Replicate()});
  expect_part<double>(distribute_tensor(only_on(0, {0}), line(), {Shard(0)}), {0}, {Shard(0)});
  expect_part<double>(distribute_tensor(only_on(0, {3, 0, 2}), line(), {Shard(2)}), {3, 0, 2},
                      {Shard(2)});
  expect_part<double>(distribute_tensor(only_on(0, {1}), line(), {Shard(0)}), {1}, {Shard(0)});
  expect_error_everywhere<IndexError>(
      [] { distribute_tensor(only_on(0, {}), line(), {Shard(0)}); });
}

TEST(DistributeTensor, ExtentsGivenByTheUser) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(world_size()), 1);
  extents.back() = 4;
  extents.front() += 2;
  const Shape shape{std::accumulate(extents.begin(), extents.end(), std::int64_t{0}), 3};
  const Placements uneven{Shard(0, extents)};
  const DTensor x = distribute_tensor(only_on(0, shape), line(), uneven);
  expect_part<double>(x, shape, uneven);
  EXPECT_EQ(x.full_tensor().to_vector<double>(), global_values<double>(shape));
  expect_error_everywhere<LayoutError>([&] {
    distribute_tensor(only_on(0, {shape[0] + 1, 3}), line(), uneven);
  });
}

TEST(DistributeTensor, EveryType) {
  for (int d = 0; d < dtype_count; ++d) {
    dispatch_dtype(static_cast<DType>(d), [&]<class T>() {
      const Tensor own = world_rank() == 0 ? global_tensor<T>({7, 3}) : Tensor();
      expect_part<T>(distribute_tensor(own, line(), {Shard(0)}), {7, 3}, {Shard(0)});
      expect_part<T>(distribute_tensor(own, line(), {Shard(1)}), {7, 3}, {Shard(1)});
    });
  }
}

TEST(DistributeTensor, OnASubMesh) {
  if (world_size() < 3) return;
  const DeviceMesh mesh = DeviceMesh::from_ranks({2, 0}, {2});
  const Tensor own = only_on(2, {5, 2});
  expect_part<double>(distribute_tensor(own, mesh, {Shard(0)}, 2), {5, 2}, {Shard(0)});
  const Tensor whole = distribute_tensor(own, mesh, {Shard(0)}, 2).full_tensor();
  if (mesh.is_member()) {
    EXPECT_EQ(whole.to_vector<double>(), global_values<double>({5, 2}));
  } else {
    EXPECT_EQ(whole.numel(), 0);
  }
  // Ranks outside of the mesh find what they can see too.
  EXPECT_THROW(distribute_tensor(own, mesh, {Partial()}, 2), LayoutError);
  EXPECT_THROW(distribute_tensor(own, mesh, {Shard(2)}, 2), IndexError);
}

TEST(DistributeTensor, ErrorsAreEveryones) {
  const Tensor own = only_on(0, {4, 4});
  expect_contains(
      expect_error_everywhere<LayoutError>([&] { distribute_tensor(own, line(), {Partial()}); }),
      "P");
  expect_contains(expect_error_everywhere<ValueError>(
                      [&] { distribute_tensor(own, line(), {Shard(0)}, world_size()); }),
                  "source rank " + std::to_string(world_size()));
  expect_error_everywhere<ValueError>([&] { distribute_tensor(own, line(), {Shard(0)}, -1); });
  expect_error_everywhere<LayoutError>([&] { distribute_tensor(own, line(), {}); });
  expect_error_everywhere<IndexError>([&] { distribute_tensor(own, line(), {Shard(2)}); });
  expect_error_everywhere<MismatchError>([&] { distribute_tensor(Tensor(), line(), {Shard(0)}); });
  expect_error_everywhere<ValueError>(
      [&] { distribute_tensor(Tensor(), line(), {Shard(0)}, std::nullopt); });
}

TEST(DistributeTensor, NeedsNoSecondCopyOfTheTensor) {
  const std::int64_t n = 2048, bytes = n * n * 8;  // 32 MiB
  for (int dim : {0, 1}) {
    const Tensor own = world_rank() == 0 ? Tensor::zeros({n, n}, DType::float64) : Tensor();
    trim_memory_pool();
    reset_memory_peak();
    const std::int64_t before = memory_statistics().in_use;
    const DTensor x = distribute_tensor(own, line(), {Shard(dim)});
    const std::int64_t extra = memory_statistics().peak - before;
    // The part, rounded up by the pool, and the scratch of one direction.
    const std::int64_t scratch = std::int64_t{18} << 20;
    EXPECT_LE(extra, bytes / world_size() * 9 / 8 + scratch);
    if (world_size() > 2) {
      EXPECT_LT(extra, bytes) << "dimension " << dim;
    }
    EXPECT_GE(extra, bytes / world_size()) << "the part itself counts";
  }
}

TEST(DistributeTensor, ScopeGivesTheMesh) {
  const DeviceMesh mesh = line();
  EXPECT_THROW(distribute_tensor(only_on(0, {4}), {Shard(0)}), StateError);
  const MeshScope scope(mesh);
  expect_part<double>(distribute_tensor(only_on(0, {4}), {Shard(0)}), {4}, {Shard(0)});
}
