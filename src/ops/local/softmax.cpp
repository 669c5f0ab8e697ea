// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Softmax and normalization: each line is read while it is in cache.
#include "learning.hpp"
#include "limits.hpp"
#include "reduction_loop.hpp"
#include "reduction_types.hpp"

namespace dtensor {

namespace {

template <class T>
struct LineMax {
  using Value = T;
  using State = accumulate_t<T>;
  KOKKOS_INLINE_FUNCTION State identity() const { return -limits::infinity<State>; }
  KOKKOS_INLINE_FUNCTION State load(const T& x) const { return scalar_cast<State>(x); }
  KOKKOS_INLINE_FUNCTION void join(State& a, const State& b) const {
    a = (b > a) | is_nan(b) ? b : a;
  }
  KOKKOS_INLINE_FUNCTION void join_numbers(State& a, const State& b) const { a = b > a ? b : a; }
};

// Lines along the dimension walk the result (operand 0), the input (1) and what is known of whole
// lines (2).
template <class T, bool Log>
struct SoftmaxLines {
  using A = accumulate_t<T>;
  static constexpr std::int64_t widest = 256;
  T* out;
  const T* in;
  const double* max_and_sum;  // null where lines are whole
  StridedLoop<3> lines;
  std::int64_t length, out_stride, in_stride;
  std::int64_t width;  // of a block of lines

  struct Line {
    A max, factor;  // the inverse of the sum, or its logarithm
  };

  KOKKOS_INLINE_FUNCTION static Line line(A max, A sum) {
    return {max, Log ? logarithm(sum) : A(1) / sum};
  }
  KOKKOS_INLINE_FUNCTION Line known(std::int64_t i) const {
    return line(static_cast<A>(max_and_sum[i]), static_cast<A>(max_and_sum[lines.count + i]));
  }
  KOKKOS_INLINE_FUNCTION static A result(A x, const Line& l) {
    return Log ? (x - l.max) - l.factor : exponential(x - l.max) * l.factor;
  }

  std::int64_t blocks() const { return (lines.row() + width - 1) / width; }
  std::int64_t items() const { return lines.count / lines.row() * blocks(); }

  void operator()(const std::int64_t item) const {
    const int last = lines.rank - 1;
    const PerOperand<3> base = lines.locate(last, item / blocks());
    const PerOperand<3> step = lines.stride[last];
    const std::int64_t first = item % blocks() * width;
    const std::int64_t count = std::min(width, lines.row() - first);
    T* const o = out + base[0] + first * step[0];
    const T* const x = in + base[1] + first * step[1];
    const std::int64_t number = base[2] + first * step[2];
    if (out_stride == 1 && in_stride == 1) {
      for (std::int64_t i = 0; i < count; ++i) {
        along(o + i * step[0], x + i * step[1], number + i * step[2]);
      }
    } else {
      across(o, x, count, number, step);
    }
  }

  void along(T* KOKKOS_RESTRICT o, const T* x, std::int64_t number) const {
    if (max_and_sum) return finish(o, x, known(number));
    const A max = reduce_row(LineMax<T>{}, x, length);
    A sum = 0;
    if constexpr (Log || !std::is_same_v<A, T>) {
      for (std::int64_t i = 0; i < length; ++i) sum += exponential(scalar_cast<A>(x[i]) - max);
      finish(o, x, line(max, sum));
    } else {
      // Exponentials are kept where the result will be.
      for (std::int64_t i = 0; i < length; ++i) sum += o[i] = exponential(x[i] - max);
      const A factor = A(1) / sum;
      for (std::int64_t i = 0; i < length; ++i) o[i] *= factor;
    }
  }
  void finish(T* KOKKOS_RESTRICT o, const T* x, const Line& l) const {
    for (std::int64_t i = 0; i < length; ++i)
      o[i] = scalar_cast<T>(result(scalar_cast<A>(x[i]), l));
  }

  void across(T* o, const T* x, std::int64_t count, std::int64_t number,
              const PerOperand<3>& step) const {
    A max[widest], sum[widest];
    Line l[widest];
    if (max_and_sum) {
      for (std::int64_t i = 0; i < count; ++i) l[i] = known(number + i * step[2]);
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        max[i] = LineMax<T>{}.identity();
        sum[i] = 0;
      }
      for (std::int64_t r = 0; r < length; ++r) {
        const T* const row = x + r * in_stride;
        for (std::int64_t i = 0; i < count; ++i) {
          LineMax<T>{}.join(max[i], scalar_cast<A>(row[i * step[1]]));
        }
      }
      for (std::int64_t r = 0; r < length; ++r) {
        const T* const row = x + r * in_stride;
        for (std::int64_t i = 0; i < count; ++i) {
          const A e = exponential(scalar_cast<A>(row[i * step[1]]) - max[i]);
          sum[i] += e;
          if constexpr (!Log && std::is_same_v<A, T>) o[r * out_stride + i * step[0]] = e;
        }
      }
      for (std::int64_t i = 0; i < count; ++i) l[i] = line(max[i], sum[i]);
    }
    for (std::int64_t r = 0; r < length; ++r) {
      const T* const row = x + r * in_stride;
      T* const to = o + r * out_stride;
      if constexpr (!Log && std::is_same_v<A, T>) {
        if (!max_and_sum) {
          for (std::int64_t i = 0; i < count; ++i) to[i * step[0]] *= l[i].factor;
          continue;
        }
      }
      for (std::int64_t i = 0; i < count; ++i) {
        to[i * step[0]] = scalar_cast<T>(result(scalar_cast<A>(row[i * step[1]]), l[i]));
      }
    }
  }
};

// Device: one thread per line.
template <class T, bool Log>
struct SoftmaxElements {
  SoftmaxLines<T, Log> task;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t item) const {
    using A = accumulate_t<T>;
    const PerOperand<3> base = task.lines.locate(task.lines.rank, item);
    const T* const x = task.in + base[1];
    typename SoftmaxLines<T, Log>::Line l;
    if (task.max_and_sum) {
      l = task.known(base[2]);
    } else {
      const LineMax<T> largest{};
      A max = largest.identity(), sum = 0;
      for (std::int64_t r = 0; r < task.length; ++r) {
        largest.join(max, scalar_cast<A>(x[r * task.in_stride]));
      }
      for (std::int64_t r = 0; r < task.length; ++r) {
        sum += exponential(scalar_cast<A>(x[r * task.in_stride]) - max);
      }
      l = task.line(max, sum);
    }
    for (std::int64_t r = 0; r < task.length; ++r) {
      task.out[base[0] + r * task.out_stride] =
          scalar_cast<T>(task.result(scalar_cast<A>(x[r * task.in_stride]), l));
    }
  }
};

// Rows side by side, one work item each.
template <class T>
struct NormalizeRows {
  using A = accumulate_t<T>;
  T* out;
  const T* in;
  const T* weight;      // or null
  const T* bias;        // or null
  const double* stats;  // or null
  std::int64_t rows, length, count;
  double eps;
  bool centered;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t row) const {
    const T* const x = in + row * length;
    double mean = 0, square = 0;
    if (stats) {
      mean = stats[row];
      square = stats[rows + row];
    } else if (centered) {
      mean = sum(x, 0, false) / static_cast<double>(length);
      square = sum(x, mean, true);
    } else {
      square = sum(x, 0, true);
    }
    const A center = static_cast<A>(mean);
    const A factor = static_cast<A>(1 / square_root(square / static_cast<double>(count) + eps));
    T* KOKKOS_RESTRICT o = out + row * length;
    if (weight && bias) {
      for (std::int64_t i = 0; i < length; ++i) {
        o[i] = scalar_cast<T>((scalar_cast<A>(x[i]) - center) * factor * scalar_cast<A>(weight[i]) +
                              scalar_cast<A>(bias[i]));
      }
    } else {
      for (std::int64_t i = 0; i < length; ++i) {
        A y = (scalar_cast<A>(x[i]) - center) * factor;
        if (weight) y *= scalar_cast<A>(weight[i]);
        if (bias) y += scalar_cast<A>(bias[i]);
        o[i] = scalar_cast<T>(y);
      }
    }
  }

  // Of the elements, or of their squared distances from `center`.
  KOKKOS_INLINE_FUNCTION double sum(const T* x, double center, bool squared) const {
    constexpr int parts = 8;
    double partial[parts] = {};
    std::int64_t i = 0;
    if (squared) {
      for (; i + parts <= length; i += parts) {
        for (int k = 0; k < parts; ++k) {
          const double d = scalar_cast<double>(x[i + k]) - center;
          partial[k] += d * d;
        }
      }
    } else {
      for (; i + parts <= length; i += parts) {
        for (int k = 0; k < parts; ++k) partial[k] += scalar_cast<double>(x[i + k]);
      }
    }
    double total = 0;
    for (int k = 0; k < parts; ++k) total += partial[k];
    for (; i < length; ++i) {
      const double d = scalar_cast<double>(x[i]) - center;
      total += squared ? d * d : d;
    }
    return total;
  }
};

}  // namespace

namespace detail {

Tensor local_softmax(const Tensor& a, int dim, bool log, const Tensor& max_and_sum) {
  Tensor out = Tensor::empty(a.shape(), a.dtype(), a.device());
  if (out.numel() == 0) return out;
  Extents extents = a.shape(), out_strides = out.strides(), in_strides = a.strides();
  extents.erase(dim);
  out_strides.erase(dim);
  in_strides.erase(dim);
  const auto lines = make_loop<3>(extents, {out_strides, in_strides, row_major_strides(extents)});
  const double* const known = max_and_sum.defined() ? max_and_sum.data_as<double>() : nullptr;
  const std::int64_t length = a.shape()[dim];
  with_floating_dtype(a.dtype(), [&]<class T>() {
    const auto run = [&]<bool Log>() {
      using Lines = SoftmaxLines<T, Log>;
      // Blocks that stay in cache, of whole cache lines.
      const std::int64_t width =
          std::clamp((std::int64_t{1} << 18) / (length * std::int64_t{sizeof(T)}), std::int64_t{16},
                     Lines::widest);
      const Lines task{static_cast<T*>(out.data()),
                       static_cast<const T*>(a.data()),
                       known,
                       lines,
                       length,
                       out.strides()[dim],
                       a.strides()[dim],
                       width};
      dispatch_space(a.device(), [&]<class Execution>() {
        if constexpr (works_by_row<Execution>) {
          for_items<Execution>("dtensor::softmax", task.items(), task);
        } else {
          for_items<Execution>("dtensor::softmax", lines.count, SoftmaxElements<T, Log>{task});
        }
      });
    };
    log ? run.template operator()<true>() : run.template operator()<false>();
  });
  return out;
}

Tensor local_normalize(const Tensor& a, std::int64_t length, const std::optional<Tensor>& weight,
                       const std::optional<Tensor>& bias, double eps, bool centered,
                       const Tensor& stats, std::int64_t count) {
  const Tensor in = a.contiguous();
  Tensor out = Tensor::empty(in.shape(), in.dtype(), in.device());
  if (out.numel() == 0) return out;
  const Tensor w = weight ? weight->contiguous() : Tensor();
  const Tensor b = bias ? bias->contiguous() : Tensor();
  with_floating_dtype(in.dtype(), [&]<class T>() {
    const NormalizeRows<T> task{static_cast<T*>(out.data()),
                                static_cast<const T*>(in.data()),
                                weight ? static_cast<const T*>(w.data()) : nullptr,
                                bias ? static_cast<const T*>(b.data()) : nullptr,
                                stats.defined() ? stats.data_as<double>() : nullptr,
                                in.numel() / length,
                                length,
                                count,
                                eps,
                                centered};
    dispatch_space(in.device(), [&]<class Execution>() {
      for_items<Execution>("dtensor::normalize", task.rows, task);
    });
  });
  fence(in.device(), "dtensor::normalize");  // before contiguous copies go
  return out;
}

}  // namespace detail
}  // namespace dtensor
