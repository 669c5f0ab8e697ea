# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computes with numpy what linalg_exchange computed with 4 ranks."""

import pathlib
import sys

import h5py
import numpy as np


def main():
    with h5py.File(pathlib.Path(sys.argv[1]) / "index.h5", "r") as index:
        t = {name: index[name][()] for name in index if name != "__dtensor__"}

    q, r = np.linalg.qr(t["tall"])
    signs = np.sign(np.diag(r))
    factor = np.linalg.cholesky(t["positive"])
    expected = {
        "product": t["a"] @ t["b"],
        "products": t["batch"] @ t["b"],
        "sums": np.einsum("bij,kj,jl->ikl", t["batch"], t["a"], t["b"]),
        "added": 0.5 * t["a"] @ t["b"] - 2 * t["bias"],
        "positive": t["square"] @ t["square"].T,
        "cholesky": factor,
        "q": q * signs,
        "r": r * signs[:, None],
        "solution": np.linalg.solve(t["square"], t["right"]),
        "substituted": np.linalg.solve(factor.T, t["right"]),
    }
    for name, values in expected.items():
        error = np.abs(t[name] - values).max() / np.abs(values).max()
        assert t[name].shape == values.shape and error < 1e-9, (name, error)
        print(f"{name:12} {error:.1e}")


main()
