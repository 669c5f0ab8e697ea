// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The scalar types that a pointwise operator computes in and gives.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/local/pointwise.hpp"
#include "dtensor/ops/promotion.hpp"

namespace dtensor::detail {

struct PointwiseTypes {
  DType common;  ///< what operands are converted to, and the arithmetic is that of
  DType result;
};

/// Throws `TypeError` for types that the operator does not take, `ValueError` for an integer that
/// does not fit, both naming `function`.
template <class T>
PointwiseTypes pointwise_types(const PointwiseRow& row, const char* function,
                               const Operands<T>& operands) {
  const bool fractional =
      row.result == PointwiseResult::fractional || row.result == PointwiseResult::real_fractional;
  const bool compares = row.result == PointwiseResult::boolean;
  // The condition of a choice is no part of its result.
  const int first = row.op == PointwiseOp::where ? 1 : 0;
  std::optional<DType> common;
  for (int i = first; i < operands.size(); ++i) {
    if (!operands[i].tensor) continue;
    const DType own = operands[i].tensor->dtype();
    common = common ? promoted_dtype(*common, own) : own;
  }
  if (common && (row.kinds & kinds::of(*common)) != 0 && fractional) {
    common = fractional_dtype(*common);
  }
  const bool has_tensor = common.has_value();
  // Integers last: whether one fits depends on the type that the other numbers make.
  for (const bool integers : {false, true}) {
    for (int i = first; i < operands.size(); ++i) {
      const Scalar& number = operands[i].number;
      if (operands[i].tensor || (number.kind() <= Scalar::Kind::integer) != integers) continue;
      if (!has_tensor) {
        const DType own = dtype_of_number(number);
        common = common ? promoted_dtype(*common, own) : own;
      } else if (compares && number.kind() == Scalar::Kind::integer && is_integral(*common) &&
                 !holds(*common, number)) {
        common = DType::int64;
      } else {
        common = common_dtype(function, *common, number);
      }
    }
  }
  if ((row.kinds & kinds::of(*common)) == 0) {
    throw TypeError(function, fmt::format("elements of {}", to_string(*common)),
                    fmt::format("{}; to(tensor, dtype) converts", kinds::describe(row.kinds)));
  }
  DType result = *common;
  if (compares) result = DType::boolean;
  if (row.result == PointwiseResult::real || row.result == PointwiseResult::real_fractional) {
    result = real_dtype(*common);
  }
  return {*common, result};
}

/// Throws `TypeError` unless an operator that works in place gives its first operand's type.
inline void check_in_place_dtype(const char* function, DType own, DType result) {
  if (own == result) return;
  throw TypeError(
      function, fmt::format("a tensor of {} for a result of {}", to_string(own), to_string(result)),
      "a tensor that can hold the result: in place, the scalar type stays");
}

}  // namespace dtensor::detail
