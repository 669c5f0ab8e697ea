// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Operators that rearrange elements, on `Tensor` and `DTensor`.
#pragma once

#include <cstdint>

#include "dtensor/ops/any_tensor.hpp"

namespace dtensor {

/// A view with two dimensions exchanged. Nothing is copied or communicated.
/// Throws `IndexError` for a dimension out of range.
DTensor transpose(const DTensor& a, std::int64_t dim0, std::int64_t dim1);
inline Tensor transpose(const Tensor& a, std::int64_t dim0, std::int64_t dim1) {
  return a.transpose(dim0, dim1);
}

}  // namespace dtensor
