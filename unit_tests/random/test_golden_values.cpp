// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The first values of some generators, as a program without the library computes them.
#include <gtest/gtest.h>

#include <cstring>

#include "dtensor/random/random.hpp"
#include "golden_values.hpp"

using namespace dtensor;

namespace {

const DeviceKind device = DeviceKind::device;

template <class Unsigned>
std::vector<std::uint64_t> bits_of(const Tensor& tensor) {
  const Tensor host = tensor.to(DeviceKind::host);
  std::vector<Unsigned> bits(static_cast<std::size_t>(host.numel() * size_of(host.dtype())) /
                             sizeof(Unsigned));
  std::memcpy(bits.data(), host.data(), bits.size() * sizeof(Unsigned));
  return {bits.begin(), bits.end()};
}

// `draw` takes the generator to draw from.
template <class Unsigned, class Draw>
void expect_golden(const std::string& name, const Draw& draw) {
  for (const GoldenValues& golden : golden_values) {
    Generator generator(golden.seed, golden.stream, golden.offset);
    auto bits = bits_of<Unsigned>(draw(generator));
    const auto& expected = golden.values.at(name);
    ASSERT_GE(bits.size(), expected.size());
    bits.resize(expected.size());
    EXPECT_EQ(bits, expected) << name << " of seed " << golden.seed;
  }
}

}  // namespace

TEST(GoldenValues, Words) {
  for (const GoldenValues& golden : golden_values) {
    Generator generator(golden.seed, golden.stream, golden.offset);
    const RandomBlocks blocks = generator.take("words");
    const auto& expected = golden.values.at("words");
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(blocks[i / 4].word[i % 4], expected[i]);
    }
  }
}

TEST(GoldenValues, Continuous) {
  const auto uniform = [](DType t) {
    return [t](Generator& g) { return rand({22}, t, device, g); };
  };
  const auto normal = [](DType t) {
    return [t](Generator& g) { return randn({22}, t, device, g); };
  };
  const auto exponential = [](DType t) {
    return [t](Generator& g) { return exponential_(Tensor::empty({22}, t), 1, g); };
  };
  expect_golden<std::uint32_t>("rand_float32", uniform(DType::float32));
  expect_golden<std::uint64_t>("rand_float64", uniform(DType::float64));
  expect_golden<std::uint16_t>("rand_float16", uniform(DType::float16));
  expect_golden<std::uint16_t>("rand_bfloat16", uniform(DType::bfloat16));
  expect_golden<std::uint32_t>("rand_float32", uniform(DType::complex64));
  expect_golden<std::uint64_t>("rand_float64", uniform(DType::complex128));
  expect_golden<std::uint32_t>("randn_float32", normal(DType::float32));
  expect_golden<std::uint64_t>("randn_float64", normal(DType::float64));
  expect_golden<std::uint16_t>("randn_float16", normal(DType::float16));
  expect_golden<std::uint16_t>("randn_bfloat16", normal(DType::bfloat16));
  expect_golden<std::uint32_t>("randn_complex64", normal(DType::complex64));
  expect_golden<std::uint32_t>("exponential_float32", exponential(DType::float32));
  expect_golden<std::uint64_t>("exponential_float64", exponential(DType::float64));
}

TEST(GoldenValues, Discrete) {
  expect_golden<std::uint16_t>("bernoulli_quarter", [](Generator& g) {
    return bernoulli_(Tensor::empty({22}, DType::int16), 0.25, g);
  });
  expect_golden<std::uint64_t>(
      "randint_1000", [](Generator& g) { return randint(-5, 995, {22}, DType::int64, device, g); });
  expect_golden<std::uint64_t>("randint_wide", [](Generator& g) {
    const std::int64_t low = -(std::int64_t{1} << 62);
    return randint(low, low + 3 * (std::int64_t{1} << 61), {22}, DType::int64, device, g);
  });
  expect_golden<std::uint64_t>("randperm_22",
                               [](Generator& g) { return randperm(22, DType::int64, device, g); });
  expect_golden<std::uint64_t>(
      "randperm_10007", [](Generator& g) { return randperm(10007, DType::int64, device, g); });
}
