// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Operators that rearrange elements, on `Tensor` and `DTensor`, after those of the same names in
/// PyTorch.
///
/// Views share memory with their input. On a DTensor they also leave every element on the rank
/// that has it: what results has the placements that say where the elements are, uneven ones where
/// needed. Where a view cannot be one its description says what happens. The results of copies are
/// new memory always, also where nothing changes; `reshape` alone gives a view where it can.
/// Element moves hand on every Partial, as each contribution is moved alike.
///
/// All throw `IndexError` for a dimension or position out of range and `ValueError` for shapes that
/// do not fit, that have more than 8 dimensions or whose size overflows; every rank finds the same.
/// Those that may have to move elements between ranks say
/// so and are collective over the mesh then, with an event; all others are local.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

#include "dtensor/ops/any_tensor.hpp"

namespace dtensor {

/// Extents as an argument: a `Shape`, a list in braces or a vector. More than a tensor can have
/// throw the `ValueError` of the operator that takes them.
class ShapeArgument {
 public:
  ShapeArgument(const Shape& shape);
  ShapeArgument(std::initializer_list<std::int64_t> extents);
  ShapeArgument(const std::vector<std::int64_t>& extents);

  const Shape& of(const char* function) const;

 private:
  Shape extents_;
  std::size_t size_;
};

// --- views --------------------------------------------------------------------------------------

/// The same elements in another shape, of which one extent may be -1: what is left. Throws
/// `ValueError` when the strides do not allow a view, on a DTensor `LayoutError` with a placement
/// that would do when elements would have to move between ranks; `reshape` copies and moves. Of
/// uneven shards that lie in very many pieces in the new shape (`max_view_intervals` in
/// view_rule.hpp) it is not looked up whether they would: these are a `LayoutError` as well. Local.
/// (Where a local tensor from `from_local` has gaps that the global strides do not tell of, its
/// elements are copied.)
template <AnyTensor T>
T view(const T& a, const ShapeArgument& shape);
/// Dimensions `start` to `end`, both included, as one. Negative ones count from the end. A view
/// where `view` is one, else as `reshape`. A tensor without dimensions counts as one of shape (1,).
template <AnyTensor T>
T flatten(const T& a, std::int64_t start = 0, std::int64_t end = -1);
/// One dimension as several. One of `sizes` may be -1. As `view`.
template <AnyTensor T>
T unflatten(const T& a, std::int64_t dim, const ShapeArgument& sizes);
/// Dimension `i` of the result is `dims[i]` of `a`.
template <AnyTensor T>
T permute(const T& a, const std::vector<std::int64_t>& dims);
/// Two dimensions exchanged.
template <AnyTensor T>
T transpose(const T& a, std::int64_t dim0, std::int64_t dim1);
/// Dimensions `source` at the positions `destination`, the others in order.
template <AnyTensor T>
T movedim(const T& a, const std::vector<std::int64_t>& source,
          const std::vector<std::int64_t>& destination);
/// Without dimensions of extent 1: all of them, or `dim` if it is one. Where such a dimension is
/// sharded one rank has all elements, and keeps them: the result is an uneven shard of another
/// dimension. If there is none, the element is sent to all ranks.
template <AnyTensor T>
T squeeze(const T& a);
template <AnyTensor T>
T squeeze(const T& a, std::int64_t dim);
/// A new dimension of extent 1 at position `dim`.
template <AnyTensor T>
T unsqueeze(const T& a, std::int64_t dim);
/// Dimensions of extent 1 repeated, in memory only once, and new ones in front; -1 keeps an extent.
/// A sharded dimension of extent 1 that is repeated is sent to all ranks.
template <AnyTensor T>
T expand(const T& a, const ShapeArgument& shape);
/// Indices `start` to `start + length` of one dimension; a negative start counts from the end.
/// Along a sharded one, elements stay where they are, as an uneven shard. Where no placement says
/// that, as for most parts of a strided shard or of a dimension that several mesh dimensions split,
/// the result is a copy instead: elements are moved to where the placements of `a` have them for
/// the new extent (even shards for given extents). Collective then.
template <AnyTensor T>
T narrow(const T& a, std::int64_t dim, std::int64_t start, std::int64_t length);
/// Indices `start`, `start + step`, ... below `end` of one dimension, as Python's slices: negative
/// ones count from the end, and what is out of range is left out. As `narrow`; also a copy where
/// the positions of a rank are not evenly spaced. Throws `ValueError` for a step below 1.
template <AnyTensor T>
T slice(const T& a, std::int64_t dim, std::int64_t start,
        std::int64_t end = std::numeric_limits<std::int64_t>::max(), std::int64_t step = 1);
/// One index of a dimension, without the dimension. As `narrow` and `squeeze`.
template <AnyTensor T>
T select(const T& a, std::int64_t dim, std::int64_t index);
/// Pieces of `size` indices, the last one smaller; or of the given sizes, which braces always are:
/// `split(x, {5})` is one piece. Each as `narrow`.
template <AnyTensor T>
std::vector<T> split(const T& a, std::int64_t size, std::int64_t dim = 0);
template <AnyTensor T>
std::vector<T> split(const T& a, const std::vector<std::int64_t>& sizes, std::int64_t dim = 0);
template <AnyTensor T>
std::vector<T> split(const T& a, std::initializer_list<std::int64_t> sizes, std::int64_t dim = 0) {
  return split(a, std::vector<std::int64_t>(sizes), dim);
}
/// At most `count` pieces of equal size but for the last. Each as `narrow`.
template <AnyTensor T>
std::vector<T> chunk(const T& a, std::int64_t count, std::int64_t dim = 0);

// --- copies -------------------------------------------------------------------------------------

/// `view` where that is possible, else a copy. On a DTensor, where a view would need elements of
/// other ranks, each is sent once to where it belongs under even shards of the first dimension that
/// the sharded one is part of. Collective then.
template <AnyTensor T>
T reshape(const T& a, const ShapeArgument& shape);
/// The whole tensor `times[d]` times along each dimension; more numbers than dimensions add
/// dimensions in front. A shard becomes a strided one without communication where placements can
/// say so, else the elements are sent to even shards. Collective then.
template <AnyTensor T>
T repeat(const T& a, const std::vector<std::int64_t>& times);
/// One after the other along `dim`, all other extents equal. The placements are those
/// that take the least to move to; along a sharded `dim` each element is sent at most once, to its
/// even shard. Throws `TypeError` for different scalar types.
template <AnyTensor T>
T cat(const std::vector<T>& tensors, std::int64_t dim = 0);
template <AnyTensor T>
T cat(std::initializer_list<T> tensors, std::int64_t dim = 0) {
  return cat(std::vector<T>(tensors), dim);
}
/// Side by side along a new dimension, all shapes equal. As `cat`.
template <AnyTensor T>
T stack(const std::vector<T>& tensors, std::int64_t dim = 0);
template <AnyTensor T>
T stack(std::initializer_list<T> tensors, std::int64_t dim = 0) {
  return stack(std::vector<T>(tensors), dim);
}
/// The order of the indices of these dimensions reversed. The placements stay; along a sharded
/// dimension each element is sent at most once.
template <AnyTensor T>
T flip(const T& a, const std::vector<std::int64_t>& dims);
/// Indices moved up by `shifts`, what leaves at the end enters at the front; without dimensions,
/// in the flattened tensor. As `flip`.
template <AnyTensor T>
T roll(const T& a, const std::vector<std::int64_t>& shifts,
       const std::vector<std::int64_t>& dims = {});
/// `value` around the elements: `pads` has numbers before and after for the last dimension, then
/// the one before it, and so on; negative ones cut off. A sharded dimension is left in even shards.
/// Partial is handed on where the reduction of `value` is `value`, such as a sum for 0. Throws
/// `TypeError` for a value of a higher kind than the tensor; bool takes 0 and 1.
template <AnyTensor T>
T pad(const T& a, const std::vector<std::int64_t>& pads, const Scalar& value = 0);

}  // namespace dtensor
