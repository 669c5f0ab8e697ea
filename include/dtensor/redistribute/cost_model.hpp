// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The alpha-beta model of communication time (Hockney 1994).
#pragma once

#include <cstdint>

namespace dtensor {

/// Time of a step in seconds, from the slowest rank's messages and bytes. The defaults are orders
/// of magnitude of a node of today; only their ratio decides anything.
struct CostModel {
  double latency = 2e-6;            ///< alpha: per message
  double seconds_per_byte = 2e-10;  ///< beta: per byte received

  double seconds(std::int64_t messages, std::int64_t bytes) const noexcept {
    return latency * static_cast<double>(messages) + seconds_per_byte * static_cast<double>(bytes);
  }
};

}  // namespace dtensor
