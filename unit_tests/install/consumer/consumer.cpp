// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <cstdio>
#include <cstdlib>

#include "dtensor/core/version.hpp"

int main(int argc, char** argv) {
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS) return EXIT_FAILURE;
  {
    const Kokkos::ScopeGuard kokkos(argc, argv);
    std::printf("DTensor %s\n", dtensor::version());
  }
  return MPI_Finalize() == MPI_SUCCESS ? EXIT_SUCCESS : EXIT_FAILURE;
}
