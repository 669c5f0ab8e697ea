// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fmt/format.h>

#include <limits>

#include "ops/programs/operators.hpp"

namespace dtensor::testing {

namespace {

struct Over {
  std::vector<std::int64_t> dims;
  bool all = false, keep = false;
  Dims get() const { return all ? Dims(all_dims) : Dims(dims); }
  std::string text() const {
    return fmt::format("{}{}", all ? "all_dims" : text_of(dims), keep ? ", true" : "");
  }
};

Over choose(Maker& m) {
  Over o;
  o.all = m.chance(25);
  o.keep = m.chance(30);
  o.dims = m.any_dims();
  if (m.chance(2)) o.dims.push_back(m.dim());  // out of range
  return o;
}

#define REDUCTION(name, need, precision)                                            \
  std::optional<Call> make_##name(Maker& m) {                                       \
    const Over o = choose(m);                                                       \
    return m.call(Need::need, Precision::precision, #name "(%0, " + o.text() + ")", \
                  [o](const auto& x) { return name(x[0], o.get(), o.keep); });      \
  }
REDUCTION(sum, moderate, exact)
REDUCTION(mean, moderate, rounds)
REDUCTION(amax, moderate, moves)
REDUCTION(amin, moderate, moves)
REDUCTION(any, exact, moves)
REDUCTION(all, exact, moves)
REDUCTION(count_nonzero, exact, moves)
REDUCTION(logsumexp, moderate, rounds)
#undef REDUCTION

// Whether products of all elements stay in the range, and those of parts.
bool has_range(Maker& m) {
  const DType dtype = m.dtype();
  const std::int64_t most = size_of(dtype) == 2                                    ? 4
                            : dtype == DType::float32 || dtype == DType::complex64 ? 30
                                                                                   : 200;
  return is_integral(dtype) || dtype == DType::boolean || m.first().tensor.numel() <= most;
}

std::optional<Call> make_prod(Maker& m) {
  if (!has_range(m)) return std::nullopt;
  const Over o = choose(m);
  return m.call(Need::small, Precision::rounds, "prod(%0, " + o.text() + ")",
                [o](const auto& x) { return prod(x[0], o.get(), o.keep); });
}

std::optional<Call> make_var(Maker& m) {
  const Over o = choose(m);
  const double correction = m.below(2);
  const bool root = m.chance(50);
  return m.call(
      root ? Need::exact : Need::moderate, Precision::rounds,
      fmt::format("{}(%0, {}, correction {})", root ? "stddev" : "var", o.text(), correction),
      [=](const auto& x) {
        return root ? stddev(x[0], o.get(), correction, o.keep)
                    : var(x[0], o.get(), correction, o.keep);
      });
}

std::optional<Call> make_norm(Maker& m) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  static constexpr double powers[] = {0, 1, 2, 3, infinity, -infinity, 0.5};
  const double p = powers[m.below(7)];
  const Over o = choose(m);
  const bool smooth = p == 1 || p == infinity;
  return m.call(smooth             ? Need::moderate
                : p == 2 || p == 3 ? Need::away_from_zero
                                   : Need::exact,
                Precision::rounds, fmt::format("norm(%0, {}, {})", p, o.text()),
                [=](const auto& x) { return norm(x[0], p, o.get(), o.keep); });
}

std::optional<Call> make_extreme(Maker& m) {
  const bool largest = m.chance(50), keep = m.chance(30), whole = m.chance(25) || m.dim() == 0;
  const bool indices_only = m.chance(50);
  if (is_complex(m.dtype()) && !m.chance(5)) return std::nullopt;
  if (whole) {
    return m.call(Need::exact, Precision::moves, largest ? "argmax(%0)" : "argmin(%0)",
                  [=](const auto& x) { return largest ? argmax(x[0]) : argmin(x[0]); });
  }
  const std::int64_t d = m.any_dim();
  const std::string arguments = fmt::format("(%0, {}, {})", d, keep);
  if (indices_only) {
    return m.call(
        Need::exact, Precision::moves, (largest ? "argmax" : "argmin") + arguments,
        [=](const auto& x) { return largest ? argmax(x[0], d, keep) : argmin(x[0], d, keep); });
  }
  return m.call(Need::exact, Precision::moves, (largest ? "max" : "min") + arguments,
                [=](const auto& x) { return largest ? max(x[0], d, keep) : min(x[0], d, keep); });
}

std::optional<Call> make_scan(Maker& m) {
  if (m.dim() == 0) return std::nullopt;
  const std::int64_t d = m.any_dim();
  if (m.chance(60)) {
    return m.call(Need::moderate, Precision::exact, fmt::format("cumsum(%0, {})", d),
                  [=](const auto& x) { return cumsum(x[0], d); });
  }
  if (!has_range(m)) return std::nullopt;
  return m.call(Need::small, Precision::rounds, fmt::format("cumprod(%0, {})", d),
                [=](const auto& x) { return cumprod(x[0], d); });
}

}  // namespace

std::vector<ProgramOperator> reduction_operators() {
  return {{"sum", 6, make_sum},
          {"mean", 4, make_mean},
          {"prod", 2, make_prod},
          {"amax", 2, make_amax},
          {"amin", 2, make_amin},
          {"any", 2, make_any},
          {"all", 2, make_all},
          {"count_nonzero", 2, make_count_nonzero},
          {"var", 3, make_var},
          {"logsumexp", 2, make_logsumexp},
          {"norm", 3, make_norm},
          {"max and argmax", 5, make_extreme},
          {"cumsum and cumprod", 4, make_scan}};
}

}  // namespace dtensor::testing
