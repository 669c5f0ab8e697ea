// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// From random words to numbers of a distribution, with the same bits everywhere: on every backend,
/// in vector code and in its scalar rest, with GCC from 12 on, clang (but for `-ffp-contract=fast`)
/// and on devices; GCC before 12 must be told `-ffp-contract=off`. Not with `-ffast-math`. Only
/// additions, products, divisions and square roots of IEEE 754 are used, each rounded on its own.
#pragma once

#include <cmath>
#include <cstdint>

#include "dtensor/core/half.hpp"

namespace dtensor::detail {

// ---- arithmetic that no compiler may fuse or approximate
// -----------------------------------------

/// a * b, rounded before anything is added to it.
template <class R>
KOKKOS_INLINE_FUNCTION R product(R a, R b) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  if constexpr (sizeof(R) == 4) {
    return __fmul_rn(a, b);
  } else {
    return __dmul_rn(a, b);
  }
#elif defined(__clang__)
#pragma clang fp contract(off)
  const R result = a * b;
  return result;
#elif defined(__GNUC__) && __GNUC__ >= 12
  return __builtin_assoc_barrier(a * b);
#else
  return a * b;
#endif
}

template <class R>
KOKKOS_INLINE_FUNCTION R quotient(R a, R b) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  if constexpr (sizeof(R) == 4) {
    return __fdiv_rn(a, b);
  } else {
    return __ddiv_rn(a, b);
  }
#else
  return a / b;
#endif
}

template <class R>
KOKKOS_INLINE_FUNCTION R root(R a) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  if constexpr (sizeof(R) == 4) {
    return __fsqrt_rn(a);
  } else {
    return __dsqrt_rn(a);
  }
#else
  return std::sqrt(a);
#endif
}

/// c[0] + c[1] x + ... by Horner's rule.
template <class R, int N>
KOKKOS_INLINE_FUNCTION R polynomial(R x, const R (&c)[N]) {
  R sum = c[N - 1];
  for (int i = N - 2; i >= 0; --i) sum = product(sum, x) + c[i];
  return sum;
}

// Conversion through signed integers, which every vector unit has.
template <class R>
KOKKOS_INLINE_FUNCTION R from_bits(std::uint32_t small) {
  return static_cast<R>(static_cast<std::int32_t>(small));
}

KOKKOS_INLINE_FUNCTION std::uint64_t double_bits(double d) {
  union {
    double d;
    std::uint64_t u;
  } b;
  b.d = d;
  return b.u;
}
KOKKOS_INLINE_FUNCTION double bits_double(std::uint64_t u) {
  union {
    double d;
    std::uint64_t u;
  } b;
  b.u = u;
  return b.d;
}

// ---- uniform ------------------------------------------------------------------------------------

/// A multiple of 2^-24 in [0, 1).
KOKKOS_INLINE_FUNCTION float unit_float(std::uint32_t w) {
  return from_bits<float>(w >> 8) * 0x1p-24f;
}

/// A multiple of 2^-53 in [0, 1).
KOKKOS_INLINE_FUNCTION double unit_double(std::uint32_t low, std::uint32_t high) {
  return (from_bits<double>(high >> 5) * 0x1p26 + from_bits<double>(low >> 6)) * 0x1p-53;
}

/// The highest bits of `unit_float`'s word that the type can hold, so that no rounding reaches 1.
KOKKOS_INLINE_FUNCTION float16 unit_float16(std::uint32_t w) {
  return float16(from_bits<float>(w >> 21) * 0x1p-11f);
}
KOKKOS_INLINE_FUNCTION bfloat16 unit_bfloat16(std::uint32_t w) {
  return bfloat16(from_bits<float>(w >> 24) * 0x1p-8f);
}

// ---- logarithm ----------------------------------------------------------------------------------
// With x = 2^e (1 + f), 1 + f between sqrt(1/2) and sqrt(2): log x = e log 2 + 2 artanh(f / (2 +
// f)), and artanh by its series, whose argument is at most 0.172.

template <class R>
KOKKOS_INLINE_FUNCTION R log_of_one_plus(R f);

template <>
KOKKOS_INLINE_FUNCTION float log_of_one_plus(float f) {
  const float s = quotient(f, 2.0f + f);
  const float c[] = {2.0f / 3, 2.0f / 5, 2.0f / 7, 2.0f / 9, 2.0f / 11};
  const float z = product(s, s);
  return 2 * s + product(product(s, z), polynomial(z, c));
}

template <>
KOKKOS_INLINE_FUNCTION double log_of_one_plus(double f) {
  const double s = quotient(f, 2.0 + f);
  const double c[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                      2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
  const double z = product(s, s);
  return 2 * s + product(product(s, z), polynomial(z, c));
}

/// -log of (k + 1/2) / 2^31, where `k` is the upper 31 bits of the word: above 0, at most 22.2.
KOKKOS_INLINE_FUNCTION float minus_log_unit(std::uint32_t w) {
  const std::uint32_t k = w >> 1;
  const float x = from_bits<float>(k) + 0.5f;
  const std::uint32_t bits = float_bits(x) - 0x3f3504f3u;  // of sqrt(1/2)
  const float e =
      from_bits<float>(static_cast<std::uint32_t>(static_cast<std::int32_t>(bits) >> 23)) - 31.0f;
  const float m = bits_float((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  // Close to 1 the distance from 1 counts, which x has lost.
  const bool near_one = k >= 3u << 29;
  const float distance = (from_bits<float>(k | 0x80000000u) + 0.5f) * 0x1p-31f;
  const float f = near_one ? distance : m;
  const float n = near_one ? 0.0f : e;
  // log 2 in two parts; n times the first is exact.
  const float tail = product(n, 1.4286068203094173e-06f) + log_of_one_plus(f);
  return -(product(n, 0.693145751953125f) + tail);
}

/// -log of (k + 1/2) / 2^52, where `k` is 52 bits of the words: above 0, at most 36.8.
KOKKOS_INLINE_FUNCTION double minus_log_unit(std::uint32_t low, std::uint32_t high) {
  const double x =
      (from_bits<double>(high >> 6) * 0x1p26 + from_bits<double>(low >> 6) + 0.5) * 0x1p-52;
  const std::uint64_t bits = double_bits(x) - 0x3fe6a09e667f3bcdu;  // of sqrt(1/2)
  const double n = from_bits<double>(static_cast<std::uint32_t>(
      static_cast<std::int32_t>(static_cast<std::uint32_t>(bits >> 32)) >> 20));
  const double f = bits_double((bits & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
  const double tail = product(n, 1.9082149292705877e-10) + log_of_one_plus(f);
  return -(product(n, 0.6931471803691238) + tail);
}

// ---- normal -------------------------------------------------------------------------------------
// G. Box, M. Muller, "A note on the generation of random normal deviates", 1958: a radius and an
// angle. The angle is one in (-pi/4, pi/4), mirrored at the diagonal and at the origin at random.

template <class R>
struct NormalPair {
  R first, second;
};

/// Two independent numbers of mean 0 and variance 1, at most 6.66 from 0.
KOKKOS_INLINE_FUNCTION NormalPair<float> normal_pair(std::uint32_t w0, std::uint32_t w1) {
  const float radius = root(2 * minus_log_unit(w0));
  const float t = (from_bits<float>((w1 & 0x3fffffffu) - 0x20000000u) + 0.5f) * 0x1p-30f;
  const float angle = product(t, 1.57079632679489662f);
  const float z = product(angle, angle);
  const float sines[] = {1.0f, -1.0f / 6, 1.0f / 120, -1.0f / 5040, 1.0f / 362880};
  const float cosines[] = {1.0f, -1.0f / 2, 1.0f / 24, -1.0f / 720, 1.0f / 40320, -1.0f / 3628800};
  const float sine = product(angle, polynomial(z, sines));
  const float cosine = polynomial(z, cosines);
  const float r = (w1 & 0x40000000u) ? -radius : radius;
  const bool mirror = (w1 & 0x80000000u) != 0;
  return {product(r, mirror ? sine : cosine), product(r, mirror ? cosine : sine)};
}

/// The same of double precision, at most 8.57 from 0.
KOKKOS_INLINE_FUNCTION NormalPair<double> normal_pair(std::uint32_t w0, std::uint32_t w1,
                                                      std::uint32_t w2, std::uint32_t w3) {
  const double radius = root(2 * minus_log_unit(w0, w1));
  const double t =
      (from_bits<double>((w3 & 0x3fffffffu) >> 4) * 0x1p26 + from_bits<double>(w2 >> 6) + 0.5) *
          0x1p-52 -
      0.5;
  const double angle = product(t, 1.57079632679489662);
  const double z = product(angle, angle);
  const double sines[] = {1.0,
                          -1.0 / 6,
                          1.0 / 120,
                          -1.0 / 5040,
                          1.0 / 362880,
                          -1.0 / 39916800,
                          1.0 / 6227020800,
                          -1.0 / 1307674368000,
                          1.0 / 355687428096000};
  const double cosines[] = {1.0,
                            -1.0 / 2,
                            1.0 / 24,
                            -1.0 / 720,
                            1.0 / 40320,
                            -1.0 / 3628800,
                            1.0 / 479001600,
                            -1.0 / 87178291200,
                            1.0 / 20922789888000,
                            -1.0 / 6402373705728000};
  const double sine = product(angle, polynomial(z, sines));
  const double cosine = polynomial(z, cosines);
  const double r = (w3 & 0x40000000u) ? -radius : radius;
  const bool mirror = (w3 & 0x80000000u) != 0;
  return {product(r, mirror ? sine : cosine), product(r, mirror ? cosine : sine)};
}

}  // namespace dtensor::detail
