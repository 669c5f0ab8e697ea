// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Scalar types and functions that several reductions share.
#pragma once

#include <cmath>

#include "dtensor/core/scalar_types.hpp"

namespace dtensor {

/// What sums and products are accumulated in.
template <class T>
using sum_t = std::conditional_t<std::is_integral_v<T>, std::int64_t, accumulate_t<T>>;

namespace detail {
template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<Kokkos::complex<R>> {
  using type = R;
};
}  // namespace detail

/// The type of absolute values.
template <class T>
using real_t = typename detail::RealOf<T>::type;

/// Whether a value is not a number. Numbers without NaN never are.
template <class T>
KOKKOS_INLINE_FUNCTION bool is_nan(const T& x) {
  return x != x;
}

KOKKOS_INLINE_FUNCTION double square_root(double x) { return ::sqrt(x); }
KOKKOS_INLINE_FUNCTION float square_root(float x) { return ::sqrtf(x); }
KOKKOS_INLINE_FUNCTION double exponential(double x) { return ::exp(x); }
KOKKOS_INLINE_FUNCTION float exponential(float x) { return ::expf(x); }
KOKKOS_INLINE_FUNCTION double logarithm(double x) { return ::log(x); }
KOKKOS_INLINE_FUNCTION float logarithm(float x) { return ::logf(x); }
KOKKOS_INLINE_FUNCTION double power(double x, double p) { return ::pow(x, p); }
KOKKOS_INLINE_FUNCTION float power(float x, float p) { return ::powf(x, p); }

template <class R>
KOKKOS_INLINE_FUNCTION R absolute(const R& x) {
  return x < 0 ? -x : x;
}
KOKKOS_INLINE_FUNCTION double absolute(const Kokkos::complex<double>& z) {
  return ::hypot(z.real(), z.imag());
}
KOKKOS_INLINE_FUNCTION float absolute(const Kokkos::complex<float>& z) {
  return ::hypotf(z.real(), z.imag());
}
template <class R>
KOKKOS_INLINE_FUNCTION R squared_absolute(const R& x) {
  return x * x;
}
template <class R>
KOKKOS_INLINE_FUNCTION R squared_absolute(const Kokkos::complex<R>& z) {
  return z.real() * z.real() + z.imag() * z.imag();
}

}  // namespace dtensor
