// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/core/extents.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtensor/core/error.hpp"

namespace dtensor {

void Extents::throw_too_long(long count) {
  throw ValueError("Extents", fmt::format("{} dimensions", count),
                   fmt::format("at most {}", max_rank));
}

std::string to_string(const Extents& extents) {
  return extents.size() == 1 ? fmt::format("({},)", extents[0])
                             : fmt::format("({})", fmt::join(extents.begin(), extents.end(), ", "));
}

Extents row_major_strides(const Shape& shape) {
  Extents strides = shape;
  std::int64_t stride = 1;
  for (int d = shape.size() - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= std::max<std::int64_t>(shape[d], 1);
  }
  return strides;
}

int normalize_dim(const char* function, std::int64_t dim, int rank) {
  const std::int64_t d = dim < 0 ? dim + rank : dim;
  if (d < 0 || d >= rank) {
    throw IndexError(function,
                     fmt::format("dimension {} of a tensor with {} dimensions", dim, rank),
                     rank == 0 ? std::string("a tensor with dimensions")
                               : fmt::format("a dimension from {} to {}", -rank, rank - 1));
  }
  return static_cast<int>(d);
}

bool is_injective(const Shape& shape, const Extents& strides) {
  int order[max_rank], n = 0;
  for (int d = 0; d < shape.size(); ++d) {
    if (shape[d] == 0) return true;
    if (shape[d] > 1) order[n++] = d;
  }
  sort_dims(order, n, [&](int a, int b) { return strides[a] < strides[b]; });
  std::int64_t reach = 0;
  for (int i = 0; i < n; ++i) {
    if (strides[order[i]] <= reach) return false;
    reach += (shape[order[i]] - 1) * strides[order[i]];
  }
  return true;
}

void check_injective(const char* function, const Shape& shape, const Extents& strides) {
  if (is_injective(shape, strides)) return;
  throw ValueError(function,
                   fmt::format("shape {} with strides {}", to_string(shape), to_string(strides)),
                   "a tensor whose elements do not share memory; clone() makes one");
}

std::int64_t checked_element_count(const char* function, const Shape& shape) {
  // Strides are products of extents too, where those of zero count as one; and a count of bytes
  // must fit as well as one of elements: 16 bytes is the largest scalar.
  std::int64_t count = 1, bytes = 0;
  bool overflow = false, zero = false;
  for (std::int64_t extent : shape) {
    if (extent < 0) {
      throw ValueError(function, fmt::format("shape {}", to_string(shape)),
                       "extents of zero or more");
    }
    zero |= extent == 0;
    overflow |= __builtin_mul_overflow(count, std::max<std::int64_t>(extent, 1), &count);
  }
  overflow |= __builtin_mul_overflow(count, std::int64_t{16}, &bytes);
  if (overflow) {
    throw ValueError(function, fmt::format("shape {}", to_string(shape)),
                     "a size in bytes below 2^63");
  }
  return zero ? 0 : count;
}

}  // namespace dtensor
