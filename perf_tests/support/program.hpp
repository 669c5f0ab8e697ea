// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The main function of a perf test.
#pragma once

#include <dtensor/comm/runtime.hpp>

#include <cstdio>
#include <exception>

#include "options.hpp"

namespace dtensor::perf {

/// Starts MPI and Kokkos, reads the command line and runs `run(options)`. Returns the exit status;
/// an exception is printed by rank 0. \param options  `Options`, or a class derived from it \param
/// more     `more(app, options)` adds options of the program's own
template <class O, class Run, class More>
int main_with(int argc, char** argv, const char* description, O options, Run&& run, More&& more) {
  const Runtime runtime(argc, argv);
  CLI::App app(description);
  add_options(app, options);
  more(app, options);
  CLI11_PARSE(app, argc, argv);
  try {
    run(options);
  } catch (const std::exception& e) {
    if (Runtime::rank() == 0) std::fprintf(stderr, "%s: %s\n", argv[0], e.what());
    return 1;
  }
  return 0;
}

template <class Run>
int main_with(int argc, char** argv, const char* description, Run&& run) {
  return main_with(argc, argv, description, Options(), run, [](CLI::App&, Options&) {});
}

}  // namespace dtensor::perf
