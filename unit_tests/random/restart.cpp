// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A run with two streams that stops at a checkpoint on 4 ranks and goes on where it was, on others.
#include <gtest/gtest.h>

#include "dtensor/checkpoint/checkpoint.hpp"
#include "random_checks.hpp"

namespace dtensor::testing {
namespace {

constexpr const char* directory = RESTART_DIRECTORY;
const Shape shape{23, 5};

// The first and the second half of the run, on a Tensor or a DTensor.
template <class T>
void first_half(const T& x, Generator& values, Generator& noise) {
  normal_(x, 0, 1, values);
  normal_(x, 3, 2, noise);
}
template <class T>
T second_half(const T& x, Generator& values, Generator& noise) {
  normal_(x, 1, 1, values);
  return dropout(x, 0.3, true, noise);
}

Generator values_generator() { return Generator(0xfeedfacecafebeefu, 0); }
Generator noise_generator() { return Generator(0xfeedfacecafebeefu, 3, 1 << 20); }

TEST(Restart, Write) {
  ASSERT_EQ(world_size(), 4);
  Generator values = values_generator(), noise = noise_generator();
  const DeviceMesh mesh({2, 2});
  const DTensor x = empty(shape, mesh, {Shard(0), StridedShard(1, 2)});
  first_half(x, values, noise);
  checkpoint::save(directory, {{"x", x}}, {{"values", values.state()}, {"noise", noise.state()}});
}

TEST(Restart, GoOn) {
  // The same without a stop, in one piece.
  Generator values = values_generator(), noise = noise_generator();
  const Tensor whole = Tensor::empty(shape, DType::float64);
  first_half(whole, values, noise);
  const Tensor at_stop = whole.clone();
  const Tensor expected = second_half(whole, values, noise);

  const DeviceMesh mesh({world_size()});
  const DTensor x = checkpoint::load(directory, "x", mesh, {Shard(1)});
  EXPECT_TRUE(is_part_of(x, at_stop));
  const auto attributes = checkpoint::attributes(directory);
  Generator restored_values, restored_noise(1, 2, 3);
  restored_values.set_state(std::get<std::string>(attributes.at("values")));
  restored_noise.set_state(std::get<std::string>(attributes.at("noise")));
  const DTensor result = second_half(x, restored_values, restored_noise);
  EXPECT_TRUE(is_part_of(result, expected));
  EXPECT_EQ(restored_values, values);
  EXPECT_EQ(restored_noise, noise);
}

}  // namespace
}  // namespace dtensor::testing
