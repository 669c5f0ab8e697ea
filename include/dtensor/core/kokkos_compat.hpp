// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Memory and execution spaces of the configured Kokkos, and every difference between the
/// supported Kokkos versions (3.4.01 to 5.x).
#pragma once

#include <Kokkos_Core.hpp>
#include <type_traits>

namespace dtensor {

/// Where a tensor's storage lives.
enum class DeviceKind {
  host,    ///< `Kokkos::HostSpace`
  device,  ///< the memory space of `Kokkos::DefaultExecutionSpace`; host memory in a host build
};

/// "host" or "device".
constexpr const char* to_string(DeviceKind kind) noexcept {
  return kind == DeviceKind::host ? "host" : "device";
}

using HostExecution = Kokkos::DefaultHostExecutionSpace;
using DeviceExecution = Kokkos::DefaultExecutionSpace;
using DeviceMemory = DeviceExecution::memory_space;

/// Whether host and device storage are the same memory.
inline constexpr bool device_is_host = std::is_same_v<DeviceMemory, Kokkos::HostSpace>;

/// Whether host code may read and write memory of this space.
template <class MemorySpace>
inline constexpr bool host_accessible =
    Kokkos::SpaceAccessibility<Kokkos::HostSpace, MemorySpace>::accessible;

/// Calls `f.template operator()<ExecutionSpace>()` with the space that works on `kind`'s memory.
template <class F>
decltype(auto) dispatch_space(DeviceKind kind, F&& f) {
  if constexpr (!device_is_host) {
    if (kind == DeviceKind::device) return f.template operator()<DeviceExecution>();
  }
  return f.template operator()<HostExecution>();
}

/// The kind of the memory behind a Kokkos memory space.
template <class MemorySpace>
constexpr DeviceKind device_kind_of() {
  static_assert(
      std::is_same_v<MemorySpace, Kokkos::HostSpace> || std::is_same_v<MemorySpace, DeviceMemory>,
      "a tensor lives in Kokkos::HostSpace or in the memory space of "
      "Kokkos::DefaultExecutionSpace");
  return std::is_same_v<MemorySpace, DeviceMemory> ? DeviceKind::device : DeviceKind::host;
}

/// Waits for all work submitted to the space that works on `kind`'s memory.
inline void fence(DeviceKind kind, [[maybe_unused]] const char* label) {
  dispatch_space(kind, [&]<class Execution>() {
#ifdef KOKKOS_ENABLE_SERIAL
    // Serial work is done when it returns; a fence would only cost time.
    if constexpr (std::is_same_v<Execution, Kokkos::Serial>) return;
#endif
#if KOKKOS_VERSION >= 30500
    Execution().fence(label);
#else
    Execution().fence();
#endif
  });
}

}  // namespace dtensor
