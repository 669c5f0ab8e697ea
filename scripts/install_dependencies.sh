#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs what DTensor is built and tested with, on Debian 12 and 13, Ubuntu 22.04 and 24.04. Does
# nothing when all of it is there, or on systems without apt.
set -euo pipefail

packages=(
  build-essential cmake ninja-build ccache
  libtrilinos-kokkos-dev libtrilinos-kokkos-kernels-dev libopenblas-dev
  libopenmpi-dev openmpi-bin
  libhdf5-openmpi-dev zlib1g-dev
  libscalapack-openmpi-dev
  libfmt-dev libcli11-dev nlohmann-json3-dev
  libgtest-dev libbenchmark-dev
  python3 python3-numpy python3-h5py valgrind
)

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  echo "No apt on this system: the dependencies are expected to be installed." >&2
  exit 0
fi

installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null || true)
missing=()
for package in "${packages[@]}"; do
  grep -qx "$package installed" <<<"$installed" || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

echo "Installing: ${missing[*]}"
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -y)
"${apt[@]}" update
"${apt[@]}" install --no-install-recommends "${missing[@]}"
