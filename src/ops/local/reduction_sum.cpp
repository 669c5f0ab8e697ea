// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums, products and counts.
#include "dtensor/ops/local/reduction.hpp"
#include "dtensor/ops/promotion.hpp"
#include "reduction_loop.hpp"
#include "reduction_types.hpp"

namespace dtensor {

namespace {

template <class T>
using result_t = std::conditional_t<std::is_integral_v<T>, std::int64_t, T>;

// Integers wrap around.
template <class T>
struct Sum {
  using Value = T;
  using State = sum_t<T>;
  result_t<T>* out;
  std::int64_t divisor;

  KOKKOS_INLINE_FUNCTION State identity() const { return State(0); }
  KOKKOS_INLINE_FUNCTION State load(const T& x) const { return scalar_cast<State>(x); }
  KOKKOS_INLINE_FUNCTION void join(State& a, const State& b) const {
    if constexpr (std::is_integral_v<State>) {
      a = static_cast<State>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
    } else {
      a = a + b;
    }
  }
  KOKKOS_INLINE_FUNCTION void store(std::int64_t i, const State& sum) const {
    if constexpr (std::is_integral_v<State>) {
      out[i] = sum;
    } else {
      out[i] =
          scalar_cast<result_t<T>>(divisor == 1 ? sum : sum / static_cast<real_t<State>>(divisor));
    }
  }
};

template <class T>
struct Product {
  using Value = T;
  using State = sum_t<T>;
  result_t<T>* out;

  KOKKOS_INLINE_FUNCTION State identity() const { return State(1); }
  KOKKOS_INLINE_FUNCTION State load(const T& x) const { return scalar_cast<State>(x); }
  KOKKOS_INLINE_FUNCTION void join(State& a, const State& b) const {
    if constexpr (std::is_integral_v<State>) {
      a = static_cast<State>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
    } else {
      a = a * b;
    }
  }
  KOKKOS_INLINE_FUNCTION void store(std::int64_t i, const State& product) const {
    out[i] = scalar_cast<result_t<T>>(product);
  }
};

// Of elements that are zero, or that are not.
template <class T>
struct CountElements {
  using Value = T;
  using State = std::int64_t;
  void* out;
  detail::Count what;

  KOKKOS_INLINE_FUNCTION State identity() const { return 0; }
  KOKKOS_INLINE_FUNCTION State load(const T& x) const {
    return scalar_cast<bool>(x) != (what == detail::Count::all);
  }
  KOKKOS_INLINE_FUNCTION void join(State& a, const State& b) const { a += b; }
  KOKKOS_INLINE_FUNCTION void store(std::int64_t i, const State& n) const {
    if (what == detail::Count::number) {
      static_cast<std::int64_t*>(out)[i] = n;
    } else {
      static_cast<bool*>(out)[i] = (n != 0) == (what == detail::Count::any);
    }
  }
};

}  // namespace

namespace detail {

Tensor scaled_sum(const Tensor& a, DimSet dims, bool keepdim, DType result, std::int64_t divisor) {
  // Means of integers are computed in their own type.
  const Tensor in = is_integral(result) ? a : a.to(result);
  const Reduction r = make_reduction(in, dims, keepdim);
  Tensor out = Tensor::empty(r.shape, result, in.device());
  dispatch_dtype(in.dtype(), [&]<class T>() {
    run_reduction(r, in, Sum<T>{static_cast<result_t<T>*>(out.data()), divisor});
  });
  return out;
}

Tensor product(const Tensor& a, DimSet dims, bool keepdim) {
  const Reduction r = make_reduction(a, dims, keepdim);
  Tensor out = Tensor::empty(r.shape, sum_dtype(a.dtype()), a.device());
  dispatch_dtype(a.dtype(), [&]<class T>() {
    run_reduction(r, a, Product<T>{static_cast<result_t<T>*>(out.data())});
  });
  return out;
}

Tensor count(const Tensor& a, DimSet dims, bool keepdim, Count what) {
  const Reduction r = make_reduction(a, dims, keepdim);
  Tensor out =
      Tensor::empty(r.shape, what == Count::number ? DType::int64 : DType::boolean, a.device());
  dispatch_dtype(a.dtype(), [&]<class T>() {
    run_reduction(r, a, CountElements<T>{out.data(), what});
  });
  return out;
}

}  // namespace detail
}  // namespace dtensor
