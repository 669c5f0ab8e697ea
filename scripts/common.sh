# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Sourced by the other scripts.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

# build [<target>...]: installs what is missing, then configures and builds the release preset.
build() {
  scripts/install_dependencies.sh
  cmake --preset release
  cmake --build --preset release --parallel "$(nproc)" ${1:+--target "$@"}
}

# run_on <ranks> <seconds> <program> [<argument>...]: runs an MPI program for at most that long.
run_on() {
  local ranks=$1 seconds=$2
  shift 2
  (
    set -a
    . cmake/mpi_environment.txt
    exec timeout -k 5 "$seconds" mpirun -n "$ranks" "$@"
  )
}
