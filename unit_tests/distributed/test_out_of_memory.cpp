// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One rank has little memory left: a collective call works all the same or throws on every rank,
// and nothing is written to memory that was given back.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <optional>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/core/storage.hpp"
#include "dtensor/distributed/factories.hpp"

namespace dtensor {
namespace {

constexpr std::int64_t megabyte = std::int64_t{1} << 20;

// While it lives, this process can have `bytes` more of address space.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::int64_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    std::ifstream statistics("/proc/self/statm");
    std::int64_t pages = 0;
    statistics >> pages;
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE) + bytes);
    setrlimit(RLIMIT_AS, &limit);
  }
  ~MemoryLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_;
};

enum class Outcome : int { right, error, wrong };

// What became of `call`, whose result is a tensor of ones, with so much memory on rank 1.
Outcome outcome_of(std::int64_t bytes, const std::function<Tensor()>& call) {
  mallopt(M_MMAP_THRESHOLD, 1 << 17);  // what is freed goes back to the system
  trim_memory_pool();
  Outcome outcome = Outcome::right;
  Tensor result;
  try {
    std::optional<MemoryLimit> limit;
    if (Runtime::rank() == 1) limit.emplace(bytes);
    result = call();
  } catch (const Error&) {
    outcome = Outcome::error;
  }
  // Messages that come too late would be written to the memory of this one.
  const Tensor other = Tensor::full({4 * megabyte}, 7, DType::float64);
  MPI_Barrier(MPI_COMM_WORLD);
  const auto all_are = [](const Tensor& t, double value) {
    const auto values = t.to_vector<double>();
    return std::all_of(values.begin(), values.end(), [&](double v) { return v == value; });
  };
  if (!all_are(other, 7) || (result.defined() && !all_are(result, 1))) outcome = Outcome::wrong;
  return outcome;
}

void check(const char* name, const std::function<Tensor()>& call) {
  int errors = 0, successes = 0;
  for (const std::int64_t megabytes : {1, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 64, 96, 400}) {
    const int outcome = static_cast<int>(outcome_of(megabytes * megabyte, call));
    int least = 0, most = 0;
    MPI_Allreduce(&outcome, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&outcome, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    EXPECT_EQ(least, most) << name << " with " << megabytes << " MiB: not the same on every rank";
    EXPECT_NE(outcome, static_cast<int>(Outcome::wrong)) << name << " with " << megabytes << " MiB";
    errors += outcome == static_cast<int>(Outcome::error);
    successes += outcome == static_cast<int>(Outcome::right);
  }
  EXPECT_GT(errors, 0) << name << ": the limit was never too low";
  EXPECT_GT(successes, 0) << name << ": the limit was always too low";
}

#ifndef __SANITIZE_ADDRESS__
TEST(OutOfMemory, RedistributeThrowsOnEveryRankOrWorks) {
  const DeviceMesh mesh({Runtime::size()});
  const DTensor rows = ones({2048, 2048}, mesh, {Shard(0)});
  check("S(0) to S(1)", [&] { return rows.redistribute({Shard(1)}).to_local(); });
  check("S(0) to R", [&] { return rows.full_tensor(); });
  const DTensor partial(mesh, Layout({1024, 2048}, mesh.grid(), {Partial()}),
                        Tensor::full({1024, 2048}, 1.0 / Runtime::size(), DType::float64));
  if (Runtime::size() == 2 || Runtime::size() == 4) {  // sums of these are exact
    check("P to S(1)", [&] { return partial.redistribute({Shard(1)}).to_local(); });
    check("P to R", [&] { return partial.full_tensor(); });
  }
}

TEST(OutOfMemory, DistributeTensorThrowsOnEveryRankOrWorks) {
  const DeviceMesh mesh({Runtime::size()});
  const Tensor whole = Tensor::full({2048, 2048}, 1, DType::float64);
  check("distribute_tensor", [&] { return distribute_tensor(whole, mesh, {Shard(1)}).to_local(); });
}
#endif

}  // namespace
}  // namespace dtensor
