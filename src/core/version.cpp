// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/core/version.hpp"

namespace dtensor {

const char* version() noexcept { return DTENSOR_VERSION_STRING; }

}  // namespace dtensor
