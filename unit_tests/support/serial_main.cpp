// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/run_tests.hpp"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  return dtensor::testing::run_tests();
}
