// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// 2^24 values against their distribution. Each bound is shown to refuse a generator that is bad in
// just that respect.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <numeric>

#include "dtensor/random/random.hpp"
#include "statistics.hpp"

using namespace dtensor;
using namespace dtensor::testing;

namespace {

constexpr std::int64_t shards = 4, per_shard = std::int64_t{1} << 22;
constexpr double bound = 5, ks_bound = 2.5;

Numbers64 values_of(const Tensor& tensor) {
  return tensor.to(DType::float64).reshape({tensor.numel()}).to_vector<double>();
}

template <class F>
Numbers64 changed(Numbers64 x, const F& f) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = f(x[i], i);
  return x;
}

double identity(double x) { return x; }
double unit_cdf(double x) { return std::clamp(x, 0.0, 1.0); }
double normal_cdf(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }
double exponential_cdf(double x) { return -std::expm1(-x); }

double uniform_mean(const Numbers64& x) { return mean_error(x, identity, 0.5, 1.0 / 12); }
double uniform_variance(const Numbers64& x) {
  return mean_error(
      x, [](double v) { return (v - 0.5) * (v - 0.5); }, 1.0 / 12, 1.0 / 180);
}
double uniform_correlation(const Numbers64& x, std::size_t shift) {
  return correlation(x, shift, 0.5, 1.0 / 12);
}

// The worst of the bytes of the first 24 bits.
double byte_error(const Numbers64& x) {
  std::array<std::vector<std::int64_t>, 3> counts;
  counts.fill(std::vector<std::int64_t>(256, 0));
  for (double v : x) {
    const auto bits = static_cast<std::uint32_t>(v * 16777216.0);
    for (std::size_t b = 0; b < 3; ++b) ++counts[b][bits >> (8 * b) & 255];
  }
  double worst = 0;
  for (const auto& c : counts) worst = std::max(worst, chi_square_error(c));
  return worst;
}

}  // namespace

TEST(Statistics, Uniform) {
  for (DType dtype : {DType::float32, DType::float64}) {
    Generator generator(42);
    const Numbers64 x = values_of(rand({shards, per_shard}, dtype, DeviceKind::device, generator));
    EXPECT_LT(uniform_mean(x), bound);
    EXPECT_LT(uniform_variance(x), bound);
    EXPECT_LT(ks_distance(x, unit_cdf), ks_bound);
    EXPECT_LT(byte_error(x), bound);
    EXPECT_LT(uniform_correlation(x, per_shard), bound) << "of neighboring shards";
    for (std::size_t shift : {1, 2, 3, 4, 64, 256}) {
      EXPECT_LT(uniform_correlation(x, shift), bound) << shift;
    }
    if (dtype == DType::float64) break;

    EXPECT_GT(uniform_mean(changed(x, [](double v, auto) { return v * 0.999; })), bound);
    EXPECT_GT(uniform_variance(changed(x, [](double v, auto) { return 0.5 + (v - 0.5) * 0.999; })),
              bound);
    EXPECT_GT(
        ks_distance(changed(x, [](double v, auto) { return std::floor(v * 256) / 256; }), unit_cdf),
        ks_bound);
    // A linear congruential generator: its lowest bits go in a circle.
    std::uint32_t state = 1;
    EXPECT_GT(byte_error(changed(x,
                                 [&](double, auto) {
                                   state = state * 1664525u + 1013904223u;
                                   return static_cast<double>(state & 0xffffffu) / 16777216.0;
                                 })),
              bound);
    // Every rank with the same seed.
    EXPECT_GT(uniform_correlation(
                  changed(x, [&](double, std::size_t i) { return x[i % per_shard]; }), per_shard),
              bound);
    EXPECT_GT(
        uniform_correlation(
            changed(x, [&](double v, std::size_t i) { return i % 400 == 1 ? x[i - 1] : v; }), 1),
        bound);
  }
}

TEST(Statistics, Normal) {
  const auto mean = [](const Numbers64& x) { return mean_error(x, identity, 0, 1); };
  const auto variance = [](const Numbers64& x) {
    return mean_error(
        x, [](double v) { return v * v; }, 1, 2);
  };
  const auto fourth = [](const Numbers64& x) {
    return mean_error(
        x, [](double v) { return v * v * v * v; }, 3, 96);
  };
  const auto tail = [](const Numbers64& x) {
    const double p = std::erfc(4 * std::sqrt(0.5));
    return mean_error(
        x, [](double v) { return std::abs(v) > 4 ? 1.0 : 0.0; }, p, p * (1 - p));
  };
  for (DType dtype : {DType::float32, DType::float64}) {
    Generator generator(43);
    const Numbers64 x = values_of(randn({shards, per_shard}, dtype, DeviceKind::device, generator));
    EXPECT_LT(mean(x), bound);
    EXPECT_LT(variance(x), bound);
    EXPECT_LT(fourth(x), bound);
    EXPECT_LT(tail(x), bound);
    EXPECT_LT(ks_distance(x, normal_cdf), ks_bound);
    EXPECT_LT(correlation(x, 1, 0, 1), bound);
    EXPECT_LT(correlation(x, per_shard, 0, 1), bound);
    // The two of a pair share their radius; that they share nothing else shows in their squares.
    const Numbers64 squares = changed(x, [](double v, auto) { return v * v; });
    EXPECT_LT(correlation(squares, 1, 1, 2), bound);
    if (dtype == DType::float64) break;

    EXPECT_GT(mean(changed(x, [](double v, auto) { return v + 0.002; })), bound);
    EXPECT_GT(variance(changed(x, [](double v, auto) { return v * 1.002; })), bound);
    // The sum of twelve uniform numbers, which lacks tails.
    const Numbers64 u =
        values_of(rand({shards * per_shard}, DType::float32, DeviceKind::device, generator));
    Numbers64 sums(x.size() / 4, -6);
    for (std::size_t i = 0; i < sums.size(); ++i) {
      for (std::size_t k = 0; k < 12; ++k) sums[i] += u[(i * 12 + k) % u.size()];
    }
    EXPECT_GT(fourth(sums), bound);
    EXPECT_GT(tail(sums), bound);
    EXPECT_GT(ks_distance(sums, normal_cdf), ks_bound);
    EXPECT_GT(correlation(changed(squares,
                                  [&](double v, std::size_t i) {
                                    return i % 200 == 1 ? squares[i - 1] : v;
                                  }),
                          1, 1, 2),
              bound);
  }
}

TEST(Statistics, Exponential) {
  const auto mean = [](const Numbers64& x) { return mean_error(x, identity, 1, 1); };
  for (DType dtype : {DType::float32, DType::float64}) {
    Generator generator(44);
    const Numbers64 x =
        values_of(exponential_(Tensor::empty({shards * per_shard}, dtype), 2.0, generator));
    const Numbers64 scaled = changed(x, [](double v, auto) { return 2 * v; });
    EXPECT_LT(mean(scaled), bound);
    EXPECT_LT(ks_distance(scaled, exponential_cdf), ks_bound);
    EXPECT_GT(*std::min_element(x.begin(), x.end()), 0);
    if (dtype == DType::float64) break;
    EXPECT_GT(mean(changed(scaled, [](double v, auto) { return v * 1.002; })), bound);
    EXPECT_GT(
        ks_distance(changed(scaled, [](double v, auto) { return v * 1.01; }), exponential_cdf),
        ks_bound);
  }
}

TEST(Statistics, SmallTypesReachTheirBoundsAndNoFurther) {
  Generator generator(45);
  const auto range = [&](DType dtype, double low, double high) {
    const Numbers64 x = values_of(uniform_(Tensor::empty({1 << 20}, dtype), low, high, generator));
    const auto [min, max] = std::minmax_element(x.begin(), x.end());
    return std::pair(*min, *max);
  };
  EXPECT_EQ(range(DType::float16, 0, 1), std::pair(0.0, 1 - 0x1p-11));
  EXPECT_EQ(range(DType::bfloat16, 0, 1), std::pair(0.0, 1 - 0x1p-8));
  // Rounding would reach the upper bound.
  EXPECT_EQ(range(DType::float16, 1, 1 + 0x3p-10), std::pair(1.0, 1 + 0x2p-10));
  EXPECT_EQ(range(DType::bfloat16, -2, -1), std::pair(-2.0, -1 - 0x1p-7));
  EXPECT_EQ(range(DType::float16, -1, 0), std::pair(-1.0, -0x1p-11));
  EXPECT_EQ(range(DType::float32, 1, 1 + 0x3p-23), std::pair(1.0, 1 + 0x2p-23));
  EXPECT_EQ(range(DType::float32, 7, 7), std::pair(7.0, 7.0));
  const auto [low, high] = range(DType::float64, -5, 5);
  EXPECT_LT(low, -4.99);
  EXPECT_GT(high, 4.99);
}

TEST(Statistics, Bernoulli) {
  Generator generator(46);
  const auto frequency = [](const Numbers64& x, double p) {
    return mean_error(x, identity, p, p * (1 - p));
  };
  for (double p : {0.5, 0.125, 0.9}) {
    const Numbers64 x = values_of(bernoulli_(Tensor::empty({1 << 24}, DType::uint8), p, generator));
    EXPECT_LT(frequency(x, p), bound) << p;
    EXPECT_GT(frequency(x, p + 0.002), bound) << p;
    EXPECT_LT(correlation(x, 1, p, p * (1 - p)), bound);
  }
  for (double p : {0.0, 1.0}) {
    const Numbers64 x = values_of(bernoulli_(Tensor::empty({1 << 20}, DType::uint8), p, generator));
    EXPECT_EQ(x, Numbers64(x.size(), p));
  }
  const Tensor odds = Tensor::from_vector(std::vector<float>{0, 1, -1, 2, NAN, 0.25f}, {6});
  Numbers64 sums(6, 0);
  for (int i = 0; i < 4000; ++i) {
    const Numbers64 x = values_of(bernoulli(odds, generator));
    for (std::size_t k = 0; k < 6; ++k) sums[k] += x[k];
  }
  EXPECT_EQ(Numbers64(sums.begin(), sums.begin() + 5), (Numbers64{0, 4000, 0, 4000, 0}));
  EXPECT_NEAR(sums[5], 1000, 5 * std::sqrt(750.0));
}

TEST(Statistics, Integers) {
  Generator generator(47);
  for (std::int64_t range : {2, 10, 256, 1000}) {
    std::vector<std::int64_t> counts(static_cast<std::size_t>(range), 0);
    const Tensor x = randint(-range, 0, {1 << 22}, DType::int16, DeviceKind::device, generator);
    for (std::int16_t v : x.to_vector<std::int16_t>())
      ++counts.at(static_cast<std::size_t>(v + range));
    EXPECT_LT(chi_square_error(counts), bound) << range;
    const std::int64_t moved = counts[1] / 2;
    counts[0] += moved;
    counts[1] -= moved;
    EXPECT_GT(chi_square_error(counts), bound) << range;
  }
  // 64 random bits would give the numbers of this range unevenly: every third one twice as often.
  const std::int64_t third = std::int64_t{1} << 61;
  std::vector<std::int64_t> counts(3, 0);
  const Tensor x =
      randint(-3 * third, 3 * third, {1 << 20}, DType::int64, DeviceKind::device, generator);
  const auto values = x.to_vector<std::int64_t>();
  std::vector<std::int64_t> sixths(6, 0);
  for (std::int64_t v : values) {
    const auto distance = static_cast<std::uint64_t>(v) + static_cast<std::uint64_t>(3 * third);
    ++counts[distance % 3];
    ++sixths.at(distance / static_cast<std::uint64_t>(third));
  }
  EXPECT_LT(chi_square_error(counts), bound);
  EXPECT_LT(chi_square_error(sixths), bound);
}

namespace {

// Where pairs of neighbors go in many permutations, in 64 bins.
template <class Draw>
double pair_error(std::int64_t n, int repeats, const Draw& draw) {
  double worst = 0;
  for (std::int64_t i : {std::int64_t{0}, n / 2, n - 2}) {
    std::vector<std::int64_t> counts(64, 0);
    for (int r = 0; r < repeats; ++r) {
      const std::vector<std::int64_t>& p = draw(r);
      const auto bin = [&](std::int64_t k) { return p[static_cast<std::size_t>(k)] * 8 / n; };
      ++counts.at(static_cast<std::size_t>(bin(i) * 8 + bin(i + 1)));
    }
    worst = std::max(worst, chi_square_error(counts));
  }
  return worst;
}

// Whether a permutation is made of an odd number of exchanges.
bool is_odd(const std::vector<std::int64_t>& p) {
  std::vector<bool> seen(p.size(), false);
  std::size_t cycles = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (!seen[i]) ++cycles;
    for (std::size_t j = i; !seen[j]; j = static_cast<std::size_t>(p[j])) seen[j] = true;
  }
  return (p.size() - cycles) % 2 != 0;
}

}  // namespace

TEST(Statistics, PermutationsAreOddAndEven) {
  EXPECT_FALSE(is_odd({0, 1, 2, 3}));
  EXPECT_TRUE(is_odd({0, 2, 1, 3}));
  EXPECT_FALSE(is_odd({1, 2, 0, 3}));
  Generator generator(49);
  for (std::int64_t n : {4096, 5000, 8192, 16384}) {
    const int repeats = n == 16384 ? 500 : 3000;
    int odd = 0;
    for (int r = 0; r < repeats; ++r) {
      odd += is_odd(
          randperm(n, DType::int64, DeviceKind::device, generator).to_vector<std::int64_t>());
    }
    EXPECT_NEAR(static_cast<double>(odd) / repeats, 0.5, n == 16384 ? 0.075 : 0.03) << n;
  }
}

TEST(Statistics, Permutations) {
  // All 24 of four elements.
  std::map<std::vector<std::int64_t>, std::int64_t> seen;
  for (std::uint64_t seed = 0; seed < 24000; ++seed) {
    Generator generator(seed);
    ++seen[randperm(4, DType::int64, DeviceKind::device, generator).to_vector<std::int64_t>()];
  }
  ASSERT_EQ(seen.size(), 24u);
  std::vector<std::int64_t> counts;
  for (const auto& [permutation, count] : seen) counts.push_back(count);
  EXPECT_LT(chi_square_error(counts), bound);

  // The ones of the Feistel network.
  const std::int64_t n = 5003;
  const int repeats = 1500;
  std::vector<std::vector<std::int64_t>> drawn;
  Generator generator(48);
  double fixed = 0, rises = 0;
  for (int r = 0; r < repeats; ++r) {
    drawn.push_back(
        randperm(n, DType::int64, DeviceKind::device, generator).to_vector<std::int64_t>());
    for (std::int64_t i = 0; i < n; ++i) fixed += drawn.back()[static_cast<std::size_t>(i)] == i;
    for (std::size_t i = 0; i + 1 < drawn.back().size(); ++i) {
      rises += drawn.back()[i + 1] == drawn.back()[i] + 1;
    }
  }
  // Both are about Poisson with mean 1 in each permutation.
  EXPECT_NEAR(fixed / repeats, 1, bound / std::sqrt(repeats));
  EXPECT_NEAR(rises / repeats, 1, bound / std::sqrt(repeats));
  EXPECT_LT(pair_error(n, repeats, [&](int r) { return drawn[static_cast<std::size_t>(r)]; }),
            bound);
  // A random shift moves neighbors together.
  EXPECT_GT(pair_error(n, repeats,
                       [&](int r) {
                         std::vector<std::int64_t> p(static_cast<std::size_t>(n));
                         for (std::int64_t i = 0; i < n; ++i) {
                           p[static_cast<std::size_t>(i)] =
                               (i + drawn[static_cast<std::size_t>(r)][0]) % n;
                         }
                         return p;
                       }),
            bound);
}
