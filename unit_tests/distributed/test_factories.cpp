// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/distributed/factories.hpp"

#include <gtest/gtest.h>

#include "comm/collective_checks.hpp"
#include "distributed/values.hpp"
#include "dtensor/comm/events.hpp"

using namespace dtensor;
using namespace dtensor::testing;

namespace {

class Count : public Observer {
 public:
  Count() { add_observer(*this); }
  ~Count() override { remove_observer(*this); }
  void on_event(const Event&) override { ++events; }
  int events = 0;
};

}  // namespace

TEST(Factories, FillEachRanksPart) {
  const DeviceMesh mesh({world_size()});
  const Count count;
  const DTensor z = zeros({7, 3}, mesh, {Shard(0)});
  EXPECT_EQ(z.shape(), (Shape{7, 3}));
  EXPECT_EQ(z.dtype(), DType::float64);
  EXPECT_EQ(z.placements(), Placements{Shard(0)});
  const std::int64_t step = (7 + world_size() - 1) / world_size();
  const std::int64_t begin = std::min<std::int64_t>(7, step * world_rank());
  const std::int64_t rows = std::min(step, 7 - begin);
  EXPECT_EQ(z.to_local().to_vector<double>(),
            std::vector<double>(static_cast<std::size_t>(rows * 3), 0.0));
  const DTensor o = ones({4}, mesh, {Replicate()}, DType::int16);
  EXPECT_EQ(o.to_local().to_vector<std::int16_t>(), std::vector<std::int16_t>(4, 1));
  const DTensor f = full({2, 2}, 2.5, mesh, {Replicate()}, DType::float32);
  EXPECT_EQ(f.to_local().to_vector<float>(), std::vector<float>(4, 2.5f));
  const DTensor e = empty({5}, mesh, {Shard(0)}, DType::complex64);
  EXPECT_EQ(e.dtype(), DType::complex64);
  EXPECT_EQ(full({}, 3, mesh, {Replicate()}).to_local().item<double>(), 3.0);
  EXPECT_EQ(zeros({0, 3}, mesh, {Shard(0)}).to_local().numel(), 0);
  EXPECT_EQ(count.events, 0) << "factories do not communicate";
}

TEST(Factories, DefaultsAreTheScopesMeshAndReplicate) {
  EXPECT_THROW(zeros({4}), StateError);
  const DeviceMesh mesh(two_dims(world_size()));
  const MeshScope scope(mesh);
  for (const DTensor& t : {zeros({4}), ones({4}), full({4}, 2), empty({4})}) {
    EXPECT_EQ(t.device_mesh(), mesh);
    EXPECT_EQ(t.placements(), (Placements{Replicate(), Replicate()}));
    EXPECT_EQ(t.dtype(), DType::float64);
  }
  EXPECT_EQ(ones({4}).to_local().to_vector<double>(), std::vector<double>(4, 1.0));
  FactoryOptions options;
  options.dtype = DType::int8;
  options.placements = Placements{Shard(0), Replicate()};
  EXPECT_EQ(ones({4}, options).dtype(), DType::int8);
  EXPECT_EQ(ones({4}, options).placements(), *options.placements);
  EXPECT_EQ(ones({4}, options).full_tensor().to_vector<std::int8_t>(),
            std::vector<std::int8_t>(4, 1));
}

TEST(Factories, Errors) {
  const DeviceMesh mesh({world_size()});
  EXPECT_THROW(zeros({4}, mesh, {Partial()}), LayoutError);
  EXPECT_THROW(ones({4}, mesh, {Shard(1)}), IndexError);
  EXPECT_THROW(ones({4}, mesh, {Shard(0), Shard(0)}), LayoutError);
  EXPECT_THROW(ones({-4}, mesh, {Shard(0)}), ValueError);
}
