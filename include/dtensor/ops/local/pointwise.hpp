// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Element-by-element arithmetic on local tensors.
#pragma once

#include "dtensor/core/scalar.hpp"
#include "dtensor/core/tensor.hpp"

namespace dtensor {

/// With NumPy's broadcasting: dimensions are aligned from the last one, an extent of 1 stands for
/// any. Results are row-major. Tensors must have one scalar type (`TypeError`); a number leaves the
/// tensor's type as it is unless it is of a higher kind (bool < integer < floating < complex).
/// Integers wrap around. On bool, add is "or" and mul is "and". `ValueError` when shapes do not
/// fit, `TypeError` when the tensors are in different memory. All local.
Tensor add(const Tensor& a, const Tensor& b);
Tensor add(const Tensor& a, const Scalar& b);
/// Not for bool (`TypeError`).
Tensor sub(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Scalar& b);
Tensor sub(const Scalar& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Scalar& b);
/// The true quotient: integers and bool give float64.
Tensor div(const Tensor& a, const Tensor& b);
Tensor div(const Tensor& a, const Scalar& b);
Tensor div(const Scalar& a, const Tensor& b);

/// Integers and bool give float64; a negative number gives NaN.
Tensor sqrt(const Tensor& a);
/// Not for bool (`TypeError`).
Tensor neg(const Tensor& a);

}  // namespace dtensor
