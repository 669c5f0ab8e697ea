// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Products of matrices in the memory of this process, through the BLAS that Kokkos Kernels calls
/// where that knows the scalar type.
#pragma once

#include <cstdint>
#include <limits>

#include "dtensor/core/tensor.hpp"

namespace dtensor::detail {

/// c = alpha a b + beta c, with the roles that BLAS gives them: beta of 0 does not read `c`. The
/// matrices are (m, k), (k, n) and (m, n), all with the same extra first dimension for a batch of
/// products, or none. Transposed views and blocks are used as they are, other strides are copied
/// first; `c` has dense rows. 16-bit types are multiplied and summed in float, integers wrap
/// around, on bool a sum is "or" and a product "and". All tensors have one scalar type and are in
/// the same memory. Local.
/// \param max_extent  the most rows or columns that BLAS can count
void gemm(const Scalar& alpha, const Tensor& a, const Tensor& b, const Scalar& beta,
          const Tensor& c, std::int64_t max_extent = std::numeric_limits<int>::max());

}  // namespace dtensor::detail
