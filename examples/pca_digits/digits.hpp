// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reading the digits data, and the known answers about it.
#pragma once

#include <zlib.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace digits {

constexpr int rows = 1797;
constexpr int pixels = 64;

// In float64, with the divisor rows - 1.
constexpr double pixel_sum = 561718;
constexpr double frobenius_norm = 2628.119479780172;
constexpr double trace = 1202.1477121607031;
constexpr double eigenvalues[] = {179.0069301, 163.71774688, 141.78843909, 101.1003752,
                                  69.51316559, 59.10852489,  51.88453911,  44.01510667};

/// The pixels of all images, row by row. The digit at the end of a row is left out.
inline std::vector<double> read(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (!file) throw std::runtime_error("cannot open " + path);
  std::vector<double> values;
  char line[1024];
  while (gzgets(file, line, sizeof(line))) {
    const char* position = line;
    for (int i = 0; i < pixels; ++i) {
      char* end = nullptr;
      values.push_back(std::strtod(position, &end));
      position = *end == ',' ? end + 1 : end;
    }
  }
  gzclose(file);
  if (values.size() != static_cast<std::size_t>(rows) * pixels) {
    throw std::runtime_error(path + " has " + std::to_string(values.size() / pixels) +
                             " rows of pixels, expected " + std::to_string(rows));
  }
  return values;
}

}  // namespace digits
