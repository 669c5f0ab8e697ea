// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The counter-based generator Philox 4x32-10: J. Salmon, M. Moraes, R. Dror, D. Shaw, "Parallel
/// random numbers: as easy as 1, 2, 3", SC 2011. A key and a counter give four random words; there
/// is no other state.
#pragma once

#include <Kokkos_Core.hpp>
#include <cstdint>

namespace dtensor {

/// Four words: a counter, or what comes out for one.
struct PhiloxBlock {
  std::uint32_t word[4];
};

struct PhiloxKey {
  std::uint32_t word[2];

  /// The key of the next round.
  KOKKOS_INLINE_FUNCTION void bump() {
    word[0] += 0x9E3779B9u;
    word[1] += 0xBB67AE85u;
  }
};

inline constexpr int philox_rounds = 10;

KOKKOS_INLINE_FUNCTION void philox_round(std::uint32_t& a, std::uint32_t& b, std::uint32_t& c,
                                         std::uint32_t& d, const PhiloxKey& key) {
  const std::uint64_t p = std::uint64_t{0xD2511F53u} * a;
  const std::uint64_t q = std::uint64_t{0xCD9E8D57u} * c;
  a = static_cast<std::uint32_t>(q >> 32) ^ b ^ key.word[0];
  b = static_cast<std::uint32_t>(q);
  c = static_cast<std::uint32_t>(p >> 32) ^ d ^ key.word[1];
  d = static_cast<std::uint32_t>(p);
}

/// The random block of a counter. For one key this is a bijection.
KOKKOS_INLINE_FUNCTION PhiloxBlock philox(PhiloxBlock counter, PhiloxKey key) {
  std::uint32_t* w = counter.word;
  for (int round = 0; round < philox_rounds; ++round) {
    philox_round(w[0], w[1], w[2], w[3], key);
    key.bump();
  }
  return counter;
}

/// The blocks of random words that one call draws from, numbered from 0. Element `i` of a tensor
/// takes its words from places that depend on `i` only.
struct RandomBlocks {
  PhiloxKey key;
  std::uint32_t high[2];  ///< the upper half of the counter, which tells calls and streams apart

  KOKKOS_INLINE_FUNCTION PhiloxBlock counter(std::uint64_t number) const {
    return {{static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32), high[0],
             high[1]}};
  }
  KOKKOS_INLINE_FUNCTION PhiloxBlock operator[](std::uint64_t number) const {
    return philox(counter(number), key);
  }
};

}  // namespace dtensor
