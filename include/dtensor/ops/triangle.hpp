// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Parts of matrices beside a diagonal, on `Tensor` and `DTensor`.
#pragma once

#include <cstdint>

#include "dtensor/ops/any_tensor.hpp"

namespace dtensor {

/// The matrices of the last two dimensions with zeros above (`tril`) or below (`triu`) the diagonal
/// that is `diagonal` places to the right of the main one. Any placement is kept, Partial too:
/// zeros reduce to zero. Throws `ValueError` for less than two dimensions. Local.
template <AnyTensor T>
T tril(const T& a, std::int64_t diagonal = 0);
template <AnyTensor T>
T triu(const T& a, std::int64_t diagonal = 0);

/// The diagonal `offset` places to the right of the main one, of dimensions `dim1` and `dim2`, as
/// the last dimension of the result: a view. On a DTensor each element stays on its rank. Where one
/// of the two dimensions is sharded, so is the diagonal; where both are, or no placement describes
/// the part that a rank has, the result is Partial(sum): each rank contributes the elements it has,
/// in a copy. Throws `ValueError` for twice the same dimension. Local, but for a Partial input that
/// is no sum or average and has to be reduced then.
template <AnyTensor T>
T diagonal(const T& a, std::int64_t offset = 0, std::int64_t dim1 = 0, std::int64_t dim2 = 1);

}  // namespace dtensor
