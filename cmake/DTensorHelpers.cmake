# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# dtensor_configure_target(<target>): what all code of this project is compiled with.
function(dtensor_configure_target target)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF
                                             INSTALL_RPATH_USE_LINK_PATH TRUE)
  # gcc 12 warns of overlapping copies wherever it inlines "literal" + std::string.
  set(gcc_12 $<CXX_COMPILER_ID:GNU> $<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,12>
             $<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>)
  list(JOIN gcc_12 "," gcc_12)
  target_compile_options(
    ${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                      $<$<AND:${gcc_12}>:-Wno-restrict>
                      $<$<BOOL:${DTensor_WARNINGS_AS_ERRORS}>:-Werror>)
  # {fmt} 9 and older leave out half of their constexpr where nvcc is the compiler, and fail in C++20.
  if(DTensor_ENABLE_CUDA)
    target_compile_definitions(${target} PRIVATE FMT_USE_CONSTEXPR=1)
  endif()
endfunction()

# dtensor_require_package(<package> INSTALL <Debian package> OPTION <option that needs it>)
function(dtensor_require_package package)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "INSTALL;OPTION" "")
  find_package(${package} QUIET)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "${package} was not found. Install it (Debian, Ubuntu: ${arg_INSTALL}), set \
${package}_ROOT, or turn off ${arg_OPTION}.")
  endif()
endfunction()

# dtensor_add_program(<target> <sources>...): a program that links to DTensor and is configured by
# CLI11 and nlohmann_json.
function(dtensor_add_program target)
  add_executable(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE DTensor::dtensor CLI11::CLI11
                                          nlohmann_json::nlohmann_json)
  dtensor_configure_target(${target})
endfunction()
