// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Meshes that cannot be: every rank throws the same error, and the next mesh works.
#include <gtest/gtest.h>

#include "comm/collective_checks.hpp"
#include "dtensor/comm/device_mesh.hpp"
#include "dtensor/core/error.hpp"

using namespace dtensor;
using dtensor::testing::expect_contains;
using dtensor::testing::expect_error_everywhere;
using dtensor::testing::world_rank;
using dtensor::testing::world_size;

namespace {

class MeshErrors : public ::testing::Test {
 protected:
  void SetUp() override { live_ = MpiCommunicator::live_count(); }
  void TearDown() override {
    EXPECT_EQ(MpiCommunicator::live_count(), live_);
    const DeviceMesh mesh({world_size()});
    int sum = 0;
    const int one = 1;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, mesh.communicator()->handle());
    EXPECT_EQ(sum, world_size());
  }
  int live_ = 0;
};

bool is_last() { return world_rank() == world_size() - 1; }

}  // namespace

TEST_F(MeshErrors, LargerThanTheNumberOfRanks) {
  const std::string text = expect_error_everywhere<ValueError>([] {
    DeviceMesh({world_size(), 2});
  });
  expect_contains(text, std::to_string(2 * world_size()) + " places");
  expect_contains(text, std::to_string(world_size()) + " ranks");
  expect_error_everywhere<ValueError>([] { DeviceMesh({world_size() + 1}); });
  expect_error_everywhere<ValueError>([] {
    DeviceMesh({std::int64_t{1} << 32, std::int64_t{1} << 32});
  });
  expect_contains(
      expect_error_everywhere<ValueError>([] { DeviceMesh::from_ranks({world_size()}, {1}); }),
      "rank " + std::to_string(world_size()));
  expect_contains(expect_error_everywhere<ValueError>([] { DeviceMesh::from_ranks({-1}, {1}); }),
                  "rank -1");
}

TEST_F(MeshErrors, ShapesWithoutPlaces) {
  expect_error_everywhere<ValueError>([] { DeviceMesh(Shape{0}); });
  expect_error_everywhere<ValueError>([] { DeviceMesh(Shape{-world_size(), -1}); });
  expect_error_everywhere<ValueError>([] { DeviceMesh::from_ranks({}, {0}); });
  expect_error_everywhere<ValueError>([] { DeviceMesh::from_ranks({}, {}); });
  expect_error_everywhere<ValueError>([] { DeviceMesh::from_ranks({0}, {2}); });
}

TEST_F(MeshErrors, ARankTwice) {
  expect_contains(expect_error_everywhere<ValueError>([] {
                    DeviceMesh::from_ranks({0, 0}, {2});
                  }),
                  "rank 0 twice");
}

TEST_F(MeshErrors, Names) {
  expect_contains(expect_error_everywhere<ValueError>([] {
                    DeviceMesh({world_size(), 1}, {"dp", "dp"});
                  }),
                  "\"dp\"");
  expect_error_everywhere<ValueError>([] { DeviceMesh({world_size(), 1}, {"dp"}); });
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  expect_error_everywhere<ValueError>([&] { DeviceMesh(copy, {world_size(), 1}, {"a", "a"}); });
  expect_error_everywhere<ValueError>([&] { DeviceMesh(copy, {world_size(), 2}); });
  MPI_Comm_free(&copy);
}

TEST_F(MeshErrors, NoCommunicator) { EXPECT_THROW(DeviceMesh(MPI_COMM_NULL, {1}), ValueError); }

TEST_F(MeshErrors, WhatOneRankDoesWrongAllThrow) {
  if (world_size() == 1) return;
  const auto rank_text = "found by rank " + std::to_string(world_size() - 1);
  expect_contains(expect_error_everywhere<ValueError>(
                      [] { DeviceMesh({is_last() ? world_size() + 1 : world_size()}); }),
                  rank_text);
  expect_contains(
      expect_error_everywhere<ValueError>([] {
        DeviceMesh::from_ranks(is_last() ? std::vector<int>{0, 0} : std::vector<int>{0, 1}, {2});
      }),
      rank_text);
}

TEST_F(MeshErrors, SlicesOfOneRankAlone) {
  if (world_size() == 1) return;
  const DeviceMesh mesh({world_size(), 1}, {"a", "b"});
  expect_contains(expect_error_everywhere<ValueError>([&] { mesh[is_last() ? "c" : "a"]; }),
                  "\"c\"");
  expect_contains(expect_error_everywhere<MismatchError>([&] { mesh[is_last() ? "b" : "a"]; }),
                  "(b) on rank " + std::to_string(world_size() - 1));
}

TEST_F(MeshErrors, ArgumentsThatDifferBetweenRanks) {
  if (world_size() == 1) return;
  std::string text = expect_error_everywhere<MismatchError>([] {
    DeviceMesh(is_last() ? Shape{1, world_size()} : Shape{world_size(), 1});
  });
  const std::string n = std::to_string(world_size());
  expect_contains(text, "(1, " + n + ")");
  expect_contains(text, "(" + n + ", 1)");
  expect_contains(text, "rank " + std::to_string(world_size() - 1));

  text = expect_error_everywhere<MismatchError>(
      [] { DeviceMesh({world_size()}, {is_last() ? "x" : "y"}); });
  expect_contains(text, "x=");
  expect_contains(text, "y=");

  text = expect_error_everywhere<MismatchError>(
      [] { DeviceMesh({world_size()}, {}, is_last() ? DeviceKind::host : DeviceKind::device); });
  expect_contains(text, "host");

  expect_error_everywhere<MismatchError>([] { DeviceMesh::from_ranks({is_last() ? 1 : 0}, {1}); });
}
