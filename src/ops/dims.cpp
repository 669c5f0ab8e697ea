// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/dims.hpp"

#include <fmt/format.h>

#include "dtensor/core/error.hpp"

namespace dtensor {

DimSet Dims::of(const char* function, int rank) const {
  DimSet dims;
  if (all_) {
    for (int d = 0; d < rank; ++d) dims.set(static_cast<std::size_t>(d));
    return dims;
  }
  for (std::int64_t dim : list_) {
    const auto d = static_cast<std::size_t>(normalize_dim(function, dim, rank));
    if (dims.test(d)) {
      throw ValueError(function, fmt::format("dimensions {}", to_string(list_)),
                       "each dimension at most once");
    }
    dims.set(d);
  }
  return dims;
}

}  // namespace dtensor
