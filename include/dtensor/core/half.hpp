// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// 16-bit floating-point scalars that have 16 bits in every backend. (Kokkos's own `half_t` is a
/// float in a host build.) Arithmetic goes through float; conversion rounds to nearest even.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstdint>

namespace dtensor {

namespace detail {
union FloatBits {
  float f;
  std::uint32_t u;
};
KOKKOS_INLINE_FUNCTION std::uint32_t float_bits(float f) {
  FloatBits b;
  b.f = f;
  return b.u;
}
KOKKOS_INLINE_FUNCTION float bits_float(std::uint32_t u) {
  FloatBits b;
  b.u = u;
  return b.f;
}
// Rounds to odd: the last bit says that something was cut off, so that rounding once more, to a
// type of at most 22 mantissa bits, gives what rounding the double at once would.
KOKKOS_INLINE_FUNCTION float round_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  if (back == value || value != value) return nearest;
  std::uint32_t bits = float_bits(nearest);
  if ((value > 0) == (back > value)) --bits;  // towards zero
  return bits_float(bits | 1u);
}
}  // namespace detail

/// IEEE 754 binary16: 1 sign, 5 exponent and 10 mantissa bits.
struct float16 {
  std::uint16_t bits;

  float16() = default;
  KOKKOS_INLINE_FUNCTION explicit float16(float value) : bits(from_float(value)) {}
  KOKKOS_INLINE_FUNCTION operator float() const {
    const std::uint32_t sign = (bits & 0x8000u) << 16;
    std::uint32_t mantissa = bits & 0x3ffu;
    const std::uint32_t exponent = (bits >> 10) & 0x1fu;
    if (exponent == 31) return detail::bits_float(sign | 0x7f800000u | (mantissa << 13));
    if (exponent != 0) {
      return detail::bits_float(sign | ((exponent + 112) << 23) | (mantissa << 13));
    }
    // Subnormal: mantissa * 2^-24, exact in float.
    const float magnitude = static_cast<float>(mantissa) * 5.9604644775390625e-8f;
    return sign ? -magnitude : magnitude;
  }

 private:
  KOKKOS_INLINE_FUNCTION static std::uint16_t from_float(float value) {
    const std::uint32_t u = detail::float_bits(value);
    const std::uint32_t sign = (u >> 16) & 0x8000u;
    const std::uint32_t magnitude = u & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
      return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x1ffu));
    }
    if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
    if (magnitude < 0x33000001u) return static_cast<std::uint16_t>(sign);
    std::uint32_t mantissa, shift, base;
    if (magnitude < 0x38800000u) {  // the result is subnormal
      mantissa = (magnitude & 0x7fffffu) | 0x800000u;
      shift = 126u - (magnitude >> 23);
      base = 0;
    } else {
      mantissa = magnitude - 0x38000000u;
      shift = 13;
      base = 0;
    }
    const std::uint32_t halfway = 1u << (shift - 1);
    const std::uint32_t rest = mantissa & ((1u << shift) - 1);
    std::uint32_t result = base + (mantissa >> shift);
    if (rest > halfway || (rest == halfway && (result & 1u))) ++result;
    return static_cast<std::uint16_t>(sign | result);
  }
};

/// The upper half of a float: 1 sign, 8 exponent and 7 mantissa bits.
struct bfloat16 {
  std::uint16_t bits;

  bfloat16() = default;
  KOKKOS_INLINE_FUNCTION explicit bfloat16(float value) : bits(from_float(value)) {}
  KOKKOS_INLINE_FUNCTION operator float() const {
    return detail::bits_float(static_cast<std::uint32_t>(bits) << 16);
  }

 private:
  KOKKOS_INLINE_FUNCTION static std::uint16_t from_float(float value) {
    const std::uint32_t u = detail::float_bits(value);
    if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);
    return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
};

static_assert(sizeof(float16) == 2 && sizeof(bfloat16) == 2);

}  // namespace dtensor
