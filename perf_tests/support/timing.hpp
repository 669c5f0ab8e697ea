// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Times two ways of doing the same thing beside one another.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace dtensor::perf {

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Seconds per call of `calls` calls of `f` after a barrier, on the slowest rank. `f` must have
/// ended its work when it returns: fence what runs on a device. Collective.
template <class F>
double slowest_rank_seconds(F&& f, int calls = 1) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  for (int i = 0; i < calls; ++i) f();
  double seconds = (MPI_Wtime() - start) / calls;
  MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return seconds;
}

struct Comparison {
  double seconds;
  double reference_seconds;
};

/// Medians of the slowest rank. Samples of the two alternate, so that whatever else the machine
/// does meets both alike; short calls are sampled in batches. Collective.
/// \param min_time  seconds to go on for at least
template <class F, class G>
Comparison compare(double min_time, F&& f, G&& reference) {
  constexpr double batch_seconds = 2e-4;
  constexpr std::size_t min_samples = 5;
  double once = 0;
  for (int warm_up = 0; warm_up < 3; ++warm_up) {
    once = std::max(slowest_rank_seconds(f), slowest_rank_seconds(reference));
  }
  const int calls = static_cast<int>(std::clamp(std::ceil(batch_seconds / once), 1.0, 1000.0));
  std::vector<double> samples, reference_samples;
  double spent = 0;  // the same on every rank, as all must stop together
  while (spent < min_time || samples.size() < min_samples) {
    samples.push_back(slowest_rank_seconds(f, calls));
    reference_samples.push_back(slowest_rank_seconds(reference, calls));
    spent += calls * (samples.back() + reference_samples.back());
  }
  return {median(std::move(samples)), median(std::move(reference_samples))};
}

}  // namespace dtensor::perf
