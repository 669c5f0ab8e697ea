// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "triangle.hpp"

#include <algorithm>

#include "element_size.hpp"
#include "strided_loop.hpp"

namespace dtensor::detail {

namespace {

// The row's part [begin, end) is kept.
template <class T>
struct TriangleRow {
  T* to;
  const T* from;
  int rank;
  std::int64_t extent[max_rank], to_stride[max_rank], from_stride[max_rank];
  bool lower;
  std::int64_t diagonal;

  // Row `item` of all matrices, columns [first, last).
  KOKKOS_INLINE_FUNCTION void columns(std::int64_t item, std::int64_t first,
                                      std::int64_t last) const {
    std::int64_t t = 0, f = 0, row = 0;
    for (int d = rank - 2; d >= 0; --d) {
      const std::int64_t i = item % extent[d];
      item /= extent[d];
      if (d == rank - 2) row = i;
      t += i * to_stride[d];
      f += i * from_stride[d];
    }
    const std::int64_t bound = row + diagonal + (lower ? 1 : 0);
    const std::int64_t cut = bound < first ? first : bound > last ? last : bound;
    const std::int64_t ts = to_stride[rank - 1], fs = from_stride[rank - 1];
    const std::int64_t begin = lower ? first : cut, end = lower ? cut : last;
    for (std::int64_t j = first; j < begin; ++j) to[t + j * ts] = T{};
    for (std::int64_t j = begin; j < end; ++j) to[t + j * ts] = from[f + j * fs];
    for (std::int64_t j = end; j < last; ++j) to[t + j * ts] = T{};
  }
};

// One row, or one element.
template <class T, bool ByRow>
struct Triangle {
  TriangleRow<T> row;
  std::int64_t width;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t item) const {
    if constexpr (ByRow) {
      row.columns(item, 0, width);
    } else {
      row.columns(item / width, item % width, item % width + 1);
    }
  }
};

}  // namespace

void copy_triangle(const Tensor& to, const Tensor& from, bool lower, std::int64_t diagonal) {
  const std::int64_t count = to.numel();
  if (count == 0) return;
  dispatch_size(size_of(to.dtype()), [&]<class T>() {
    TriangleRow<T> row{static_cast<T*>(to.data()),
                       static_cast<const T*>(from.data()),
                       to.dim(),
                       {},
                       {},
                       {},
                       lower,
                       diagonal};
    for (int d = 0; d < to.dim(); ++d) {
      row.extent[d] = to.shape()[d];
      row.to_stride[d] = to.strides()[d];
      row.from_stride[d] = from.strides()[d];
    }
    const std::int64_t width = to.shape()[to.dim() - 1];
    dispatch_space(to.device(), [&]<class Execution>() {
      constexpr bool by_row = works_by_row<Execution>;
      using Policy = Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>;
      Kokkos::parallel_for("dtensor::triangle", Policy(0, by_row ? count / width : count),
                           Triangle<T, by_row>{row, width});
    });
  });
}

}  // namespace dtensor::detail
