// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// With replacement: weights become integers, whose sums are the same in whatever order the ranks
// add them, and a random number below the sum of a row falls into one category. Without: each
// category draws the time of its first event at a rate of its weight, and the earliest win (P.
// Efraimidis, P. Spirakis, "Weighted random sampling with a reservoir", 2006).
#include <algorithm>
#include <limits>
#include <numeric>

#include "multinomial.hpp"
#include "wide_product.hpp"

namespace dtensor {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class Execution>
using Range = Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>;

/// Neither negative nor infinite, and a number.
KOKKOS_INLINE_FUNCTION bool is_weight(double w) { return w >= 0 && w <= 1.7976931348623157e308; }

// The largest weight of each row, infinite where one is no weight.
template <class Execution>
void find_largest(const double* weights, std::int64_t rows, std::int64_t columns, double* out) {
  using Team = Kokkos::TeamPolicy<Execution>;
  const double bad = infinity;
  constexpr std::int64_t most_teams = std::int64_t{1} << 30;  // Kokkos counts them in int
  for (std::int64_t first = 0; first < rows; first += most_teams) {
    const int teams = static_cast<int>(std::min(most_teams, rows - first));
    Kokkos::parallel_for(
        "dtensor::multinomial_largest", Team(teams, Kokkos::AUTO),
        KOKKOS_LAMBDA(const typename Team::member_type& team) {
          const std::int64_t r = first + team.league_rank();
          const double* row = weights + r * columns;
          double largest = 0;
          Kokkos::parallel_reduce(
              Kokkos::TeamThreadRange(team, columns),
              [&](const std::int64_t c, double& value) {
                const double w = is_weight(row[c]) ? row[c] : bad;
                if (w > value) value = w;
              },
              Kokkos::Max<double>(largest));
          Kokkos::single(Kokkos::PerTeam(team), [&] { out[r] = largest > 0 ? largest : 0; });
        });
  }
}

// Running sums of all elements, rows one after the other; they wrap around.
template <class Execution>
void sum_up(const double* weights, const double* largest, std::int64_t rows, std::int64_t columns,
            double unit, std::int64_t* sums) {
  Kokkos::parallel_scan(
      "dtensor::multinomial_sums", Range<Execution>(0, rows * columns),
      KOKKOS_LAMBDA(const std::int64_t i, std::uint64_t& sum, const bool final) {
        const double share = detail::quotient(weights[i], largest[i / columns]);
        sum += static_cast<std::uint64_t>(detail::product(share, unit) + 0.5);
        if (final) sums[i] = static_cast<std::int64_t>(sum);
      });
}

// Sums of a stretch of a row, as the difference of two running sums.
KOKKOS_INLINE_FUNCTION std::uint64_t sum_before(const std::int64_t* sums, std::int64_t i) {
  return i == 0 ? 0 : static_cast<std::uint64_t>(sums[i - 1]);
}

template <class Execution>
void sum_of_interval(const std::int64_t* sums, std::int64_t rows, std::int64_t columns,
                     std::int64_t begin, std::int64_t end, std::int64_t* out,
                     std::int64_t out_pitch) {
  Kokkos::parallel_for(
      "dtensor::multinomial_interval", Range<Execution>(0, rows),
      KOKKOS_LAMBDA(const std::int64_t r) {
        const std::int64_t row = r * columns;
        out[r * out_pitch] =
            static_cast<std::int64_t>(sum_before(sums, row + end) - sum_before(sums, row + begin));
      });
}

struct OwnInterval {
  std::int64_t slot;
  std::int64_t begin, end;  ///< positions in this rank's rows
  std::int64_t category;    ///< of the first position
};

// What the ranks know after they have told one another the sums of their intervals.
struct Totals {
  const std::int64_t* sums;   ///< (rows, slots)
  const std::int64_t* order;  ///< slots, in increasing order of their categories
  std::int64_t intervals, slots;
};

// Writes the category of every sample that falls into this interval.
template <class Execution>
void pick(const std::int64_t* sums, std::int64_t columns, const Totals& totals,
          const OwnInterval& own, const RandomBlocks& blocks,
          const GlobalIndex<typename Execution::memory_space>& row_number, std::int64_t samples,
          std::int64_t* out) {
  Kokkos::parallel_for(
      "dtensor::multinomial_pick", Range<Execution>(0, row_number.size() * samples),
      KOKKOS_LAMBDA(const std::int64_t i) {
        const std::int64_t r = i / samples;
        std::uint64_t before = 0, total = 0;
        const std::int64_t* row_sums = totals.sums + r * totals.slots;
        for (std::int64_t k = 0; k < totals.intervals; ++k) {
          if (totals.order[k] == own.slot) before = total;
          total += static_cast<std::uint64_t>(row_sums[totals.order[k]]);
        }
        const auto number = static_cast<std::uint64_t>(row_number(r) * samples + i % samples);
        const PhiloxBlock block = blocks[number / 2];
        const std::uint32_t* word = block.word + 2 * (number % 2);
        const std::uint64_t random = word[0] | static_cast<std::uint64_t>(word[1]) << 32;
        const std::uint64_t target = upper_product(random, total) - before;  // wraps below
        if (target >= static_cast<std::uint64_t>(row_sums[own.slot])) return;
        const std::uint64_t base = sum_before(sums, r * columns + own.begin);
        // The first category whose running sum is above the target.
        std::int64_t low = own.begin, high = own.end - 1;
        while (low < high) {
          const std::int64_t middle = (low + high) / 2;
          const std::uint64_t sum = static_cast<std::uint64_t>(sums[r * columns + middle]) - base;
          if (sum > target) {
            high = middle;
          } else {
            low = middle + 1;
          }
        }
        out[i] = own.category + low - own.begin;
      });
}

constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max(), no_weight = -never;

// In the order of t / w for positive numbers, of which neither too large nor too small ones are
// lost: the bits of the quotient of t and the mantissa of w, less the exponent of w.
KOKKOS_INLINE_FUNCTION std::int64_t event_time(double t, double w) {
  constexpr std::uint64_t mantissa = 0xfffffffffffffu, one = 0x3ff0000000000000u;
  const bool subnormal = w < 0x1p-1022;
  const std::uint64_t bits = detail::double_bits(subnormal ? w * 0x1p54 : w);
  const double ratio = detail::quotient(t, detail::bits_double((bits & mantissa) | one));
  // The quotient is between 2^-54 and 2^6, so that the difference of exponents is within 12 bits.
  const auto exponents =
      static_cast<std::int64_t>(bits & ~mantissa) - (subnormal ? std::int64_t{54} << 52 : 0);
  return static_cast<std::int64_t>(detail::double_bits(ratio)) - exponents;
}

// The times of the first events.
template <class Execution>
void find_times(const double* weights, const RandomBlocks& blocks, std::int64_t categories,
                const GlobalIndex<typename Execution::memory_space>& row_number,
                const GlobalIndex<typename Execution::memory_space>& category, std::int64_t* out) {
  const std::int64_t columns = category.size();
  Kokkos::parallel_for(
      "dtensor::multinomial_times", Range<Execution>(0, row_number.size() * columns),
      KOKKOS_LAMBDA(const std::int64_t i) {
        const double w = weights[i];
        const auto number = static_cast<std::uint64_t>(row_number(i / columns) * categories +
                                                       category(i % columns));
        const PhiloxBlock block = blocks[number / 2];
        const std::uint32_t* word = block.word + 2 * (number % 2);
        const double t = detail::minus_log_unit(word[0], word[1]);
        out[i] = !is_weight(w) ? no_weight : w > 0 ? event_time(t, w) : never;
      });
}

struct Candidate {
  std::int64_t time;
  std::int64_t category;
  friend bool operator<(const Candidate& a, const Candidate& b) {
    return a.time != b.time ? a.time < b.time : a.category < b.category;
  }
};

// The `count` earliest, in order.
void keep_earliest(std::vector<Candidate>& candidates, std::int64_t count) {
  const auto kept = std::min(candidates.size(), static_cast<std::size_t>(count));
  std::partial_sort(candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(kept),
                    candidates.end());
  candidates.resize(kept);
}

WeightProblem worse(WeightProblem a, WeightProblem b) { return a < b ? b : a; }

std::vector<OwnInterval> own_intervals(const Categories& c) {
  std::vector<OwnInterval> result;
  std::int64_t position = 0, slot = c.own_first_slot;
  for (const Interval& i : c.held.intervals()) {
    result.push_back({slot++, position, position + i.length(), i.begin});
    position += i.length();
  }
  return result;
}

}  // namespace

Tensor draw_with_replacement(const Categories& c, std::int64_t samples, const RandomBlocks& blocks,
                             const Sharers& sharers, WeightProblem& problem) {
  const DeviceKind device = c.weights.device();
  const std::int64_t rows = c.rows.size(), columns = c.held.size();
  const auto* weights = c.weights.data_as<double>();

  Tensor largest = Tensor::zeros({rows, 1}, DType::float64, device);
  if (rows > 0) {
    dispatch_space(device, [&]<class Execution>() {
      find_largest<Execution>(weights, rows, columns, largest.data_as<double>());
    });
  }
  largest = sharers.reduce(largest, ReduceOp::max);
  for (double value : largest.to_vector<double>()) {
    if (value == 0) problem = worse(problem, WeightProblem::too_few);
    if (value == infinity) problem = worse(problem, WeightProblem::invalid);
  }

  // As fine as sums below 2^63 allow.
  int bits = 52;
  while (c.all_categories > std::int64_t{1} << (62 - bits)) --bits;
  const double unit = static_cast<double>(std::int64_t{1} << bits);
  const Tensor sums = Tensor::empty({rows, columns}, DType::int64, device);
  Tensor totals = Tensor::zeros({rows, c.slots_per_rank}, DType::int64, device);
  const std::vector<OwnInterval> own = own_intervals(c);
  // With a problem there are no sums, but the ranks go on together.
  const bool sound = problem == WeightProblem::none && rows > 0;
  if (sound) {
    dispatch_space(device, [&]<class Execution>() {
      auto* const running = sums.data_as<std::int64_t>();
      sum_up<Execution>(weights, largest.data_as<double>(), rows, columns, unit, running);
      for (const OwnInterval& interval : own) {
        sum_of_interval<Execution>(
            running, rows, columns, interval.begin, interval.end,
            totals.data_as<std::int64_t>() + interval.slot - c.own_first_slot, c.slots_per_rank);
      }
    });
  }
  totals = sharers.gather(totals);

  const Tensor result = Tensor::zeros({rows, samples}, DType::int64, device);
  if (sound) {
    const auto intervals = static_cast<std::int64_t>(c.slots.size());
    const Tensor order = Tensor::from_vector(c.slots, {intervals}, device);
    const Totals known{totals.data_as<std::int64_t>(), order.data_as<std::int64_t>(), intervals,
                       totals.shape()[1]};
    dispatch_space(device, [&]<class Execution>() {
      const GlobalIndex<typename Execution::memory_space> row_number({c.rows.size()}, {c.rows});
      for (const OwnInterval& interval : own) {
        pick<Execution>(sums.data_as<std::int64_t>(), columns, known, interval, blocks, row_number,
                        samples, result.data_as<std::int64_t>());
      }
    });
  }
  // Each sample is in one rank's part; the others have 0.
  return sharers.reduce(result, ReduceOp::sum);
}

Tensor draw_without_replacement(const Categories& c, std::int64_t samples,
                                const RandomBlocks& blocks, const Sharers& sharers,
                                WeightProblem& problem) {
  const DeviceKind device = c.weights.device();
  const std::int64_t rows = c.rows.size(), columns = c.held.size();
  const Tensor times = Tensor::empty({rows, columns}, DType::int64, device);
  dispatch_space(device, [&]<class Execution>() {
    using Index = GlobalIndex<typename Execution::memory_space>;
    find_times<Execution>(c.weights.data_as<double>(), blocks, c.all_categories,
                          Index({rows}, {c.rows}), Index({columns}, {c.held}),
                          times.data_as<std::int64_t>());
  });

  // This rank's candidates.
  std::vector<std::int64_t> category;
  for (const Interval& i : c.held.intervals()) {
    for (std::int64_t j = i.begin; j < i.end; ++j) category.push_back(j);
  }
  const auto time = times.to_vector<std::int64_t>();
  std::vector<std::int64_t> first;  // in each row times, then categories
  for (std::int64_t r = 0; r < rows; ++r) {
    std::vector<Candidate> candidates;
    for (std::int64_t j = 0; j < columns; ++j) {
      candidates.push_back(
          {time[static_cast<std::size_t>(r * columns + j)], category[static_cast<std::size_t>(j)]});
    }
    keep_earliest(candidates, samples);
    candidates.resize(static_cast<std::size_t>(samples), {never, c.all_categories});
    for (const Candidate& candidate : candidates) first.push_back(candidate.time);
    for (const Candidate& candidate : candidates) first.push_back(candidate.category);
  }
  const Tensor gathered = sharers.gather(Tensor::from_vector(first, {rows, 2 * samples}, device));
  const auto all = gathered.to_vector<std::int64_t>();
  const std::int64_t width = gathered.shape()[1];

  std::vector<std::int64_t> result;
  for (std::int64_t r = 0; r < rows; ++r) {
    std::vector<Candidate> candidates;
    for (std::int64_t rank = 0; rank < width; rank += 2 * samples) {
      for (std::int64_t j = 0; j < samples; ++j) {
        const auto at = static_cast<std::size_t>(r * width + rank + j);
        candidates.push_back({all[at], all[at + static_cast<std::size_t>(samples)]});
      }
    }
    keep_earliest(candidates, samples);
    if (candidates.front().time == no_weight) problem = worse(problem, WeightProblem::invalid);
    if (candidates.back().time == never) problem = worse(problem, WeightProblem::too_few);
    for (const Candidate& candidate : candidates) result.push_back(candidate.category);
  }
  return Tensor::from_vector(result, {rows, samples}, device);
}

}  // namespace dtensor
