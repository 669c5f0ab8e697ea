// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Statistics in units in which a good generator stays below about 5: standard deviations, or the
// Kolmogorov-Smirnov distance times the root of the number of values (above 2.5 once in 10^5).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

namespace dtensor::testing {

using Numbers64 = std::vector<double>;

inline double root_of_size(const Numbers64& x) { return std::sqrt(static_cast<double>(x.size())); }

/// The mean of f(x) minus `expected`, in deviations of the mean; `variance` is that of f(x).
template <class F>
double mean_error(const Numbers64& x, const F& f, double expected, double variance) {
  double sum = 0;
  for (double v : x) sum += f(v) - expected;
  return std::abs(sum) / std::sqrt(variance) / root_of_size(x);
}

/// The largest distance of the distribution function, at the edges of `bins` equally likely bins.
inline double ks_distance(const Numbers64& x, const std::function<double(double)>& cdf,
                          int bins = 4096) {
  std::vector<double> counts(static_cast<std::size_t>(bins), 0);
  for (double v : x) {
    ++counts[static_cast<std::size_t>(std::clamp(static_cast<int>(cdf(v) * bins), 0, bins - 1))];
  }
  double below = 0, worst = 0;
  const auto n = static_cast<double>(x.size());
  for (int b = 0; b < bins; ++b) {
    below += counts[static_cast<std::size_t>(b)];
    worst = std::max(worst, std::abs(below / n - static_cast<double>(b + 1) / bins));
  }
  return worst * std::sqrt(n);
}

/// Chi-square of equally likely counts, as deviations from its mean: too even counts too.
inline double chi_square_error(const std::vector<std::int64_t>& counts) {
  double total = 0, sum = 0;
  for (std::int64_t c : counts) total += static_cast<double>(c);
  const double expected = total / static_cast<double>(counts.size());
  for (std::int64_t c : counts) {
    sum += (static_cast<double>(c) - expected) * (static_cast<double>(c) - expected) / expected;
  }
  const auto freedom = static_cast<double>(counts.size() - 1);
  return std::abs(sum - freedom) / std::sqrt(2 * freedom);
}

/// Correlation of x[i] and x[i + shift], in deviations. `mean` and `variance` are those of x.
inline double correlation(const Numbers64& x, std::size_t shift, double mean, double variance) {
  double sum = 0;
  for (std::size_t i = 0; i + shift < x.size(); ++i) sum += (x[i] - mean) * (x[i + shift] - mean);
  return std::abs(sum) / variance / std::sqrt(static_cast<double>(x.size() - shift));
}

}  // namespace dtensor::testing
