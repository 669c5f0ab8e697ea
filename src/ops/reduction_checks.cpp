// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reduction_checks.hpp"

#include <fmt/format.h>

#include <cmath>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/promotion.hpp"

namespace dtensor::detail {

void check_ordered(const char* function, DType dtype) {
  if (!is_complex(dtype)) return;
  throw TypeError(function, fmt::format("a tensor of {}", to_string(dtype)),
                  "numbers that have an order");
}

void check_not_empty(const char* function, const Shape& shape, DimSet dims) {
  std::int64_t results = 1;
  int empty = -1;
  for (int d = 0; d < shape.size(); ++d) {
    if (!dims.test(static_cast<std::size_t>(d))) {
      results *= shape[d];
    } else if (shape[d] == 0) {
      empty = d;
    }
  }
  if (empty < 0 || results == 0) return;
  throw ValueError(function,
                   fmt::format("dimension {} of a tensor of shape {}, which has no elements", empty,
                               to_string(shape)),
                   "at least one element to choose from");
}

void check_correction(const char* function, double correction) {
  if (std::isfinite(correction)) return;
  throw ValueError(function, fmt::format("correction = {}", correction), "a finite number");
}

void check_comparable(const char* function, const Shape& a, DType a_dtype, const Shape& b,
                      DType b_dtype, double rtol, double atol) {
  if (a != b) {
    throw ValueError(function, fmt::format("shapes {} and {}", to_string(a), to_string(b)),
                     "tensors of one shape");
  }
  check_same_dtype(function, a_dtype, b_dtype);
  if (!(rtol >= 0) || !(atol >= 0)) {
    throw ValueError(function, fmt::format("rtol = {} and atol = {}", rtol, atol),
                     "tolerances that are not negative");
  }
}

}  // namespace dtensor::detail
