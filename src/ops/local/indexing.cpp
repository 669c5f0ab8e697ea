// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "indexing.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "element_size.hpp"
#include "items.hpp"
#include "strided_loop.hpp"

namespace dtensor::detail {

namespace {

template <class Execution>
using Range = Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>;

// On the host: calls `f(outer, begin, end)` for blocks of the `k` parts of `inner` elements that
// each of `outer` has. Inside of a block there are no divisions.
template <class Execution, class F>
void for_each_block(const char* label, std::int64_t outer, std::int64_t k, std::int64_t inner,
                    const F& f) {
  const std::int64_t block = std::min(k, std::max<std::int64_t>(4096 / inner, 1));
  const std::int64_t blocks = (k + block - 1) / block;
  Kokkos::parallel_for(label, Range<Execution>(0, outer * blocks), [=](const std::int64_t item) {
    const std::int64_t o = item / blocks, begin = (item - o * blocks) * block;
    f(o, begin, std::min(begin + block, k));
  });
}

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
  std::int64_t begin, end;  // of the first interval, which most often is the only one

  // -1 for an index that is not held.
  KOKKOS_INLINE_FUNCTION std::int64_t operator()(std::int64_t index) const {
    if (index >= begin && index < end) return index - begin;
    if (count < 2) return -1;
    std::int64_t low = 0, high = count;  // the last interval that begins at or before the index
    while (high - low > 1) {
      const std::int64_t middle = low + (high - low) / 2;
      if (table[3 * middle] <= index) {
        low = middle;
      } else {
        high = middle;
      }
    }
    if (index < table[3 * low] || index >= table[3 * low + 1]) return -1;
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

Position position_of(const Tensor& table, const IndexSet& held) {
  const Interval first = held.empty() ? Interval() : held.intervals().front();
  return {static_cast<const std::int64_t*>(table.data()), table.numel() / 3, first.begin,
          first.end};
}

struct Smallest {
  const std::int64_t* data;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, std::int64_t& partial) const {
    partial = data[i] < partial ? data[i] : partial;
  }
};
struct Largest {
  const std::int64_t* data;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i, std::int64_t& partial) const {
    partial = data[i] > partial ? data[i] : partial;
  }
};

// Parts of `inner` elements, one for each of `k` indices of each of the outer dimensions.
template <class T>
struct SelectElement {
  T* out;
  const T* in;
  const std::int64_t* index;
  std::int64_t n, k, inner;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t item) const {
    const std::int64_t row = item / inner, o = row / k;
    out[item] = in[(o * n + index[row - o * k]) * inner + item - row * inner];
  }
};

// Lines along the dimension: `k` indices, `inner` lines side by side.
template <class T>
struct GatherLines {
  T* out;
  const T* in;
  const std::int64_t* index;
  std::int64_t n, k, inner;
  Position position;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t item) const {
    const std::int64_t row = item / inner, p = position(index[item]);
    out[item] = p < 0 ? T{} : in[(row / k * n + p) * inner + item - row * inner];
  }
};

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

// One after the other what goes to each line along the dimension: no two items meet, and the order
// is always the same.
template <class T>
struct AddLines {
  T* out;
  const T* in;
  const std::int64_t* index;
  StridedLoop<1> lines;
  std::int64_t k, inner, step;
  Position position;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t line) const {
    T* const y = out + lines.locate(lines.rank, line)[0];
    const std::int64_t o = line / inner;
    const std::int64_t first = o * k * inner + line - o * inner;
    for (std::int64_t i = 0; i < k; ++i) {
      const std::int64_t p = position(index[first + i * inner]);
      if (p >= 0) y[p * step] = plus<T>(y[p * step], in[first + i * inner]);
    }
  }
};

struct SetOne {
  std::int64_t* out;
  const std::int64_t* index;
  std::int64_t classes;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    out[i * classes + index[i]] = 1;
  }
};

}  // namespace

std::pair<std::int64_t, std::int64_t> range_of(const Tensor& index) {
  const std::int64_t count = index.numel();
  if (count == 0) return {0, -1};
  const auto* data = static_cast<const std::int64_t*>(index.data());
  std::int64_t low = 0, high = 0;
  dispatch_space(index.device(), [&]<class Execution>() {
    Kokkos::parallel_reduce("dtensor::range_of", Range<Execution>(0, count), Smallest{data},
                            Kokkos::Min<std::int64_t>(low));
    Kokkos::parallel_reduce("dtensor::range_of", Range<Execution>(0, count), Largest{data},
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
  const std::int64_t inner = from.inner, k = index.numel();
  dispatch_size(size_of(a.dtype()), [&]<class T>() {
    const SelectElement<T> select{static_cast<T*>(out.data()),
                                  static_cast<const T*>(in.data()),
                                  static_cast<const std::int64_t*>(index.data()),
                                  from.extent,
                                  k,
                                  inner};
    dispatch_space(a.device(), [&]<class Execution>() {
      if constexpr (works_by_row<Execution>) {
        for_each_block<Execution>("dtensor::index_select", from.outer, k, inner,
                                  [=](std::int64_t o, std::int64_t begin, std::int64_t end) {
                                    T* KOKKOS_RESTRICT to = select.out + o * k * inner;
                                    const T* const x = select.in + o * select.n * inner;
                                    const std::int64_t* const at = select.index;
                                    if (inner == 1) {
                                      for (std::int64_t i = begin; i < end; ++i) to[i] = x[at[i]];
                                    } else {
                                      for (std::int64_t i = begin; i < end; ++i) {
                                        std::memcpy(to + i * inner, x + at[i] * inner,
                                                    static_cast<std::size_t>(inner) * sizeof(T));
                                      }
                                    }
                                  });
      } else {
        Kokkos::parallel_for("dtensor::index_select", Range<Execution>(0, from.outer * k * inner),
                             select);
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
  const Position position = position_of(table, held);
  const Around from(in.shape(), dim), to(index.shape(), dim);
  const std::int64_t k = to.extent, inner = to.inner;
  dispatch_size(size_of(a.dtype()), [&]<class T>() {
    const GatherLines<T> gather{static_cast<T*>(out.data()),
                                static_cast<const T*>(in.data()),
                                static_cast<const std::int64_t*>(where.data()),
                                from.extent,
                                k,
                                inner,
                                position};
    dispatch_space(a.device(), [&]<class Execution>() {
      if constexpr (works_by_row<Execution>) {
        for_each_block<Execution>("dtensor::gather", to.outer, k, inner,
                                  [=](std::int64_t o, std::int64_t begin, std::int64_t end) {
                                    T* KOKKOS_RESTRICT out_row = gather.out + o * k * inner;
                                    const std::int64_t* const at = gather.index + o * k * inner;
                                    const T* const x = gather.in + o * gather.n * inner;
                                    for (std::int64_t i = begin; i < end; ++i) {
                                      for (std::int64_t t = 0; t < inner; ++t) {
                                        const std::int64_t p = position(at[i * inner + t]);
                                        out_row[i * inner + t] = p < 0 ? T{} : x[p * inner + t];
                                      }
                                    }
                                  });
      } else {
        Kokkos::parallel_for("dtensor::gather", Range<Execution>(0, out.numel()), gather);
      }
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
  const Position position = position_of(table, held);
  const Around around(index.shape(), dim);
  // Not through `make_loop`, which changes the order of the dimensions.
  StridedLoop<1> lines;
  lines.rank = to.dim();
  for (int d = 0; d < to.dim(); ++d) {
    lines.extent[d] = d == dim ? 1 : index.shape()[d];
    lines.stride[d].at[0] = to.strides()[d];
  }
  dispatch_dtype(to.dtype(), [&]<class T>() {
    for_each_item("dtensor::scatter_add", around.outer * around.inner, to.device(),
                  AddLines<T>{static_cast<T*>(to.data()), static_cast<const T*>(what.data()),
                              static_cast<const std::int64_t*>(where.data()), lines, around.extent,
                              around.inner, to.strides()[dim], position});
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
  for_each_item("dtensor::one_hot", index.numel(), index.device(),
                SetOne{static_cast<std::int64_t*>(out.data()),
                       static_cast<const std::int64_t*>(where.data()), classes});
  fence(index.device(), "dtensor::one_hot");
  return out;
}

}  // namespace dtensor::detail
