// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Where random numbers come from: the state on the host, and what a kernel draws from.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "dtensor/random/philox.hpp"
#include "dtensor/random/transforms.hpp"

namespace dtensor {

/// Random numbers of one index, one after the other, inside a kernel. Which they are depends on the
/// index and the generator's state only, not on the thread, the rank or the backend.
class RandomSequence {
 public:
  KOKKOS_INLINE_FUNCTION RandomSequence(const PhiloxKey& key, const PhiloxBlock& counter)
      : key_(key), counter_(counter) {}

  KOKKOS_INLINE_FUNCTION std::uint32_t uint32() {
    if (used_ == 4) {
      block_ = philox(counter_, key_);
      ++counter_.word[2];
      if (counter_.word[2] == 0) ++counter_.word[3];
      used_ = 0;
    }
    return block_.word[used_++];
  }
  KOKKOS_INLINE_FUNCTION std::uint64_t uint64() {
    const std::uint64_t low = uint32();
    return low | static_cast<std::uint64_t>(uint32()) << 32;
  }
  /// In [0, 1). `Real` is float (one word) or double (two words).
  template <class Real>
  KOKKOS_INLINE_FUNCTION Real uniform() {
    const std::uint32_t low = uint32();
    if constexpr (std::is_same_v<Real, float>) {
      return detail::unit_float(low);
    } else {
      static_assert(std::is_same_v<Real, double>, "float or double");
      return detail::unit_double(low, uint32());
    }
  }
  /// Of mean 0 and variance 1. Two words for float, four for double.
  template <class Real>
  KOKKOS_INLINE_FUNCTION Real normal() {
    const std::uint32_t a = uint32(), b = uint32();
    if constexpr (std::is_same_v<Real, float>) {
      return detail::normal_pair(a, b).first;
    } else {
      static_assert(std::is_same_v<Real, double>, "float or double");
      const std::uint32_t c = uint32();
      return detail::normal_pair(a, b, c, uint32()).first;
    }
  }
  /// Above 0, of mean 1. One word for float, two for double.
  template <class Real>
  KOKKOS_INLINE_FUNCTION Real exponential() {
    const std::uint32_t low = uint32();
    if constexpr (std::is_same_v<Real, float>) {
      return detail::minus_log_unit(low);
    } else {
      static_assert(std::is_same_v<Real, double>, "float or double");
      return detail::minus_log_unit(low, uint32());
    }
  }

 private:
  PhiloxKey key_;
  PhiloxBlock counter_;
  PhiloxBlock block_ = {};
  int used_ = 4;
};

/// What a kernel draws from: a small value to be captured. Give it global indices, and the numbers
/// do not depend on how a tensor is distributed.
///
///     const auto random = generator.device();
///     const auto index = global_index(x);              // x: a DTensor
///     Kokkos::parallel_for(n, KOKKOS_LAMBDA(int i) {
///       auto r = random.at(index(i));
///       view(i) += r.normal<double>() * r.uniform<double>();
///     });
class DeviceGenerator {
 public:
  explicit DeviceGenerator(const RandomBlocks& blocks) : blocks_(blocks) {}

  /// The numbers of one index; see `Generator::device` for how many there are.
  KOKKOS_INLINE_FUNCTION RandomSequence at(std::int64_t index) const {
    return {blocks_.key, blocks_.counter(static_cast<std::uint64_t>(index))};
  }

 private:
  RandomBlocks blocks_;
};

/// A seed, a stream and how far it has been drawn from: all the state there is. Nothing here
/// communicates; ranks that make the same calls hold the same state, whatever the layouts are.
///
/// Every call that draws takes the next offset. The Philox key is the seed; the counter is
///
///     64 bits: number of the block in the call | 40 bits: offset | 24 bits: stream
///
/// so that no two calls of any streams of one seed share a block. Not for use by several threads
/// at once.
class Generator {
 public:
  static constexpr std::uint64_t max_offset = (std::uint64_t{1} << 40) - 1;
  static constexpr std::uint32_t max_stream = (std::uint32_t{1} << 24) - 1;

  /// \param stream  one of 2^24 independent streams, for pipeline stages, members of an ensemble...
  /// Throws `ValueError` for a stream or an offset beyond the largest.
  explicit Generator(std::uint64_t seed = 0, std::uint32_t stream = 0, std::uint64_t offset = 0);

  std::uint64_t seed() const noexcept { return seed_; }
  std::uint32_t stream() const noexcept { return stream_; }
  /// The number of offsets that have been taken.
  std::uint64_t offset() const noexcept { return offset_; }

  /// Starts over with this seed, on the same stream.
  void manual_seed(std::uint64_t seed) noexcept {
    seed_ = seed;
    offset_ = 0;
  }

  /// Numbers for a kernel of one's own. At each index there are `4 * blocks` words; what is drawn
  /// beyond them are words of later calls. Takes `blocks` offsets. Throws `StateError` when the
  /// stream is used up, `ValueError` for less than one block.
  DeviceGenerator device(std::int64_t blocks = 256);

  /// Takes the next `count` offsets on behalf of `function`. For operators.
  RandomBlocks take(const char* function, std::uint64_t count = 1);

  /// "philox4x32-10 seed=1 stream=0 offset=7": what a checkpoint keeps as an attribute.
  std::string state() const;
  /// Throws `ValueError` for a text that `state` has not made.
  void set_state(const std::string& state);

  friend bool operator==(const Generator&, const Generator&) = default;

 private:
  std::uint64_t seed_;
  std::uint32_t stream_;
  std::uint64_t offset_;
};

/// `Generator::state`.
std::string to_string(const Generator& generator);

/// This process's generator, which operators draw from unless they are given another. Seed 0 at the
/// start on every rank.
Generator& default_generator();

/// Seeds the default generator. Local; call it on every rank alike.
void manual_seed(std::uint64_t seed);

}  // namespace dtensor
