// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/comm/runtime.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <Kokkos_Core.hpp>

#include "dtensor/comm/mpi_communicator.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/core/kokkos_state.hpp"

namespace dtensor {

namespace {

const char* level_name(int level) {
  return level == MPI_THREAD_SINGLE       ? "MPI_THREAD_SINGLE"
         : level == MPI_THREAD_FUNNELED   ? "MPI_THREAD_FUNNELED"
         : level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED"
                                          : "MPI_THREAD_MULTIPLE";
}

}  // namespace

namespace detail {

void require_mpi(const char* function) {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (finalized) {
    throw StateError(function, "a call after MPI_Finalize",
                     "MPI up: keep the dtensor::Runtime alive, or finalize MPI last");
  }
  if (!initialized) {
    throw StateError(function, "a call before MPI_Init_thread",
                     "MPI up: create a dtensor::Runtime, or call MPI_Init_thread, first");
  }
  int level = MPI_THREAD_SINGLE;
  check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
  if (level < MPI_THREAD_FUNNELED) {
    throw StateError(function, fmt::format("MPI with thread level {}", level_name(level)),
                     "MPI_Init_thread with MPI_THREAD_FUNNELED or more");
  }
}

}  // namespace detail

Runtime::Runtime(int& argc, char**& argv) { start(&argc, &argv); }
Runtime::Runtime() { start(nullptr, nullptr); }

void Runtime::start(int* argc, char*** argv) {
  int initialized = 0;
  MPI_Initialized(&initialized);
  if (!initialized) {
    int provided = MPI_THREAD_SINGLE;
    detail::check_mpi(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided),
                      "MPI_Init_thread");
    owns_mpi_ = true;
  }
  detail::require_mpi("Runtime");
  if (!Kokkos::is_initialized()) {
    if (argc != nullptr) {
      Kokkos::initialize(*argc, *argv);
    } else {
      Kokkos::initialize();
    }
    owns_kokkos_ = true;
  }
  detail::require_kokkos("Runtime");
}

Runtime::~Runtime() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (owns_kokkos_ && Kokkos::is_initialized()) Kokkos::finalize();
  if (owns_mpi_ && !finalized) MPI_Finalize();
}

int Runtime::rank() {
  detail::require_mpi("Runtime::rank");
  int rank = 0;
  detail::check_mpi(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  return rank;
}

int Runtime::size() {
  detail::require_mpi("Runtime::size");
  int size = 0;
  detail::check_mpi(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  return size;
}

}  // namespace dtensor
