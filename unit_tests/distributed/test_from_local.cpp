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

Tensor ranks_tensor(const Shape& shape) {
  return Tensor::full(shape, world_rank() + 1, DType::float64);
}

}  // namespace

TEST(FromLocal, InfersTheGlobalShape) {
  const DeviceMesh mesh = plane();
  const std::int64_t a = mesh.size(0), b = mesh.size(1);
  const Tensor local = ranks_tensor({3, 3});
  EXPECT_EQ(from_local(local, mesh, {Shard(0), Shard(1)}).shape(), (Shape{3 * a, 3 * b}));
  EXPECT_EQ(from_local(local, mesh, {Shard(0), Shard(0)}).shape(), (Shape{3 * a * b, 3}));
  EXPECT_EQ(from_local(local, mesh, {Replicate(), Shard(-1)}).shape(), (Shape{3, 3 * b}));
  EXPECT_EQ(from_local(local, mesh, {Partial(), Partial()}).shape(), (Shape{3, 3}));

  const std::vector<double> whole =
      from_local(local, mesh, {Shard(0), Shard(1)}).full_tensor().to_vector<double>();
  for (std::int64_t i = 0; i < 3 * a; ++i) {
    for (std::int64_t j = 0; j < 3 * b; ++j) {
      EXPECT_EQ(whole[static_cast<std::size_t>(i * 3 * b + j)],
                static_cast<double>(i / 3 * b + j / 3 + 1));
    }
  }
  const std::vector<double> sum =
      from_local(local, mesh, {Partial(), Partial()}).full_tensor().to_vector<double>();
  EXPECT_EQ(sum, std::vector<double>(9, world_size() * (world_size() + 1) / 2.0));
}

TEST(FromLocal, InfersTheGlobalStrides) {
  const std::int64_t n = world_size();
  const Tensor rows = ranks_tensor({8, 4});
  EXPECT_EQ(from_local(rows, line(), {Shard(1)}).shape(), (Shape{8, 4 * n}));
  EXPECT_EQ(from_local(rows, line(), {Shard(1)}).stride(), (Extents{4 * n, 1}));
  const Tensor columns = ranks_tensor({4, 8}).transpose(0, 1);
  EXPECT_EQ(from_local(columns, line(), {Shard(0)}).stride(), (Extents{1, 8 * n}));
  EXPECT_EQ(from_local(columns, line(), {Shard(1)}).stride(), (Extents{1, 8}));
}

TEST(FromLocal, TakesAViewOfAnyLayoutWithoutACopy) {
  const auto check = [](auto view, auto layout) {
    const DTensor x = from_local(Tensor::from_view(view), line(), {Shard(0)});
    EXPECT_EQ(x.to_local().data(), view.data());
    view(1, 2) = 7 + world_rank();
    EXPECT_EQ((x.template local_view<double**, decltype(layout)>()(1, 2)), 7 + world_rank());
    x.to_local().fill(5);
    EXPECT_EQ(view(2, 3), 5.0);
    EXPECT_EQ(view.use_count(), 3);  // the caller's, this one and the tensor's
  };
  const Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace> right("test", 3, 4);
  check(right, Kokkos::LayoutRight());
  const Kokkos::View<double**, Kokkos::LayoutLeft, Kokkos::HostSpace> left("test", 3, 4);
  check(left, Kokkos::LayoutLeft());
  const Kokkos::View<double**, Kokkos::LayoutStride, Kokkos::HostSpace> strided(
      "test", Kokkos::LayoutStride(3, 9, 4, 2));
  check(strided, Kokkos::LayoutStride());
  EXPECT_EQ(right.use_count(), 1);
}

TEST(FromLocal, ShapeAndStrideGoTogether) {
  const std::int64_t n = world_size();
  // Rows 0, 2, 4, ... up to n - 1 ranks with 2 and the last one with 1.
  const std::int64_t rows = world_rank() == world_size() - 1 ? 1 : 2;
  FromLocalOptions both;
  both.shape = Shape{2 * n - 1, 3};
  both.stride = Extents{3, 1};
  const DTensor x = from_local(ranks_tensor({rows, 3}), line(), {Shard(0)}, both);
  EXPECT_EQ(x.shape(), (Shape{2 * n - 1, 3}));
  EXPECT_EQ(x.stride(), (Extents{3, 1}));
  const std::vector<double> whole = x.full_tensor().to_vector<double>();
  ASSERT_EQ(whole.size(), static_cast<std::size_t>(3 * (2 * n - 1)));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(whole[i], static_cast<double>(i / 6 + 1));
  }

  FromLocalOptions one;
  one.shape = both.shape;
  std::string text = expect_error_everywhere<ValueError>([&] {
    from_local(ranks_tensor({2, 3}), line(), {Shard(0)}, one);
  });
  expect_contains(text, "both shape and stride");
  one = {};
  one.stride = Extents{3, 1};
  expect_error_everywhere<ValueError>([&] {
    from_local(ranks_tensor({2, 3}), line(), {Shard(0)}, one);
  });
  both.stride = Extents{1};
  expect_error_everywhere<ValueError>([&] {
    from_local(ranks_tensor({rows, 3}), line(), {Shard(0)}, both);
  });
  both.shape = Shape{4 * n, 3};
  both.stride = Extents{3, 1};
  expect_error_everywhere<LayoutError>([&] {
    from_local(ranks_tensor({2, 3}), line(), {Shard(0)}, both);
  });
}

TEST(FromLocal, ExtentsGivenByTheUser) {
  const std::vector<std::int64_t> all{2, 6, 1, 4, 0, 3, 5, 2};
  const std::vector<std::int64_t> extents(all.begin(), all.begin() + world_size());
  const std::int64_t rows = std::accumulate(extents.begin(), extents.end(), std::int64_t{0});
  const Placements uneven{Shard(0, extents)};
  const Shape shape{rows, 3};
  const auto own = local_values<double>(shape, uneven, {world_size()}, {world_rank()});
  const Tensor local =
      Tensor::from_vector(own, {extents[static_cast<std::size_t>(world_rank())], 3});
  const DTensor x = from_local(local, line(), uneven);
  EXPECT_EQ(x.shape(), shape);
  EXPECT_EQ(x.to_local().data(), local.data());
  EXPECT_EQ(x.full_tensor().to_vector<double>(), global_values<double>(shape));
  expect_part<double>(x.redistribute({Shard(0)}), shape, {Shard(0)});
  expect_part<double>(x.redistribute({Shard(1)}), shape, {Shard(1)});
  expect_part<double>(x.redistribute({StridedShard(0, 2)}), shape, {StridedShard(0, 2)});
  const DTensor back = x.redistribute({Shard(1)}).redistribute(uneven);
  expect_part<double>(back, shape, uneven);

  // A local tensor that is not what the extents say, on one rank.
  expect_error_everywhere<LayoutError>([&] {
    from_local(world_rank() == 0 ? Tensor::zeros({7, 3}, DType::float64) : local, line(), uneven);
  });
}

TEST(FromLocal, RunCheckGivesEveryReplicaTheFirstOnesData) {
  FromLocalOptions check;
  check.run_check = true;
  const DTensor x = from_local(ranks_tensor({4, 3}), line(), {Replicate()}, check);
  EXPECT_EQ(x.to_local().to_vector<double>(), std::vector<double>(12, 1.0));

  const DeviceMesh mesh = plane();
  const std::int64_t i = mesh.local_rank(0), j = mesh.local_rank(1), b = mesh.size(1);
  const auto expect_filled = [](const DTensor& t, std::int64_t value) {
    EXPECT_EQ(t.to_local().to_vector<double>(), std::vector<double>(12, static_cast<double>(value)))
        << to_string(t);
  };
  const auto make = [&](const Placements& p) {
    return from_local(ranks_tensor({4, 3}), mesh, p, check);
  };
  expect_filled(make({Shard(0), Replicate()}), i * b + 1);
  expect_filled(make({Replicate(), Shard(0)}), j + 1);
  expect_filled(make({Replicate(), Replicate()}), 1);
  expect_filled(make({Partial(), Replicate()}), i * b + 1);
  expect_filled(make({Replicate(), Partial(ReduceOp::max)}), j + 1);
  expect_filled(make({Shard(1), Shard(0)}), i * b + j + 1);
  expect_filled(make({Partial(), Partial()}), i * b + j + 1);
  expect_filled(make({Partial(), Shard(1)}), i * b + j + 1);
}

TEST(FromLocal, RunCheckInThreeMeshDimensions) {
  if (world_size() != 8) return;
  FromLocalOptions check;
  check.run_check = true;
  const DeviceMesh mesh({2, 2, 2});
  const std::int64_t i = mesh.local_rank(0), j = mesh.local_rank(1), k = mesh.local_rank(2);
  const auto first = [&](const Placements& p) {
    return from_local(ranks_tensor({2, 2}), mesh, p, check).to_local().to_vector<double>()[3];
  };
  EXPECT_EQ(first({Partial(), Replicate(), Shard(0)}), static_cast<double>(4 * i + k + 1));
  EXPECT_EQ(first({Replicate(), Shard(0), Replicate()}), static_cast<double>(2 * j + 1));
  EXPECT_EQ(first({Shard(1), Replicate(), Shard(1)}), static_cast<double>(4 * i + k + 1));
  EXPECT_EQ(first({Replicate(), Partial(), Shard(0)}), static_cast<double>(2 * j + k + 1));
}

TEST(FromLocal, LocalShapesThatDifferAreAnError) {
  if (world_size() == 1) return;
  FromLocalOptions check;
  check.run_check = true;
  for (const FromLocalOptions& options : {FromLocalOptions(), check}) {
    const std::string text = expect_error_everywhere<MismatchError>([&] {
      from_local(ranks_tensor({world_rank() == 1 ? 5 : 4, 3}), line(), {Replicate()}, options);
    });
    expect_contains(text, "(5, 3)");
    expect_contains(text, "(4, 3)");
    expect_contains(text, "rank 1");
    expect_error_everywhere<MismatchError>([&] {
      from_local(ranks_tensor({world_rank() == 1 ? 5 : 4, 3}), line(), {Shard(0)}, options);
    });
  }
}

TEST(FromLocal, PlacementsThatDoNotFitAreAnError) {
  const Tensor local = ranks_tensor({4, 3});
  expect_contains(expect_error_everywhere<LayoutError>([&] {
                    from_local(local, line(), {Shard(0), Shard(1)});
                  }),
                  "2 placements");
  expect_error_everywhere<IndexError>([&] { from_local(local, line(), {Shard(2)}); });
  expect_error_everywhere<LayoutError>([&] {
    from_local(local, plane(), {Partial(), Partial(ReduceOp::max)});
  });
  expect_error_everywhere<TypeError>(
      [&] { from_local(local.to(DType::int32), line(), {Partial(ReduceOp::avg)}); });
  expect_error_everywhere<StateError>([&] { from_local(Tensor(), line(), {Shard(0)}); });
}

TEST(FromLocal, ScopeGivesTheMesh) {
  const DeviceMesh mesh = line();
  const MeshScope scope(mesh);
  EXPECT_EQ(from_local(ranks_tensor({2}), {Shard(0)}).device_mesh(), mesh);
}

TEST(FromLocal, ARankOutsideOfTheMeshHoldsNothing) {
  const DeviceMesh mesh = DeviceMesh::from_ranks({world_size() - 1}, {1});
  const DTensor x = from_local(ranks_tensor({4, 3}), mesh, {Shard(0)});
  EXPECT_EQ(x.shape(), (Shape{4, 3}));
  if (mesh.is_member()) {
    EXPECT_EQ(x.to_local().numel(), 12);
  } else {
    EXPECT_EQ(x.to_local().numel(), 0);
    EXPECT_FALSE(x.device_mesh().coordinate().has_value());
    EXPECT_TRUE(x.chunks().empty());
  }
}

TEST(FromLocal, EveryType) {
  for (int d = 0; d < dtype_count; ++d) {
    dispatch_dtype(static_cast<DType>(d), [&]<class T>() {
      const Shape shape{2 * world_size(), 3};
      const auto own = local_values<T>(shape, {Shard(0)}, {world_size()}, {world_rank()});
      const DTensor x = from_local(Tensor::from_vector(own, {2, 3}), line(), {Shard(0)});
      EXPECT_EQ(x.dtype(), static_cast<DType>(d));
      EXPECT_TRUE(x.full_tensor().to_vector<T>() == global_values<T>(shape)) << d;
    });
  }
}
