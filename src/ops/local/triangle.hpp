// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dtensor/core/tensor.hpp"

namespace dtensor::detail {

/// Copies the elements of the last two dimensions on and below (`lower`) or on and above the
/// diagonal, and sets the others to zero. Returns when submitted.
void copy_triangle(const Tensor& to, const Tensor& from, bool lower, std::int64_t diagonal);

}  // namespace dtensor::detail
