// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// DTensor::redistribute as a user calls it: options, errors, moves that cost nothing. (That every
// layout turns into every other is tested where the plans are.)
#include <gtest/gtest.h>

#include "comm/collective_checks.hpp"
#include "distributed/values.hpp"
#include "dtensor/comm/events.hpp"
#include "dtensor/distributed/factories.hpp"

using namespace dtensor;
using namespace dtensor::testing;

namespace {

DeviceMesh line() { return DeviceMesh({world_size()}); }
DeviceMesh plane() { return DeviceMesh(two_dims(world_size())); }

class Count : public Observer {
 public:
  Count() { add_observer(*this); }
  ~Count() override { remove_observer(*this); }
  void on_event(const Event& event) override {
    ++events;
    bytes += event.bytes_sent;
  }
  int events = 0;
  std::int64_t bytes = 0;
};

template <class T>
DTensor distributed(const Shape& shape, const DeviceMesh& mesh, const Placements& placements) {
  return distribute_tensor(global_tensor<T>(shape), mesh, placements, std::nullopt);
}

/// Every rank contributes its number plus one.
DTensor partial(const DeviceMesh& mesh, const Placements& placements) {
  return from_local(Tensor::full({4, 3}, world_rank() + 1, DType::float64), mesh, placements);
}

}  // namespace

TEST(Redistribute, MovesThatCostNothing) {
  const Shape shape{7, 5};
  const DTensor replicated = distributed<double>(shape, line(), {Replicate()});
  const Count count;
  expect_part<double>(replicated.redistribute({Replicate()}), shape, {Replicate()});
  expect_part<double>(replicated.redistribute({Shard(0)}), shape, {Shard(0)});
  expect_part<double>(replicated.redistribute({Shard(1)}), shape, {Shard(1)});
  EXPECT_EQ(count.events, 0);
}

TEST(Redistribute, AMeshDimensionOfOneRankCostsNothing) {
  const DeviceMesh mesh({world_size(), 1});
  const Shape shape{7, 5};
  const DTensor x = distributed<double>(shape, mesh, {Shard(0), Shard(1)});
  const Count count;
  expect_part<double>(x.redistribute({Shard(0), Replicate()}), shape, {Shard(0), Replicate()});
  expect_part<double>(x.redistribute({Shard(0), Shard(0)}), shape, {Shard(0), Shard(0)});
  const DTensor p = from_local(
      x.to_local(), mesh,
      {Shard(0, std::vector<std::int64_t>([&] {
               std::vector<std::int64_t> e;
               for (std::int64_t r = 0; r < world_size(); ++r) {
                 e.push_back(local_shard_size_and_offset(7, Shard(0), r, world_size()).first);
               }
               return e;
             }())),
       Partial()});
  EXPECT_EQ(p.redistribute({p.placements()[0], Replicate()}).to_local().to_vector<double>(),
            x.to_local().to_vector<double>());
  EXPECT_EQ(count.events, 0);
}

TEST(Redistribute, ConvertsTheType) {
  const Shape shape{6, 5};
  RedistributeOptions options;
  options.forward_dtype = DType::float32;
  const DTensor narrowed =
      distributed<double>(shape, line(), {Shard(0)}).redistribute({Shard(1)}, options);
  expect_part<float>(narrowed, shape, {Shard(1)});
  options.forward_dtype = DType::float64;
  const DTensor small = distributed<std::int8_t>(shape, line(), {Shard(0)});
  expect_part<double>(small.redistribute({Shard(1)}, options), shape, {Shard(1)});
  options.forward_dtype = DType::float16;
  expect_part<float16>(small.redistribute({Shard(0)}, options), shape, {Shard(0)});
  options.forward_dtype = DType::int8;
  const DTensor same = small.redistribute({Shard(0)}, options);
  EXPECT_EQ(same.to_local().data(), small.to_local().data());
  // Sums are made in the wider type.
  options.forward_dtype = DType::float64;
  const DTensor p = from_local(Tensor::full({2}, 0.1, DType::float32), line(), {Partial()});
  EXPECT_EQ(p.redistribute({Replicate()}, options).to_local().to_vector<double>()[0], [] {
    double sum = 0;
    for (int r = 0; r < world_size(); ++r) sum += static_cast<double>(0.1f);
    return sum;
  }());
}

TEST(Redistribute, TravelsInTheNarrowerType) {
  if (world_size() == 1) return;
  const Shape shape{12, 12};
  const auto bytes = [&](DType from, std::optional<DType> to) {
    const DTensor x = zeros(shape, line(), {Shard(0)}, from);
    RedistributeOptions options;
    options.forward_dtype = to;
    const Count count;
    x.redistribute({Replicate()}, options);
    return count.bytes;
  };
  const std::int64_t narrow = bytes(DType::int8, std::nullopt);
  EXPECT_GT(narrow, 0);
  EXPECT_EQ(bytes(DType::int8, DType::float64), narrow);
  EXPECT_EQ(bytes(DType::float64, DType::int8), narrow);
}

TEST(Redistribute, AsynchronousMoves) {
  const Shape shape{40, 30};
  const DTensor x = distributed<double>(shape, line(), {Shard(0)});
  RedistributeOptions options;
  options.async_op = true;
  {
    const DTensor waited = x.redistribute({Shard(1)}, options);
    EXPECT_EQ(waited.shape(), shape);
    EXPECT_EQ(waited.dtype(), DType::float64);
    EXPECT_EQ(waited.placements(), Placements{Shard(1)});
    waited.wait();
    EXPECT_TRUE(waited.is_ready());
    expect_part<double>(waited, shape, {Shard(1)});
  }
  {
    const DTensor polled = x.redistribute({Shard(1)}, options);
    while (!polled.is_ready()) {
    }
    expect_part<double>(polled, shape, {Shard(1)});
  }
  expect_part<double>(x.redistribute({Shard(1)}, options), shape, {Shard(1)});  // used at once
  expect_part<double>(x.redistribute({Shard(1)}, options)
                          .redistribute({Replicate()}, options)
                          .redistribute({Shard(0)}),
                      shape, {Shard(0)});
  x.redistribute({Shard(1)}, options);  // never looked at
  // Many at once, waited for in another order than they were started.
  std::vector<DTensor> many;
  for (int i = 0; i < 5; ++i) many.push_back(x.redistribute({Shard(1)}, options));
  const DTensor alias = many[0];
  for (auto it = many.rbegin(); it != many.rend(); ++it)
    expect_part<double>(*it, shape, {Shard(1)});
  EXPECT_EQ(alias.to_local().data(), many[0].to_local().data());
}

TEST(Redistribute, AsynchronousMovesOfLargeTensors) {
  const Shape shape{700, 600};  // 3.4 MB, beyond what MPI sends eagerly
  const DTensor x = distributed<double>(shape, line(), {Shard(0)});
  RedistributeOptions options;
  options.async_op = true;
  const DTensor a = x.redistribute({Shard(1)}, options);
  const DTensor b = x.redistribute({Replicate()}, options);
  const DTensor p = from_local(global_tensor<double>(shape), line(), {Partial(ReduceOp::max)})
                        .redistribute({Replicate()}, options);
  expect_part<double>(p, shape, {Replicate()});
  expect_part<double>(b, shape, {Replicate()});
  expect_part<double>(a, shape, {Shard(1)});
  x.redistribute({Shard(1)}, options);
}

TEST(Redistribute, OrderOfTheSplits) {
  const DeviceMesh mesh = plane();
  const Shape shape{17, 2};
  RedistributeOptions options;
  options.shard_order = {{0, {1, 0}}};
  const DTensor x = distributed<double>(shape, mesh, {Shard(0), Replicate()});
  const DTensor y = x.redistribute({Shard(0), Shard(0)}, options);
  std::vector<double> expected;
  for (std::int64_t i : naive_elements(
           shape,
           naive_indices(shape, {Shard(0), Shard(0)}, mesh.shape(), *mesh.coordinate(), {1, 0}))) {
    expected.push_back(value_at<double>(i));
  }
  EXPECT_EQ(y.to_local().to_vector<double>(), expected);
  EXPECT_EQ(y.full_tensor().to_vector<double>(), global_values<double>(shape));
}

TEST(Redistribute, IntoPartialWithinTheLibrary) {
  const DeviceMesh mesh = line();
  const int n = world_size();
  const DTensor x = full({4}, 8, mesh, {Replicate()});
  const auto enter = [&](const Placement& p) {
    const Count count;
    const DTensor y =
        detail::redistribute(x, mesh, x.layout().with_placements({p}), false, "test", "");
    EXPECT_EQ(count.events, 0);
    EXPECT_EQ(y.full_tensor().to_vector<double>(), std::vector<double>(4, 8.0)) << to_string(p);
    return y.to_local().to_vector<double>()[3];
  };
  const double sum = enter(Partial());
  if (n == 1 || n == 2 || n == 4) {
    EXPECT_EQ(sum, 8.0 / n);
  }
  for (ReduceOp op : {ReduceOp::avg, ReduceOp::min, ReduceOp::max}) {
    EXPECT_EQ(enter(Partial(op)), 8.0);
  }
}

TEST(Redistribute, IntoPartialIsAnErrorForUsers) {
  const auto expect_refused = [](const DTensor& x, const Placements& to, const std::string& from) {
    const std::string text = expect_error_everywhere<LayoutError>([&] { x.redistribute(to); });
    expect_contains(text, from + " to " + to_string(to[0]));
  };
  expect_refused(zeros({4}, line(), {Replicate()}), {Partial()}, "R");
  expect_refused(zeros({4}, line(), {Shard(0)}), {Partial(ReduceOp::max)}, "S(0)");
  expect_refused(partial(line(), {Partial()}), {Partial(ReduceOp::avg)}, "P");
  const DTensor p = partial(line(), {Partial()});
  EXPECT_EQ(p.redistribute({Partial()}).to_local().data(), p.to_local().data());
}

TEST(Redistribute, PartialsMayNotBeMixed) {
  const DeviceMesh mesh = plane();
  expect_contains(expect_error_everywhere<LayoutError>([&] {
                    partial(mesh, {Partial(), Partial(ReduceOp::max)});
                  }),
                  "P, P(max)");
  // The average of sums: each row of the mesh sums, the rows are averaged.
  const DTensor x = partial(mesh, {Partial(ReduceOp::avg), Partial()});
  const double n = world_size();
  EXPECT_DOUBLE_EQ(x.full_tensor().to_vector<double>()[0],
                   n * (n + 1) / 2 / static_cast<double>(mesh.size(0)));
}

TEST(Redistribute, ErrorsAreEveryones) {
  const DTensor x = zeros({4, 4}, line(), {Shard(0)});
  expect_error_everywhere<LayoutError>([&] { x.redistribute({Shard(0), Shard(1)}); });
  expect_error_everywhere<IndexError>([&] { x.redistribute({Shard(2)}); });
  RedistributeOptions options;
  options.shard_order = {{0, {1}}};
  expect_error_everywhere<LayoutError>([&] { x.redistribute({Shard(0)}, options); });
  expect_error_everywhere<LayoutError>([&] {
    x.redistribute(
        {Shard(0, std::vector<std::int64_t>(static_cast<std::size_t>(world_size()), 9))});
  });
}

TEST(Redistribute, BetweenMeshes) {
  if (world_size() < 4) return;
  const Shape shape{11, 6};
  {
    const DeviceMesh first = DeviceMesh::from_ranks({0, 1}, {2});
    const DeviceMesh second = DeviceMesh::from_ranks({2, 3}, {2});
    const Tensor own = global_tensor<double>(shape);
    const DTensor x = distribute_tensor(own, first, {Shard(0)});
    expect_part<double>(x.redistribute(second, {Shard(1)}), shape, {Shard(1)});
    expect_part<double>(x.redistribute(second, {Replicate()}), shape, {Replicate()});
    expect_part<double>(x.redistribute(second, {Shard(1)}).redistribute(first, {Shard(0)}), shape,
                        {Shard(0)});
  }
  {
    const DeviceMesh four = DeviceMesh::from_ranks({0, 1, 2, 3}, {2, 2});
    const DeviceMesh three = DeviceMesh::from_ranks({3, 0, 2}, {3});
    const Tensor own = global_tensor<double>(shape);
    const DTensor x = distribute_tensor(own, four, {Shard(0), Shard(1)});
    expect_part<double>(x.redistribute(three, {Shard(0)}), shape, {Shard(0)});
    RedistributeOptions options;
    options.async_op = true;
    expect_part<double>(x.redistribute(three, {Shard(1)}, options), shape, {Shard(1)});
    // A sum over one mesh becomes a value on the other.
    const std::int64_t row = four.is_member() ? four.local_rank(0) : 0;
    const DTensor p =
        from_local(Tensor::full({3}, row + 1, DType::float64), four, {Partial(), Replicate()});
    const DTensor q = p.redistribute(three, {Replicate()});
    if (three.is_member()) {
      EXPECT_EQ(q.to_local().to_vector<double>(), std::vector<double>(3, 3.0));
    }
  }
}
