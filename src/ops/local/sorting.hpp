// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sorting of pairs: the bits of a value, ordered like the values, and an index. There is one kernel
// for all scalar types, and the pairs can be sent to other ranks and turned back into values.
#pragma once

#include <cstdint>
#include <utility>

#include "dtensor/core/tensor.hpp"

namespace dtensor::detail {

struct Pair {
  std::uint64_t bits;
  std::int64_t index;
};

/// How the bits of a scalar type are compared.
struct PairOrder {
  std::uint64_t zero = 0;                     ///< of +0; 0 for types without a -0
  std::uint64_t lowest = 0, highest = ~0ull;  ///< of -inf and +inf: beyond are NaNs
  std::uint64_t flip = 0;                     ///< all ones for descending order

  PairOrder(DType dtype, bool descending);
  PairOrder() = default;

  KOKKOS_INLINE_FUNCTION std::uint64_t key(std::uint64_t bits) const {
    std::uint64_t k = bits;
    if (zero != 0 && bits == zero - 1) k = zero;
    if (bits < lowest || bits > highest) k = ~0ull;
    return k ^ flip;
  }
  KOKKOS_INLINE_FUNCTION bool less(const Pair& a, const Pair& b) const {
    const std::uint64_t x = key(a.bits), y = key(b.bits);
    return x != y ? x < y : a.index < b.index;
  }
};

/// Pairs (lines, extent, 2) in int64 of a tensor's elements along `dim`, with the given index for
/// each position (int64, in the same memory). Lines are in the order of the other dimensions.
Tensor make_pairs(const Tensor& a, int dim, const Tensor& index);
/// The values and indices of pairs (lines, extent, 2): the reverse. \param shape of the result
std::pair<Tensor, Tensor> split_pairs(const Tensor& pairs, const Shape& shape, int dim,
                                      DType dtype);

/// Sorts each line of dense pairs in place.
void sort_pairs(const Tensor& pairs, const PairOrder& order);
/// The first `k` of each line in order; the others are left in any order.
Tensor top_pairs(const Tensor& pairs, std::int64_t k, const PairOrder& order);
/// For each line and each of its splitters (lines, count, 2) the number of pairs before it. The
/// lines are sorted.
Tensor count_before(const Tensor& pairs, const Tensor& splitters, const PairOrder& order);

}  // namespace dtensor::detail
