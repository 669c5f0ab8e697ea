// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fails on purpose: the tests of the test programs run it.
#include <gtest/gtest.h>
#include <mpi.h>

#include <stdexcept>

namespace {

int rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

}  // namespace

TEST(Ranks, Pass) { EXPECT_GE(rank(), 0); }

TEST(Ranks, FailOnRank0) { EXPECT_NE(rank(), 0) << "a deliberate failure"; }

TEST(Ranks, FailOnRank2) { EXPECT_NE(rank(), 2) << "a deliberate failure"; }

TEST(Ranks, ThrowOnRank2) {
  if (rank() == 2) throw std::runtime_error("a deliberate exception");
}

TEST(Ranks, Skip) { GTEST_SKIP(); }
