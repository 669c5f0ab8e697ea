// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The memory behind tensors: a `Kokkos::View` of bytes from a pool, or a user's View kept alive.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "dtensor/core/kokkos_compat.hpp"

namespace dtensor {

/// A block of memory shared by every tensor that views it. Memory that the library allocated goes
/// back to a pool when the last tensor is gone, and back to Kokkos at `Kokkos::finalize`; a tensor
/// that outlives that moment is harmless, its use throws `StateError`.
class Storage {
 public:
  /// Uninitialized memory. Throws `StateError` when Kokkos is not up, `ValueError` when the memory
  /// cannot be had.
  static std::shared_ptr<Storage> allocate(std::int64_t bytes, DeviceKind kind);

  /// Memory owned by somebody else; `owner` is kept until the last tensor is gone.
  static std::shared_ptr<Storage> wrap(void* data, std::int64_t bytes, DeviceKind kind,
                                       std::shared_ptr<void> owner);

  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  /// First byte; null for an empty block. Throws `StateError` after `Kokkos::finalize`.
  void* data() const {
    if (released_) throw_released();
    return data_;
  }
  std::int64_t bytes() const noexcept { return bytes_; }
  DeviceKind device() const noexcept { return kind_; }

 private:
  Storage() = default;
  [[noreturn]] static void throw_released();
  static void release_all();
  void link();
  void unlink();

  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
  DeviceKind kind_ = DeviceKind::host;
  bool released_ = false;
  // The memory is held by one of these three: a pool block of either space, or the user's owner.
  Kokkos::View<unsigned char*, Kokkos::HostSpace> host_block_;
  Kokkos::View<unsigned char*, DeviceMemory> device_block_;
  std::shared_ptr<void> owner_;
  // All live storages, to release them at Kokkos::finalize.
  Storage* previous_ = nullptr;
  Storage* next_ = nullptr;
};

/// What the library's own allocations in one memory space amount to, in bytes.
struct MemoryStatistics {
  std::int64_t in_use = 0;  ///< held by tensors and scratch buffers now
  std::int64_t peak = 0;    ///< the most that was held since the last `reset_memory_peak`
  std::int64_t cached = 0;  ///< free blocks kept for reuse
};

/// Local. Memory of the library's own tensors and scratch; a user's Views do not count.
MemoryStatistics memory_statistics(DeviceKind kind = DeviceKind::device);
/// Local. Sets `peak` to what is in use now.
void reset_memory_peak(DeviceKind kind = DeviceKind::device);
/// Local. Gives all cached free blocks back to Kokkos.
void trim_memory_pool();
/// Local. The most bytes of free blocks that are kept for reuse, per memory space. The default is
/// 1 GiB, or what the environment variable `DTENSOR_POOL_BYTES` says.
void set_memory_pool_limit(std::int64_t bytes);

}  // namespace dtensor
