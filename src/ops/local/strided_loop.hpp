// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// A loop over the elements of several strided boxes at once, reduced to its essence.
#pragma once

#include <algorithm>
#include <array>

#include "dtensor/core/extents.hpp"
#include "dtensor/core/kokkos_compat.hpp"

namespace dtensor {

/// One number per operand: an offset or a stride in elements.
template <int N>
struct PerOperand {
  std::int64_t at[N];
  KOKKOS_INLINE_FUNCTION std::int64_t operator[](int i) const { return at[i]; }
};

/// No dimensions of extent 1, neighbours merged where all operands are contiguous across them, the
/// first operand's smallest stride last. There is at least one dimension.
template <int N>
struct StridedLoop {
  int rank = 0;
  std::int64_t count = 1;
  std::int64_t extent[max_rank] = {};
  PerOperand<N> stride[max_rank] = {};

  KOKKOS_INLINE_FUNCTION std::int64_t row() const { return extent[rank - 1]; }
  /// Offsets of element `index` of the first `dims` dimensions.
  KOKKOS_INLINE_FUNCTION PerOperand<N> locate(int dims, std::int64_t index) const {
    PerOperand<N> offset = {};
    for (int d = dims - 1; d >= 0; --d) {
      const std::int64_t i = index % extent[d];
      index /= extent[d];
      for (int k = 0; k < N; ++k) offset.at[k] += i * stride[d].at[k];
    }
    return offset;
  }
};

template <int N>
StridedLoop<N> make_loop(const Extents& extents, const std::array<Extents, N>& strides) {
  StridedLoop<N> loop;
  loop.count = extents.product();
  int order[max_rank];
  int n = 0;
  for (int d = 0; d < extents.size(); ++d) {
    if (extents[d] != 1) order[n++] = d;
  }
  sort_dims(order, n, [&](int a, int b) { return strides[0][a] > strides[0][b]; });
  for (int i = 0; i < n; ++i) {
    const int d = order[i];
    bool merges = loop.rank > 0;
    for (std::size_t k = 0; merges && k < N; ++k) {
      merges = loop.stride[loop.rank - 1].at[k] == strides[k][d] * extents[d];
    }
    if (!merges) loop.extent[loop.rank++] = 1;
    loop.extent[loop.rank - 1] *= extents[d];
    for (std::size_t k = 0; k < N; ++k) loop.stride[loop.rank - 1].at[k] = strides[k][d];
  }
  if (loop.rank == 0) {
    loop.rank = 1;
    loop.extent[0] = 1;
  }
  return loop;
}

/// Whether one work item should be a row, for the host's vector units, or an element.
template <class Execution>
inline constexpr bool works_by_row =
    std::is_same_v<typename Execution::memory_space, Kokkos::HostSpace>;

/// Calls `row(offsets, count, strides)` for pieces of rows that make up the loop.
template <class Execution, int N, class Row>
void for_each_row(const char* label, const StridedLoop<N>& loop, const Row& row) {
  if (loop.count == 0) return;
  using Policy = Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>;
  const int last = loop.rank - 1;
  const PerOperand<N> strides = loop.stride[last];
  if constexpr (works_by_row<Execution>) {
    // A long row is cut so that every thread has work.
    const std::int64_t grain = std::int64_t{1} << 16;
    const std::int64_t length = loop.row();
    const std::int64_t pieces = (length + grain - 1) / grain;
    const std::int64_t items = loop.count / length * pieces;
    if (items == 1) return row(PerOperand<N>{}, length, strides);
    Kokkos::parallel_for(label, Policy(0, items), [=](const std::int64_t item) {
      const std::int64_t begin = item % pieces * grain;
      PerOperand<N> offset = loop.locate(last, item / pieces);
      for (int k = 0; k < N; ++k) offset.at[k] += begin * strides.at[k];
      row(offset, std::min(grain, length - begin), strides);
    });
  } else {
    Kokkos::parallel_for(
        label, Policy(0, loop.count),
        KOKKOS_LAMBDA(const std::int64_t item) { row(loop.locate(loop.rank, item), 1, strides); });
  }
}

}  // namespace dtensor
