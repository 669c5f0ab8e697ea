// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tests that run one after the other on different numbers of ranks, with the files in between.
#include <cmath>

#include "checkpoint_test.hpp"

namespace dtensor::testing {
namespace {

constexpr const char* directory = CHECKPOINT_DIRECTORY;

// check_checkpoint.py knows these names, shapes and values too.
const std::map<std::string, Shape> shapes{
    {"matrix", {11, 6}}, {"group/strided", {10, 3}}, {"group/replicated", {4}}, {"100%", {5, 2}},
    {"scalar", {}},      {"empty", {3, 0}},          {"partial", {7, 3}}};

// The partial tensor and the types have values of their own.
TEST(Exchange, Write) {
  ASSERT_EQ(Runtime::size(), 4);
  const DeviceMesh mesh(Shape{2, 2}, {"dp", "tp"});
  const std::map<std::string, Placements> placements{
      {"matrix", {Shard(0), Shard(1, {5, 1})}},
      {"group/strided", {StridedShard(0, 2), Shard(0)}},
      {"group/replicated", {Replicate(), Replicate()}},
      {"100%", {Replicate(), Shard(0)}},
      {"scalar", {Replicate(), Replicate()}},
      {"empty", {Shard(0), Shard(1)}}};
  Tensors tensors;
  for (const auto& [name, p] : placements) {
    tensors.emplace(name, make(shapes.at(name), DType::float64, mesh, p));
  }
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    tensors.emplace(std::string("types/") + to_string(dtype),
                    make({9, 5}, dtype, mesh, {Shard(1), Shard(0)}));
  }
  tensors.emplace("partial", from_local(whole(shapes.at("partial"), DType::float64), mesh,
                                        {Partial(), Replicate()}));
  checkpoint::save(directory, tensors,
                   {{"iteration", 1234567890123}, {"time", 0.1}, {"title", "größe"}});
}

TEST(Exchange, Read) {
  const DeviceMesh mesh(Shape{Runtime::size()});
  const Tensors tensors = checkpoint::load(directory, mesh, [](const checkpoint::TensorInfo& info) {
    return Placements{info.shape.empty() ? Placement(Replicate()) : Placement(Shard(0))};
  });
  EXPECT_EQ(tensors.size(), shapes.size() + dtype_count);
  for (const auto& [name, tensor] : tensors) {
    if (name == "partial") {
      auto expected = whole(tensor.shape(), tensor.dtype()).to_vector<double>();
      for (double& value : expected) value *= 2;
      EXPECT_EQ(tensor.full_tensor().to_vector<double>(), expected);
    } else {
      EXPECT_TRUE(holds_elements(tensor)) << name;
    }
    const auto known = shapes.find(name);
    EXPECT_EQ(tensor.shape(), known == shapes.end() ? Shape({9, 5}) : known->second);
  }
  const checkpoint::Attributes expected{
      {"iteration", 1234567890123}, {"time", 0.1}, {"title", "größe"}};
  EXPECT_EQ(checkpoint::attributes(directory), expected);
}

}  // namespace
}  // namespace dtensor::testing
