// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dtensor/config.hpp"

namespace dtensor {

/// The version of the linked library, such as "0.1.0". `DTENSOR_VERSION_STRING` is that of the
/// headers.
[[nodiscard]] const char* version() noexcept;

}  // namespace dtensor
