// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>
#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "support/run_tests.hpp"

namespace {

/// Compares every test's result over all ranks when it ends, so that the ranks stay in step. Rank 0
/// shows the failures of the others as its own; the others print nothing.
class RankFailures : public ::testing::EmptyTestEventListener {
 public:
  explicit RankFailures(MPI_Comm comm) : comm_(comm) {
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &size_);
  }

  void OnTestEnd(const ::testing::TestInfo& test) override { report(*test.result()); }

  void OnTestSuiteEnd(const ::testing::TestSuite& suite) override {
    report(suite.ad_hoc_test_result());
  }

 private:
  // Enough to see what is wrong when a loop fails everywhere.
  static constexpr int max_failures_shown = 20;

  static std::string describe(const ::testing::TestResult& result) {
    std::string text;
    int failures = 0;
    for (int i = 0; i < result.total_part_count(); ++i) {
      const ::testing::TestPartResult& part = result.GetTestPartResult(i);
      if (!part.failed() || ++failures > max_failures_shown) continue;
      if (part.file_name() != nullptr) {
        text += std::string(part.file_name()) + ":" + std::to_string(part.line_number()) + ": ";
      }
      text += std::string(part.message()) + "\n";
    }
    if (failures > max_failures_shown) {
      text += "and " + std::to_string(failures - max_failures_shown) + " more failures\n";
    }
    return text;
  }

  void report(const ::testing::TestResult& result) {
    const std::string text = describe(result);
    const int length = static_cast<int>(text.size());
    std::vector<int> lengths(static_cast<std::size_t>(size_));
    MPI_Allgather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, comm_);

    std::vector<int> offsets;
    std::string failed_ranks;
    int total = 0;
    for (int rank = 0; rank < size_; ++rank) {
      offsets.push_back(total);
      total += lengths[rank];
      if (lengths[rank] > 0) failed_ranks += " " + std::to_string(rank);
    }
    if (total == 0) return;

    std::string texts(static_cast<std::size_t>(total), '\0');
    MPI_Gatherv(text.data(), length, MPI_CHAR, texts.data(), lengths.data(), offsets.data(),
                MPI_CHAR, 0, comm_);
    if (rank_ != 0) {
      // The test has failed here too, so that every rank exits alike.
      if (length == 0) ADD_FAILURE() << "failed on ranks" << failed_ranks;
      return;
    }
    for (int rank = 1; rank < size_; ++rank) {
      if (lengths[rank] == 0) continue;
      ADD_FAILURE() << "on rank " << rank << ": " << texts.substr(offsets[rank], lengths[rank]);
    }
    std::printf("Failed on ranks%s of %d\n", failed_ranks.c_str(), size_);
  }

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  int provided = MPI_THREAD_SINGLE;
  if (MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS ||
      provided < MPI_THREAD_FUNNELED) {
    std::fprintf(stderr, "MPI does not start with MPI_THREAD_FUNNELED\n");
    return EXIT_FAILURE;
  }

  int status = EXIT_FAILURE;
  {
    const Kokkos::ScopeGuard kokkos(argc, argv);
    ::testing::InitGoogleTest(&argc, argv);

    // What the tests themselves send does not meet what the listener sends.
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    int rank = 0;
    MPI_Comm_rank(comm, &rank);

    ::testing::TestEventListeners& listeners = ::testing::UnitTest::GetInstance()->listeners();
    if (rank != 0) {
      std::unique_ptr<::testing::TestEventListener>(
          listeners.Release(listeners.default_result_printer()));
      std::unique_ptr<::testing::TestEventListener>(
          listeners.Release(listeners.default_xml_generator()));
    }
    listeners.Append(new RankFailures(comm));  // owned by GoogleTest

    const int own_status = dtensor::testing::run_tests();
    // Both are 0 or 1.
    MPI_Allreduce(&own_status, &status, 1, MPI_INT, MPI_MAX, comm);
    MPI_Comm_free(&comm);
  }
  MPI_Finalize();
  return status;
}
