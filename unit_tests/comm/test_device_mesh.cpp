// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/comm/device_mesh.hpp"

#include <gtest/gtest.h>

#include <numeric>

#include "comm/collective_checks.hpp"
#include "dtensor/core/error.hpp"

using namespace dtensor;
using dtensor::testing::expect_contains;
using dtensor::testing::world_rank;
using dtensor::testing::world_size;

namespace {

/// The world ranks of a communicator's members, in its order, as MPI says.
std::vector<int> members(const MpiCommunicator& communicator) {
  std::vector<int> ranks(static_cast<std::size_t>(communicator.size()));
  const int own = world_rank();
  MPI_Allgather(&own, 1, MPI_INT, ranks.data(), 1, MPI_INT, communicator.handle());
  return ranks;
}

std::vector<int> iota(int n) {
  std::vector<int> ranks(static_cast<std::size_t>(n));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// Three mesh dimensions for all ranks, of which at least two are long where possible.
Shape three_dims() {
  switch (world_size()) {
    case 4:
      return {2, 1, 2};
    case 6:
      return {2, 1, 3};
    default:
      return {1, world_size(), 1};
  }
}

}  // namespace

TEST(DeviceMesh, OverAllRanks) {
  const DeviceMesh mesh({world_size()});
  EXPECT_EQ(mesh.dim(), 1);
  EXPECT_EQ(mesh.size(), world_size());
  EXPECT_EQ(mesh.size(0), world_size());
  EXPECT_EQ(mesh.size(-1), world_size());
  EXPECT_THROW(mesh.size(1), IndexError);
  EXPECT_EQ(mesh.ranks(), iota(world_size()));
  EXPECT_TRUE(mesh.names().empty());
  EXPECT_TRUE(mesh.is_member());
  EXPECT_EQ(*mesh.coordinate(), Extents{world_rank()});
  EXPECT_EQ(mesh.local_rank(0), world_rank());
  EXPECT_EQ(mesh.communicator()->rank(), world_rank());
  EXPECT_EQ(members(*mesh.communicator()), iota(world_size()));
  EXPECT_EQ(mesh.device(), DeviceKind::device);
}

TEST(DeviceMesh, CoordinatesAndCommunicatorsPerDimension) {
  const Shape shape = three_dims();
  const DeviceMesh mesh(shape, {"a", "b", "c"}, DeviceKind::host);
  EXPECT_EQ(mesh.device(), DeviceKind::host);
  EXPECT_EQ(mesh.shape(), shape);
  const std::int64_t rank = world_rank();
  const Extents expected{rank / (shape[1] * shape[2]), rank / shape[2] % shape[1], rank % shape[2]};
  EXPECT_EQ(*mesh.coordinate(), expected);
  const char* const names[] = {"a", "b", "c"};
  const std::int64_t strides[] = {shape[1] * shape[2], shape[2], 1};
  for (int d = 0; d < 3; ++d) {
    EXPECT_EQ(mesh.size(names[d]), shape[d]);
    EXPECT_EQ(mesh.local_rank(d), expected[d]);
    EXPECT_EQ(mesh.local_rank(names[d]), expected[d]);
    std::vector<int> line;
    for (std::int64_t i = 0; i < shape[d]; ++i) {
      line.push_back(static_cast<int>(rank + (i - expected[d]) * strides[d]));
    }
    EXPECT_EQ(members(*mesh.communicator(d)), line);
    EXPECT_EQ(mesh.communicator(d)->rank(), expected[d]);
    EXPECT_EQ(mesh.communicator(names[d]), mesh.communicator(d));
    EXPECT_EQ(mesh.communicator(d - 3), mesh.communicator(d));
  }
  EXPECT_THROW(mesh.size("d"), ValueError);
  EXPECT_THROW(mesh.local_rank("d"), ValueError);
  EXPECT_THROW(mesh.communicator("d"), ValueError);
  EXPECT_THROW(mesh.communicator(3), IndexError);
}

TEST(DeviceMesh, KeepsTheOrderOfACommunicator) {
  MPI_Comm reversed = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank(), &reversed);
  const DeviceMesh mesh(reversed, {world_size()}, {"x"});
  MPI_Comm_free(&reversed);  // not kept
  std::vector<int> expected = iota(world_size());
  std::reverse(expected.begin(), expected.end());
  EXPECT_EQ(mesh.ranks(), expected);
  EXPECT_EQ(*mesh.coordinate(), Extents{world_size() - 1 - world_rank()});
  EXPECT_EQ(members(*mesh.communicator()), expected);
}

TEST(DeviceMesh, TwoMeshesSideBySideFromASplit) {
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, world_rank() % 2, 0, &half);
  int size = 0;
  MPI_Comm_size(half, &size);
  const DeviceMesh mesh(half, {size});
  MPI_Comm_free(&half);
  std::vector<int> expected;
  for (int r = world_rank() % 2; r < world_size(); r += 2) expected.push_back(r);
  EXPECT_EQ(mesh.ranks(), expected);
  EXPECT_EQ(members(*mesh.communicator()), expected);
}

TEST(DeviceMesh, FromExplicitRanksInAnyOrder) {
  std::vector<int> ranks;
  for (int r = world_size() - 1; r >= 0; r -= 2) ranks.push_back(r);  // every other one, backwards
  const DeviceMesh mesh =
      DeviceMesh::from_ranks(ranks, {1, static_cast<std::int64_t>(ranks.size())}, {"p", "q"});
  EXPECT_EQ(mesh.ranks(), ranks);
  EXPECT_EQ(mesh.size("q"), static_cast<std::int64_t>(ranks.size()));
  const bool member = (world_size() - 1 - world_rank()) % 2 == 0;
  EXPECT_EQ(mesh.is_member(), member);
  if (member) {
    EXPECT_EQ(*mesh.coordinate(), (Extents{0, (world_size() - 1 - world_rank()) / 2}));
    EXPECT_EQ(members(*mesh.communicator()), ranks);
    EXPECT_EQ(mesh["p"].ranks(), std::vector<int>{world_rank()});
  } else {
    EXPECT_FALSE(mesh.coordinate().has_value());
    EXPECT_THROW(mesh.communicator(), StateError);
    EXPECT_THROW(mesh.communicator(0), StateError);
    EXPECT_THROW(mesh.local_rank(0), StateError);
    EXPECT_THROW(mesh.slice({"p"}), StateError);
    EXPECT_EQ(mesh.flatten("f").ranks(), ranks);
    EXPECT_FALSE(mesh.flatten("f").is_member());
  }
}

TEST(DeviceMesh, SlicesByNames) {
  const Shape shape = three_dims();
  const DeviceMesh mesh(shape, {"a", "b", "c"});
  const Extents c = *mesh.coordinate();
  const auto rank_at = [&](std::int64_t i, std::int64_t j, std::int64_t k) {
    return static_cast<int>((i * shape[1] + j) * shape[2] + k);
  };
  std::vector<int> along_a, along_ca;
  for (std::int64_t i = 0; i < shape[0]; ++i) along_a.push_back(rank_at(i, c[1], c[2]));
  for (std::int64_t k = 0; k < shape[2]; ++k) {
    for (std::int64_t i = 0; i < shape[0]; ++i) along_ca.push_back(rank_at(i, c[1], k));
  }
  const DeviceMesh a = mesh["a"];
  EXPECT_EQ(a.shape(), Shape{shape[0]});
  EXPECT_EQ(a.ranks(), along_a);
  EXPECT_EQ(a.names(), std::vector<std::string>{"a"});
  EXPECT_EQ(*a.coordinate(), Extents{c[0]});
  EXPECT_EQ(a.communicator(), mesh.communicator("a")) << "shared, not made again";
  const DeviceMesh ca = mesh.slice({"c", "a"});
  EXPECT_EQ(ca.shape(), (Shape{shape[2], shape[0]}));
  EXPECT_EQ(ca.ranks(), along_ca);
  EXPECT_EQ(*ca.coordinate(), (Extents{c[2], c[0]}));
  EXPECT_EQ(members(*ca.communicator()), along_ca);
  const DeviceMesh flat = ca.flatten("ca");
  EXPECT_EQ(flat.shape(), Shape{shape[0] * shape[2]});
  EXPECT_EQ(flat.ranks(), along_ca);
  EXPECT_EQ(flat["ca"], flat);
  EXPECT_EQ(*flat.coordinate(), Extents{c[2] * shape[0] + c[0]});
  EXPECT_THROW(mesh["d"], ValueError);
  EXPECT_THROW(mesh.slice({"a", "a"}), ValueError);
  EXPECT_THROW(mesh.slice({}), ValueError);
}

TEST(DeviceMesh, EqualityAndPrinting) {
  const DeviceMesh mesh({world_size(), 1}, {"x", "y"});
  const DeviceMesh same({world_size(), 1}, {"x", "y"});
  EXPECT_EQ(mesh, same);
  EXPECT_FALSE(mesh == DeviceMesh({world_size(), 1}));
  EXPECT_FALSE(mesh == DeviceMesh({world_size(), 1}, {"x", "z"}));
  EXPECT_FALSE(mesh == DeviceMesh({world_size(), 1}, {"x", "y"}, DeviceKind::host));
  EXPECT_FALSE(mesh == DeviceMesh({world_size()}, {"x"}));
  if (world_size() == 2) {
    EXPECT_EQ(to_string(mesh), "DeviceMesh(x=2, y=1) of ranks [0, 1], device");
    EXPECT_FALSE(mesh == DeviceMesh::from_ranks({1, 0}, {2, 1}, {"x", "y"}));
  }
}

TEST(DeviceMesh, EqualRanksShareCommunicators) {
  const int before = MpiCommunicator::live_count();
  {
    const DeviceMesh mesh({world_size(), 1});
    const int with_one = MpiCommunicator::live_count();
    EXPECT_GT(with_one, before);
    const DeviceMesh same({world_size(), 1});
    const DeviceMesh reshaped({1, world_size()}, {"x", "y"});
    const DeviceMesh flat = mesh.flatten("f");
    EXPECT_EQ(same.communicator(), mesh.communicator());
    EXPECT_EQ(reshaped.communicator(), mesh.communicator());
    EXPECT_EQ(flat.communicator(), mesh.communicator());
    EXPECT_EQ(mesh.communicator(0), mesh.communicator());
    EXPECT_EQ(MpiCommunicator::live_count(), with_one);
  }
  EXPECT_EQ(MpiCommunicator::live_count(), before);
}

TEST(DeviceMesh, JointCommunicatorOfTwoMeshes) {
  if (world_size() < 4) {
    const DeviceMesh mesh({world_size()});
    EXPECT_EQ(mesh.joint_communicator(mesh), mesh.communicator());
    return;
  }
  const DeviceMesh a = DeviceMesh::from_ranks({2, 0}, {2});
  const DeviceMesh b = DeviceMesh::from_ranks({1, 2}, {2});
  EXPECT_EQ(a.joint_ranks(b), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(b.joint_ranks(a), (std::vector<int>{0, 1, 2}));
  const auto joint = a.joint_communicator(b);
  if (world_rank() <= 2) {
    EXPECT_EQ(members(*joint), (std::vector<int>{0, 1, 2}));
    EXPECT_EQ(b.joint_communicator(a), joint) << "kept";
  } else {
    EXPECT_EQ(joint, nullptr);
  }
  const DeviceMesh all({world_size()});
  EXPECT_EQ(all.joint_communicator(a), all.communicator());
  EXPECT_EQ(a.joint_communicator(all), all.communicator());
}

TEST(MeshScope, MakesAMeshTheDefault) {
  EXPECT_THROW(DeviceMesh::current(), StateError);
  {
    std::optional<DeviceMesh> outer(DeviceMesh({world_size()}, {"outer"}));
    const MeshScope outer_scope(*outer);
    EXPECT_EQ(DeviceMesh::current(), *outer);
    {
      const DeviceMesh inner({world_size(), 1}, {"inner", "one"});
      const MeshScope inner_scope(inner);
      EXPECT_EQ(DeviceMesh::current().names()[0], "inner");
    }
    EXPECT_EQ(DeviceMesh::current().names()[0], "outer");
    outer.reset();
    EXPECT_EQ(DeviceMesh::current().names()[0], "outer") << "the scope holds a handle";
  }
  EXPECT_THROW(DeviceMesh::current(), StateError);
}
