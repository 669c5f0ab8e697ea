// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// What every pointwise operator is, as data: one row per operator. The operators, their rules and
/// their documentation follow from it.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "dtensor/core/dtype.hpp"
#include "dtensor/ops/rule.hpp"

namespace dtensor {

// clang-format off
/// One row of the table each, in this order.
enum class PointwiseOp : std::uint8_t {
  abs, neg, sign, sqrt, rsqrt, square, exp, expm1, log, log1p, log2, sin, cos, tan, asin, acos, atan,
  sinh, cosh, tanh, sigmoid, erf, relu, gelu, gelu_tanh, silu, softplus, reciprocal, floor, ceil,
  round, trunc, isnan, isinf, isfinite, logical_not, bitwise_not, conj, real, imag, angle,
  add, sub, mul, div, floor_div, remainder, fmod, pow, maximum, minimum, atan2, hypot,
  eq, ne, lt, le, gt, ge, logical_and, logical_or, logical_xor,
  bitwise_and, bitwise_or, bitwise_xor, bitwise_left_shift, bitwise_right_shift,
  where, clamp, lerp, addcmul, addcdiv,
};
// clang-format on

/// The scalar type of a result, from the common type of the operands (docs/promotion.md).
enum class PointwiseResult : std::uint8_t {
  same,             ///< the common type
  fractional,       ///< the common type, float64 for integers and bool
  boolean,          ///< bool
  real,             ///< the common type, of complex numbers that of their parts
  real_fractional,  ///< both
};

/// Kinds of scalar types, as bits.
namespace kinds {
inline constexpr unsigned boolean = 1, integer = 2, floating = 4, complex = 8;
inline constexpr unsigned real_numbers = integer | floating;
inline constexpr unsigned numbers = real_numbers | complex;
inline constexpr unsigned no_complex = boolean | real_numbers;
inline constexpr unsigned all = boolean | numbers;
unsigned of(DType dtype) noexcept;
/// "integer, floating or complex numbers".
std::string describe(unsigned kinds);
}  // namespace kinds

/// One operator.
struct PointwiseRow {
  PointwiseOp op;
  const char* name;
  const char* in_place_name;  ///< `name` with an underscore
  int arity;                  ///< number of operands
  unsigned kinds;             ///< the common types it takes
  PointwiseResult result;
  /// What it hands on of Partial operands where all operands are tensors. A number as operand is a
  /// whole tensor; `pointwise_passes` says what else a number changes.
  PartialPasses passes;
};

/// All operators, in the order of `PointwiseOp`.
std::span<const PointwiseRow> pointwise_table();
const PointwiseRow& pointwise_row(PointwiseOp op);

/// What is known of the numbers among the operands: as much as decides on contributions, and no
/// value.
struct PointwiseNumbers {
  bool regular = true;    ///< none is infinite or NaN, and none a divisor of zero
  bool positive = false;  ///< the only one, a factor or divisor, is above zero
  bool zero = false;      ///< the only one is zero
};

/// The contributions that an operator hands on.
/// \param tensors    bit i says that operand i is a tensor. Inputs are numbered without the others.
/// \param converted  integers or bool are converted to another type, where they do not wrap around
///                   as before
/// \param common     what all operands are converted to
PartialPasses pointwise_passes(const PointwiseRow& row, unsigned tensors, bool converted,
                               DType common, const PointwiseNumbers& numbers);

}  // namespace dtensor
