# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Kokkos::kokkos and Kokkos::kokkoskernels, from one of
#   1. targets that the project has already,
#   2. the CMake packages Kokkos and KokkosKernels (CMAKE_PREFIX_PATH, Kokkos_ROOT,
#      KokkosKernels_ROOT, Kokkos_DIR, KokkosKernels_DIR, Spack, environment modules),
#   3. the Trilinos build that Debian and Ubuntu ship.

# Points <package>_DIR to the first CMake package that is not that of Debian's Trilinos, without
# loading any: those have a wrong include path, and loading them fails when one of their parts is not
# installed.
function(_dtensor_locate_config package)
  set(configs "${${package}_DIR}/${package}Config.cmake")
  # No package has this version, so CMake reports the candidates and loads none.
  find_package(${package} 9999 EXACT CONFIG QUIET)
  list(APPEND configs ${${package}_CONSIDERED_CONFIGS})
  set(found "${package}_DIR-NOTFOUND")
  foreach(config IN LISTS configs)
    if(EXISTS "${config}")
      file(STRINGS "${config}" debian REGEX "_LIBRARIES \"trilinos_kokkos" LIMIT_COUNT 1)
      if(NOT debian)
        get_filename_component(found "${config}" DIRECTORY)
        break()
      endif()
    endif()
  endforeach()
  set(${package}_DIR "${found}" CACHE PATH "Where the CMake package ${package} is" FORCE)
endfunction()

macro(_dtensor_find_config package target)
  if(NOT TARGET ${target})
    _dtensor_locate_config(${package})
    if(${package}_DIR)
      find_package(${package} CONFIG QUIET)
    endif()
  endif()
endmacro()

# The Trilinos packages: headers in <prefix>/include/trilinos, libraries libtrilinos_<name>.
macro(_dtensor_find_trilinos)
  find_path(DTensor_TRILINOS_INCLUDE_DIR trilinos/Kokkos_Core.hpp)
  find_path(DTensor_TRILINOS_KERNELS_INCLUDE_DIR trilinos/KokkosBlas3_gemm.hpp)
  mark_as_advanced(DTensor_TRILINOS_INCLUDE_DIR DTensor_TRILINOS_KERNELS_INCLUDE_DIR)
  foreach(library kokkoscore kokkoscontainers kokkosalgorithms kokkoskernels)
    find_library(DTensor_TRILINOS_${library}_LIBRARY trilinos_${library})
    mark_as_advanced(DTensor_TRILINOS_${library}_LIBRARY)
  endforeach()

  if(DTensor_TRILINOS_INCLUDE_DIR AND DTensor_TRILINOS_kokkoscore_LIBRARY)
    add_library(Kokkos::kokkos INTERFACE IMPORTED)
    target_include_directories(Kokkos::kokkos
                               INTERFACE "${DTensor_TRILINOS_INCLUDE_DIR}/trilinos")
    foreach(library kokkosalgorithms kokkoscontainers kokkoscore)
      if(DTensor_TRILINOS_${library}_LIBRARY)
        target_link_libraries(Kokkos::kokkos INTERFACE "${DTensor_TRILINOS_${library}_LIBRARY}")
      endif()
    endforeach()
    target_link_libraries(Kokkos::kokkos INTERFACE ${CMAKE_DL_LIBS})
    file(STRINGS "${DTensor_TRILINOS_INCLUDE_DIR}/trilinos/KokkosCore_config.h" number
         REGEX "#define KOKKOS_VERSION ")
    string(REGEX MATCH "[0-9]+" number "${number}")
    math(EXPR major "${number} / 10000")
    math(EXPR minor "${number} / 100 % 100")
    math(EXPR patch "${number} % 100")
    set(Kokkos_VERSION ${major}.${minor}.${patch})
    set(Kokkos_DEVICES SERIAL)

    find_package(LAPACK QUIET) # brings BLAS
    if(DTensor_TRILINOS_KERNELS_INCLUDE_DIR
       AND DTensor_TRILINOS_kokkoskernels_LIBRARY
       AND LAPACK_FOUND)
      add_library(Kokkos::kokkoskernels INTERFACE IMPORTED)
      target_include_directories(Kokkos::kokkoskernels
                                 INTERFACE "${DTensor_TRILINOS_KERNELS_INCLUDE_DIR}/trilinos")
      target_link_libraries(
        Kokkos::kokkoskernels INTERFACE "${DTensor_TRILINOS_kokkoskernels_LIBRARY}" Kokkos::kokkos
                                        LAPACK::LAPACK BLAS::BLAS)
    endif()
  endif()
endmacro()

# dtensor_find_kokkos(<version> <devices> <problem>)
#
# <problem> is empty when both were found. <version> and <devices> are empty when the project brought
# a Kokkos::kokkos that does not tell them.
function(dtensor_find_kokkos version devices problem)
  _dtensor_find_config(Kokkos Kokkos::kokkos)
  if(TARGET Kokkos::kokkos)
    _dtensor_find_config(KokkosKernels Kokkos::kokkoskernels)
  else()
    _dtensor_find_trilinos()
  endif()

  set(${problem} "" PARENT_SCOPE)
  set(${version} "${Kokkos_VERSION}" PARENT_SCOPE)
  set(${devices} "${Kokkos_DEVICES}" PARENT_SCOPE)
  if(NOT TARGET Kokkos::kokkos)
    set(${problem}
        "Kokkos was not found. Set Kokkos_ROOT and KokkosKernels_ROOT to installed packages, or \
install libtrilinos-kokkos-dev and libtrilinos-kokkos-kernels-dev (Debian, Ubuntu)."
        PARENT_SCOPE)
  elseif(NOT TARGET Kokkos::kokkoskernels)
    if(Kokkos_DIR)
      set(advice "Kokkos is in ${Kokkos_DIR}: set KokkosKernels_ROOT to a Kokkos Kernels built on it.")
    else()
      set(advice "Install libtrilinos-kokkos-kernels-dev and libopenblas-dev (Debian, Ubuntu), or \
set Kokkos_ROOT and KokkosKernels_ROOT to installed packages.")
    endif()
    set(${problem} "Kokkos Kernels, or the BLAS and LAPACK it needs, was not found. ${advice}"
        PARENT_SCOPE)
  elseif(Kokkos_VERSION AND (Kokkos_VERSION VERSION_LESS 3.4.01
                             OR Kokkos_VERSION VERSION_GREATER_EQUAL 6))
    set(${problem}
        "Kokkos ${Kokkos_VERSION} was found, but DTensor needs 3.4.01 to 5.x. Set Kokkos_ROOT and \
KokkosKernels_ROOT to other packages."
        PARENT_SCOPE)
  endif()
endfunction()
