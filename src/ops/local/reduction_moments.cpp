// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Variances and logarithms of sums of exponentials: reductions whose state is more than one number,
// so that parts can be merged without loss. Chunks that stay in cache are read twice.
#include "dtensor/ops/local/reduction.hpp"
#include "dtensor/ops/promotion.hpp"
#include "limits.hpp"
#include "reduction_loop.hpp"
#include "reduction_types.hpp"

namespace dtensor {

namespace {

constexpr std::int64_t chunk = 1024;

// Count, mean and sum of squared distances from the mean. M is double or complex<double>.
template <class M>
struct MomentState {
  double count;
  M mean;
  double square;

  // Chan, Golub, LeVeque 1979.
  KOKKOS_INLINE_FUNCTION void join(const MomentState& b) {
    if (b.count == 0) return;
    if (count == 0) {
      *this = b;
      return;
    }
    const double n = count + b.count;
    const M delta = b.mean - mean;
    mean = mean + delta * (b.count / n);
    square += b.square + squared_absolute(delta) * (count * b.count / n);
    count = n;
  }
};

KOKKOS_INLINE_FUNCTION double variance_of(double square, double count, double correction,
                                          bool root) {
  const double divisor = count - correction;
  const double variance = square / (divisor > 0 ? divisor : 0);
  return root ? square_root(variance) : variance;
}

template <class T>
using moment_t = std::conditional_t<is_complex_scalar<T>, Kokkos::complex<double>, double>;

// Sums in double, and sums of squared distances from a given number.
template <class T>
struct WideSum {
  using Value = T;
  using State = moment_t<T>;
  State identity() const { return State(0); }
  State load(const T& x) const { return scalar_cast<State>(x); }
  void join(State& a, const State& b) const { a = a + b; }
};
template <class T>
struct SquaredDistances {
  using Value = T;
  using State = double;
  moment_t<T> center;
  State identity() const { return 0; }
  State load(const T& x) const { return squared_absolute(scalar_cast<moment_t<T>>(x) - center); }
  void join(State& a, const State& b) const { a += b; }
};

template <class T>
struct Moments {
  using Value = T;
  using M = moment_t<T>;
  using State = MomentState<M>;
  double* parts;       // of all results one after the other, or null
  real_t<T>* out;      // of variances
  std::int64_t count;  // of results
  double correction;
  bool root;

  KOKKOS_INLINE_FUNCTION State identity() const { return {0, M(0), 0}; }
  KOKKOS_INLINE_FUNCTION void join(State& a, const State& b) const { a.join(b); }
  KOKKOS_INLINE_FUNCTION void add(State& s, const T& x, std::int64_t) const {
    s.join({1, scalar_cast<M>(x), 0});
  }
  KOKKOS_INLINE_FUNCTION void store(std::int64_t i, const State& s) const {
    if (!parts) {
      out[i] = scalar_cast<real_t<T>>(variance_of(s.square, s.count, correction, root));
    } else if constexpr (is_complex_scalar<T>) {
      parts[i] = s.mean.real();
      parts[count + i] = s.mean.imag();
      parts[2 * count + i] = s.square;
    } else {
      parts[i] = s.mean;
      parts[count + i] = s.square;
    }
  }

  void row(State& s, const T* x, std::int64_t n, std::int64_t) const {
    for (std::int64_t begin = 0; begin < n; begin += chunk) {
      const std::int64_t length = std::min(chunk, n - begin);
      const T* const from = x + begin;
      const auto size = static_cast<double>(length);
      const M mean = reduce_row(WideSum<T>{}, from, length) / size;
      s.join({size, mean, reduce_row(SquaredDistances<T>{mean}, from, length)});
    }
  }

  struct Block {
    static constexpr std::int64_t width = 512;
    double counted;
    M mean[width];
    double square[width];

    void start(const Moments&, std::int64_t n) {
      counted = 0;
      for (std::int64_t i = 0; i < n; ++i) {
        mean[i] = M(0);
        square[i] = 0;
      }
    }
    void rows(const Moments&, const T* x, std::int64_t rows, std::int64_t row_stride,
              std::int64_t n, std::int64_t) {
      const auto size = static_cast<double>(rows);
      const double total = counted + size;
      const double weight = size / total, between = counted * size / total;
      M center[width];
      double distances[width];
      for (std::int64_t i = 0; i < n; ++i) center[i] = M(0);
      for (std::int64_t r = 0; r < rows; ++r) {
        const T* const row = x + r * row_stride;
        for (std::int64_t i = 0; i < n; ++i) center[i] = center[i] + scalar_cast<M>(row[i]);
      }
      for (std::int64_t i = 0; i < n; ++i) {
        center[i] = center[i] / size;
        distances[i] = 0;
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        const T* const row = x + r * row_stride;
        for (std::int64_t i = 0; i < n; ++i) {
          distances[i] += squared_absolute(scalar_cast<M>(row[i]) - center[i]);
        }
      }
      const bool first = counted == 0;
      for (std::int64_t i = 0; i < n; ++i) {
        const M delta = center[i] - mean[i];
        mean[i] = first ? center[i] : mean[i] + delta * weight;
        square[i] += distances[i] + (first ? 0 : squared_absolute(delta) * between);
      }
      counted = total;
    }
    State state(std::int64_t i) const { return {counted, mean[i], square[i]}; }
  };
};

template <class M>
struct MergeMoments {
  const double* parts;
  const double* counts;
  double* out;
  std::int64_t number, results;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    constexpr int size = is_complex_scalar<M> ? 3 : 2;
    MomentState<M> state{0, M(0), 0};
    for (std::int64_t p = 0; p < number; ++p) {
      const double* const part = parts + p * size * results + i;
      if constexpr (size == 3) {
        state.join({counts[p], M(part[0], part[results]), part[2 * results]});
      } else {
        state.join({counts[p], part[0], part[results]});
      }
    }
    if constexpr (size == 3) {
      out[i] = state.mean.real();
      out[results + i] = state.mean.imag();
    } else {
      out[i] = state.mean;
    }
    out[(size - 1) * results + i] = state.square;
  }
};

struct FinishVariance {
  const double* square;
  double* out;
  double count, correction;
  bool root;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    out[i] = variance_of(square[i], count, correction, root);
  }
};

// The largest element, and the sum of exp(x - largest).
template <class A>
struct MaxAndSum {
  A max, sum;

  KOKKOS_INLINE_FUNCTION static MaxAndSum nothing() { return {-limits::infinity<A>, A(0)}; }
  KOKKOS_INLINE_FUNCTION void join(const MaxAndSum& b) {
    const A top = (b.max > max) | is_nan(b.max) ? b.max : max;
    // Nothing, or nothing but -inf, adds nothing; its exponent would be NaN.
    const bool none = max == -limits::infinity<A>;
    const bool b_none = b.max == -limits::infinity<A>;
    sum = (none ? A(0) : sum * exponential(max - top)) +
          (b_none ? A(0) : b.sum * exponential(b.max - top));
    max = top;
  }
  KOKKOS_INLINE_FUNCTION A logarithm_of_sum() const {
    const A infinity = limits::infinity<A>;
    return max == infinity || max == -infinity ? max : max + logarithm(sum);
  }
};

template <class T>
struct RowMax {
  using Value = T;
  using State = accumulate_t<T>;
  State identity() const { return -limits::infinity<State>; }
  State load(const T& x) const { return scalar_cast<State>(x); }
  void join(State& a, const State& b) const { a = (b > a) | is_nan(b) ? b : a; }
  void join_numbers(State& a, const State& b) const { a = b > a ? b : a; }
};
template <class T>
struct RowExpSum {
  using Value = T;
  using State = accumulate_t<T>;
  State max;
  State identity() const { return 0; }
  State load(const T& x) const { return exponential(scalar_cast<State>(x) - max); }
  void join(State& a, const State& b) const { a += b; }
};

template <class T>
struct LogSumExp {
  using Value = T;
  using A = accumulate_t<T>;
  using State = MaxAndSum<A>;
  double* parts;  // max and sum of all results one after the other, or null
  T* out;
  std::int64_t count;

  KOKKOS_INLINE_FUNCTION State identity() const { return State::nothing(); }
  KOKKOS_INLINE_FUNCTION void join(State& a, const State& b) const { a.join(b); }
  KOKKOS_INLINE_FUNCTION void add(State& s, const T& x, std::int64_t) const {
    s.join({scalar_cast<A>(x), A(1)});
  }
  KOKKOS_INLINE_FUNCTION void store(std::int64_t i, const State& s) const {
    if (parts) {
      parts[i] = static_cast<double>(s.max);
      parts[count + i] = static_cast<double>(s.sum);
    } else {
      out[i] = scalar_cast<T>(s.logarithm_of_sum());
    }
  }

  void row(State& s, const T* x, std::int64_t n, std::int64_t) const {
    for (std::int64_t begin = 0; begin < n; begin += chunk) {
      const std::int64_t length = std::min(chunk, n - begin);
      const T* const from = x + begin;
      const A max = reduce_row(RowMax<T>{}, from, length);
      if (max == identity().max) continue;
      s.join({max, reduce_row(RowExpSum<T>{max}, from, length)});
    }
  }

  struct Block {
    static constexpr std::int64_t width = 512;
    State total[width];

    void start(const LogSumExp& op, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) total[i] = op.identity();
    }
    void rows(const LogSumExp& op, const T* x, std::int64_t rows, std::int64_t row_stride,
              std::int64_t n, std::int64_t) {
      State group[width];
      for (std::int64_t i = 0; i < n; ++i) group[i] = op.identity();
      for (std::int64_t r = 0; r < rows; ++r) {
        const T* const row = x + r * row_stride;
        for (std::int64_t i = 0; i < n; ++i) {
          RowMax<T>{}.join(group[i].max, scalar_cast<A>(row[i]));
        }
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        const T* const row = x + r * row_stride;
        for (std::int64_t i = 0; i < n; ++i) {
          group[i].sum += exponential(scalar_cast<A>(row[i]) - group[i].max);
        }
      }
      for (std::int64_t i = 0; i < n; ++i) total[i].join(group[i]);
    }
    State state(std::int64_t i) const { return total[i]; }
  };
};

struct MergeMaxAndSum {
  const double* parts;
  double* out;
  std::int64_t number, results;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    auto state = MaxAndSum<double>::nothing();
    for (std::int64_t p = 0; p < number; ++p) {
      state.join({parts[2 * p * results + i], parts[(2 * p + 1) * results + i]});
    }
    out[i] = state.max;
    out[results + i] = state.sum;
  }
};

struct FinishLogSumExp {
  const double* parts;
  double* out;
  std::int64_t results;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    out[i] = MaxAndSum<double>{parts[i], parts[results + i]}.logarithm_of_sum();
  }
};

Shape with_leading(std::int64_t first, const Shape& shape) {
  Shape result{first};
  for (std::int64_t extent : shape) result.push_back(extent);
  return result;
}

Shape with_first(std::int64_t first, const Shape& shape) {
  Shape result = shape;
  result[0] = first;
  return result;
}

Shape without_leading(const Shape& shape) {
  Shape result = shape;
  result.erase(0);
  return result;
}

// One work item per result, on double tensors.
template <class F>
void for_results(const char* label, const Tensor& out, std::int64_t results, const F& f) {
  dispatch_space(out.device(),
                 [&]<class Execution>() { detail::for_items<Execution>(label, results, f); });
}

Tensor moments_or_variance(const Tensor& a, DimSet dims, bool keepdim, double correction, bool root,
                           bool parts) {
  const Reduction r = make_reduction(a, dims, keepdim);
  Tensor out;
  dispatch_dtype(a.dtype(), [&]<class T>() {
    if constexpr (!std::is_integral_v<T>) {
      constexpr std::int64_t size = is_complex_scalar<T> ? 3 : 2;
      out = parts ? Tensor::empty(with_leading(size, r.shape), DType::float64, a.device())
                  : Tensor::empty(r.shape, dtype_of<real_t<T>>, a.device());
      run_reduction(r, a,
                    Moments<T>{parts ? out.data_as<double>() : nullptr,
                               parts ? nullptr : static_cast<real_t<T>*>(out.data()), r.kept.count,
                               correction, root});
    }
  });
  return out;
}

Tensor log_sum_exp(const Tensor& a, DimSet dims, bool keepdim, bool parts) {
  const Reduction r = make_reduction(a, dims, keepdim);
  Tensor out = parts ? Tensor::empty(with_leading(2, r.shape), DType::float64, a.device())
                     : Tensor::empty(r.shape, a.dtype(), a.device());
  dispatch_dtype(a.dtype(), [&]<class T>() {
    if constexpr (!std::is_integral_v<T> && !is_complex_scalar<T>) {
      run_reduction(r, a,
                    LogSumExp<T>{parts ? out.data_as<double>() : nullptr,
                                 parts ? nullptr : static_cast<T*>(out.data()), r.kept.count});
    }
  });
  return out;
}

}  // namespace

namespace detail {

Tensor moments(const Tensor& a, DimSet dims) {
  return moments_or_variance(a, dims, false, 0, false, true);
}

Tensor variance(const Tensor& a, DimSet dims, bool keepdim, double correction, bool root) {
  return moments_or_variance(a, dims, keepdim, correction, root, false);
}

Tensor merge_moments(const Tensor& parts, const std::vector<std::int64_t>& counts) {
  const auto number = static_cast<std::int64_t>(counts.size());
  const std::int64_t size = parts.shape()[0] / number;
  Tensor out = Tensor::empty(with_first(size, parts.shape()), DType::float64, parts.device());
  const std::int64_t results = out.numel() / size;
  const Tensor numbers = Tensor::from_vector(std::vector<double>(counts.begin(), counts.end()),
                                             {number}, parts.device());
  const auto merge = [&]<class M>() {
    for_results("dtensor::merge_moments", out, results,
                MergeMoments<M>{parts.data_as<double>(), numbers.data_as<double>(),
                                out.data_as<double>(), number, results});
  };
  size == 3 ? merge.template operator()<Kokkos::complex<double>>()
            : merge.template operator()<double>();
  fence(parts.device(), "dtensor::merge_moments");  // before the counts go
  return out;
}

Tensor variance_of_moments(const Tensor& moments, std::int64_t count, double correction, bool root,
                           DType result) {
  Tensor out = Tensor::empty(without_leading(moments.shape()), DType::float64, moments.device());
  const std::int64_t last = moments.shape()[0] - 1;
  for_results("dtensor::variance", out, out.numel(),
              FinishVariance{moments.data_as<double>() + last * out.numel(), out.data_as<double>(),
                             static_cast<double>(count), correction, root});
  return out.to(result);
}

Tensor max_and_sum(const Tensor& a, DimSet dims) { return log_sum_exp(a, dims, false, true); }

Tensor logsumexp(const Tensor& a, DimSet dims, bool keepdim) {
  return log_sum_exp(a, dims, keepdim, false);
}

Tensor merge_max_and_sum(const Tensor& parts) {
  Tensor out = Tensor::empty(with_first(2, parts.shape()), DType::float64, parts.device());
  const std::int64_t results = out.numel() / 2;
  for_results("dtensor::merge_max_and_sum", out, results,
              MergeMaxAndSum{parts.data_as<double>(), out.data_as<double>(), parts.shape()[0] / 2,
                             results});
  return out;
}

Tensor logsumexp_of(const Tensor& max_and_sum, DType result) {
  Tensor out =
      Tensor::empty(without_leading(max_and_sum.shape()), DType::float64, max_and_sum.device());
  for_results("dtensor::logsumexp", out, out.numel(),
              FinishLogSumExp{max_and_sum.data_as<double>(), out.data_as<double>(), out.numel()});
  return out.to(result);
}

}  // namespace detail
}  // namespace dtensor
