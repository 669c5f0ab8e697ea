// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `Transfer`: the elements that one local tensor hands to another, without communication.
#pragma once

#include <cstdint>
#include <vector>

#include "dtensor/core/extents.hpp"
#include "dtensor/layout/index_set.hpp"

namespace dtensor {

/// A product of runs: for every combination of one run per tensor dimension, the elements at local
/// positions `first` of the source and `second` of the destination. Both sides walk the elements in
/// the order of the dimensions, which is the order they have in a message.
struct Transfer {
  std::vector<std::vector<Overlap>> runs;  ///< per tensor dimension
  std::int64_t elements = 0;

  bool empty() const noexcept { return elements == 0; }
  /// Sets `elements` from the runs.
  void count() noexcept;
};

/// Cuts a transfer into consecutive parts of at most `max_elements` each.
std::vector<Transfer> slice(const Transfer& transfer, std::int64_t max_elements);

/// Whether the elements lie in one piece, in order, in a dense row-major tensor of the shape of one
/// of the two sides.
bool is_block(const Transfer& transfer, const Shape& local_shape);

/// Calls `f(source position, destination position, extents)` for every box of the product.
template <class F>
void for_each_box(const Transfer& transfer, F&& f) {
  if (transfer.empty()) return;
  const int rank = static_cast<int>(transfer.runs.size());
  Extents index = Extents::filled(rank, 0);
  Extents source = index, destination = index, extents = index;
  while (true) {
    for (int d = 0; d < rank; ++d) {
      const Overlap& o =
          transfer.runs[static_cast<std::size_t>(d)][static_cast<std::size_t>(index[d])];
      source[d] = o.first;
      destination[d] = o.second;
      extents[d] = o.length;
    }
    f(source, destination, extents);
    int d = rank - 1;
    while (d >= 0 && ++index[d] == static_cast<std::int64_t>(
                                       transfer.runs[static_cast<std::size_t>(d)].size())) {
      index[d--] = 0;
    }
    if (d < 0) return;
  }
}

}  // namespace dtensor
