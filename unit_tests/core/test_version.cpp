// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include <string>

#include "dtensor/core/version.hpp"

TEST(Version, OfTheLibraryIsThatOfTheHeaders) {
  EXPECT_STREQ(dtensor::version(), DTENSOR_VERSION_STRING);
}

TEST(Version, StringIsMadeOfTheNumbers) {
  const std::string numbers = std::to_string(DTENSOR_VERSION_MAJOR) + "." +
                              std::to_string(DTENSOR_VERSION_MINOR) + "." +
                              std::to_string(DTENSOR_VERSION_PATCH);
  EXPECT_EQ(numbers, DTENSOR_VERSION_STRING);
}
