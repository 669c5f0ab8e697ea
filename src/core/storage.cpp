// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/core/storage.hpp"

#include <fmt/format.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include <bit>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

#include "dtensor/core/error.hpp"
#include "dtensor/core/kokkos_state.hpp"

namespace dtensor {

namespace {

template <class MemorySpace>
using ByteView = Kokkos::View<unsigned char*, MemorySpace>;

// Sizes are rounded up so that blocks of nearly the same size serve one another: to an eighth of
// the next power of two, at least 64 bytes.
std::int64_t size_class(std::int64_t bytes) {
  if (bytes <= 64) return 64;
  const auto step = static_cast<std::int64_t>(
      std::max<std::uint64_t>(64, std::bit_floor(static_cast<std::uint64_t>(bytes - 1)) / 8));
  return (bytes + step - 1) / step * step;
}

// Blocks from this size on lie in large pages, where the system gives them on request: fewer misses
// in the TLB, faster copies by MPI within a node, and a place in the caches that does not depend on
// which small pages were free.
constexpr std::int64_t large_page = std::int64_t{1} << 21;
constexpr std::int64_t min_paged_size = large_page >> 5;

// Memory that starts at a large page and asks for large pages up to its last whole one. The page
// that the alignment costs is never touched.
template <class MemorySpace>
ByteView<MemorySpace> large_pages(std::int64_t size) {
  ByteView<MemorySpace> memory(Kokkos::view_alloc(Kokkos::WithoutInitializing, "dtensor::storage"),
                               static_cast<std::size_t>(size + large_page));
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
  const auto skipped = static_cast<std::size_t>(-address % large_page);
#ifdef MADV_HUGEPAGE
  // It is only advice: without such pages all works the same.
  madvise(memory.data() + skipped, static_cast<std::size_t>(size / large_page * large_page),
          MADV_HUGEPAGE);
#endif
  return Kokkos::subview(memory, std::make_pair(skipped, skipped + static_cast<std::size_t>(size)));
}

// Bytes of the smallest number of large pages of which blocks of one size leave at most an eighth.
std::int64_t shared_pages_size(std::int64_t size) {
  std::int64_t pages = large_page;
  while (pages % size > pages / 8) pages += large_page;
  return pages;
}

// One pool per memory space. A free block is reused for the next allocation of its size class, so
// that repeated work neither calls the system allocator nor faults in fresh pages.
template <class MemorySpace>
class Pool {
 public:
  using Block = ByteView<MemorySpace>;

  Block take(std::int64_t bytes, std::int64_t limit) {
    const std::int64_t size = size_class(bytes);
    auto& blocks = free_[size];
    Block block;
    if (blocks.empty()) {
      block = fresh(size, limit);
    } else {
      block = std::move(blocks.back());
      blocks.pop_back();
      statistics.cached -= size;
    }
    statistics.in_use += size;
    statistics.peak = std::max(statistics.peak, statistics.in_use);
    return block;
  }

  void give_back(Block&& block, std::int64_t limit) {
    const auto size = static_cast<std::int64_t>(block.extent(0));
    statistics.in_use -= size;
    if (statistics.cached + size <= limit) {
      statistics.cached += size;
      free_[size].push_back(std::move(block));
    }
    block = Block();
  }

  void trim() {
    free_.clear();
    statistics.cached = 0;
  }

  MemoryStatistics statistics;

 private:
  Block fresh(std::int64_t size, std::int64_t limit) {
    const auto make = [&] {
      if (!std::is_same_v<MemorySpace, Kokkos::HostSpace> || size < min_paged_size) {
        return Block(Kokkos::view_alloc(Kokkos::WithoutInitializing, "dtensor::storage"),
                     static_cast<std::size_t>(size));
      }
      if (size >= large_page) return large_pages<MemorySpace>(size);
      // Smaller blocks share their pages, which go back when the last of them does.
      const std::int64_t pages = shared_pages_size(size);
      const Block memory = large_pages<MemorySpace>(pages);
      for (std::int64_t begin = size; begin + size <= pages && statistics.cached + size <= limit;
           begin += size) {
        free_[size].push_back(Kokkos::subview(memory, std::make_pair(begin, begin + size)));
        statistics.cached += size;
      }
      return Block(Kokkos::subview(memory, std::make_pair(std::int64_t{0}, size)));
    };
    try {
      return make();
    } catch (const std::exception&) {
      trim();
    }
    try {
      return make();
    } catch (const std::exception&) {
      throw ValueError("Storage::allocate",
                       fmt::format("{} bytes in {} memory, {} bytes in use by tensors", size,
                                   MemorySpace::name(), statistics.in_use),
                       "a size that fits in memory");
    }
  }

  std::map<std::int64_t, std::vector<Block>> free_;
};

struct Pools {
  std::mutex mutex;
  std::int64_t limit = std::int64_t{1} << 30;
  Pool<Kokkos::HostSpace> host;
  Storage* first = nullptr;
  bool hooked = false;

  Pools() {
    const char* const text = std::getenv("DTENSOR_POOL_BYTES");
    if (!text) return;
    const char* const end = text + std::strlen(text);
    const auto [stop, error] = std::from_chars(text, end, limit);
    if (error != std::errc() || stop != end || limit < 0) {
      throw ValueError("DTENSOR_POOL_BYTES", fmt::format("\"{}\"", text), "a number of bytes");
    }
  }

  // In a host build both kinds share one pool.
  auto& device() {
    if constexpr (device_is_host) {
      return host;
    } else {
      return device_;
    }
  }

  MemoryStatistics& statistics(DeviceKind kind) {
    return kind == DeviceKind::device ? device().statistics : host.statistics;
  }

 private:
  std::conditional_t<device_is_host, std::nullptr_t, Pool<DeviceMemory>> device_{};
};

// Never destroyed: tensors with static lifetime may outlive every other static object.
Pools& pools() {
  static auto* instance = new Pools;
  return *instance;
}

}  // namespace

// Both expect the lock to be held.
void Storage::link() {
  auto& p = pools();
  if (!p.hooked) {
    p.hooked = true;
    detail::on_kokkos_finalize(&Storage::release_all);
  }
  next_ = p.first;
  if (p.first) p.first->previous_ = this;
  p.first = this;
}

void Storage::unlink() {
  auto& p = pools();
  if (previous_) previous_->next_ = next_;
  if (next_) next_->previous_ = previous_;
  if (p.first == this) p.first = next_;
}

std::shared_ptr<Storage> Storage::allocate(std::int64_t bytes, DeviceKind kind) {
  detail::require_kokkos("Storage::allocate");
  auto& p = pools();
  std::shared_ptr<Storage> storage(new Storage);
  std::lock_guard lock(p.mutex);
  if (bytes > 0) {
    if (!device_is_host && kind == DeviceKind::device) {
      storage->device_block_ = p.device().take(bytes, p.limit);
      storage->data_ = storage->device_block_.data();
    } else {
      storage->host_block_ = p.host.take(bytes, p.limit);
      storage->data_ = storage->host_block_.data();
    }
  }
  storage->bytes_ = bytes;
  storage->kind_ = kind;
  storage->link();
  return storage;
}

std::shared_ptr<Storage> Storage::wrap(void* data, std::int64_t bytes, DeviceKind kind,
                                       std::shared_ptr<void> owner) {
  detail::require_kokkos("Storage::wrap");
  auto& p = pools();
  std::shared_ptr<Storage> storage(new Storage);
  std::lock_guard lock(p.mutex);
  storage->data_ = data;
  storage->bytes_ = bytes;
  storage->kind_ = kind;
  storage->owner_ = std::move(owner);
  storage->link();
  return storage;
}

Storage::~Storage() {
  auto& p = pools();
  std::shared_ptr<void> owner;  // released after the lock: it may own other storages
  std::lock_guard lock(p.mutex);
  if (released_) return;
  owner = std::move(owner_);
  unlink();
  if (host_block_.data()) p.host.give_back(std::move(host_block_), p.limit);
  if (device_block_.data()) p.device().give_back(std::move(device_block_), p.limit);
}

void Storage::throw_released() {
  throw StateError("Tensor", "a tensor whose memory Kokkos::finalize has released",
                   "tensors to be used only while Kokkos is up");
}

void Storage::release_all() {
  auto& p = pools();
  std::vector<std::shared_ptr<void>> owners;
  std::lock_guard lock(p.mutex);
  for (Storage* s = p.first; s != nullptr; s = s->next_) {
    s->released_ = true;
    s->host_block_ = {};
    s->device_block_ = {};
    owners.push_back(std::move(s->owner_));
  }
  p.first = nullptr;
  p.hooked = false;
  for (auto* statistics : {&p.host.statistics, &p.device().statistics}) statistics->in_use = 0;
  p.host.trim();
  p.device().trim();
}

MemoryStatistics memory_statistics(DeviceKind kind) {
  auto& p = pools();
  std::lock_guard lock(p.mutex);
  return p.statistics(kind);
}

void reset_memory_peak(DeviceKind kind) {
  auto& p = pools();
  std::lock_guard lock(p.mutex);
  p.statistics(kind).peak = p.statistics(kind).in_use;
}

void trim_memory_pool() {
  auto& p = pools();
  std::lock_guard lock(p.mutex);
  p.host.trim();
  p.device().trim();
}

void set_memory_pool_limit(std::int64_t bytes) {
  auto& p = pools();
  std::lock_guard lock(p.mutex);
  p.limit = bytes;
  if (p.host.statistics.cached > bytes) p.host.trim();
  if (p.device().statistics.cached > bytes) p.device().trim();
}

}  // namespace dtensor
