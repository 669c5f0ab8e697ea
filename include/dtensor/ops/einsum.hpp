// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Sums of products in Einstein's notation, on `Tensor` and `DTensor`.
#pragma once

#include <concepts>
#include <string_view>
#include <vector>

#include "dtensor/ops/any_tensor.hpp"

namespace dtensor {

namespace detail {
/// `einsum` on behalf of the operator `name`, a literal.
Tensor einsum(const char* name, std::string_view subscripts, const std::vector<Tensor>& operands);
DTensor einsum(const char* name, std::string_view subscripts, const std::vector<DTensor>& operands);
}  // namespace detail

/// Sums of products after `numpy.einsum` and `torch.einsum`:
///
///     einsum("bij,bjk->bik", a, b)   products of a batch of matrices
///     einsum("ii", a)                the trace
///     einsum("...ij->...ji", a)      transposition
///
/// \param subscripts  a letter for each dimension of each operand, separated by commas. A letter
///                    twice in one operand takes the diagonal; one that is missing after "->" is
///                    summed over. "..." stands for any number of dimensions, aligned from the last
///                    one. Without "->" the result has the dimensions of "..." and then, in
///                    alphabetical order, the letters that appear once. An extent of 1 stands for
///                    any. Blanks are ignored.
/// Of more than two operands, pairs are multiplied in the order that needs the fewest operations
/// (greedily chosen for more than eight operands). Each step is one operator on DTensors: what is
/// sharded alike is multiplied where it is, sharded dimensions that are summed over leave Partial.
/// The result may share memory with an operand that is only rearranged. Integers wrap around, on
/// bool a sum is "or" and a product "and".
/// Throws `ValueError` for subscripts of another form or shapes that do not fit them, `TypeError`
/// for operands of different scalar types. On DTensors collective, local otherwise.
template <AnyTensor T>
T einsum(std::string_view subscripts, const std::vector<T>& operands) {
  return detail::einsum("einsum", subscripts, operands);
}
template <AnyTensor T, std::same_as<T>... More>
T einsum(std::string_view subscripts, const T& first, const More&... more) {
  return detail::einsum("einsum", subscripts, std::vector<T>{first, more...});
}
DTENSOR_MIXED_OPERATOR(einsum)

}  // namespace dtensor
