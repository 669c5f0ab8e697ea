// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Whether Kokkos is up, and what to do when it goes down.
#pragma once

namespace dtensor::detail {

/// Throws `StateError` naming `function` unless Kokkos is initialized and not yet finalized.
void require_kokkos(const char* function);

/// Calls back at the start of `Kokkos::finalize`, while memory can still be freed.
void on_kokkos_finalize(void (*callback)());

}  // namespace dtensor::detail
