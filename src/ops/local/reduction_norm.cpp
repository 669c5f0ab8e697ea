// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums of powers of absolute values, their roots, and comparisons.
#include <cmath>

#include "dtensor/ops/local/reduction.hpp"
#include "dtensor/ops/promotion.hpp"
#include "limits.hpp"
#include "reduction_loop.hpp"
#include "reduction_types.hpp"

namespace dtensor {

namespace {

enum class Power { one, two, any, largest, smallest };

Power power_of(double p) {
  if (std::isinf(p)) return p > 0 ? Power::largest : Power::smallest;
  if (p == 1) return Power::one;
  return p == 2 ? Power::two : Power::any;
}

template <class R>
KOKKOS_INLINE_FUNCTION R root_of(const R& sum, double p) {
  if (p == 2) return square_root(sum);
  return p == 1 ? sum : power(sum, static_cast<R>(1 / p));
}

template <class T, Power P>
struct PowerSum {
  using Value = T;
  using State = real_t<T>;
  State* out;
  double p;
  bool root;

  KOKKOS_INLINE_FUNCTION State identity() const {
    return P == Power::smallest ? limits::infinity<State> : State(0);
  }
  KOKKOS_INLINE_FUNCTION State load(const T& x) const {
    if constexpr (P == Power::two) {
      return squared_absolute(x);
    } else if constexpr (P == Power::any) {
      return power(absolute(x), static_cast<State>(p));
    } else {
      return absolute(x);
    }
  }
  KOKKOS_INLINE_FUNCTION void join(State& a, const State& b) const {
    if constexpr (P == Power::largest) {
      a = (b > a) | is_nan(b) ? b : a;
    } else if constexpr (P == Power::smallest) {
      a = (b < a) | is_nan(b) ? b : a;
    } else {
      a += b;
    }
  }
  KOKKOS_INLINE_FUNCTION void join_numbers(State& a, const State& b) const
      requires(P == Power::largest || P == Power::smallest) {
    a = (P == Power::largest ? b > a : b < a) ? b : a;
  }
  KOKKOS_INLINE_FUNCTION void store(std::int64_t i, const State& sum) const {
    out[i] = root && (P == Power::two || P == Power::any) ? root_of(sum, p) : sum;
  }
};

template <class R>
struct Root {
  const R* sums;
  R* out;
  double p;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    out[i] = root_of(sums[i], p);
  }
};

template <class T>
struct Differ {
  const T* a;
  const T* b;
  int* found;
  double rtol, atol;
  bool equal_nan;

  KOKKOS_INLINE_FUNCTION bool differ(const T& x, const T& y) const {
    using A = accumulate_t<T>;
    const A p = scalar_cast<A>(x), q = scalar_cast<A>(y);
    if (p == q) return false;
    if (is_nan(p) || is_nan(q)) return !(equal_nan && is_nan(p) && is_nan(q));
    if (rtol == 0 && atol == 0) return true;
    using W = std::conditional_t<is_complex_scalar<A>, Kokkos::complex<double>, double>;
    const W u = scalar_cast<W>(p), v = scalar_cast<W>(q);
    const double expected = absolute(v);
    double distance;
    if constexpr (std::is_integral_v<A> && !std::is_same_v<A, bool>) {
      // Exact where doubles are not.
      using U = std::make_unsigned_t<A>;
      distance = static_cast<double>(p > q ? U(p) - U(q) : U(q) - U(p));
    } else {
      distance = absolute(u - v);
    }
    // An infinity is close to nothing but itself.
    return !(distance <= atol + rtol * expected) || distance == limits::infinity<double>;
  }
  KOKKOS_INLINE_FUNCTION void operator()(const PerOperand<2>& offset, std::int64_t count,
                                         const PerOperand<2>& stride) const {
    bool any = false;
    for (std::int64_t i = 0; i < count; ++i) {
      any |= differ(a[offset[0] + i * stride[0]], b[offset[1] + i * stride[1]]);
    }
    if (any) Kokkos::atomic_fetch_or(found, 1);
  }
};

}  // namespace

namespace detail {

Tensor power_sum(const Tensor& a, DimSet dims, bool keepdim, double p, bool root) {
  const DType dtype = a.dtype();
  // Kernels are compiled for 32-bit types and wider.
  const Tensor in = size_of(dtype) == 2 ? a.to(DType::float32) : a;
  const Reduction r = make_reduction(in, dims, keepdim);
  Tensor out;
  const auto run = [&]<class T>() {
    using R = real_t<T>;
    out = Tensor::empty(r.shape, dtype_of<R>, in.device());
    R* const data = out.data_as<R>();
    switch (power_of(p)) {
      case Power::one:
        return run_reduction(r, in, PowerSum<T, Power::one>{data, p, root});
      case Power::two:
        return run_reduction(r, in, PowerSum<T, Power::two>{data, p, root});
      case Power::any:
        return run_reduction(r, in, PowerSum<T, Power::any>{data, p, root});
      case Power::largest:
        return run_reduction(r, in, PowerSum<T, Power::largest>{data, p, root});
      case Power::smallest:
        return run_reduction(r, in, PowerSum<T, Power::smallest>{data, p, root});
    }
  };
  switch (in.dtype()) {
    case DType::complex128:
      run.template operator()<Kokkos::complex<double>>();
      break;
    case DType::complex64:
      run.template operator()<Kokkos::complex<float>>();
      break;
    case DType::float64:
      run.template operator()<double>();
      break;
    default:
      run.template operator()<float>();
  }
  return root && in.dtype() != dtype ? out.to(dtype) : out;
}

Tensor norm_of_power_sum(const Tensor& sums, double p, DType result) {
  const Tensor in = sums.contiguous();
  Tensor out = Tensor::empty(in.shape(), in.dtype(), in.device());
  const auto run = [&]<class R>() {
    const Root<R> f{in.data_as<R>(), out.data_as<R>(), p};
    dispatch_space(in.device(), [&]<class Execution>() {
      for_items<Execution>("dtensor::norm_root", in.numel(), f);
    });
  };
  in.dtype() == DType::float64 ? run.template operator()<double>()
                               : run.template operator()<float>();
  return out.to(result);
}

Tensor differ(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan) {
  Tensor found = Tensor::zeros({}, DType::int32, a.device());
  const auto loop = make_loop<2>(a.shape(), {a.strides(), b.strides()});
  dispatch_dtype(a.dtype(), [&]<class T>() {
    const Differ<T> row{static_cast<const T*>(a.data()),
                        static_cast<const T*>(b.data()),
                        found.data_as<std::int32_t>(),
                        rtol,
                        atol,
                        equal_nan};
    dispatch_space(a.device(), [&]<class Execution>() {
      for_each_row<Execution>("dtensor::differ", loop, row);
    });
  });
  return found.to(DType::boolean);
}

}  // namespace detail
}  // namespace dtensor
