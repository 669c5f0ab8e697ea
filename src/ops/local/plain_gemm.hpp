// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Products of matrices for what BLAS does not do, or not well: integers and bool, and batches of
/// small matrices.
#pragma once

#include "dtensor/core/tensor.hpp"

namespace dtensor {

/// c = alpha a b + beta c as `detail::gemm`, for (batch, m, k), (batch, k, n) and (batch, m, n) of
/// any strides and all scalar types but the 16-bit floating ones.
void plain_gemm(const Scalar& alpha, const Tensor& a, const Tensor& b, const Scalar& beta,
                const Tensor& c);

}  // namespace dtensor
