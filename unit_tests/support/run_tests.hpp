// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

namespace dtensor::testing {

/// Runs all tests. A program in which no test ran has failed: nothing was tested.
inline int run_tests() {
  const int status = RUN_ALL_TESTS();
  const ::testing::UnitTest& unit_test = *::testing::UnitTest::GetInstance();
  const int ran = unit_test.test_to_run_count() - unit_test.skipped_test_count();
  if (status == EXIT_SUCCESS && ran == 0 && !::testing::GTEST_FLAG(list_tests)) {
    std::fprintf(stderr, "No test ran, which is a failure.\n");
    return EXIT_FAILURE;
  }
  return status;
}

}  // namespace dtensor::testing
