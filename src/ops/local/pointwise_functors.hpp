// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// What each pointwise operator computes of its elements. The operators work on double, float, both
/// complex types, int64 and int32; every other scalar type is converted to one of these.
#pragma once

#include <cmath>

#include "dtensor/core/scalar_types.hpp"
#include "limits.hpp"

namespace dtensor::functors {

template <class C>
inline constexpr bool is_integer = std::is_integral_v<C>;
template <class C>
using unsigned_t = std::make_unsigned_t<C>;

// The functions of one and two numbers, overloaded.
namespace math {
#define DTENSOR_MATH(name)                                           \
  KOKKOS_INLINE_FUNCTION double name(double x) { return ::name(x); } \
  KOKKOS_INLINE_FUNCTION float name(float x) { return ::name##f(x); }
#define DTENSOR_MATH_2(name)                                                      \
  KOKKOS_INLINE_FUNCTION double name(double x, double y) { return ::name(x, y); } \
  KOKKOS_INLINE_FUNCTION float name(float x, float y) { return ::name##f(x, y); }
DTENSOR_MATH(sqrt)
DTENSOR_MATH(exp)
DTENSOR_MATH(expm1)
DTENSOR_MATH(log)
DTENSOR_MATH(log1p)
DTENSOR_MATH(log2)
DTENSOR_MATH(sin)
DTENSOR_MATH(cos)
DTENSOR_MATH(tan)
DTENSOR_MATH(asin)
DTENSOR_MATH(acos)
DTENSOR_MATH(atan)
DTENSOR_MATH(sinh)
DTENSOR_MATH(cosh)
DTENSOR_MATH(tanh)
DTENSOR_MATH(erf)
DTENSOR_MATH(floor)
DTENSOR_MATH(ceil)
DTENSOR_MATH(rint)
DTENSOR_MATH(trunc)
DTENSOR_MATH(fabs)
DTENSOR_MATH_2(pow)
DTENSOR_MATH_2(fmod)
DTENSOR_MATH_2(atan2)
DTENSOR_MATH_2(hypot)
DTENSOR_MATH_2(copysign)
#undef DTENSOR_MATH
#undef DTENSOR_MATH_2

// The complex ones, from functions of the parts.
template <class R>
using Complex = Kokkos::complex<R>;

template <class R>
KOKKOS_INLINE_FUNCTION Complex<R> exp(const Complex<R>& z) {
  const R r = math::exp(z.real());
  if (z.imag() == R(0)) return Complex<R>(r, z.imag());
  return Complex<R>(r * math::cos(z.imag()), r * math::sin(z.imag()));
}
template <class R>
KOKKOS_INLINE_FUNCTION Complex<R> log(const Complex<R>& z) {
  return Complex<R>(math::log(math::hypot(z.real(), z.imag())), math::atan2(z.imag(), z.real()));
}
template <class R>
KOKKOS_INLINE_FUNCTION Complex<R> log2(const Complex<R>& z) {
  const Complex<R> l = math::log(z);
  const R e = R(1.4426950408889634074);
  return Complex<R>(l.real() * e, l.imag() * e);
}
// The sign of a zero imaginary part says on which side of the branch cut a number is.
template <class R>
KOKKOS_INLINE_FUNCTION Complex<R> sqrt(const Complex<R>& z) {
  R x = z.real(), y = z.imag();
  if (x == R(0) && y == R(0)) return Complex<R>(R(0), y);
  if (y - y != y - y && y == y) return Complex<R>(math::fabs(y), y);
  if (x - x != x - x && x == x) {
    const R zero = y == y ? R(0) : y;
    return x > R(0) ? Complex<R>(x, math::copysign(zero, y))
                    : Complex<R>(zero, math::copysign(x, y));
  }
  // Powers of 4 keep what is squared in range.
  const R size = math::fabs(x) > math::fabs(y) ? math::fabs(x) : math::fabs(y);
  R root = R(1);
  if (size > limits::highest<R> / R(16)) {
    x /= R(16), y /= R(16), root = R(4);
  } else if (size < limits::smallest_normal<R> * R(1 << 20)) {
    x *= R(1 << 30), y *= R(1 << 30), root = R(1) / R(1 << 15);
  }
  const R t = math::sqrt((math::fabs(x) + math::hypot(x, y)) / R(2));
  const R u = y / (R(2) * t);
  return x >= R(0) ? Complex<R>(t * root, u * root)
                   : Complex<R>(math::fabs(u) * root, math::copysign(t, y) * root);
}
// Smith 1962, with the limits of C where a part is infinite.
template <class R>
KOKKOS_INLINE_FUNCTION Complex<R> divide(const Complex<R>& x, const Complex<R>& y) {
  const R a = x.real(), b = x.imag(), c = y.real(), d = y.imag();
  if (c == R(0) && d == R(0)) return Complex<R>(a / math::fabs(c), b / math::fabs(c));
  R re, im;
  if (math::fabs(c) >= math::fabs(d)) {
    const R ratio = d / c, whole = c + d * ratio;
    re = (a + b * ratio) / whole;
    im = (b - a * ratio) / whole;
  } else {
    const R ratio = c / d, whole = c * ratio + d;
    re = (a * ratio + b) / whole;
    im = (b * ratio - a) / whole;
  }
  if (re != re && im != im) {
    const auto finite = [](const R& v) { return v - v == v - v; };
    const auto infinite = [](const R& v) { return v == v && v - v != v - v; };
    const auto unit = [&](const R& v) { return math::copysign(infinite(v) ? R(1) : R(0), v); };
    if ((infinite(a) || infinite(b)) && finite(c) && finite(d)) {
      const R all = limits::infinity<R>;
      re = all * (unit(a) * c + unit(b) * d);
      im = all * (unit(b) * c - unit(a) * d);
    } else if ((infinite(c) || infinite(d)) && finite(a) && finite(b)) {
      re = R(0) * (a * unit(c) + b * unit(d));
      im = R(0) * (b * unit(c) - a * unit(d));
    }
  }
  return Complex<R>(re, im);
}
template <class R>
KOKKOS_INLINE_FUNCTION Complex<R> sinh(const Complex<R>& z) {
  return Complex<R>(math::sinh(z.real()) * math::cos(z.imag()),
                    math::cosh(z.real()) * math::sin(z.imag()));
}
template <class R>
KOKKOS_INLINE_FUNCTION Complex<R> cosh(const Complex<R>& z) {
  return Complex<R>(math::cosh(z.real()) * math::cos(z.imag()),
                    math::sinh(z.real()) * math::sin(z.imag()));
}
template <class R>
KOKKOS_INLINE_FUNCTION Complex<R> tanh(const Complex<R>& z) {
  const R x = z.real(), y = z.imag();
  // tanh is 1 within rounding long before cosh overflows.
  if (math::fabs(x) > R(22)) {
    return Complex<R>(math::copysign(R(1), x),
                      R(4) * math::sin(y) * math::cos(y) * math::exp(R(-2) * math::fabs(x)));
  }
  const R s = math::sinh(x), c = math::cos(y), d = s * s + c * c;
  return Complex<R>(s * math::cosh(x) / d, math::sin(y) * c / d);
}
// f(iz) = (-y, x) rotates the hyperbolic functions into the circular ones.
template <class R>
KOKKOS_INLINE_FUNCTION Complex<R> sin(const Complex<R>& z) {
  const Complex<R> r = math::sinh(Complex<R>(-z.imag(), z.real()));
  return Complex<R>(r.imag(), -r.real());
}
template <class R>
KOKKOS_INLINE_FUNCTION Complex<R> cos(const Complex<R>& z) {
  return math::cosh(Complex<R>(-z.imag(), z.real()));
}
template <class R>
KOKKOS_INLINE_FUNCTION Complex<R> tan(const Complex<R>& z) {
  const Complex<R> r = math::tanh(Complex<R>(-z.imag(), z.real()));
  return Complex<R>(r.imag(), -r.real());
}
template <class R>
KOKKOS_INLINE_FUNCTION Complex<R> pow(const Complex<R>& x, const Complex<R>& y) {
  if (y.real() == R(0) && y.imag() == R(0)) return Complex<R>(1, 0);
  if (x.real() == R(0) && x.imag() == R(0) && y.real() > R(0)) return Complex<R>(0, 0);
  return math::exp(y * math::log(x));
}
}  // namespace math

template <class C>
KOKKOS_INLINE_FUNCTION C divided(const C& x, const C& y) {
  if constexpr (is_complex_scalar<C>) {
    return math::divide(x, y);
  } else {
    return x / y;
  }
}

// Integers are computed unsigned, where overflow is defined.
template <class C>
KOKKOS_INLINE_FUNCTION C negated(const C& x) {
  if constexpr (is_integer<C>) {
    return static_cast<C>(unsigned_t<C>{0} - static_cast<unsigned_t<C>>(x));
  } else {
    return -x;
  }
}

#define DTENSOR_OP_1(Name)          \
  struct Name {                     \
    static constexpr int arity = 1; \
    template <class C>              \
    KOKKOS_INLINE_FUNCTION auto operator()(const C& x) const
#define DTENSOR_OP_2(Name)          \
  struct Name {                     \
    static constexpr int arity = 2; \
    template <class C>              \
    KOKKOS_INLINE_FUNCTION auto operator()(const C& x, const C& y) const

// clang-format off
DTENSOR_OP_1(Abs) {
  if constexpr (is_complex_scalar<C>) return math::hypot(x.real(), x.imag());
  else if constexpr (is_integer<C>) return x < 0 ? negated(x) : x;
  else return math::fabs(x);
}};
DTENSOR_OP_1(Neg) { return negated(x); }};
DTENSOR_OP_1(Sign) { return x > C(0) ? C(1) : x < C(0) ? C(-1) : x != x ? x : C(0); }};
DTENSOR_OP_1(Sqrt) { return math::sqrt(x); }};
DTENSOR_OP_1(Rsqrt) { return divided(C(1), math::sqrt(x)); }};
DTENSOR_OP_1(Square) {
  if constexpr (is_integer<C>) return static_cast<C>(static_cast<unsigned_t<C>>(x) * static_cast<unsigned_t<C>>(x));
  else return C(x * x);
}};
DTENSOR_OP_1(Exp) { return math::exp(x); }};
DTENSOR_OP_1(Expm1) { return math::expm1(x); }};
DTENSOR_OP_1(Log) { return math::log(x); }};
DTENSOR_OP_1(Log1p) { return math::log1p(x); }};
DTENSOR_OP_1(Log2) { return math::log2(x); }};
DTENSOR_OP_1(Sin) { return math::sin(x); }};
DTENSOR_OP_1(Cos) { return math::cos(x); }};
DTENSOR_OP_1(Tan) { return math::tan(x); }};
DTENSOR_OP_1(Asin) { return math::asin(x); }};
DTENSOR_OP_1(Acos) { return math::acos(x); }};
DTENSOR_OP_1(Atan) { return math::atan(x); }};
DTENSOR_OP_1(Sinh) { return math::sinh(x); }};
DTENSOR_OP_1(Cosh) { return math::cosh(x); }};
DTENSOR_OP_1(Tanh) { return math::tanh(x); }};
DTENSOR_OP_1(Sigmoid) { return C(1) / (C(1) + math::exp(-x)); }};
DTENSOR_OP_1(Erf) { return math::erf(x); }};
DTENSOR_OP_1(Relu) { return x < C(0) ? C(0) : x; }};
DTENSOR_OP_1(Gelu) { return C(0.5) * x * (C(1) + math::erf(x * C(0.70710678118654752440))); }};
DTENSOR_OP_1(GeluTanh) {
  const C inner = C(0.79788456080286535588) * (x + C(0.044715) * x * x * x);
  return C(0.5) * x * (C(1) + math::tanh(inner));
}};
DTENSOR_OP_1(Silu) { return x / (C(1) + math::exp(-x)); }};
DTENSOR_OP_1(Softplus) { return (x < C(0) ? C(0) : x) + math::log1p(math::exp(-math::fabs(x))); }};
DTENSOR_OP_1(Reciprocal) { return divided(C(1), x); }};
DTENSOR_OP_1(Floor) { if constexpr (is_integer<C>) return x; else return math::floor(x); }};
DTENSOR_OP_1(Ceil) { if constexpr (is_integer<C>) return x; else return math::ceil(x); }};
DTENSOR_OP_1(Round) { if constexpr (is_integer<C>) return x; else return math::rint(x); }};
DTENSOR_OP_1(Trunc) { if constexpr (is_integer<C>) return x; else return math::trunc(x); }};
// x - x is NaN for NaN and infinities, else 0.
DTENSOR_OP_1(IsNan) {
  if constexpr (is_complex_scalar<C>) return x.real() != x.real() || x.imag() != x.imag();
  else return x != x;
}};
DTENSOR_OP_1(IsInf) {
  if constexpr (is_integer<C>) return false;
  else if constexpr (is_complex_scalar<C>) return IsInf()(x.real()) || IsInf()(x.imag());
  else return x == x && x - x != x - x;
}};
DTENSOR_OP_1(IsFinite) {
  if constexpr (is_integer<C>) return true;
  else if constexpr (is_complex_scalar<C>) return IsFinite()(x.real()) && IsFinite()(x.imag());
  else return x - x == x - x;
}};
DTENSOR_OP_1(LogicalNot) { return !scalar_cast<bool>(x); }};
DTENSOR_OP_1(BitwiseNot) { return static_cast<C>(~x); }};
DTENSOR_OP_1(Conj) {
  if constexpr (is_complex_scalar<C>) return C(x.real(), -x.imag());
  else return x;
}};
DTENSOR_OP_1(Real) {
  if constexpr (is_complex_scalar<C>) return x.real();
  else return x;
}};
DTENSOR_OP_1(Imag) {
  if constexpr (is_complex_scalar<C>) return x.imag();
  else return C(0);
}};
DTENSOR_OP_1(Angle) {
  if constexpr (is_complex_scalar<C>) return math::atan2(x.imag(), x.real());
  else return x != x ? x : math::atan2(C(0), x);
}};

DTENSOR_OP_2(Add) {
  if constexpr (is_integer<C>) return static_cast<C>(static_cast<unsigned_t<C>>(x) + static_cast<unsigned_t<C>>(y));
  else return C(x + y);
}};
DTENSOR_OP_2(Sub) {
  if constexpr (is_integer<C>) return static_cast<C>(static_cast<unsigned_t<C>>(x) - static_cast<unsigned_t<C>>(y));
  else return C(x - y);
}};
DTENSOR_OP_2(Mul) {
  if constexpr (is_integer<C>) return static_cast<C>(static_cast<unsigned_t<C>>(x) * static_cast<unsigned_t<C>>(y));
  else return C(x * y);
}};
DTENSOR_OP_2(Div) { return divided(x, y); }};
// Integers: no trap for a zero divisor, nor for the quotient that is out of range.
DTENSOR_OP_2(FloorDiv) {
  if constexpr (is_integer<C>) {
    if (y == 0) return C(0);
    if (y == -1) return negated(x);
    const C quotient = static_cast<C>(x / y);
    return static_cast<C>(quotient - (x % y != 0 && (x < 0) != (y < 0) ? 1 : 0));
  } else {
    // After Python: the quotient of what is left without the remainder, which is nearly whole.
    if (y == C(0)) return C(x / y);
    const C rest = math::fmod(x, y);
    C quotient = (x - rest) / y;
    if (rest != C(0) && (y < C(0)) != (rest < C(0))) quotient -= C(1);
    if (quotient == C(0)) return math::copysign(C(0), C(x / y));
    const C whole = math::floor(quotient);
    return quotient - whole > C(0.5) ? C(whole + C(1)) : whole;
  }
}};
DTENSOR_OP_2(Remainder) {
  if constexpr (is_integer<C>) {
    if (y == 0 || y == -1) return C(0);
    const C rest = static_cast<C>(x % y);
    return rest != 0 && (rest < 0) != (y < 0) ? static_cast<C>(rest + y) : rest;
  } else {
    const C rest = math::fmod(x, y);
    if (rest == C(0)) return math::copysign(C(0), y);
    return (y < C(0)) != (rest < C(0)) ? C(rest + y) : rest;
  }
}};
DTENSOR_OP_2(Fmod) {
  if constexpr (is_integer<C>) return y == 0 || y == -1 ? C(0) : static_cast<C>(x % y);
  else return math::fmod(x, y);
}};
DTENSOR_OP_2(Pow) {
  if constexpr (is_integer<C>) {
    if (y < 0) return x == 1 ? C(1) : x == -1 ? (y % 2 == 0 ? C(1) : C(-1)) : C(0);
    unsigned_t<C> result = 1, factor = static_cast<unsigned_t<C>>(x);
    for (C n = y; n > 0; n = static_cast<C>(n >> 1)) {
      if (n & 1) result *= factor;
      factor *= factor;
    }
    return static_cast<C>(result);
  } else {
    return math::pow(x, y);
  }
}};
DTENSOR_OP_2(Maximum) { return x > y || x != x ? x : y; }};
DTENSOR_OP_2(Minimum) { return x < y || x != x ? x : y; }};
DTENSOR_OP_2(Atan2) { return math::atan2(x, y); }};
DTENSOR_OP_2(Hypot) { return math::hypot(x, y); }};
DTENSOR_OP_2(Eq) { return x == y; }};
DTENSOR_OP_2(Ne) { return !(x == y); }};
DTENSOR_OP_2(Lt) { return x < y; }};
DTENSOR_OP_2(Le) { return x <= y; }};
DTENSOR_OP_2(Gt) { return x > y; }};
DTENSOR_OP_2(Ge) { return x >= y; }};
DTENSOR_OP_2(LogicalAnd) { return scalar_cast<bool>(x) && scalar_cast<bool>(y); }};
DTENSOR_OP_2(LogicalOr) { return scalar_cast<bool>(x) || scalar_cast<bool>(y); }};
DTENSOR_OP_2(LogicalXor) { return scalar_cast<bool>(x) != scalar_cast<bool>(y); }};
DTENSOR_OP_2(BitwiseAnd) { return static_cast<C>(x & y); }};
DTENSOR_OP_2(BitwiseOr) { return static_cast<C>(x | y); }};
DTENSOR_OP_2(BitwiseXor) { return static_cast<C>(x ^ y); }};
template <class C>
inline constexpr C bit_count = static_cast<C>(8 * sizeof(C));
DTENSOR_OP_2(LeftShift) {
  return y < 0 || y >= bit_count<C> ? C(0) : static_cast<C>(static_cast<unsigned_t<C>>(x) << y);
}};
DTENSOR_OP_2(RightShift) {
  return static_cast<C>(x >> (y < 0 || y >= bit_count<C> ? bit_count<C> - 1 : y));
}};
// clang-format on
#undef DTENSOR_OP_1
#undef DTENSOR_OP_2

struct Where {
  static constexpr int arity = 3;
  template <class C>
  KOKKOS_INLINE_FUNCTION C operator()(const bool& condition, const C& x, const C& y) const {
    return condition ? x : y;
  }
};
struct Clamp {
  static constexpr int arity = 3;
  template <class C>
  KOKKOS_INLINE_FUNCTION C operator()(const C& x, const C& lower, const C& upper) const {
    return Minimum()(Maximum()(x, lower), upper);
  }
};
struct Lerp {
  static constexpr int arity = 3;
  // Exact at both ends.
  template <class C>
  KOKKOS_INLINE_FUNCTION C operator()(const C& x, const C& y, const C& weight) const {
    return Abs()(weight) < 0.5f ? C(x + weight * (y - x)) : C(y - (y - x) * (C(1) - weight));
  }
};
struct Addcmul {
  static constexpr int arity = 4;
  template <class C>
  KOKKOS_INLINE_FUNCTION C operator()(const C& x, const C& y, const C& z, const C& value) const {
    return Add()(x, Mul()(Mul()(value, y), z));
  }
};
struct Addcdiv {
  static constexpr int arity = 4;
  template <class C>
  KOKKOS_INLINE_FUNCTION C operator()(const C& x, const C& y, const C& z, const C& value) const {
    return C(x + divided(C(value * y), z));
  }
};

}  // namespace dtensor::functors
