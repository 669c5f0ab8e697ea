// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Many blocks at once on the host, as structures of arrays that compilers turn into vector code.
#pragma once

#include <cstdint>

#include "dtensor/random/philox.hpp"

namespace dtensor {

struct BlockBatch {
  static constexpr int capacity = 64;
  alignas(64) std::uint32_t word[4][capacity];

  /// Blocks `first` to `first + count - 1`.
  void draw(const RandomBlocks& blocks, std::uint64_t first, int count) {
    for (int b = 0; b < count; ++b) {
      const PhiloxBlock counter = blocks.counter(first + static_cast<std::uint64_t>(b));
      for (int w = 0; w < 4; ++w) word[w][b] = counter.word[w];
    }
    PhiloxKey key = blocks.key;
    for (int round = 0; round < philox_rounds; ++round) {
      for (int b = 0; b < count; ++b) {
        philox_round(word[0][b], word[1][b], word[2][b], word[3][b], key);
      }
      key.bump();
    }
  }

  /// The numbers that a distribution makes of them, in order.
  template <class Distribution>
  void transform(const Distribution& distribution, int count,
                 typename Distribution::Value* KOKKOS_RESTRICT out) const {
    constexpr int per_block = Distribution::per_block;
    for (int b = 0; b < count; ++b) {
      const PhiloxBlock block = {{word[0][b], word[1][b], word[2][b], word[3][b]}};
      typename Distribution::Value values[per_block];
      distribution(block, values);
      for (int i = 0; i < per_block; ++i) out[b * per_block + i] = values[i];
    }
  }
};

}  // namespace dtensor
