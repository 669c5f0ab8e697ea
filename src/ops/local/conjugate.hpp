// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dtensor/core/tensor.hpp"

namespace dtensor {

/// Conjugates the elements in place; does nothing for types that are not complex.
void conjugate(const Tensor& a);

}  // namespace dtensor
