// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The generator's state, and how calls and streams share the counter.
#include "dtensor/random/generator.hpp"

#include <gtest/gtest.h>

#include "dtensor/core/error.hpp"

using namespace dtensor;

TEST(Generator, StateAsTextAndBack) {
  const std::uint64_t large = 0xfedcba9876543210u;
  const Generator generator(large, Generator::max_stream, Generator::max_offset);
  EXPECT_EQ(generator.state(),
            "philox4x32-10 seed=18364758544493064720 stream=16777215 offset=1099511627775");
  EXPECT_EQ(to_string(generator), generator.state());
  Generator copy;
  EXPECT_EQ(copy.state(), "philox4x32-10 seed=0 stream=0 offset=0");
  copy.set_state(generator.state());
  EXPECT_EQ(copy, generator);
  EXPECT_EQ(copy.seed(), large);
  EXPECT_EQ(copy.stream(), Generator::max_stream);
  EXPECT_EQ(copy.offset(), Generator::max_offset);
}

TEST(Generator, RefusesOtherTexts) {
  Generator generator(1, 2, 3);
  const Generator before = generator;
  for (const char* text :
       {"", "philox4x32-10", "philox4x32-10 seed=1 stream=2", "mt19937 seed=1 stream=2 offset=3",
        "philox4x32-10 seed=1 stream=2 offset=3 ", "philox4x32-10 seed=1 stream=2 offset=3x",
        "philox4x32-10  seed=1 stream=2 offset=3", "philox4x32-10 seed=-1 stream=2 offset=3",
        "philox4x32-10 seed=1 stream=16777216 offset=3",
        "philox4x32-10 seed=1 stream=2 offset=1099511627776",
        "philox4x32-10 seed=1 stream=2 offset=99999999999999999999",
        "philox4x32-10 seed=1 stream=4294967298 offset=3"}) {
    EXPECT_THROW(generator.set_state(text), ValueError) << text;
    EXPECT_EQ(generator, before) << text;
  }
}

TEST(Generator, Limits) {
  EXPECT_THROW(Generator(0, Generator::max_stream + 1), ValueError);
  EXPECT_THROW(Generator(0, 0, Generator::max_offset + 1), ValueError);
  Generator generator(0, 0, Generator::max_offset - 1);
  EXPECT_THROW(generator.device(2), StateError);
  EXPECT_THROW(generator.device(0), ValueError);
  EXPECT_EQ(generator.offset(), Generator::max_offset - 1);
  EXPECT_NO_THROW(generator.device(1));
  EXPECT_THROW(generator.take("rand"), StateError);
}

TEST(Generator, SeedingStartsOver) {
  Generator generator(1, 7);
  generator.take("rand", 5);
  EXPECT_EQ(generator.offset(), 5u);
  generator.manual_seed(9);
  EXPECT_EQ(generator, Generator(9, 7));
  manual_seed(77);
  EXPECT_EQ(default_generator(), Generator(77));
  Generator& same = default_generator();
  same.take("rand");
  EXPECT_EQ(default_generator().offset(), 1u);
}

// The counter is [number: 64 | offset: 40 | stream: 24] from its lowest bit, the key the seed.
TEST(Generator, CounterAndKey) {
  Generator generator(0x1122334455667788u, 0xabcdef, 0x9876543210u);
  const RandomBlocks blocks = generator.take("rand");
  EXPECT_EQ(blocks.key.word[0], 0x55667788u);
  EXPECT_EQ(blocks.key.word[1], 0x11223344u);
  const PhiloxBlock counter = blocks.counter(0x0123456789abcdefu);
  EXPECT_EQ(counter.word[0], 0x89abcdefu);
  EXPECT_EQ(counter.word[1], 0x01234567u);
  EXPECT_EQ(counter.word[2], 0x76543210u);
  EXPECT_EQ(counter.word[3], 0xabcdef98u);
}

// The blocks of one index are those of the offsets that `device` takes.
TEST(Generator, SequencesGoOnInTheNextOffsets) {
  for (std::uint64_t offset : {std::uint64_t{0}, std::uint64_t{0xfffffffe}}) {
    Generator generator(5, 3, offset), other(5, 3, offset);
    RandomSequence sequence = generator.device(4).at(17);
    for (int b = 0; b < 4; ++b) {
      const PhiloxBlock block = other.take("rand")[17];
      for (std::uint32_t word : block.word) EXPECT_EQ(sequence.uint32(), word);
    }
    EXPECT_EQ(generator, other);
  }
}
