# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What DTensor stands on. Used by the build and by the installed package.

include(${CMAKE_CURRENT_LIST_DIR}/DTensorFindKokkos.cmake)

macro(_dtensor_missing message)
  set(${missing} "${message}" PARENT_SCOPE)
  return()
endmacro()

# dtensor_find_dependencies(<missing> [INSTALLED])
#
# Finds everything the enabled options need. Sets <missing> to an empty string, or to a message that
# says what is missing and how to get it. INSTALLED: DTensor is built already, so what only its
# sources need is not looked for, and Kokkos must be the version it was built with.
function(dtensor_find_dependencies missing)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INSTALLED" "" "")

  set(${missing} "" PARENT_SCOPE)
  dtensor_find_kokkos(kokkos_version kokkos_devices kokkos_problem)
  if(kokkos_problem)
    _dtensor_missing("${kokkos_problem}")
  endif()
  if(arg_INSTALLED
     AND kokkos_version
     AND DTensor_KOKKOS_VERSION
     AND NOT kokkos_version VERSION_EQUAL DTensor_KOKKOS_VERSION)
    _dtensor_missing("DTensor was built with Kokkos ${DTensor_KOKKOS_VERSION}, but Kokkos ${kokkos_version} was \
found. Set Kokkos_ROOT and KokkosKernels_ROOT to the Kokkos that DTensor was built with.")
  endif()
  set(DTensor_KOKKOS_VERSION ${kokkos_version} PARENT_SCOPE)

  find_package(MPI 3.1 QUIET COMPONENTS CXX)
  if(NOT TARGET MPI::MPI_CXX)
    _dtensor_missing("MPI was not found. Install an MPI 3.1 library (Debian, Ubuntu: libopenmpi-dev \
openmpi-bin), or set MPI_HOME or MPI_CXX_COMPILER.")
  endif()

  find_package(LAPACK QUIET)
  if(NOT TARGET LAPACK::LAPACK)
    _dtensor_missing("LAPACK was not found. Install it (Debian, Ubuntu: libopenblas-dev) or set BLA_VENDOR.")
  endif()

  find_package(fmt CONFIG QUIET)
  if(NOT TARGET fmt::fmt)
    _dtensor_missing("{fmt} was not found. Install it (Debian, Ubuntu: libfmt-dev) or set fmt_ROOT.")
  endif()

  if(DTensor_ENABLE_CUDA)
    if(kokkos_devices AND NOT "CUDA" IN_LIST kokkos_devices)
      _dtensor_missing("DTensor_ENABLE_CUDA needs Kokkos built with CUDA. Set Kokkos_ROOT to such a Kokkos.")
    endif()
    find_package(CUDAToolkit 12 QUIET)
    if(NOT TARGET CUDA::cudart)
      _dtensor_missing("DTensor_ENABLE_CUDA needs the CUDA Toolkit 12 or newer. Install it or set \
CUDAToolkit_ROOT.")
    endif()
  endif()

  if(arg_INSTALLED)
    return()
  endif()

  if(DTensor_ENABLE_HDF5)
    # Only the sources of DTensor use HDF5, so its files are linked by path: a program that uses
    # DTensor has not to find HDF5 again.
    set(HDF5_NO_FIND_PACKAGE_CONFIG_FILE TRUE)
    if(NOT DEFINED HDF5_PREFER_PARALLEL)
      set(HDF5_PREFER_PARALLEL TRUE)
    endif()
    find_package(HDF5 1.10 QUIET COMPONENTS C)
    if(NOT HDF5_FOUND)
      _dtensor_missing("HDF5 1.10 or newer was not found. Install it (Debian, Ubuntu: libhdf5-openmpi-dev), set \
HDF5_ROOT, or configure with -DDTensor_ENABLE_HDF5=OFF.")
    endif()
    # A shared libhdf5 brings its own dependencies; the compiler wrapper lists them all the same.
    set(libraries ${HDF5_C_LIBRARIES})
    list(FILTER libraries INCLUDE REGEX "hdf5[^/]*\\.(so|dylib)")
    if(NOT libraries)
      set(libraries ${HDF5_C_LIBRARIES})
    endif()
    set(DTensor_HDF5_LIBRARIES ${libraries} PARENT_SCOPE)
    set(DTensor_HDF5_INCLUDE_DIRS ${HDF5_C_INCLUDE_DIRS} PARENT_SCOPE)
  endif()

  if(DTensor_ENABLE_NCCL)
    if(NOT DTensor_ENABLE_CUDA)
      _dtensor_missing("DTensor_ENABLE_NCCL needs -DDTensor_ENABLE_CUDA=ON.")
    endif()
    find_path(DTensor_NCCL_INCLUDE_DIR nccl.h HINTS ${NCCL_ROOT} ENV NCCL_ROOT
              PATH_SUFFIXES include)
    find_library(DTensor_NCCL_LIBRARY nccl HINTS ${NCCL_ROOT} ENV NCCL_ROOT
                 PATH_SUFFIXES lib lib64)
    mark_as_advanced(DTensor_NCCL_INCLUDE_DIR DTensor_NCCL_LIBRARY)
    if(NOT DTensor_NCCL_INCLUDE_DIR OR NOT DTensor_NCCL_LIBRARY)
      _dtensor_missing("NCCL was not found. Install NCCL 2.18 or newer (Debian, Ubuntu: libnccl-dev), set \
NCCL_ROOT, or configure with -DDTensor_ENABLE_NCCL=OFF.")
    endif()
  endif()
endfunction()
