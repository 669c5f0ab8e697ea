// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/random/generator.hpp"

#include <fmt/format.h>

#include <cinttypes>
#include <cstdio>

#include "dtensor/core/error.hpp"

namespace dtensor {

Generator::Generator(std::uint64_t seed, std::uint32_t stream, std::uint64_t offset)
    : seed_(seed), stream_(stream), offset_(offset) {
  if (stream > max_stream || offset > max_offset) {
    throw ValueError(
        "Generator", fmt::format("stream {}, offset {}", stream, offset),
        fmt::format("a stream up to {} and an offset up to {}", max_stream, max_offset));
  }
}

RandomBlocks Generator::take(const char* function, std::uint64_t count) {
  if (count > max_offset - offset_) {
    throw StateError(
        function, fmt::format("{} offsets from {}", count, state()),
        fmt::format("offsets up to {}; go on with another seed or stream", max_offset));
  }
  const std::uint64_t first = offset_;
  offset_ += count;
  const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  return {{{low(seed_), low(seed_ >> 32)}}, {low(first), low(first >> 32) | stream_ << 8}};
}

DeviceGenerator Generator::device(std::int64_t blocks) {
  if (blocks < 1) {
    throw ValueError("Generator::device", fmt::format("{} blocks", blocks), "one block or more");
  }
  return DeviceGenerator(take("Generator::device", static_cast<std::uint64_t>(blocks)));
}

std::string Generator::state() const {
  return fmt::format("philox4x32-10 seed={} stream={} offset={}", seed_, stream_, offset_);
}

void Generator::set_state(const std::string& text) {
  std::uint64_t seed = 0, offset = 0;
  std::uint32_t stream = 0;
  const int found =
      std::sscanf(text.c_str(), "philox4x32-10 seed=%" SCNu64 " stream=%" SCNu32 " offset=%" SCNu64,
                  &seed, &stream, &offset);
  if (found == 3 && stream <= max_stream && offset <= max_offset) {
    const Generator read(seed, stream, offset);
    // Only what comes out the same again was read whole.
    if (read.state() == text) {
      *this = read;
      return;
    }
  }
  throw ValueError("Generator::set_state", "\"" + text + "\"",
                   "a text such as \"" + state() + "\"");
}

std::string to_string(const Generator& generator) { return generator.state(); }

Generator& default_generator() {
  static Generator generator;
  return generator;
}

void manual_seed(std::uint64_t seed) { default_generator().manual_seed(seed); }

}  // namespace dtensor
