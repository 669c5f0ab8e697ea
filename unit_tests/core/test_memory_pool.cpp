// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include <cstdlib>

#include <cstdint>
#include <limits>

#include "dtensor/core/tensor.hpp"

using namespace dtensor;

namespace {

constexpr std::int64_t megabyte = std::int64_t{1} << 20;

class MemoryPool : public ::testing::Test {
 protected:
  void SetUp() override {
    trim_memory_pool();
    before_ = memory_statistics();
    reset_memory_peak();
  }
  void TearDown() override {
    set_memory_pool_limit(std::int64_t{1} << 30);
    trim_memory_pool();
  }
  std::int64_t in_use() const { return memory_statistics().in_use - before_.in_use; }
  std::int64_t peak() const { return memory_statistics().peak - before_.in_use; }

  MemoryStatistics before_;
};

Tensor block(std::int64_t bytes) { return Tensor::empty({bytes}, DType::uint8); }

}  // namespace

TEST_F(MemoryPool, CountsWhatIsInUseAndThePeak) {
  EXPECT_EQ(before_.cached, 0);
  {
    const Tensor a = block(megabyte);
    EXPECT_GE(in_use(), megabyte);
    EXPECT_LE(in_use(), megabyte * 9 / 8);
    const Tensor view = a.narrow(0, 1, 2);
    const Tensor b = block(2 * megabyte);
    EXPECT_GE(in_use(), 3 * megabyte);
    EXPECT_LE(in_use(), 3 * megabyte * 9 / 8);
  }
  EXPECT_EQ(in_use(), 0);
  EXPECT_GE(peak(), 3 * megabyte);
  EXPECT_LE(peak(), 3 * megabyte * 9 / 8);
  reset_memory_peak();
  EXPECT_EQ(peak(), 0);
  { const Tensor c = block(megabyte); }
  EXPECT_GE(peak(), megabyte);
  EXPECT_LE(peak(), megabyte * 9 / 8);
}

TEST_F(MemoryPool, ReusesAFreeBlockOfAboutTheSameSize) {
  const std::int64_t size = 4 * megabyte;  // shares its pages with no other block
  const void* first = nullptr;
  {
    const Tensor a = block(size);
    first = a.data();
  }
  EXPECT_GE(memory_statistics().cached, size);
  {
    const Tensor b = block(size - 7);
    EXPECT_EQ(b.data(), first);
    EXPECT_EQ(memory_statistics().cached, 0);
    const Tensor c = block(size);
    EXPECT_NE(c.data(), first) << "a block in use is never handed out again";
  }
}

TEST_F(MemoryPool, BlocksBelowALargePageShareOne) {
  const Tensor a = block(megabyte / 2);
  const std::int64_t neighbours = memory_statistics().cached;
  EXPECT_EQ(neighbours, 3 * megabyte / 2);
  const Tensor b = block(megabyte / 2);
  EXPECT_EQ(memory_statistics().cached, neighbours - megabyte / 2);
  const auto distance = static_cast<const char*>(b.data()) - static_cast<const char*>(a.data());
  EXPECT_LT(std::abs(distance), 2 * megabyte);
}

TEST_F(MemoryPool, LargeBlocksStartInALargePage) {
  for (const std::int64_t size : {2 * megabyte, 3 * megabyte, 5 * megabyte + 1}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block(size).data()) % (2 * megabyte), 0u);
  }
}

TEST_F(MemoryPool, TrimGivesFreeBlocksBack) {
  const Tensor kept = block(megabyte);
  kept.fill(7);
  { const Tensor a = block(megabyte); }
  EXPECT_GT(memory_statistics().cached, 0);
  const std::int64_t used = in_use();
  trim_memory_pool();
  EXPECT_EQ(memory_statistics().cached, 0);
  EXPECT_EQ(in_use(), used);
  EXPECT_EQ(kept.narrow(0, 5, 1).item<std::uint8_t>(), 7);
}

TEST_F(MemoryPool, KeepsNoMoreThanItsLimit) {
  set_memory_pool_limit(megabyte * 5 / 2);
  { const Tensor a = block(megabyte), b = block(megabyte), c = block(megabyte); }
  EXPECT_EQ(memory_statistics().cached, 2 * megabyte);
  set_memory_pool_limit(0);
  EXPECT_EQ(memory_statistics().cached, 0) << "the new limit holds for what is cached too";
  { const Tensor d = block(megabyte); }
  EXPECT_LE(memory_statistics().cached, 2 * megabyte);
  trim_memory_pool();
  { const Tensor e = block(megabyte); }
  EXPECT_EQ(memory_statistics().cached, 0);
}

TEST_F(MemoryPool, DoesNotCountTheMemoryOfOthers) {
  const Kokkos::View<double*, Kokkos::HostSpace> view("test", 1000000);
  const Tensor t = Tensor::from_view(view);
  const Tensor nothing = block(0);
  EXPECT_EQ(in_use(), 0);
  EXPECT_EQ(peak(), 0);
}

TEST_F(MemoryPool, WhatCannotBeHadIsAnError) {
  EXPECT_THROW(block(std::int64_t{1} << 55), ValueError);
  EXPECT_EQ(in_use(), 0);
  const Tensor works = block(100);
  works.fill(1);
  EXPECT_EQ(works.narrow(0, 99, 1).item<std::uint8_t>(), 1);
}
