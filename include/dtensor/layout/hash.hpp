// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// One way to combine hashes, the same on every rank and in every run.
#pragma once

#include <cstdint>

namespace dtensor {

/// Accumulates 64-bit values; the finalizer of SplitMix64 (Steele, Lea, Flood 2014) mixes each in.
class Hash {
 public:
  void add(std::uint64_t value) noexcept {
    std::uint64_t z = state_ + 0x9e3779b97f4a7c15ull + value;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    state_ = z ^ (z >> 31);
  }
  template <class Range>
  void add_range(const Range& range) noexcept {
    add(static_cast<std::uint64_t>(range.end() - range.begin()));
    for (const auto& v : range) add(static_cast<std::uint64_t>(v));
  }
  std::uint64_t value() const noexcept { return state_; }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace dtensor
