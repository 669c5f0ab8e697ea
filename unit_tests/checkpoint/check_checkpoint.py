# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reads the checkpoint that checkpoint_exchange wrote with 4 ranks, by h5py alone."""

import pathlib
import shutil
import sys
import tempfile

import h5py
import numpy as np

TYPES = {
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "bfloat16": np.float32,  # what h5py reads it as
    "complex128": np.complex128,
    "complex64": np.complex64,
    "int64": np.int64,
    "int32": np.int32,
    "int16": np.int16,
    "int8": np.int8,
    "uint8": np.uint8,
    "bool": np.bool_,
}


def elements(shape, dtype):
    """The values of a tensor: `element` of checkpoint_test.hpp."""
    i = np.arange(int(np.prod(shape)), dtype=np.int64)
    if dtype == "bool":
        values = (i * i + i // 3) % 3 == 0
    elif dtype.startswith("complex"):
        values = (i * 0.5 - 3) + 1j * (7 - 2 * i)
    elif dtype == "uint8":
        values = i * 37 % 251
    else:
        values = i * 37 % 199 - 99
    return values.astype(TYPES[dtype]).reshape(shape)


EXPECTED = {f"types/{name}": elements((9, 5), name) for name in TYPES}
EXPECTED |= {
    name: elements(shape, "float64")
    for name, shape in {
        "matrix": (11, 6),
        "group/strided": (10, 3),
        "group/replicated": (4,),
        "100%": (5, 2),
        "scalar": (),
        "empty": (3, 0),
    }.items()
}
EXPECTED["partial"] = 2 * elements((7, 3), "float64")

PLACEMENTS = {
    "matrix": "[S(0), S(1,[5, 1])]",
    "group/strided": "[SS(0,2), S(0)]",
    "group/replicated": "[R, R]",
    "partial": "[P, R]",
}


def dtype_name(tensor):
    return tensor.split("/")[1] if tensor.startswith("types/") else "float64"


def datasets(group):
    names = []
    group.visit(names.append)
    return [name for name in names if isinstance(group[name], h5py.Dataset)]


def check(directory):
    files = sorted(path.name for path in directory.iterdir())
    assert files == ["index.h5"] + [f"rank_0000{rank}.h5" for rank in range(4)], files
    rank_files = [h5py.File(directory / name, "r") for name in files[1:]]
    stored = {(rank, name) for rank, file in enumerate(rank_files) for name in datasets(file)}

    with h5py.File(directory / "index.h5", "r") as index:
        assert dict(index.attrs) == {"iteration": 1234567890123, "time": 0.1, "title": "größe"}
        own = index["__dtensor__"]
        assert own.attrs["format"] == "dtensor.checkpoint" and own.attrs["version"] == 1
        tensors = [name for name in datasets(index) if not name.startswith("__dtensor__/")]
        assert sorted(tensors) == sorted(EXPECTED), tensors
        assert sorted(datasets(own["chunks"])) == sorted(EXPECTED)

        for name, expected in EXPECTED.items():
            dataset, table = index[name], own["chunks"][name]
            assert dataset.is_virtual == (expected.size > 0), name
            values = dataset[()]
            assert dataset.dtype == expected.dtype, (name, dataset.dtype)
            assert np.shape(values) == expected.shape, (name, np.shape(values))
            assert np.array_equal(values, expected), (name, values, expected)
            assert dataset.attrs["dtype"] == table.attrs["dtype"] == dtype_name(name)
            assert tuple(table.attrs["shape"]) == expected.shape
            assert table.attrs["placements"] == PLACEMENTS.get(name, table.attrs["placements"])
            if name == "types/bfloat16":
                assert dataset.id.get_type().get_size() == 2
                assert dataset.id.get_type().get_fields() == (15, 7, 8, 0, 7)
                assert dataset.id.get_type().get_ebias() == 127

            # Every element is in exactly one chunk, and every chunk is where the table says.
            times = np.zeros(expected.shape, dtype=int)
            dims = expected.ndim
            for rank, number, *box in table[()].tolist():
                slices = tuple(slice(o, o + n) for o, n in zip(box[:dims], box[dims:]))
                times[slices] += 1
                chunk = rank_files[rank][f"{name}/{number}"]
                assert chunk.shape == tuple(box[dims:])
                assert np.array_equal(chunk[()], expected[slices]), (name, rank, number)
                stored.remove((rank, f"{name}/{number}"))
            assert (times == 1).all(), (name, times)
    assert not stored, f"datasets that no table lists: {stored}"


def main():
    directory = pathlib.Path(sys.argv[1])
    check(directory)
    # The virtual datasets refer to files beside the index, wherever the directory is.
    with tempfile.TemporaryDirectory() as elsewhere:
        check(pathlib.Path(shutil.copytree(directory, pathlib.Path(elsewhere) / "moved")))


main()
