#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Installs what is missing, builds, and runs the tests labeled long. Arguments go to ctest.
set -euo pipefail
. "$(dirname "$0")/common.sh"

build
ctest --preset release -j 2 -L long "$@"
