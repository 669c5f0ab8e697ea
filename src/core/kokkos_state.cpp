// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <Kokkos_Core.hpp>
#include <atomic>

#include "dtensor/core/error.hpp"
#include "dtensor/core/kokkos_state.hpp"

namespace dtensor::detail {

namespace {
// Kokkos 3.4 cannot tell "not yet" from "no longer"; a finalize hook can.
std::atomic<bool> finalized{false};
std::atomic<bool> hooked{false};
}  // namespace

void on_kokkos_finalize(void (*callback)()) {
  Kokkos::push_finalize_hook([callback] {
    callback();
    finalized = true;
  });
}

void require_kokkos(const char* function) {
  if (Kokkos::is_initialized() && !finalized.load()) {
    if (!hooked.exchange(true)) on_kokkos_finalize([] {});
    return;
  }
  if (finalized.load()) {
    throw StateError(function, "a call after Kokkos::finalize",
                     "Kokkos up: keep the Kokkos::ScopeGuard or dtensor::Runtime alive while "
                     "tensors are in use");
  }
  throw StateError(function, "a call before Kokkos::initialize",
                   "Kokkos up: create a Kokkos::ScopeGuard or a dtensor::Runtime first");
}

}  // namespace dtensor::detail
