// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Scalar types of results, and what operators ask of their inputs' types and memory.
#pragma once

#include "dtensor/core/tensor.hpp"
#include "dtensor/ops/rule.hpp"

namespace dtensor {

/// The type that holds the values of both, as docs/promotion.md lists: of the higher kind (bool <
/// integer < floating < complex), within a kind the wider one.
DType promoted_dtype(DType a, DType b) noexcept;

/// Throws `TypeError` naming `function` for two scalar types.
void check_same_dtype(const char* function, DType a, DType b);

/// For operators that do not convert: the common type of two tensors. Throws `TypeError` naming
/// `function` and both types unless they are equal.
DType common_dtype(const char* function, DType a, DType b);

/// The type of a tensor combined with a number: the tensor's own, unless the number is of a higher
/// kind (bool < integer < floating < complex). Then int64, float64, or the complex type of the
/// tensor's precision. Throws `ValueError` when an integer does not fit the resulting type.
DType common_dtype(const char* function, DType tensor, const Scalar& number);

/// The type of a number alone: bool, int64, float64 or complex128.
DType dtype_of_number(const Scalar& number) noexcept;

/// The type of a complex type's parts; any other type itself.
constexpr DType real_dtype(DType dtype) noexcept {
  if (!is_complex(dtype)) return dtype;
  return dtype == DType::complex128 ? DType::float64 : DType::float32;
}

/// The type of quotients, means and square roots: float64 for integers and bool, else the same.
constexpr DType fractional_dtype(DType dtype) noexcept {
  return is_floating(dtype) || is_complex(dtype) ? dtype : DType::float64;
}

/// The type of sums: int64 for integers and bool, else the same.
constexpr DType sum_dtype(DType dtype) noexcept {
  return is_floating(dtype) || is_complex(dtype) ? dtype : DType::int64;
}

/// `passes`, unless an operator converts integers or bool from `from` to `to`: sums of integers
/// wrap around, and a conversion of the wrapped sum is not the sum of conversions, so that it is
/// linear in nothing. (Contributions of bool are combined by "or", so the same holds for them.)
PartialPasses unless_converted(DType from, DType to, PartialPasses passes);

/// Throws `TypeError` naming `function` for bool.
void refuse_bool(const char* function, DType dtype);

/// Throws `TypeError` naming `function` unless both tensors are in the same memory.
void check_same_memory(const char* function, const Tensor& a, const Tensor& b);

}  // namespace dtensor
