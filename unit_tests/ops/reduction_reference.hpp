// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What reductions should give, by plain loops.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "dtensor/ops/reduction.hpp"
#include "ops/reference.hpp"

namespace dtensor::testing {

using Values = std::vector<double>;
inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// The elements that go into each result, in row-major order of the reduced dimensions.
inline std::vector<Values> groups(const Array& a, unsigned dims) {
  Shape kept;
  for (int d = 0; d < a.shape.size(); ++d) {
    if (!(dims >> d & 1)) kept.push_back(a.shape[d]);
  }
  std::vector<Values> result(static_cast<std::size_t>(kept.product()));
  for_each_index(a.shape, [&](const Extents& index) {
    std::int64_t at = 0;
    for (int d = 0; d < a.shape.size(); ++d) {
      if (!(dims >> d & 1)) at = at * a.shape[d] + index[d];
    }
    result[static_cast<std::size_t>(at)].push_back(a.at(index));
  });
  return result;
}

inline std::vector<std::int64_t> list_of(unsigned dims, int rank) {
  std::vector<std::int64_t> list;
  for (int d = 0; d < rank; ++d) {
    if (dims >> d & 1) list.push_back(d % 2 ? d : d - rank);
  }
  return list;
}

template <class T>
struct ReductionOperator {
  const char* name;
  T (*apply)(const T&, const Dims&, bool);
  double (*reference)(const Values&);
};

inline double reference_variance(const Values& v, double correction) {
  double mean = 0, square = 0;
  for (double x : v) mean += x / static_cast<double>(v.size());
  for (double x : v) square += (x - mean) * (x - mean);
  const double n = static_cast<double>(v.size()) - correction;
  return n > 0 ? square / n : square / 0.0;
}

inline double reference_norm(const Values& v, double p) {
  double sum = p == -infinity ? infinity : 0;
  for (double x : v) {
    const double a = std::abs(x);
    if (p == infinity) {
      sum = std::max(sum, a);
    } else if (p == -infinity) {
      sum = std::min(sum, a);
    } else {
      sum += p == 0 ? (x != 0) : std::pow(a, p);
    }
  }
  return p == 0 || std::isinf(p) ? sum : std::pow(sum, 1 / p);
}

/// Where the first of the largest is.
inline double reference_argmax(const Values& v) {
  return static_cast<double>(std::max_element(v.begin(), v.end()) - v.begin());
}

inline double sum_of(const Values& v) {
  double s = 0;
  for (double x : v) s += x;
  return s;
}

template <class T>
const std::vector<ReductionOperator<T>>& reduction_operators() {
  static const std::vector<ReductionOperator<T>> list{
      {"sum", [](const T& t, const Dims& d, bool k) { return sum(t, d, k); }, sum_of},
      {"mean", [](const T& t, const Dims& d, bool k) { return mean(t, d, k); },
       [](const Values& v) { return sum_of(v) / static_cast<double>(v.size()); }},
      {"prod", [](const T& t, const Dims& d, bool k) { return prod(t, d, k); },
       [](const Values& v) {
         double p = 1;
         for (double x : v) p *= x;
         return p;
       }},
      {"amax", [](const T& t, const Dims& d, bool k) { return amax(t, d, k); },
       [](const Values& v) { return *std::max_element(v.begin(), v.end()); }},
      {"amin", [](const T& t, const Dims& d, bool k) { return amin(t, d, k); },
       [](const Values& v) { return *std::min_element(v.begin(), v.end()); }},
      {"any", [](const T& t, const Dims& d, bool k) { return any(t, d, k); },
       [](const Values& v) { return double(reference_norm(v, 0) > 0); }},
      {"all", [](const T& t, const Dims& d, bool k) { return all(t, d, k); },
       [](const Values& v) {
         return double(reference_norm(v, 0) == static_cast<double>(v.size()));
       }},
      {"count_nonzero", [](const T& t, const Dims& d, bool k) { return count_nonzero(t, d, k); },
       [](const Values& v) { return reference_norm(v, 0); }},
      {"var", [](const T& t, const Dims& d, bool k) { return var(t, d, 1, k); },
       [](const Values& v) { return reference_variance(v, 1); }},
      {"stddev", [](const T& t, const Dims& d, bool k) { return stddev(t, d, 0, k); },
       [](const Values& v) { return std::sqrt(reference_variance(v, 0)); }},
      {"norm 1", [](const T& t, const Dims& d, bool k) { return norm(t, 1, d, k); },
       [](const Values& v) { return reference_norm(v, 1); }},
      {"norm 2", [](const T& t, const Dims& d, bool k) { return norm(t, 2, d, k); },
       [](const Values& v) { return reference_norm(v, 2); }},
      {"norm 3.5", [](const T& t, const Dims& d, bool k) { return norm(t, 3.5, d, k); },
       [](const Values& v) { return reference_norm(v, 3.5); }},
      {"norm 0", [](const T& t, const Dims& d, bool k) { return norm(t, 0, d, k); },
       [](const Values& v) { return reference_norm(v, 0); }},
      {"norm inf", [](const T& t, const Dims& d, bool k) { return norm(t, infinity, d, k); },
       [](const Values& v) { return reference_norm(v, infinity); }},
      {"norm -inf", [](const T& t, const Dims& d, bool k) { return norm(t, -infinity, d, k); },
       [](const Values& v) { return reference_norm(v, -infinity); }},
      {"logsumexp", [](const T& t, const Dims& d, bool k) { return logsumexp(t, d, k); },
       [](const Values& v) {
         double s = 0;
         for (double x : v) s += std::exp(x);
         return std::log(s);
       }},
  };
  return list;
}

}  // namespace dtensor::testing
