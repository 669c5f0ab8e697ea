// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Philox against its published answers; the transforms against long double and other compilers'
// settings.
#include "dtensor/random/transforms.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "dtensor/random/philox.hpp"
#include "fused.hpp"

using namespace dtensor;
using namespace dtensor::detail;

namespace {

// Words that lead to the ends of the ranges, and many others.
std::vector<std::uint32_t> words(int count) {
  std::vector<std::uint32_t> result{0,           1,           2,           0xffffffffu,
                                    0xfffffffeu, 0x7fffffffu, 0x80000000u, 0xbfffffffu,
                                    0xc0000000u, 0xc0000001u, 0x3fffffffu, 0x40000000u,
                                    0x20000000u, 0x1fffffffu, 0xb504f333u, 0xb504f334u};
  const RandomBlocks blocks{{{1, 2}}, {3, 4}};
  for (std::uint64_t b = 0; static_cast<int>(result.size()) < count; ++b) {
    for (std::uint32_t w : blocks[b].word) result.push_back(w);
  }
  return result;
}

constexpr long double pi = 3.14159265358979323846264338327950288L;

}  // namespace

// The rows "philox4x32 10" of kat_vectors of Random123.
TEST(Philox, KnownAnswers) {
  struct Row {
    PhiloxBlock counter;
    PhiloxKey key;
    PhiloxBlock answer;
  };
  const Row rows[] = {
      {{{0, 0, 0, 0}}, {{0, 0}}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
      {{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
       {{0xffffffff, 0xffffffff}},
       {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
      {{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
       {{0xa4093822, 0x299f31d0}},
       {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}}};
  for (const Row& row : rows) {
    const PhiloxBlock found = philox(row.counter, row.key);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(found.word[i], row.answer.word[i]);
  }
}

TEST(Transforms, UniformNumbersStayBelowOne) {
  EXPECT_EQ(unit_float(0xffffffffu), 1 - 0x1p-24f);
  EXPECT_EQ(unit_double(0xffffffffu, 0xffffffffu), 1 - 0x1p-53);
  EXPECT_EQ(static_cast<float>(unit_float16(0xffffffffu)), 1 - 0x1p-11f);
  EXPECT_EQ(static_cast<float>(unit_bfloat16(0xffffffffu)), 1 - 0x1p-8f);
  EXPECT_EQ(unit_float(0xff), 0.0f);
  EXPECT_EQ(unit_double(0x3f, 0x1f), 0.0);
  EXPECT_EQ(unit_double(0x40, 0), 0x1p-53);
  EXPECT_EQ(unit_double(0, 0x20), 0x1p-27);
}

// The bounds are documented.
TEST(Transforms, LogarithmIsAccurate) {
  long double worst = 0, worst_of_double = 0;
  const auto w = words(400000);
  for (std::size_t i = 0; i + 1 < w.size(); ++i) {
    const long double k = w[i] >> 1;
    const long double exact = -logl((k + 0.5L) / 2147483648.0L);
    worst = std::max(worst, fabsl(static_cast<long double>(minus_log_unit(w[i])) / exact - 1));
    const long double k2 =
        static_cast<long double>(w[i + 1] >> 6) * 67108864.0L + static_cast<long double>(w[i] >> 6);
    const long double exact2 = -logl((k2 + 0.5L) / 4503599627370496.0L);
    worst_of_double =
        std::max(worst_of_double,
                 fabsl(static_cast<long double>(minus_log_unit(w[i], w[i + 1])) / exact2 - 1));
  }
  EXPECT_LT(worst, 5 * 0x1p-24L);
  EXPECT_LT(worst_of_double, 4 * 0x1p-53L);
  EXPECT_GT(minus_log_unit(0xffffffffu), 0);
  EXPECT_NEAR(minus_log_unit(0), 22.1807f, 1e-4f);
  EXPECT_GT(minus_log_unit(0xffffffffu, 0xffffffffu), 0);
  EXPECT_NEAR(minus_log_unit(0, 0), 36.7368, 1e-4);
}

TEST(Transforms, NormalPairIsAccurate) {
  long double worst = 0, worst_of_double = 0;
  const auto w = words(400000);
  const auto angle = [](long double t, std::uint32_t top) {
    const long double a = t * pi / 2;
    std::pair<long double, long double> p{cosl(a), sinl(a)};
    if (top & 2) std::swap(p.first, p.second);
    if (top & 1) p = {-p.first, -p.second};
    return p;
  };
  for (std::size_t i = 0; i + 4 < w.size(); ++i) {
    const long double r = sqrtl(-2 * logl(((w[i] >> 1) + 0.5L) / 2147483648.0L));
    const auto unit =
        angle((static_cast<long double>(w[i + 1] & 0x3fffffffu) + 0.5L) / 1073741824.0L - 0.5L,
              w[i + 1] >> 30);
    const auto pair = normal_pair(w[i], w[i + 1]);
    worst = std::max({worst, fabsl(static_cast<long double>(pair.first) - r * unit.first) / r,
                      fabsl(static_cast<long double>(pair.second) - r * unit.second) / r});

    const long double k =
        static_cast<long double>(w[i + 1] >> 6) * 67108864.0L + static_cast<long double>(w[i] >> 6);
    const long double r2 = sqrtl(-2 * logl((k + 0.5L) / 4503599627370496.0L));
    const long double a = static_cast<long double>((w[i + 3] & 0x3fffffffu) >> 4) * 67108864.0L +
                          static_cast<long double>(w[i + 2] >> 6);
    const auto unit2 = angle((a + 0.5L) / 4503599627370496.0L - 0.5L, w[i + 3] >> 30);
    const auto pair2 = normal_pair(w[i], w[i + 1], w[i + 2], w[i + 3]);
    worst_of_double = std::max(
        {worst_of_double, fabsl(static_cast<long double>(pair2.first) - r2 * unit2.first) / r2,
         fabsl(static_cast<long double>(pair2.second) - r2 * unit2.second) / r2});
  }
  EXPECT_LT(worst, 4 * 0x1p-24L);
  EXPECT_LT(worst_of_double, 4 * 0x1p-53L);
}

TEST(Transforms, ContractionChangesNothing) {
#ifdef DTENSOR_TEST_FUSED_X86
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("fma")) GTEST_SKIP() << "this processor has no fused multiply-add";
#endif
  const auto w = words(400000);
  const int count = static_cast<int>(w.size()) / 4;
  std::vector<float> single(3 * static_cast<std::size_t>(count));
  std::vector<double> twice(single.size());
  fused_values(w.data(), count, single.data(), twice.data());
  int different = 0;
  for (int i = 0; i < count; ++i) {
    const std::uint32_t* v = w.data() + 4 * i;
    const auto at = 3 * static_cast<std::size_t>(i);
    different += single[at] != normal_pair(v[0], v[1]).first;
    different += single[at + 1] != normal_pair(v[2], v[3]).second;
    different += single[at + 2] != minus_log_unit(v[0]);
    different += twice[at] != normal_pair(v[0], v[1], v[2], v[3]).first;
    different += twice[at + 1] != normal_pair(v[2], v[3], v[0], v[1]).second;
    different += twice[at + 2] != minus_log_unit(v[0], v[1]);
  }
  EXPECT_EQ(different, 0);
#ifdef DTENSOR_TEST_FUSED_X86
  // That there was something to withstand.
  std::vector<float> sums(single.size());
  const int n = static_cast<int>(sums.size());
  fused_sums(single.data(), n, sums.data());
  for (int i = 0; i < n; ++i) {
    const volatile float product_alone =
        single[static_cast<std::size_t>(i)] * single[static_cast<std::size_t>(n - 1 - i)];
    const volatile float sum = product_alone + single[static_cast<std::size_t>((i * 7 + 1) % n)];
    different += sum != sums[static_cast<std::size_t>(i)];
  }
  EXPECT_GT(different, 1000);
#endif
}
