# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
import pathlib

from spack.package import *

try:  # Spack 1.0 and later
    from spack_repo.builtin.build_systems.cmake import CMakePackage
except ImportError:
    from spack.build_systems.cmake import CMakePackage


class Dtensor(CMakePackage):
    """Distributed dense tensors on Kokkos: layouts, redistribution, operators and checkpoints."""

    # The recipe builds the repository that it lies in.
    git = pathlib.Path(__file__).resolve().parents[3].as_uri()

    license("Apache-2.0 WITH LLVM-exception")

    version("main", branch="main")

    variant("shared", default=True, description="Build a shared library")
    variant("hdf5", default=True, description="Checkpoints in HDF5 files")
    variant("cuda", default=False, description="Tensors on CUDA devices")
    variant("nccl", default=False, when="+cuda", description="Device collectives through NCCL")
    variant("tools", default=True, description="Build the command-line tools")
    variant("tests", default=False, description="Build the unit tests")
    variant("perf_tests", default=False, description="Build the perf tests")
    variant("examples", default=False, description="Build the examples")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.22:", type="build")
    depends_on("kokkos@3.4.01:5")
    depends_on("kokkos-kernels@3.4.01:5")
    depends_on("lapack")
    depends_on("mpi@3.1:")
    depends_on("fmt@8:")
    depends_on("hdf5@1.10:", when="+hdf5")
    depends_on("kokkos+cuda", when="+cuda")
    depends_on("cuda@12:", when="+cuda")
    depends_on("nccl@2.18:", when="+nccl")
    depends_on("googletest", type=("build", "test"), when="+tests")
    depends_on("py-numpy", type=("build", "test"), when="+tests")
    depends_on("py-h5py", type=("build", "test"), when="+tests")
    depends_on("benchmark", type="build", when="+perf_tests")
    depends_on("scalapack", type="build", when="+perf_tests")
    for programs in ("+tools", "+perf_tests", "+examples"):
        depends_on("cli11", type="build", when=programs)
        depends_on("nlohmann-json", type="build", when=programs)

    def cmake_args(self):
        args = [
            self.define_from_variant("BUILD_SHARED_LIBS", "shared"),
            self.define("DTensor_WARNINGS_AS_ERRORS", False),
        ]
        for option in ("hdf5", "nccl", "cuda", "tools", "tests", "perf_tests", "examples"):
            args.append(self.define_from_variant(f"DTensor_ENABLE_{option.upper()}", option))
        if self.spec.satisfies("+cuda"):
            args.append(self.define("CMAKE_CXX_COMPILER", self["kokkos"].kokkos_cxx))
        return args
