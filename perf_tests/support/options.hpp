// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The command line that all perf tests share.
#pragma once

#include <CLI/CLI.hpp>
#include <regex>
#include <string>

namespace dtensor::perf {

struct Options {
  std::string json;       ///< file to write the results to; none when empty
  double min_time = 0.5;  ///< seconds to spend on each row at least
  std::string filter;     ///< regular expression that a row's name must contain a match of

  bool selects(const std::string& name) const {
    return std::regex_search(name, std::regex(filter));
  }
};

/// Adds the shared options to a program's own.
inline void add_options(CLI::App& app, Options& options) {
  app.add_option("--json", options.json, "Write the results to this file");
  app.add_option("--min-time", options.min_time, "Seconds to spend on each row at least")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--filter", options.filter, "Run only the rows whose name matches this regex")
      ->check([](const std::string& text) {
        try {
          std::regex{text};
        } catch (const std::regex_error& e) {
          return std::string(e.what());
        }
        return std::string();
      });
}

}  // namespace dtensor::perf
