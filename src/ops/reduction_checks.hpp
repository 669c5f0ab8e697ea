// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// What reductions ask of their arguments; every rank finds the same.
#pragma once

#include "dtensor/core/dtype.hpp"
#include "dtensor/ops/dims.hpp"

namespace dtensor::detail {

/// Throws `TypeError` for complex numbers.
void check_ordered(const char* function, DType dtype);
/// Throws `ValueError` naming a reduced dimension of extent 0 when there are results that it leaves
/// without elements.
void check_not_empty(const char* function, const Shape& shape, DimSet dims);
/// Throws `ValueError` unless it is finite.
void check_correction(const char* function, double correction);
/// Throws `ValueError` for two shapes or negative tolerances, `TypeError` for two scalar types.
void check_comparable(const char* function, const Shape& a, DType a_dtype, const Shape& b,
                      DType b_dtype, double rtol, double atol);

}  // namespace dtensor::detail
