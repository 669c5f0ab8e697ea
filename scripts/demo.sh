#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Starts the example pca_digits on 4 ranks, stops it halfway, and finishes it on 3 from the checkpoint.
set -euo pipefail
. "$(dirname "$0")/common.sh"

build pca_digits

checkpoint=$(mktemp -d)
trap 'rm -rf "$checkpoint"' EXIT
pca_digits=build/release/examples/pca_digits

if run_on 4 120 "$pca_digits" --save-halfway "$checkpoint" &&
  run_on 3 120 "$pca_digits" --restart "$checkpoint"; then
  echo "All values matched."
else
  echo "The demo FAILED: a run did not finish or a value did not match."
  exit 1
fi
