// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The largest and smallest elements, and where they are.
#include <cstring>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/local/reduction.hpp"
#include "limits.hpp"
#include "reduction_loop.hpp"
#include "reduction_types.hpp"

namespace dtensor {

namespace {

// The order in which NaN comes before everything. `better(a, b)`: a replaces b.
template <class A, bool Largest>
struct Order {
  KOKKOS_INLINE_FUNCTION static bool better(const A& a, const A& b) {
    const bool beyond = Largest ? a > b : a < b;
    if constexpr (std::is_integral_v<A>) {
      return beyond;
    } else {
      return beyond | (is_nan(a) & !is_nan(b));
    }
  }
  KOKKOS_INLINE_FUNCTION static A worst() {
    if constexpr (std::is_same_v<A, bool>) {
      return !Largest;
    } else if constexpr (std::is_integral_v<A>) {
      return Largest ? limits::lowest<A> : limits::highest<A>;
    } else {
      return Largest ? -limits::infinity<A> : limits::infinity<A>;
    }
  }
};

template <class T, bool Largest>
struct Extreme {
  using Value = T;
  using State = accumulate_t<T>;
  using By = Order<State, Largest>;
  T* out;

  KOKKOS_INLINE_FUNCTION State identity() const { return By::worst(); }
  KOKKOS_INLINE_FUNCTION State load(const T& x) const { return scalar_cast<State>(x); }
  KOKKOS_INLINE_FUNCTION void join(State& a, const State& b) const {
    const bool beyond = Largest ? b > a : b < a;
    if constexpr (std::is_integral_v<State>) {
      a = beyond ? b : a;
    } else {
      a = beyond | is_nan(b) ? b : a;  // a NaN in a is beyond everything
    }
  }
  KOKKOS_INLINE_FUNCTION void join_numbers(State& a, const State& b) const
      requires(!std::is_integral_v<State>) {
    a = (Largest ? b > a : b < a) ? b : a;
  }
  KOKKOS_INLINE_FUNCTION void store(std::int64_t i, const State& x) const {
    out[i] = scalar_cast<T>(x);
  }
};

template <class A>
struct Found {
  A value;
  std::int64_t index;  // -1 for nothing
};

// The first of the extreme elements. Reduced dimensions must be walked in row-major order.
template <class T, bool Largest>
struct IndexedExtreme {
  using Value = T;
  using A = accumulate_t<T>;
  using State = Found<A>;
  using By = Order<A, Largest>;
  T* values;
  std::int64_t* indices;

  KOKKOS_INLINE_FUNCTION State identity() const { return {By::worst(), -1}; }
  KOKKOS_INLINE_FUNCTION void add(State& s, const T& x, std::int64_t index) const {
    join(s, State{scalar_cast<A>(x), index});
  }
  KOKKOS_INLINE_FUNCTION void join(State& a, const State& b) const {
    if (b.index < 0) return;
    const bool ties = !By::better(b.value, a.value) && !By::better(a.value, b.value);
    if (a.index < 0 || By::better(b.value, a.value) || (ties && b.index < a.index)) a = b;
  }
  KOKKOS_INLINE_FUNCTION void store(std::int64_t i, const State& s) const {
    values[i] = scalar_cast<T>(s.value);
    indices[i] = s.index;
  }

  // The value by vector units; then, only where it is new, a search for its place.
  void row(State& s, const T* x, std::int64_t count, std::int64_t index) const {
    constexpr std::int64_t chunk = 1024;
    for (std::int64_t begin = 0; begin < count; begin += chunk) {
      const std::int64_t n = std::min(chunk, count - begin);
      const T* const from = x + begin;
      const A value = reduce_row(Extreme<T, Largest>{nullptr}, from, n);
      if (s.index >= 0 && !By::better(value, s.value)) continue;
      for (std::int64_t i = 0; i < n; ++i) {
        const A candidate = scalar_cast<A>(from[i]);
        if (candidate == value || (is_nan(value) && is_nan(candidate))) {
          s = {candidate, index + begin + i};
          break;
        }
      }
    }
  }

  struct Block {
    static constexpr std::int64_t width = 512;
    A value[width];
    std::int64_t index[width];
    bool empty;

    void start(const IndexedExtreme& op, std::int64_t count) {
      empty = true;
      for (std::int64_t i = 0; i < count; ++i) {
        value[i] = op.identity().value;
        index[i] = -1;
      }
    }
    void rows(const IndexedExtreme&, const T* x, std::int64_t rows, std::int64_t row_stride,
              std::int64_t count, std::int64_t first) {
      for (std::int64_t r = 0; r < rows; ++r) {
        const T* const row = x + r * row_stride;
        for (std::int64_t i = 0; i < count; ++i) {
          const A candidate = scalar_cast<A>(row[i]);
          const bool take = empty | By::better(candidate, value[i]);
          value[i] = take ? candidate : value[i];
          index[i] = take ? first + r : index[i];
        }
        empty = false;
      }
    }
    State state(std::int64_t i) const { return {value[i], index[i]}; }
  };
};

// Neighbouring parts of the same results.
template <class V, bool Largest>
struct MergeExtremes {
  using By = Order<V, Largest>;
  const std::int64_t* parts;
  std::int64_t* out;
  std::int64_t count, results;

  KOKKOS_INLINE_FUNCTION static V value(std::int64_t bits) {
    union {
      std::int64_t bits;
      V value;
    } u;
    u.bits = bits;
    return u.value;
  }
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    std::int64_t best = 0, index = -1;
    for (std::int64_t p = 0; p < count; ++p) {
      const std::int64_t bits = parts[2 * p * results + i];
      const std::int64_t at = parts[(2 * p + 1) * results + i];
      if (at < 0) continue;
      const bool first = index < 0;
      const bool better = !first && By::better(value(bits), value(best));
      const bool worse = !first && By::better(value(best), value(bits));
      if (first || better || (!worse && at < index)) {
        best = bits;
        index = at;
      }
    }
    out[i] = best;
    out[results + i] = index;
  }
};

// Values as what `pack` sends the bits of.
constexpr DType wide_dtype(DType dtype) {
  return is_floating(dtype) ? DType::float64 : DType::int64;
}

// A tensor of 8-byte elements read as another such type.
Tensor reinterpret(const Tensor& a, DType dtype) {
  return Tensor::from_blob(a.data(), a.shape(), a.strides(), dtype, a.device(), a.storage());
}

template <class F>
void with_ordered_dtype(DType dtype, const F& f) {
  dispatch_dtype(dtype, [&]<class T>() {
    if constexpr (!is_complex_scalar<T>) f.template operator()<T>();
  });
}

struct Run {
  std::int64_t local_extent, global_extent, begin, end;  // of the table's rows
};

struct ToGlobal {
  const std::int64_t* indices;
  std::int64_t* out;
  const std::int64_t* local;
  const std::int64_t* global;
  Run dims[max_rank];
  int rank;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    std::int64_t rest = indices[i];
    if (rest < 0) {
      out[i] = rest;
      return;
    }
    std::int64_t result = 0, weight = 1;
    for (int d = rank - 1; d >= 0; --d) {
      const Run& run = dims[d];
      const std::int64_t position = rest % run.local_extent;
      rest /= run.local_extent;
      std::int64_t low = run.begin, high = run.end;  // the last run that starts at or before
      while (high - low > 1) {
        const std::int64_t middle = low + (high - low) / 2;
        if (local[middle] <= position) {
          low = middle;
        } else {
          high = middle;
        }
      }
      result += (global[low] + position - local[low]) * weight;
      weight *= run.global_extent;
    }
    out[i] = result;
  }
};

Extents with_leading(std::int64_t first, const Shape& shape) {
  Extents result{first};
  for (std::int64_t extent : shape) result.push_back(extent);
  return result;
}

}  // namespace

namespace detail {

Tensor extreme(const Tensor& a, DimSet dims, bool keepdim, bool largest) {
  const Reduction r = make_reduction(a, dims, keepdim);
  Tensor out = Tensor::empty(r.shape, a.dtype(), a.device());
  with_ordered_dtype(a.dtype(), [&]<class T>() {
    T* const data = static_cast<T*>(out.data());
    if (largest) {
      run_reduction(r, a, Extreme<T, true>{data});
    } else {
      run_reduction(r, a, Extreme<T, false>{data});
    }
  });
  return out;
}

Extremes extreme_with_index(const Tensor& a, DimSet dims, bool keepdim, bool largest) {
  // Of one dimension, the order is that of memory; of several, make it so.
  const Tensor in = dims.count() > 1 ? a.contiguous() : a;
  const Reduction r = make_reduction(in, dims, keepdim);
  Extremes out{Tensor::empty(r.shape, a.dtype(), a.device()),
               Tensor::empty(r.shape, DType::int64, a.device())};
  with_ordered_dtype(a.dtype(), [&]<class T>() {
    T* const values = static_cast<T*>(out.values.data());
    auto* const indices = out.indices.data_as<std::int64_t>();
    if (largest) {
      run_reduction(r, in, IndexedExtreme<T, true>{values, indices});
    } else {
      run_reduction(r, in, IndexedExtreme<T, false>{values, indices});
    }
  });
  return out;
}

Tensor pack(const Extremes& extremes) {
  const Tensor values = extremes.values.to(wide_dtype(extremes.values.dtype()));
  Tensor packed = Tensor::empty(with_leading(2, values.shape()), DType::int64, values.device());
  packed.narrow(0, 0, 1).copy_from(
      reinterpret(values.reshape(with_leading(1, values.shape())), DType::int64));
  packed.narrow(0, 1, 1).copy_from(extremes.indices.reshape(with_leading(1, values.shape())));
  return packed;
}

Extremes unpack(const Tensor& packed, DType dtype) {
  Shape shape = packed.shape();
  shape.erase(0);
  return {reinterpret(packed.narrow(0, 0, 1).reshape(shape), wide_dtype(dtype)).to(dtype),
          packed.narrow(0, 1, 1).reshape(shape)};
}

Tensor merge_extremes(const Tensor& parts, DType dtype, bool largest) {
  Shape shape = parts.shape();
  const std::int64_t count = shape[0] / 2;
  shape[0] = 2;
  Tensor out = Tensor::empty(shape, DType::int64, parts.device());
  const std::int64_t results = out.numel() / 2;
  const auto merge = [&]<class V, bool Largest>() {
    const MergeExtremes<V, Largest> f{parts.data_as<std::int64_t>(), out.data_as<std::int64_t>(),
                                      count, results};
    dispatch_space(parts.device(), [&]<class Execution>() {
      for_items<Execution>("dtensor::merge_extremes", results, f);
    });
  };
  const auto of = [&]<class V>() {
    largest ? merge.template operator()<V, true>() : merge.template operator()<V, false>();
  };
  is_floating(dtype) ? of.template operator()<double>() : of.template operator()<std::int64_t>();
  return out;
}

Tensor to_global(const Tensor& indices, const std::vector<IndexRuns>& runs) {
  ToGlobal f{};
  std::vector<std::int64_t> local, global;
  bool same = true;
  for (const IndexRuns& r : runs) {
    const auto begin = static_cast<std::int64_t>(local.size());
    local.insert(local.end(), r.local.begin(), r.local.end());
    global.insert(global.end(), r.global.begin(), r.global.end());
    f.dims[f.rank++] = {r.local_extent, r.global_extent, begin,
                        static_cast<std::int64_t>(local.size())};
    same &= r.local_extent == r.global_extent;
  }
  if (same || indices.numel() == 0) return indices;
  const auto entries = static_cast<std::int64_t>(local.size());
  const Tensor local_table = Tensor::from_vector(local, {entries}, indices.device());
  const Tensor global_table = Tensor::from_vector(global, {entries}, indices.device());
  Tensor out = Tensor::empty(indices.shape(), DType::int64, indices.device());
  f.indices = indices.data_as<std::int64_t>();
  f.out = out.data_as<std::int64_t>();
  f.local = local_table.data_as<std::int64_t>();
  f.global = global_table.data_as<std::int64_t>();
  dispatch_space(indices.device(), [&]<class Execution>() {
    for_items<Execution>("dtensor::global_indices", indices.numel(), f);
  });
  fence(indices.device(), "dtensor::global_indices");  // before the tables go
  return out;
}

}  // namespace detail
}  // namespace dtensor
