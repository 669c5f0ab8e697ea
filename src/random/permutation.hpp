// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// A random permutation whose values can be computed one by one.
#pragma once

#include "dtensor/random/philox.hpp"

namespace dtensor {

/// A bijection of 0 .. n - 1: a Feistel network over the bits of the index, and cycle walking where
/// it leads outside (J. Black, P. Rogaway, "Ciphers with arbitrary finite domains", 2002). Less
/// than two walks on average. Every round, and so the network, is an even permutation; a random bit
/// exchanges what becomes of 0 and 1, so that odd ones are as likely.
class KeyedPermutation {
 public:
  static constexpr int rounds = 12;

  /// \param n  2 or more
  KeyedPermutation(const RandomBlocks& blocks, std::uint64_t n) : size_(n) {
    int bits = 2;
    while (bits < 64 && (std::uint64_t{1} << bits) < n) ++bits;
    low_bits_ = bits / 2;
    high_bits_ = bits - low_bits_;
    for (int r = 0; r < rounds; ++r) {
      const PhiloxBlock block = blocks[static_cast<std::uint64_t>(r / 2)];
      const std::uint32_t* word = block.word + 2 * (r % 2);
      keys_[r] = word[0] | static_cast<std::uint64_t>(word[1]) << 32;
    }
    exchange_ = blocks[rounds / 2].word[1] & 1;
  }

  KOKKOS_INLINE_FUNCTION std::uint64_t operator()(std::uint64_t index) const {
    if (index < 2) index ^= exchange_;
    do {
      index = encrypt(index);
    } while (index >= size_);
    return index;
  }

 private:
  KOKKOS_INLINE_FUNCTION std::uint64_t encrypt(std::uint64_t index) const {
    std::uint64_t low = index & ((std::uint64_t{1} << low_bits_) - 1), high = index >> low_bits_;
    for (int r = 0; r < rounds; r += 2) {
      high ^= mixed(low, keys_[r]) >> (64 - high_bits_);
      low ^= mixed(high, keys_[r + 1]) >> (64 - low_bits_);
    }
    return high << low_bits_ | low;
  }
  /// Its upper bits depend on all bits of both.
  KOKKOS_INLINE_FUNCTION static std::uint64_t mixed(std::uint64_t half, std::uint64_t key) {
    std::uint64_t x = (half ^ key) * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 32) * 0xD2B74407B1CE6E93u;
    return x ^ x >> 32;
  }

  std::uint64_t size_;
  int low_bits_, high_bits_;
  std::uint64_t exchange_;
  std::uint64_t keys_[rounds];
};

}  // namespace dtensor
