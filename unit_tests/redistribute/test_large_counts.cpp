// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Element counts around 2^31: more than one MPI message can hold in an int.
#include <gtest/gtest.h>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/kokkos_compat.hpp"
#include "dtensor/distributed/dtensor.hpp"
#include "dtensor/distributed/factories.hpp"

namespace dtensor {
namespace {

std::int8_t value_at(std::int64_t i) {
  return static_cast<std::int8_t>((i ^ (i >> 8) ^ (i >> 20)) & 0x7f);
}

constexpr std::int64_t boundary = std::int64_t{1} << 31;

void check_move(std::int64_t n) {
  const DeviceMesh mesh({Runtime::size()});
  // All on coordinate 0, as one shard of given extent; then all but a few on the last one.
  std::vector<std::int64_t> first(static_cast<std::size_t>(mesh.size()), 0), last = first;
  first.front() = n;
  last.front() = 3;
  last.back() += n - 3;
  DTensor x = empty({n}, mesh, {Shard(0, first)}, DType::int8);
  auto* data = static_cast<std::int8_t*>(x.to_local().data());
  for (std::int64_t i = 0; i < x.to_local().numel(); ++i) data[i] = value_at(i);
  x = x.redistribute({Shard(0, last)});
  const auto chunks = x.chunks();
  const auto* moved = static_cast<const std::int8_t*>(x.to_local().data());
  const std::int64_t offset = chunks.empty() ? 0 : chunks[0].offset[0];
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < x.to_local().numel(); ++i) wrong += moved[i] != value_at(offset + i);
  EXPECT_EQ(wrong, 0) << n;
  EXPECT_EQ(x.to_local().numel(), last[static_cast<std::size_t>(mesh.local_rank(0))]);
}

TEST(LargeCounts, JustAboveTheBoundary) { check_move(boundary + 7); }

TEST(LargeCounts, AroundTheBoundary) {
  for (std::int64_t n : {boundary - 1, boundary, boundary + 7}) check_move(n);
}

}  // namespace
}  // namespace dtensor
