// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A plain model of placements for the tests of redistribution: lists of indices cut the way
// torch.chunk cuts, and values looked up one by one. It shares no code with the library but the
// names of placements.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "dtensor/layout/layout.hpp"

namespace dtensor::testing {

using Indices = std::vector<std::int64_t>;

inline std::vector<Indices> naive_chunk(const Indices& list, std::int64_t parts) {
  const auto n = static_cast<std::int64_t>(list.size());
  const std::int64_t step = (n + parts - 1) / parts;
  std::vector<Indices> result(static_cast<std::size_t>(parts));
  for (std::int64_t i = 0; i < n; ++i) {
    result[static_cast<std::size_t>(i / step)].push_back(list[static_cast<std::size_t>(i)]);
  }
  return result;
}

inline Indices naive_split(const Indices& list, const Placement& p, std::int64_t part,
                           std::int64_t parts) {
  if (p.has_extents()) {
    std::size_t begin = 0;
    for (std::int64_t i = 0; i < part; ++i) {
      begin += static_cast<std::size_t>(p.extents()[static_cast<std::size_t>(i)]);
    }
    const auto length = static_cast<std::size_t>(p.extents()[static_cast<std::size_t>(part)]);
    return Indices(list.begin() + static_cast<std::ptrdiff_t>(begin),
                   list.begin() + static_cast<std::ptrdiff_t>(begin + length));
  }
  Indices result;
  for (const Indices& piece : naive_chunk(list, p.split_factor())) {
    const Indices own = naive_chunk(piece, parts)[static_cast<std::size_t>(part)];
    result.insert(result.end(), own.begin(), own.end());
  }
  return result;
}

/// What a mesh coordinate holds of each tensor dimension, mesh dimensions splitting in `order`.
inline std::vector<Indices> naive_indices(const Shape& shape, const Placements& placements,
                                          const Shape& mesh, const Extents& coordinate,
                                          const std::vector<int>& order) {
  std::vector<Indices> result;
  for (int d = 0; d < shape.size(); ++d) {
    Indices list;
    for (std::int64_t i = 0; i < shape[d]; ++i) list.push_back(i);
    for (int m : order) {
      const Placement& p = placements[static_cast<std::size_t>(m)];
      if (p.is_shard(d)) list = naive_split(list, p, coordinate[m], mesh[m]);
    }
    result.push_back(list);
  }
  return result;
}

/// Linear global indices of what a coordinate holds, in local row-major order.
inline Indices naive_elements(const Shape& shape, const std::vector<Indices>& held) {
  Indices result{0};
  for (int d = 0; d < shape.size(); ++d) {
    Indices next;
    for (std::int64_t base : result) {
      for (std::int64_t i : held[static_cast<std::size_t>(d)]) next.push_back(base * shape[d] + i);
    }
    result = std::move(next);
  }
  return result;
}

/// Reduction of one contribution into another, in 64-bit integers or doubles.
template <class T>
T naive_reduce(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return a + b;
    case ReduceOp::min:
      return b < a ? b : a;
    case ReduceOp::max:
      return b > a ? b : a;
    case ReduceOp::product:
      return a * b;
    default:
      break;
  }
  const auto x = static_cast<std::int64_t>(a), y = static_cast<std::int64_t>(b);
  return static_cast<T>(op == ReduceOp::band ? (x & y) : op == ReduceOp::bor ? (x | y) : (x ^ y));
}

}  // namespace dtensor::testing
