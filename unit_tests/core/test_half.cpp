// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The 16-bit types against their definition: values computed with ldexp, and rounding by searching
// among all values of the type.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "dtensor/core/half.hpp"
#include "dtensor/core/scalar_types.hpp"

namespace {

using dtensor::bfloat16;
using dtensor::float16;

/// A format with one sign bit, `Exponent` exponent bits and `Mantissa` mantissa bits.
template <int Exponent, int Mantissa>
struct Format {
  static constexpr int bias = (1 << (Exponent - 1)) - 1;
  static constexpr int infinity_bits = ((1 << Exponent) - 1) << Mantissa;

  /// The value of non-negative finite bits.
  static double value(int bits) {
    const int exponent = bits >> Mantissa;
    const int mantissa = bits & ((1 << Mantissa) - 1);
    return exponent == 0 ? std::ldexp(mantissa, 1 - bias - Mantissa)
                         : std::ldexp((1 << Mantissa) + mantissa, exponent - bias - Mantissa);
  }

  /// All finite magnitudes by bits, and the one that would come next: halfway to it and beyond is
  /// infinite.
  static const std::vector<double>& magnitudes() {
    static const std::vector<double> all = [] {
      std::vector<double> v;
      for (int bits = 0; bits < infinity_bits; ++bits) v.push_back(value(bits));
      v.push_back(std::ldexp(1.0, (1 << Exponent) - 1 - bias));
      return v;
    }();
    return all;
  }

  /// Nearest value, of two equally near the one with even bits.
  static std::uint16_t round(double f) {
    const int sign = std::signbit(f) ? 0x8000 : 0;
    const auto& m = magnitudes();
    const double x = std::fabs(f);
    if (x >= m.back()) return static_cast<std::uint16_t>(sign | infinity_bits);
    const auto above = std::upper_bound(m.begin(), m.end(), x);
    const int low = static_cast<int>(above - m.begin()) - 1;
    const double down = x - m[static_cast<std::size_t>(low)];
    const double up = *above - x;
    const int bits = down < up ? low : up < down ? low + 1 : low + (low & 1);
    return static_cast<std::uint16_t>(sign | bits);
  }
};

template <class T>
struct FormatOf;
template <>
struct FormatOf<float16> : Format<5, 10> {};
template <>
struct FormatOf<bfloat16> : Format<8, 7> {};

template <class T>
T from_bits(int bits) {
  T value;
  value.bits = static_cast<std::uint16_t>(bits);
  return value;
}

template <class T>
class Half : public ::testing::Test {};
using Types = ::testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(Half, Types);

template <class T>
void expect_rounded(float f) {
  ASSERT_EQ(T(f).bits, FormatOf<T>::round(f)) << f;
  ASSERT_EQ(T(-f).bits, FormatOf<T>::round(-f)) << -f;
}

}  // namespace

TYPED_TEST(Half, EveryValueIsTheOneItsBitsSay) {
  for (int bits = 0; bits < FormatOf<TypeParam>::infinity_bits; ++bits) {
    const double value = FormatOf<TypeParam>::value(bits);
    ASSERT_EQ(static_cast<double>(static_cast<float>(from_bits<TypeParam>(bits))), value) << bits;
    ASSERT_EQ(static_cast<double>(static_cast<float>(from_bits<TypeParam>(bits | 0x8000))), -value)
        << bits;
  }
}

TYPED_TEST(Half, EveryValueSurvivesARoundTrip) {
  for (int bits = 0; bits < 65536; ++bits) {
    const auto value = from_bits<TypeParam>(bits);
    const float f = value;
    const int magnitude = bits & 0x7fff;
    ASSERT_EQ(std::signbit(f), bits >= 0x8000) << bits;
    ASSERT_EQ(std::isnan(f), magnitude > FormatOf<TypeParam>::infinity_bits) << bits;
    ASSERT_EQ(std::isinf(f), magnitude == FormatOf<TypeParam>::infinity_bits) << bits;
    if (std::isnan(f)) {
      const TypeParam back(f);
      ASSERT_TRUE(std::isnan(static_cast<float>(back))) << bits;
      ASSERT_EQ(back.bits & 0x8000, bits & 0x8000) << bits;
    } else {
      ASSERT_EQ(TypeParam(f).bits, bits);
    }
  }
}

TYPED_TEST(Half, RoundsToNearestEvenAroundEveryValue) {
  const auto& m = FormatOf<TypeParam>::magnitudes();
  for (std::size_t i = 0; i + 1 < m.size(); ++i) {
    const auto middle = static_cast<float>((m[i] + m[i + 1]) / 2);
    const auto value = static_cast<float>(m[i]);
    for (float f : {value, middle}) {
      expect_rounded<TypeParam>(f);
      expect_rounded<TypeParam>(std::nextafter(f, 0.0f));
      expect_rounded<TypeParam>(std::nextafter(f, std::numeric_limits<float>::infinity()));
    }
  }
}

// Closer to a middle than any float can be: rounding to float on the way would end on the middle.
TYPED_TEST(Half, RoundsDoublesOnce) {
  const auto& m = FormatOf<TypeParam>::magnitudes();
  for (std::size_t i = 0; i + 1 < m.size(); ++i) {
    const double middle = (m[i] + m[i + 1]) / 2;
    for (double d : {m[i], middle, middle * (1 - 0x1p-45), middle * (1 + 0x1p-45)}) {
      ASSERT_EQ(dtensor::scalar_cast<TypeParam>(d).bits, FormatOf<TypeParam>::round(d)) << d;
      ASSERT_EQ(dtensor::scalar_cast<TypeParam>(-d).bits, FormatOf<TypeParam>::round(-d)) << -d;
    }
  }
  for (double d : {1e-300, -1e-300, 1e300, -1e300, 3.4028235677973366e38}) {
    EXPECT_EQ(dtensor::scalar_cast<TypeParam>(d).bits, FormatOf<TypeParam>::round(d)) << d;
  }
}

TYPED_TEST(Half, RoundsRandomFloats) {
  std::mt19937 random(17);
  for (int i = 0; i < 500000; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    float f;
    std::memcpy(&f, &bits, sizeof f);
    if (!std::isnan(f)) expect_rounded<TypeParam>(f);
  }
}

TYPED_TEST(Half, KeepsEveryFloatNanANan) {
  for (std::uint32_t bits : {0x7f800001u, 0x7f800fffu, 0x7fc00000u, 0x7fffffffu, 0xff800001u,
                             0xffffffffu, 0x7f801000u, 0x7f810000u}) {
    float f;
    std::memcpy(&f, &bits, sizeof f);
    EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(f)))) << bits;
  }
}
