// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Meshes made and destroyed many times leave nothing behind.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "comm/collective_checks.hpp"
#include "dtensor/comm/device_mesh.hpp"
#include "dtensor/core/error.hpp"

using namespace dtensor;
using dtensor::testing::world_size;

namespace {

std::int64_t resident_bytes() {
  std::int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

void cycle(int i) {
  const DeviceMesh mesh({world_size(), 1}, {"a", "b"});
  ASSERT_EQ(mesh.size(), world_size());
  if (i % 16 == 0) {
    const DeviceMesh slice = mesh["a"];
    ASSERT_EQ(slice.size(), world_size());
    EXPECT_THROW(DeviceMesh({world_size() + 1}), ValueError);
  }
}

}  // namespace

TEST(MeshCycles, LeaveNothingBehind) {
  for (int i = 0; i < 500; ++i) cycle(i);  // MPI's own tables have grown by then
  const int live = MpiCommunicator::live_count();
  const std::int64_t resident = resident_bytes();
  for (int i = 0; i < DTENSOR_TEST_CYCLES && !HasFatalFailure(); ++i) cycle(i);
  EXPECT_EQ(MpiCommunicator::live_count(), live);
  EXPECT_LT(resident_bytes() - resident, std::int64_t{8} << 20);
}
