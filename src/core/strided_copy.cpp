// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/core/strided_copy.hpp"

#include <cstring>

namespace dtensor {

namespace {

struct Sixteen {
  std::uint64_t low, high;
};

// A pair of boxes reduced to its essence: no dimensions of extent 1, neighbours merged where both
// sides are contiguous across them, the destination's smallest stride last.
struct Loop {
  int rank = 0;
  std::int64_t extent[max_rank] = {};
  std::int64_t to[max_rank] = {};
  std::int64_t from[max_rank] = {};
  std::int64_t count = 1;
};

Loop simplify(const Extents& extents, const Extents& to, const Extents& from) {
  Loop loop;
  loop.count = extents.product();
  int order[max_rank];
  int n = 0;
  for (int d = 0; d < extents.size(); ++d) {
    if (extents[d] == 1) continue;
    int i = n++;
    for (; i > 0 && std::abs(to[order[i - 1]]) < std::abs(to[d]); --i) order[i] = order[i - 1];
    order[i] = d;
  }
  for (int i = 0; i < n; ++i) {
    const int d = order[i];
    const int last = loop.rank - 1;
    if (last >= 0 && loop.to[last] == to[d] * extents[d] &&
        loop.from[last] == from[d] * extents[d]) {
      loop.extent[last] *= extents[d];
      loop.to[last] = to[d];
      loop.from[last] = from[d];
    } else {
      loop.extent[loop.rank] = extents[d];
      loop.to[loop.rank] = to[d];
      loop.from[loop.rank] = from[d];
      ++loop.rank;
    }
  }
  if (loop.rank == 0) {
    loop.rank = 1;
    loop.extent[0] = 1;
    loop.to[0] = loop.from[0] = 1;
  }
  return loop;
}

// One work item is a row (the last dimension) on the host, one element on a device.
template <class Execution>
inline constexpr bool rowwise = std::is_same_v<typename Execution::memory_space, Kokkos::HostSpace>;

KOKKOS_INLINE_FUNCTION void locate(const Loop& loop, int dims, std::int64_t index, std::int64_t& to,
                                   std::int64_t& from) {
  to = from = 0;
  for (int d = dims - 1; d >= 0; --d) {
    const std::int64_t rest = d == 0 ? 0 : index / loop.extent[d];
    const std::int64_t i = index - rest * loop.extent[d];
    index = rest;
    to += i * loop.to[d];
    from += i * loop.from[d];
  }
}

// Applies `f(to offset, from offset, count, to stride, from stride)` to every row.
template <class Execution, class F>
void for_each_row(const char* label, const Loop& loop, const F& f) {
  const int last = loop.rank - 1;
  if constexpr (rowwise<Execution>) {
    const std::int64_t row = loop.extent[last];
    // A single long row is cut so that every thread has work.
    const std::int64_t grain = std::int64_t{1} << 16;
    const std::int64_t pieces = (row + grain - 1) / grain;
    const std::int64_t rows = loop.count / row;
    if (rows * pieces == 1) {
      f(0, 0, row, loop.to[last], loop.from[last]);
      return;
    }
    Kokkos::parallel_for(
        label, Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>(0, rows * pieces),
        [=](const std::int64_t item) {
          const std::int64_t row_index = pieces == 1 ? item : item / pieces;
          const std::int64_t piece = item - row_index * pieces;
          std::int64_t to, from;
          locate(loop, last, row_index, to, from);
          const std::int64_t begin = piece * grain;
          f(to + begin * loop.to[last], from + begin * loop.from[last],
            std::min(grain, row - begin), loop.to[last], loop.from[last]);
        });
  } else {
    Kokkos::parallel_for(
        label, Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>(0, loop.count),
        KOKKOS_LAMBDA(const std::int64_t item) {
          std::int64_t to, from;
          locate(loop, loop.rank, item, to, from);
          f(to, from, 1, 1, 1);
        });
  }
}

template <class T>
struct CopyRow {
  T* to;
  const T* from;
  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t t, std::int64_t f, std::int64_t count,
                                         std::int64_t to_stride, std::int64_t from_stride) const {
    if (to_stride == 1 && from_stride == 1) {
      memcpy(to + t, from + f, static_cast<std::size_t>(count) * sizeof(T));
    } else {
      for (std::int64_t i = 0; i < count; ++i) to[t + i * to_stride] = from[f + i * from_stride];
    }
  }
};

// A transposition walks one side with a large stride; square tiles keep both sides in cache.
template <class T, class Execution>
void copy_tiled(const Loop& loop, int inner, T* to, const T* from) {
  constexpr std::int64_t tile = 32;
  const int last = loop.rank - 1;
  Loop outer = loop;  // the two tiled dimensions become extents of tiles
  outer.extent[inner] = (loop.extent[inner] + tile - 1) / tile;
  outer.to[inner] = loop.to[inner] * tile;
  outer.from[inner] = loop.from[inner] * tile;
  outer.extent[last] = (loop.extent[last] + tile - 1) / tile;
  outer.to[last] = loop.to[last] * tile;
  outer.from[last] = loop.from[last] * tile;
  std::int64_t tiles = 1;
  for (int d = 0; d < loop.rank; ++d) tiles *= outer.extent[d];
  Kokkos::parallel_for(
      "dtensor::copy_tiled",
      Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>(0, tiles),
      [=](const std::int64_t item) {
        std::int64_t t, f, rest = item, begin[max_rank] = {};
        locate(outer, outer.rank, item, t, f);
        for (int d = outer.rank - 1; d >= 0; --d) {
          begin[d] = rest % outer.extent[d] * tile;
          rest /= outer.extent[d];
        }
        const std::int64_t rows = std::min(tile, loop.extent[inner] - begin[inner]);
        const std::int64_t columns = std::min(tile, loop.extent[last] - begin[last]);
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t j = 0; j < columns; ++j) {
            to[t + i * loop.to[inner] + j * loop.to[last]] =
                from[f + i * loop.from[inner] + j * loop.from[last]];
          }
        }
      });
}

template <class T>
void copy(const Loop& loop, void* to, const void* from, DeviceKind kind) {
  dispatch_space(kind, [&]<class Execution>() {
    auto* const t = static_cast<T*>(to);
    const auto* const f = static_cast<const T*>(from);
    if constexpr (rowwise<Execution>) {
      const int last = loop.rank - 1;
      if (loop.from[last] != 1 && loop.count > 1024) {
        for (int d = 0; d < last; ++d) {
          if (loop.from[d] == 1) return copy_tiled<T, Execution>(loop, d, t, f);
        }
      }
    }
    for_each_row<Execution>("dtensor::copy_strided", loop, CopyRow<T>{t, f});
  });
}

template <class To, class From>
struct ConvertRow {
  To* to;
  const From* from;
  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t t, std::int64_t f, std::int64_t count,
                                         std::int64_t to_stride, std::int64_t from_stride) const {
    for (std::int64_t i = 0; i < count; ++i) {
      to[t + i * to_stride] = scalar_cast<To>(from[f + i * from_stride]);
    }
  }
};

template <class T>
struct FillRow {
  T* to;
  T value;
  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t t, std::int64_t, std::int64_t count,
                                         std::int64_t to_stride, std::int64_t) const {
    for (std::int64_t i = 0; i < count; ++i) to[t + i * to_stride] = value;
  }
};

}  // namespace

void copy_strided(const StridedBox& to, const StridedBox& from, const Extents& extents,
                  std::int64_t element_size, DeviceKind kind) {
  const Loop loop = simplify(extents, to.strides, from.strides);
  if (loop.count == 0) return;
  switch (element_size) {
    case 1:
      return copy<std::uint8_t>(loop, to.data, from.data, kind);
    case 2:
      return copy<std::uint16_t>(loop, to.data, from.data, kind);
    case 4:
      return copy<std::uint32_t>(loop, to.data, from.data, kind);
    case 8:
      return copy<std::uint64_t>(loop, to.data, from.data, kind);
    default:
      return copy<Sixteen>(loop, to.data, from.data, kind);
  }
}

void convert_strided(const StridedBox& to, DType to_dtype, const StridedBox& from, DType from_dtype,
                     const Extents& extents, DeviceKind kind) {
  if (to_dtype == from_dtype) return copy_strided(to, from, extents, size_of(to_dtype), kind);
  const Loop loop = simplify(extents, to.strides, from.strides);
  if (loop.count == 0) return;
  dispatch_dtype(to_dtype, [&]<class To>() {
    dispatch_dtype(from_dtype, [&]<class From>() {
      dispatch_space(kind, [&]<class Execution>() {
        for_each_row<Execution>(
            "dtensor::convert", loop,
            ConvertRow<To, From>{static_cast<To*>(to.data), static_cast<const From*>(from.data)});
      });
    });
  });
}

void fill_strided(const StridedBox& to, DType dtype, const Extents& extents, const Scalar& value,
                  DeviceKind kind) {
  const Loop loop = simplify(extents, to.strides, to.strides);
  if (loop.count == 0) return;
  dispatch_dtype(dtype, [&]<class T>() {
    dispatch_space(kind, [&]<class Execution>() {
      for_each_row<Execution>("dtensor::fill", loop,
                              FillRow<T>{static_cast<T*>(to.data), value.to<T>()});
    });
  });
}

}  // namespace dtensor
