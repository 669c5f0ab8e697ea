// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "indexing.hpp"

#include <cstring>
#include <limits>

#include "element_size.hpp"
#include "strided_loop.hpp"

namespace dtensor::detail {

namespace {

template <class Execution>
using Range = Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>;

// A dense tensor seen as (outer, extent, inner) around one dimension.
struct Around {
  std::int64_t outer = 1, extent = 1, inner = 1;
  Around(const Shape& shape, int dim) {
    for (int d = 0; d < shape.size(); ++d) {
      (d < dim ? outer : d == dim ? extent : inner) *= shape[d];
    }
  }
};

// From an index of a dimension to the position on a rank that holds some of them.
struct Position {
  const std::int64_t* table;  // begin, end and position of each interval
  std::int64_t count;

  // -1 for an index that is not held.
  KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t index) const {
    std::int64_t low = 0, high = count;  // the last interval that begins at or before the index
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      if (table[3 * middle] <= index) {
        low = middle;
      } else {
        high = middle;
      }
    }
    if (count == 0 || index < table[3 * low] || index >= table[3 * low + 1]) return -1;
    return table[3 * low + 2] + index - table[3 * low];
  }
};

Tensor position_table(const IndexSet& held, DeviceKind device) {
  std::vector<std::int64_t> table;
  std::int64_t position = 0;
  for (const Interval& i : held.intervals()) {
    table.insert(table.end(), {i.begin, i.end, position});
    position += i.length();
  }
  const auto count = static_cast<std::int64_t>(table.size());
  return Tensor::from_vector(table, {count}, device);
}

Position position_of(const Tensor& table) {
  return {static_cast<const std::int64_t*>(table.data()), table.numel() / 3};
}

template <class S>
KOKKOS_INLINE_FUNCTION S plus(const S& a, const S& b) {
  if constexpr (std::is_same_v<S, bool>) {
    return a || b;
  } else if constexpr (std::is_integral_v<S>) {
    return static_cast<S>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
  } else {
    return scalar_cast<S>(scalar_cast<accumulate_t<S>>(a) + scalar_cast<accumulate_t<S>>(b));
  }
}

}  // namespace

std::pair<std::int64_t, std::int64_t> range_of(const Tensor& index) {
  const std::int64_t count = index.numel();
  if (count == 0) return {0, -1};
  const auto* data = static_cast<const std::int64_t*>(index.data());
  std::int64_t low = 0, high = 0;
  dispatch_space(index.device(), [&]<class Execution>() {
    Kokkos::parallel_reduce(
        "dtensor::range_of", Range<Execution>(0, count),
        KOKKOS_LAMBDA(const std::int64_t i, std::int64_t& partial) {
          partial = data[i] < partial ? data[i] : partial;
        },
        Kokkos::Min<std::int64_t>(low));
    Kokkos::parallel_reduce(
        "dtensor::range_of", Range<Execution>(0, count),
        KOKKOS_LAMBDA(const std::int64_t i, std::int64_t& partial) {
          partial = data[i] > partial ? data[i] : partial;
        },
        Kokkos::Max<std::int64_t>(high));
  });
  return {low, high};
}

Tensor select_indices(const Tensor& a, int dim, const Tensor& index) {
  Shape shape = a.shape();
  shape[dim] = index.numel();
  Tensor out = Tensor::empty(shape, a.dtype(), a.device());
  if (out.numel() == 0) return out;
  const Tensor in = a.contiguous();
  const Around from(in.shape(), dim);
  const std::int64_t n = from.extent, inner = from.inner, k = index.numel();
  const auto* at = static_cast<const std::int64_t*>(index.data());
  dispatch_size(size_of(a.dtype()), [&]<class T>() {
    T* const to = static_cast<T*>(out.data());
    const T* const x = static_cast<const T*>(in.data());
    dispatch_space(a.device(), [&]<class Execution>() {
      if constexpr (works_by_row<Execution>) {
        Kokkos::parallel_for("dtensor::index_select", Range<Execution>(0, from.outer * k),
                             [=](const std::int64_t item) {
                               const std::int64_t o = item / k;
                               const T* const row = x + (o * n + at[item - o * k]) * inner;
                               std::memcpy(to + item * inner, row,
                                           static_cast<std::size_t>(inner) * sizeof(T));
                             });
      } else {
        Kokkos::parallel_for(
            "dtensor::index_select", Range<Execution>(0, from.outer * k * inner),
            KOKKOS_LAMBDA(const std::int64_t item) {
              const std::int64_t row = item / inner;
              const std::int64_t o = row / k;
              to[item] = x[(o * n + at[row - o * k]) * inner + item - row * inner];
            });
      }
    });
  });
  fence(a.device(), "dtensor::index_select");
  return out;
}

Tensor gather_held(const Tensor& a, int dim, const Tensor& index, const IndexSet& held) {
  Tensor out = Tensor::empty(index.shape(), a.dtype(), a.device());
  if (out.numel() == 0) return out;
  const Tensor in = a.contiguous(), where = index.contiguous();
  const Tensor table = position_table(held, a.device());
  const Position position = position_of(table);
  const Around from(in.shape(), dim), to(index.shape(), dim);
  const std::int64_t n = from.extent, k = to.extent, inner = to.inner;
  const auto* at = static_cast<const std::int64_t*>(where.data());
  dispatch_size(size_of(a.dtype()), [&]<class T>() {
    T* const y = static_cast<T*>(out.data());
    const T* const x = static_cast<const T*>(in.data());
    dispatch_space(a.device(), [&]<class Execution>() {
      Kokkos::parallel_for(
          "dtensor::gather", Range<Execution>(0, out.numel()),
          KOKKOS_LAMBDA(const std::int64_t item) {
            const std::int64_t row = item / inner;
            const std::int64_t p = position(at[item]);
            y[item] = p < 0 ? T{} : x[(row / k * n + p) * inner + item - row * inner];
          });
    });
  });
  fence(a.device(), "dtensor::gather");
  return out;
}

void add_held(const Tensor& to, int dim, const Tensor& index, const Tensor& src,
              const IndexSet& held) {
  if (index.numel() == 0 || to.numel() == 0) return;
  const Tensor where = index.contiguous(), what = src.contiguous();
  const Tensor table = position_table(held, to.device());
  const Position position = position_of(table);
  const Around around(index.shape(), dim);
  // One work item adds one after the other what goes to one line along `dim`: no two of them meet,
  // and the order is always the same.
  Extents lines = index.shape(), line_strides = to.strides();
  lines[dim] = 1;
  const std::int64_t k = around.extent, inner = around.inner, step = to.strides()[dim];
  // Not through `make_loop`, which changes the order of the dimensions.
  StridedLoop<1> loop;
  loop.rank = lines.size();
  for (int d = 0; d < lines.size(); ++d) {
    loop.extent[d] = lines[d];
    loop.stride[d].at[0] = line_strides[d];
  }
  const auto* at = static_cast<const std::int64_t*>(where.data());
  dispatch_dtype(to.dtype(), [&]<class T>() {
    T* const y = static_cast<T*>(to.data());
    const T* const x = static_cast<const T*>(what.data());
    dispatch_space(to.device(), [&]<class Execution>() {
      Kokkos::parallel_for(
          "dtensor::scatter_add", Range<Execution>(0, around.outer * inner),
          KOKKOS_LAMBDA(const std::int64_t line) {
            const std::int64_t base = loop.locate(loop.rank, line)[0];
            const std::int64_t o = line / inner;
            const std::int64_t first = o * k * inner + line - o * inner;
            for (std::int64_t i = 0; i < k; ++i) {
              const std::int64_t p = position(at[first + i * inner]);
              if (p >= 0) y[base + p * step] = plus<T>(y[base + p * step], x[first + i * inner]);
            }
          });
    });
  });
  fence(to.device(), "dtensor::scatter_add");
}

namespace {

Extents strides_for(const Tensor& t, const Shape& shape) {
  Extents strides = Extents::filled(shape.size(), 0);
  const int added = shape.size() - t.dim();
  for (int d = 0; d < t.dim(); ++d) {
    if (t.shape()[d] != 1) strides[d + added] = t.strides()[d];
  }
  return strides;
}

template <class T>
struct MaskRow {
  T* out;
  const T* in;
  const bool* mask;
  T value;
  KOKKOS_INLINE_FUNCTION void operator()(const PerOperand<3>& offset, std::int64_t count,
                                         const PerOperand<3>& stride) const {
    T* KOKKOS_RESTRICT o = out + offset[0];
    const T* x = in + offset[1];
    const bool* m = mask + offset[2];
    if (stride[0] == 1 && stride[1] == 1 && stride[2] == 1) {
      for (std::int64_t i = 0; i < count; ++i) o[i] = m[i] ? value : x[i];
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        o[i * stride[0]] = m[i * stride[2]] ? value : x[i * stride[1]];
      }
    }
  }
};

}  // namespace

Tensor fill_masked(const Tensor& a, const Tensor& mask, const Scalar& value) {
  Shape shape = a.dim() > mask.dim() ? a.shape() : mask.shape();
  const Shape& shorter = a.dim() > mask.dim() ? mask.shape() : a.shape();
  for (int d = 0; d < shorter.size(); ++d) {
    std::int64_t& extent = shape[d + shape.size() - shorter.size()];
    if (extent == 1) extent = shorter[d];
  }
  Tensor out = Tensor::empty(shape, a.dtype(), a.device());
  const Tensor filling = Tensor::full({1}, value, a.dtype(), DeviceKind::host);
  const auto loop =
      make_loop<3>(shape, {out.strides(), strides_for(a, shape), strides_for(mask, shape)});
  dispatch_size(size_of(a.dtype()), [&]<class T>() {
    T bits;
    std::memcpy(&bits, filling.data(), sizeof(T));
    const MaskRow<T> row{static_cast<T*>(out.data()), static_cast<const T*>(a.data()),
                         static_cast<const bool*>(mask.data()), bits};
    dispatch_space(a.device(), [&]<class Execution>() {
      for_each_row<Execution>("dtensor::masked_fill", loop, row);
    });
  });
  fence(a.device(), "dtensor::masked_fill");
  return out;
}

Tensor make_one_hot(const Tensor& index, std::int64_t classes) {
  Shape shape = index.shape();
  shape.push_back(classes);
  Tensor out = Tensor::zeros(shape, DType::int64, index.device());
  const Tensor where = index.contiguous();
  const auto* at = static_cast<const std::int64_t*>(where.data());
  auto* const y = static_cast<std::int64_t*>(out.data());
  dispatch_space(index.device(), [&]<class Execution>() {
    Kokkos::parallel_for(
        "dtensor::one_hot", Range<Execution>(0, index.numel()),
        KOKKOS_LAMBDA(const std::int64_t i) { y[i * classes + at[i]] = 1; });
  });
  fence(index.device(), "dtensor::one_hot");
  return out;
}

}  // namespace dtensor::detail
