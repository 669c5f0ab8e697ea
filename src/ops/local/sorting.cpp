// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sorting.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <vector>

#include "items.hpp"
#include "strided_loop.hpp"

namespace dtensor::detail {

namespace {

template <class Execution>
using Range = Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>;

// Between the bits of a type and unsigned numbers in the order of its values, NaNs at both ends.
struct Coding {
  std::uint64_t sign;  // the sign bit of signed types
  std::uint64_t mask;  // of all the bits
  bool floating;

  explicit Coding(DType dtype) {
    const auto bits = 8 * size_of(dtype);
    const bool is_signed = is_floating(dtype) || (is_integral(dtype) && dtype != DType::uint8);
    sign = is_signed ? std::uint64_t{1} << (bits - 1) : 0;
    mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
    floating = is_floating(dtype);
  }
  // Negative floating-point numbers grow with their magnitude, so that all their bits are flipped.
  KOKKOS_INLINE_FUNCTION std::uint64_t encode(std::uint64_t raw) const {
    return (floating && (raw & sign) != 0 ? ~raw : raw ^ sign) & mask;
  }
  KOKKOS_INLINE_FUNCTION std::uint64_t decode(std::uint64_t bits) const {
    return (floating && (bits & sign) == 0 ? ~bits : bits ^ sign) & mask;
  }
};

std::uint64_t infinity_bits(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return 0x7ff0000000000000ull;
    case DType::float32:
      return 0x7f800000ull;
    case DType::float16:
      return 0x7c00ull;
    default:
      return 0x7f80ull;  // bfloat16
  }
}

template <class F>
void dispatch_raw(DType dtype, F&& f) {
  switch (size_of(dtype)) {
    case 1:
      return f.template operator()<std::uint8_t>();
    case 2:
      return f.template operator()<std::uint16_t>();
    case 4:
      return f.template operator()<std::uint32_t>();
    default:
      return f.template operator()<std::uint64_t>();
  }
}

template <class T>
struct MakePair {
  Pair* out;
  const T* in;
  const std::int64_t* index;
  std::int64_t n;
  Coding coding;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    out[i] = Pair{coding.encode(in[i]), index[i % n]};
  }
};

template <class T>
struct SplitPair {
  const Pair* in;
  T* values;
  std::int64_t* indices;
  Coding coding;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    values[i] = static_cast<T>(coding.decode(in[i].bits));
    indices[i] = in[i].index;
  }
};

struct CountBefore {
  const Pair* pairs;
  const Pair* splitters;
  std::int64_t* out;
  std::int64_t n, count;  // pairs and splitters of a line
  PairOrder order;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t item) const {
    const Pair* const line = pairs + item / count * n;
    std::int64_t low = 0, high = n;
    while (low < high) {
      const std::int64_t m = low + (high - low) / 2;
      if (order.less(line[m], splitters[item])) {
        low = m + 1;
      } else {
        high = m;
      }
    }
    out[item] = low;
  }
};

// Dimension `dim` last.
std::vector<std::int64_t> dim_last(int rank, int dim) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(rank));
  std::iota(dims.begin(), dims.end(), 0);
  dims.erase(dims.begin() + dim);
  dims.push_back(dim);
  return dims;
}

Pair* data_of(const Tensor& pairs) { return static_cast<Pair*>(pairs.data()); }

// Least significant digit first; digits that are the same everywhere are left out.
void radix_sort(Pair* data, Pair* scratch, std::int64_t n, const PairOrder& order) {
  constexpr int digits = 8;
  std::vector<std::array<std::int64_t, 256>> counts(digits);
  for (auto& c : counts) c.fill(0);
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint64_t key = order.key(data[i].bits);
    for (int d = 0; d < digits; ++d) ++counts[static_cast<std::size_t>(d)][key >> (8 * d) & 255];
  }
  Pair *from = data, *to = scratch;
  for (int d = 0; d < digits; ++d) {
    auto& count = counts[static_cast<std::size_t>(d)];
    if (*std::max_element(count.begin(), count.end()) == n) continue;
    std::exclusive_scan(count.begin(), count.end(), count.begin(), std::int64_t{0});
    for (std::int64_t i = 0; i < n; ++i) {
      to[count[order.key(from[i].bits) >> (8 * d) & 255]++] = from[i];
    }
    std::swap(from, to);
  }
  if (from != data) std::copy(from, from + n, data);
}

// Lines shorter than this are sorted by comparing.
constexpr std::int64_t radix_length = 256;

void sort_line(Pair* data, Pair* scratch, std::int64_t n, const PairOrder& order) {
  const auto less = [&](const Pair& a, const Pair& b) { return order.less(a, b); };
  if (std::is_sorted(data, data + n, less)) return;
  if (n < radix_length) {
    std::sort(data, data + n, less);
    return;
  }
  radix_sort(data, scratch, n, order);
  // Equal values are in the order they had before: mostly that of their indices already.
  for (std::int64_t begin = 0, end = 0; begin < n; begin = end) {
    const std::uint64_t key = order.key(data[begin].bits);
    bool ordered = true;
    for (end = begin + 1; end < n && order.key(data[end].bits) == key; ++end) {
      ordered = ordered && data[end - 1].index < data[end].index;
    }
    if (!ordered) std::sort(data + begin, data + end, less);
  }
}

// One pass of a merge sort: each element finds its place in the merged run by a search in the other
// half.
struct MergePass {
  const Pair* from;
  Pair* to;
  std::int64_t n, width;
  PairOrder order;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t item) const {
    const std::int64_t line = item / n, i = item - line * n;
    const Pair* const x = from + line * n;
    const std::int64_t begin = i / (2 * width) * (2 * width);
    const std::int64_t middle = begin + width < n ? begin + width : n;
    const std::int64_t end = middle + width < n ? middle + width : n;
    const bool left = i < middle;
    std::int64_t low = left ? middle : begin, high = left ? end : middle;
    const std::int64_t other = low;
    while (low < high) {
      const std::int64_t m = low + (high - low) / 2;
      if (order.less(x[m], x[i])) {
        low = m + 1;
      } else {
        high = m;
      }
    }
    to[line * n + begin + (i - (left ? begin : middle)) + (low - other)] = x[i];
  }
};

template <class Execution>
void merge_sort(const Tensor& pairs, const PairOrder& order) {
  const std::int64_t lines = pairs.shape()[0], n = pairs.shape()[1];
  Tensor a = pairs, b = Tensor::empty(pairs.shape(), DType::int64, pairs.device());
  for (std::int64_t width = 1; width < n; width *= 2) {
    const MergePass pass{data_of(a), data_of(b), n, width, order};
    Kokkos::parallel_for("dtensor::merge_sort", Range<Execution>(0, lines * n), pass);
    std::swap(a, b);
  }
  if (a.data() != pairs.data()) pairs.copy_from(a);
  fence(pairs.device(), "dtensor::merge_sort");
}

}  // namespace

PairOrder::PairOrder(DType dtype, bool descending) {
  if (is_floating(dtype)) {
    const Coding coding(dtype);
    zero = coding.encode(0);
    highest = coding.encode(infinity_bits(dtype));
    lowest = coding.encode(infinity_bits(dtype) | coding.sign);
  }
  if (descending) flip = ~std::uint64_t{0};
}

Tensor make_pairs(const Tensor& a, int dim, const Tensor& index) {
  const std::int64_t n = a.shape()[dim];
  const Tensor in = a.permute(dim_last(a.dim(), dim)).contiguous();
  std::int64_t lines = 1;
  for (int d = 0; d < a.dim(); ++d) lines *= d == dim ? 1 : a.shape()[d];
  Tensor pairs = Tensor::empty({lines, n, 2}, DType::int64, a.device());
  const Coding coding(a.dtype());
  dispatch_raw(a.dtype(), [&]<class T>() {
    for_each_item("dtensor::make_pairs", lines * n, a.device(),
                  MakePair<T>{data_of(pairs), static_cast<const T*>(in.data()),
                              static_cast<const std::int64_t*>(index.data()), n, coding});
  });
  fence(a.device(), "dtensor::make_pairs");
  return pairs;
}

std::pair<Tensor, Tensor> split_pairs(const Tensor& pairs, const Shape& shape, int dim,
                                      DType dtype) {
  const auto dims = dim_last(shape.size(), dim);
  Shape lines;
  std::vector<std::int64_t> back(dims.size());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    lines.push_back(shape[static_cast<int>(dims[d])]);
    back[static_cast<std::size_t>(dims[d])] = static_cast<std::int64_t>(d);
  }
  const DeviceKind device = pairs.device();
  Tensor values = Tensor::empty(lines, dtype, device);
  Tensor indices = Tensor::empty(lines, DType::int64, device);
  const Coding coding(dtype);
  dispatch_raw(dtype, [&]<class T>() {
    for_each_item("dtensor::split_pairs", values.numel(), device,
                  SplitPair<T>{data_of(pairs), static_cast<T*>(values.data()),
                               static_cast<std::int64_t*>(indices.data()), coding});
  });
  fence(device, "dtensor::split_pairs");
  return {values.permute(back).contiguous(), indices.permute(back).contiguous()};
}

void sort_pairs(const Tensor& pairs, const PairOrder& order) {
  const std::int64_t lines = pairs.shape()[0], n = pairs.shape()[1];
  if (pairs.numel() == 0) return;
  dispatch_space(pairs.device(), [&]<class Execution>() {
    if constexpr (works_by_row<Execution>) {
      const Tensor scratch =
          Tensor::empty({n < radix_length ? 0 : lines, n, 2}, DType::int64, pairs.device());
      Pair* const data = data_of(pairs);
      Pair* const other = data_of(scratch);
      Kokkos::parallel_for(
          "dtensor::sort", Range<Execution>(0, lines), [=](const std::int64_t line) {
            sort_line(data + line * n, n < radix_length ? nullptr : other + line * n, n, order);
          });
      fence(pairs.device(), "dtensor::sort");
    } else {
      merge_sort<Execution>(pairs, order);
    }
  });
}

Tensor top_pairs(const Tensor& pairs, std::int64_t k, const PairOrder& order) {
  const std::int64_t lines = pairs.shape()[0], n = pairs.shape()[1];
  const Tensor first = pairs.narrow(1, 0, k);
  if (first.numel() == 0) return first.contiguous();
  dispatch_space(pairs.device(), [&]<class Execution>() {
    if constexpr (works_by_row<Execution>) {
      Pair* const data = data_of(pairs);
      Kokkos::parallel_for(
          "dtensor::topk", Range<Execution>(0, lines), [=](const std::int64_t line) {
            Pair* const x = data + line * n;
            const auto less = [&](const Pair& a, const Pair& b) { return order.less(a, b); };
            if (k < n) std::nth_element(x, x + k, x + n, less);
            std::sort(x, x + k, less);
          });
      fence(pairs.device(), "dtensor::topk");
    } else {
      merge_sort<Execution>(pairs, order);
    }
  });
  return first.contiguous();
}

Tensor count_before(const Tensor& pairs, const Tensor& splitters, const PairOrder& order) {
  const std::int64_t lines = splitters.shape()[0], count = splitters.shape()[1];
  Tensor result = Tensor::empty({lines, count}, DType::int64, pairs.device());
  for_each_item(
      "dtensor::count_before", lines * count, pairs.device(),
      CountBefore{data_of(pairs), data_of(splitters), static_cast<std::int64_t*>(result.data()),
                  pairs.shape()[1], count, order});
  fence(pairs.device(), "dtensor::count_before");
  return result;
}

}  // namespace dtensor::detail
