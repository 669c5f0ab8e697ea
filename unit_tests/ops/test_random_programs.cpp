// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// "Write it as for one device": random chains of operators on random layouts equal one device.
//
// DTENSOR_TEST_PROGRAMS is how many are run, DTENSOR_TEST_SEED the first one's seed.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "ops/programs/program.hpp"

namespace dtensor {
namespace {

using namespace testing;

long environment(const char* name, long otherwise) {
  const char* const value = std::getenv(name);
  return value ? std::atol(value) : otherwise;
}

std::vector<DeviceMesh> all_meshes() {
  const int n = Runtime::size();
  std::vector<DeviceMesh> result{DeviceMesh(Shape{n})};
  if (n == 4) {
    result.emplace_back(Shape{2, 2});
    result.emplace_back(Shape{2, 1, 2});
    result.push_back(DeviceMesh::from_ranks({2, 0, 3}, Shape{3}));
  } else if (n == 6) {
    result.emplace_back(Shape{2, 3});
    result.emplace_back(Shape{3, 2});
    result.emplace_back(Shape{3, 1, 2});
  } else {
    result.emplace_back(Shape{1, n});
  }
  return result;
}

bool on_any_rank(bool value) {
  int own = value, any = 0;
  MPI_Allreduce(&own, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return any != 0;
}

TEST(RandomPrograms, EqualOneDevice) {
  const std::vector<DeviceMesh> meshes = all_meshes();
  const long count = environment("DTENSOR_TEST_PROGRAMS", 20000 / (Runtime::size() + 2));
  // Other programs for each number of ranks.
  const auto first =
      static_cast<std::uint64_t>(environment("DTENSOR_TEST_SEED", 1000000L * Runtime::size()));
  int failures = 0;
  for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(count); ++seed) {
    const DeviceMesh& mesh = meshes[seed % meshes.size()];
    const Program program = random_program(seed);
    if (environment("DTENSOR_TEST_VERBOSE", 0) && Runtime::rank() == 0) {
      std::printf("%llu\n%s", static_cast<unsigned long long>(seed),
                  to_string(program, run_on_one_device(program), mesh).c_str());
      std::fflush(stdout);
    }
    if (!on_any_rank(!run_distributed(program, run_on_one_device(program), mesh).empty())) continue;
    const Program smallest = shrunk(program, [&](const Program& p) {
      return on_any_rank(!run_distributed(p, run_on_one_device(p), mesh).empty());
    });
    const Trace trace = run_on_one_device(smallest);
    const std::string wrong = run_distributed(smallest, trace, mesh);
    // One rank says it for all.
    const int none = Runtime::size();
    int own = wrong.empty() ? none : Runtime::rank(), speaker = none;
    MPI_Allreduce(&own, &speaker, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (own == speaker)
      ADD_FAILURE() << "DTENSOR_TEST_SEED=" << seed << ", " << Runtime::size() << " ranks, "
                    << to_string(smallest, trace, mesh) << wrong;
    if (++failures == environment("DTENSOR_TEST_FAILURES", 5)) break;
  }
}

}  // namespace
}  // namespace dtensor
