// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Sums over dimensions of local tensors.
#pragma once

#include <cstdint>
#include <vector>

#include "dtensor/core/tensor.hpp"

namespace dtensor {

/// Sum over the given dimensions, which may count from the end; over all without them. 16-bit
/// types are accumulated in float, integers and bool give int64. The sum of nothing is 0.
/// \param keepdim  keep reduced dimensions with extent 1
/// Throws `IndexError` for a dimension out of range, `ValueError` for one given twice. Local.
Tensor sum(const Tensor& a);
Tensor sum(const Tensor& a, const std::vector<std::int64_t>& dims, bool keepdim = false);

/// The same divided by the number of elements summed; integers and bool give float64. The mean of
/// nothing is NaN.
Tensor mean(const Tensor& a);
Tensor mean(const Tensor& a, const std::vector<std::int64_t>& dims, bool keepdim = false);

namespace detail {

/// Which dimensions are reduced, one flag per dimension of a tensor.
std::vector<bool> reduced_dims(const char* function, const std::vector<std::int64_t>& dims,
                               int rank);

/// Sum divided by `divisor` (1 for none) before it is rounded to `result`, the type of sums or,
/// after a conversion, of means.
Tensor scaled_sum(const Tensor& a, const std::vector<bool>& reduced, bool keepdim, DType result,
                  std::int64_t divisor);

}  // namespace detail
}  // namespace dtensor
