// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "dtensor/core/kokkos_compat.hpp"

namespace dtensor {

/// Sixteen bytes that are only moved.
struct alignas(8) Sixteen {
  std::uint64_t low, high;
};

/// Calls `f.template operator()<T>()` with a type of `bytes` bytes: for kernels that move elements
/// whatever they stand for.
template <class F>
decltype(auto) dispatch_size(std::int64_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f.template operator()<std::uint8_t>();
    case 2:
      return f.template operator()<std::uint16_t>();
    case 4:
      return f.template operator()<std::uint32_t>();
    case 8:
      return f.template operator()<std::uint64_t>();
    default:
      return f.template operator()<Sixteen>();
  }
}

}  // namespace dtensor
