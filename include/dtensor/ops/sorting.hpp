// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Sorting on `Tensor` and `DTensor`.
///
/// Every scalar type but the complex ones, which have no order (`TypeError`). NaN counts as the
/// largest number, -0 as equal to 0. Of equal numbers the one with the lower index comes first, in
/// either direction, so that results do not depend on the layout. Indices are int64 and global.
/// A Partial input is reduced first.
#pragma once

#include <cstdint>

#include "dtensor/ops/any_tensor.hpp"

namespace dtensor {

/// The elements in order along `dim`. On a DTensor the result has the placements of the input.
/// Along a sharded dimension, ranks exchange elements so that each sorts whole lines, if there are
/// enough lines for all; else they agree on splitters (a sample sort): an element is sent three
/// times at most, and nothing is gathered. Throws `IndexError` for a dimension out of range.
/// Collective there, local otherwise.
template <AnyTensor T>
ValuesAndIndices<T> sort(const T& a, std::int64_t dim = -1, bool descending = false);

/// The indices of `sort`.
template <AnyTensor T>
T argsort(const T& a, std::int64_t dim = -1, bool descending = false);

/// The `k` largest elements along `dim`, or the smallest, in order. Along a sharded dimension each
/// rank contributes the `k` that could be among them: one all-gather of these, after which the
/// result is replicated on the mesh dimensions that shard it. Throws `ValueError` unless `k` is
/// from 0 to the extent. Collective there, local otherwise.
template <AnyTensor T>
ValuesAndIndices<T> topk(const T& a, std::int64_t k, std::int64_t dim = -1, bool largest = true);

}  // namespace dtensor
