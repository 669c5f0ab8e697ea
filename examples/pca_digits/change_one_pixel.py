# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Copies the digits with one pixel of one image changed."""
import gzip
import sys

source, target = sys.argv[1:]
with gzip.open(source, "rt") as file:
    rows = [line.rstrip("\n").split(",") for line in file]
rows[900][20] = str((int(rows[900][20]) + 1) % 17)
with gzip.open(target, "wt") as file:
    for row in rows:
        file.write(",".join(row) + "\n")
