// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dtensor/core/tensor.hpp"

namespace dtensor::detail {

/// An arithmetic sequence; element `i` is `start + i * step`, times `scale` for floating-point
/// types. With `ends_exactly` it is counted from `last` in the second half, which it ends with.
struct Sequence {
  std::int64_t count;
  std::int64_t integer_start, integer_step;  ///< for integer types
  double start, step;                        ///< for floating-point types
  bool ends_exactly;
  double last;
  double scale = 1;  ///< for numbers whose distance is beyond the largest double
};

/// Elements `first`, `first + 1`, ... of a sequence into a 1-D tensor. Returns when submitted.
void fill_sequence(const Tensor& to, const Sequence& sequence, std::int64_t first);

}  // namespace dtensor::detail
