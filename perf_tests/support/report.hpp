// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The results of a perf test, as a table and as JSON.
#pragma once

#include <dtensor/core/version.hpp>

#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace dtensor::perf {

struct Result {
  std::string name;
  double seconds;
  std::string reference;  ///< what was measured beside it in the same run
  double reference_seconds;
  std::optional<double> goal;  ///< the highest ratio allowed

  double ratio() const { return seconds / reference_seconds; }
};

/// Prints rows as they come. Only rank 0 prints and writes.
class Report {
 public:
  Report() {
    int rank = 0, ranks = 0, length = 0;
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Get_library_version(library, &length);
    const std::string mpi(library, static_cast<std::size_t>(length));
    prints_ = rank == 0;
    context_ = {{"version", version()},
                {"kokkos", std::to_string(KOKKOS_VERSION / 10000) + "." +
                               std::to_string(KOKKOS_VERSION / 100 % 100) + "." +
                               std::to_string(KOKKOS_VERSION % 100)},
                {"mpi", mpi.substr(0, mpi.find_first_of(",\n"))},
                {"ranks", ranks},
                {"cores", std::thread::hardware_concurrency()}};
    if (!prints_) return;
    std::printf("DTensor %s, Kokkos %s, %s: %d ranks on %d cores\n",
                context_["version"].get<std::string>().c_str(),
                context_["kokkos"].get<std::string>().c_str(),
                context_["mpi"].get<std::string>().c_str(), ranks, context_["cores"].get<int>());
    std::printf("%-30s %12s %12s %7s %6s   %s\n", "", "us", "reference us", "ratio", "goal",
                "reference");
  }

  void add(Result result) {
    if (prints_) {
      std::printf("%-30s %12.2f %12.2f %7.3f ", result.name.c_str(), 1e6 * result.seconds,
                  1e6 * result.reference_seconds, result.ratio());
      if (result.goal) {
        std::printf("%6.2f%s", *result.goal, result.ratio() > *result.goal ? " !" : "  ");
      } else {
        std::printf("%6s  ", "-");
      }
      std::printf(" %s\n", result.reference.c_str());
      std::fflush(stdout);
    }
    results_.push_back(std::move(result));
  }

  /// Throws `std::runtime_error` when the file cannot be written.
  void write(const std::string& path) const {
    if (!prints_ || path.empty()) return;
    nlohmann::json results = nlohmann::json::array();
    for (const Result& r : results_) {
      results.push_back({{"name", r.name},
                         {"seconds", r.seconds},
                         {"reference", r.reference},
                         {"reference_seconds", r.reference_seconds},
                         {"ratio", r.ratio()},
                         {"goal", r.goal ? nlohmann::json(*r.goal) : nlohmann::json()}});
    }
    std::ofstream file(path);
    file << nlohmann::json{{"context", context_}, {"results", results}}.dump(2) << std::endl;
    if (!file) throw std::runtime_error("cannot write " + path);
  }

 private:
  bool prints_ = false;
  nlohmann::json context_;
  std::vector<Result> results_;
};

}  // namespace dtensor::perf
