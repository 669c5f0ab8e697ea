// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Running sums and products, on `Tensor` and `DTensor`.
#pragma once

#include <cstdint>

#include "dtensor/ops/any_tensor.hpp"

namespace dtensor {

namespace detail {
enum class Scan : std::uint8_t { sum, product };
Tensor scan(const char* function, const Tensor& a, std::int64_t dim, Scan operation);
DTensor scan(const char* function, const DTensor& a, std::int64_t dim, Scan operation);
}  // namespace detail

/// Element i along `dim` of the result is the sum (product) of elements 0 to i. Integers and bool
/// give int64 and wrap around, 16-bit types are accumulated in float. Throws `IndexError` for a
/// dimension out of range. Local on a `Tensor`. On a DTensor the placements are kept; where `dim`
/// is sharded, one all-gather of one number per line and piece. After `torch.cumsum`,
/// `torch.cumprod`.
template <AnyTensor T>
T cumsum(const T& a, std::int64_t dim) {
  return detail::scan("cumsum", a, dim, detail::Scan::sum);
}
template <AnyTensor T>
T cumprod(const T& a, std::int64_t dim) {
  return detail::scan("cumprod", a, dim, detail::Scan::product);
}

}  // namespace dtensor
