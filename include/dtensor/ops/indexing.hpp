// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Operators that pick elements by tensors of indices or of truth values, on `Tensor` and
/// `DTensor`, after those of the same names in PyTorch.
///
/// Index tensors are of an integer type (`TypeError`), and count from 0. One that is out of range
/// throws `IndexError` on every rank of the mesh (a rank outside does not know the indices): an
/// index tensor that is sharded is looked at by all ranks together, with one small all-reduce; one
/// that is replicated needs none. Scalar types that differ throw `TypeError`, shapes that do not
/// fit `ValueError`. A `Tensor` together with a `DTensor` is a `TypeError`. No operator gathers the
/// tensor it picks from.
#pragma once

#include <cstdint>

#include "dtensor/ops/any_tensor.hpp"

namespace dtensor {

/// The indices `index` (1-D) of dimension `dim`, in that order. Where `dim` is not sharded, sharded
/// indices make a sharded result, without communication. Along a sharded `dim` every rank learns
/// all indices, and each picked part is sent once, to its even shard. Partial is handed on.
/// Collective where something has to move.
template <AnyTensor T>
T index_select(const T& a, std::int64_t dim, const T& index);

/// Element (i, j, k) of the result is that of `a` at (i, index(i, j, k), k) for `dim` 1: the shape
/// is that of `index`, which is no larger than `a` in other dimensions. Along a sharded `dim`,
/// where all ranks have the indices, each contributes the elements that it holds, without
/// communication: the result is Partial(sum). Indices that are sharded too make ranks exchange
/// parts of `a` so that each has whole lines along `dim`; where there are not enough lines, all
/// ranks learn the indices. Collective where something has to move.
template <AnyTensor T>
T gather(const T& a, std::int64_t dim, const T& index);

/// A copy of `a` with `src`(i, j, k) added at (i, index(i, j, k), k) for `dim` 1; an index that
/// occurs several times adds several, in order. `index` is no larger than `src`, and in other
/// dimensions no larger than `a`. The result has the placements of `a`: each rank adds what falls
/// into its part. For that indices and sources are brought to where `a` is; they are needed on all
/// ranks along mesh dimensions that shard `dim` or replicate `a`. Partial is handed on where `a`
/// and `src` are it alike. On bool, adding is "or". Collective where something has to move.
template <AnyTensor T>
T scatter_add(const T& a, std::int64_t dim, const T& index, const T& src);

/// `value` where `mask` is true, else the element of `a`; with broadcasting. Partial is handed on
/// where the reduction of `value` is `value`, such as a sum for 0. Throws `TypeError` for a mask
/// that is not bool and for a value of a higher kind than the tensor; bool takes 0 and 1.
/// Collective where an input has to be redistributed.
template <AnyTensor T>
T masked_fill(const T& a, const T& mask, const Scalar& value);

/// A new last dimension of `classes`, with 1 at the index and 0 elsewhere, in int64. With -1, as
/// many as the largest index needs: an all-reduce of one number, and `StateError` on ranks outside
/// of the mesh. Throws `ValueError` for a size that overflows. Any shard stays.
template <AnyTensor T>
T one_hot(const T& index, std::int64_t classes = -1);

DTENSOR_MIXED_OPERATOR(index_select)
DTENSOR_MIXED_OPERATOR(gather)
DTENSOR_MIXED_OPERATOR(masked_fill)
DTENSOR_MIXED_OPERATOR(scatter_add)

}  // namespace dtensor
