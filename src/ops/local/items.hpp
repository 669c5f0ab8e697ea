// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

#include "dtensor/core/kokkos_compat.hpp"

namespace dtensor {

/// Calls `f(item)` for the items below `count`, where memory of `kind` is at hand. `f` is an object
/// of a named type: device compilers take no lambda that is made inside of a generic one.
template <class F>
void for_each_item(const char* label, std::int64_t count, DeviceKind kind, const F& f) {
  dispatch_space(kind, [&]<class Execution>() {
    Kokkos::parallel_for(
        label, Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>(0, count), f);
  });
}

}  // namespace dtensor
