// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// From positions in this rank's part of a tensor to positions in the whole, inside a kernel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "dtensor/distributed/dtensor.hpp"

namespace dtensor {

/// A function from local to global indices, to be captured by a kernel. Local and global positions
/// count elements in row-major order. For every layout: shards that are uneven or in several
/// intervals too.
/// \tparam MemorySpace  where the kernel runs
template <class MemorySpace = DeviceMemory>
class GlobalIndex {
 public:
  /// \param shape  global shape
  /// \param sets   per dimension, the indices that are held
  GlobalIndex(const Shape& shape, const std::vector<IndexSet>& sets);

  /// The number of local elements.
  KOKKOS_INLINE_FUNCTION std::int64_t size() const { return size_; }

  /// The global position of the local element with position `local`.
  KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t local) const {
    std::int64_t global = 0;
    for (int d = rank_ - 1; d >= 0; --d) {
      global += stride_[d] * in_dim(d, local % extent_[d]);
      local /= extent_[d];
    }
    return global;
  }
  /// The global position of the local element with these indices, one per dimension; of those left
  /// out, the first, and there is none for what is beyond the last dimension.
  template <class... Index>
  KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t first, std::int64_t second,
                                                 Index... rest) const {
    const std::int64_t local[] = {first, second, static_cast<std::int64_t>(rest)...};
    std::int64_t global = 0;
    const int count = static_cast<int>(2 + sizeof...(rest));
    for (int d = 0; d < rank_ && d < count; ++d) {
      global += stride_[d] * in_dim(d, local[d]);
    }
    return global;
  }
  /// The global index along one dimension of local index `local`.
  KOKKOS_INLINE_FUNCTION std::int64_t in_dim(int dim, std::int64_t local) const {
    if (pieces_[dim] == 1) return first_[dim] + local;
    // The last piece that starts at or before it.
    std::int64_t low = table_begin_[dim], high = low + pieces_[dim];
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      (table_(2 * middle) <= local ? low : high) = middle;
    }
    return table_(2 * low + 1) + local - table_(2 * low);
  }

 private:
  int rank_ = 0;
  std::int64_t size_ = 1;
  std::int64_t extent_[max_rank] = {}, stride_[max_rank] = {};
  std::int64_t pieces_[max_rank] = {}, first_[max_rank] = {}, table_begin_[max_rank] = {};
  // For dimensions in several pieces: where each starts, locally and globally.
  Kokkos::View<std::int64_t*, MemorySpace> table_;
};

/// Of this rank's part of a tensor, which must be in memory of that space. On a rank outside of the
/// mesh it has no elements. Throws `StateError` for an undefined tensor. Local.
template <class MemorySpace = DeviceMemory>
GlobalIndex<MemorySpace> global_index(const DTensor& tensor);

// ---------------------------------------------------------------------------------------------

namespace detail {
/// The indices that a rank of the mesh holds, per dimension.
std::vector<IndexSet> index_sets(const DTensor& tensor);
}  // namespace detail

template <class MemorySpace>
GlobalIndex<MemorySpace>::GlobalIndex(const Shape& shape, const std::vector<IndexSet>& sets)
    : rank_(shape.size()) {
  const Extents strides = row_major_strides(shape);
  std::vector<std::int64_t> table;
  for (int d = 0; d < rank_; ++d) {
    const IndexSet& set = sets[static_cast<std::size_t>(d)];
    extent_[d] = set.size();
    size_ *= set.size();
    stride_[d] = strides[d];
    first_[d] = set.first(0);
    pieces_[d] = std::max<std::int64_t>(1, static_cast<std::int64_t>(set.intervals().size()));
    if (pieces_[d] == 1) continue;
    table_begin_[d] = static_cast<std::int64_t>(table.size()) / 2;
    std::int64_t local = 0;
    for (const Interval& interval : set.intervals()) {
      table.push_back(local);
      table.push_back(interval.begin);
      local += interval.length();
    }
  }
  if (table.empty()) return;
  table_ = Kokkos::View<std::int64_t*, MemorySpace>("dtensor::global_index", table.size());
  Kokkos::deep_copy(
      table_,
      Kokkos::View<const std::int64_t*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>(
          table.data(), table.size()));
}

template <class MemorySpace>
GlobalIndex<MemorySpace> global_index(const DTensor& tensor) {
  if (!tensor.device_mesh().is_member()) return GlobalIndex<MemorySpace>({0}, {IndexSet()});
  return GlobalIndex<MemorySpace>(tensor.shape(), detail::index_sets(tensor));
}

}  // namespace dtensor
