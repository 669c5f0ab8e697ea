// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/any_tensor.hpp"

#include "dtensor/core/error.hpp"

namespace dtensor::detail {

void throw_mixed(const char* function) {
  throw TypeError(function, "a Tensor and a DTensor",
                  "two DTensors, or two Tensors: make a DTensor of the Tensor with "
                  "distribute_tensor (a whole tensor) or from_local (a part of one), or take "
                  "to_local() of the DTensor");
}

}  // namespace dtensor::detail
