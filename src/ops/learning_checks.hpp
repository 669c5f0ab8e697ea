// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// What the functions of `ops/learning.hpp` ask of their arguments; every rank finds the same.
#pragma once

#include "dtensor/ops/learning.hpp"

namespace dtensor::detail {

/// The common type. Throws `TypeError` unless it is floating-point, `ValueError` unless `shape` is
/// the end of the tensor's.
DType check_normalize(const char* function, const Shape& a, DType dtype, const Shape& shape);
void check_parameter(const char* function, const Shape& parameter, DType parameter_dtype,
                     const Shape& shape, DType dtype);
void check_embedding(DType indices, const Shape& weight, DType dtype);
void check_attention(const Shape& query, DType query_dtype, const Shape& key, DType key_dtype,
                     const Shape& value, DType value_dtype);
double attention_scale(const Shape& query, const AttentionOptions& options);
/// \param weight  of classes, or null
void check_class_loss(const char* function, const Shape& a, DType dtype, const Shape& target,
                      DType target_dtype, const Shape* weight, DType weight_dtype);

}  // namespace dtensor::detail
