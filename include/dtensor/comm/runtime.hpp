// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Start and stop. MPI and Kokkos belong to the program; `Runtime` starts what is not up yet.
#pragma once

namespace dtensor {

/// Starts MPI (thread level `MPI_THREAD_FUNNELED` at least) and Kokkos where the program has not
/// done so, and finalizes on destruction what it started. Keep one in `main`.
///
///     int main(int argc, char** argv) {
///       dtensor::Runtime runtime(argc, argv);
///       ...
///     }
///
/// Collective over `MPI_COMM_WORLD` when it starts MPI.
class Runtime {
 public:
  Runtime(int& argc, char**& argv);
  Runtime();
  ~Runtime();
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  /// This process's rank in `MPI_COMM_WORLD`.
  static int rank();
  /// Number of processes in `MPI_COMM_WORLD`.
  static int size();

 private:
  void start(int* argc, char*** argv);
  bool owns_mpi_ = false;
  bool owns_kokkos_ = false;
};

namespace detail {
/// Throws `StateError` naming `function` unless MPI is initialized with a sufficient thread level
/// and not yet finalized.
void require_mpi(const char* function);

/// Calls back at the start of `MPI_Finalize`, while ranks can still communicate.
void on_mpi_finalize(void (*callback)());
}  // namespace detail

}  // namespace dtensor
