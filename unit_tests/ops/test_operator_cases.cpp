// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cases with known right answers: what operators of sharded and Partial tensors give and cost where
// the original was wrong once or gathers.
#include <gtest/gtest.h>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/ops/ops.hpp"
#include "ops/distributed_reference.hpp"

namespace dtensor {
namespace {

using testing::Array;
using testing::Communication;
using testing::error_of;
using testing::Numbers;
using testing::place;

class OperatorCases : public ::testing::Test {
 protected:
  OperatorCases() : mesh(Shape{Runtime::size()}), alone(mesh.size() == 1) {}

  DTensor placed(const Array& a, const Placement& p) const { return place(a, mesh, Placements{p}); }
  static Tensor local(const Array& a) { return Tensor::from_vector(a.values, a.shape); }
  static Array array_of(const Tensor& t) {
    Array a(t.shape());
    a.values = t.to(DType::float64).to_vector<double>();
    return a;
  }
  // The value of `f` is that of one device.
  template <class F>
  DTensor same(const Array& a, const Placement& p, const F& f) const {
    const DTensor result = f(placed(a, p));
    EXPECT_LT(error_of(result, array_of(f(local(a)))), 1e-11) << to_string(p);
    return result;
  }
  // And takes no communication.
  template <class F>
  DTensor quiet(const Array& a, const Placement& p, const F& f) const {
    const DTensor x = placed(a, p);
    const Communication communication;
    f(x);
    EXPECT_EQ(communication.count, 0) << to_string(p);
    return same(a, p, f);
  }
  static Placements shards(const Shape& shape) {
    Placements list;
    for (int d = 0; d < shape.size(); ++d) {
      list.push_back(Shard(d));
      list.push_back(StridedShard(d, 2));
    }
    return list;
  }
  Placements all(const Shape& shape) const {
    Placements list = shards(shape);
    for (ReduceOp op : {ReduceOp::sum, ReduceOp::avg, ReduceOp::max, ReduceOp::min}) {
      list.push_back(Partial(op));
    }
    return list;
  }

  DeviceMesh mesh;
  bool alone;
};

// O3
TEST_F(OperatorCases, ANumberTimesPartialIsComparedAsAWhole) {
  const Array a = Numbers(1).array({3, 4});
  for (const Placement& p : all(a.shape)) {
    same(a, p, [](const auto& x) { return -5 * x == 2 * x; });
    same(a, p, [](const auto& x) { return x + 10; });
  }
}

// O7
TEST_F(OperatorCases, SoftmaxOverEveryDimensionAndShard) {
  const Array a = Numbers(2).array({8, 12, 16});
  for (int d = 0; d < 3; ++d) {
    for (const Placement& p : all(a.shape)) {
      const auto f = [d](const auto& x) { return softmax(x, d); };
      const DTensor result = p.is_shard() && !p.is_shard(d) ? quiet(a, p, f) : same(a, p, f);
      if (p.is_shard()) {
        EXPECT_EQ(result.placements(), Placements{p});
      }
    }
  }
}

// O8
TEST_F(OperatorCases, CrossEntropyWithWholeClasses) {
  for (const Shape& shape : {Shape{8, 16}, Shape{8, 16, 12}}) {
    const Array a = Numbers(3).array(shape);
    Shape targets = shape;
    targets.erase(1);
    Array target(targets);
    for (std::size_t i = 0; i < target.values.size(); ++i) {
      target.values[i] = static_cast<double>(i * 7 % 16);
    }
    const Tensor t = local(target).to(DType::int64);
    for (int d = 0; d < shape.size(); ++d) {
      if (d == 1) continue;
      const DTensor dt = distribute_tensor(t, mesh, {Shard(d == 0 ? 0 : 1)});
      const DTensor x = placed(a, Shard(d));
      for (LossReduction r : {LossReduction::none, LossReduction::mean, LossReduction::sum}) {
        const Communication communication;
        const DTensor loss = cross_entropy(x, dt, {.reduction = r});
        EXPECT_EQ(communication.count, 0);
        if (!alone) {
          EXPECT_TRUE(r == LossReduction::none ? loss.placements()[0].is_shard(d == 0 ? 0 : 1)
                                               : loss.placements()[0].is_partial(ReduceOp::sum));
        }
        EXPECT_LT(error_of(loss, array_of(cross_entropy(local(a), t, {.reduction = r}))), 1e-11);
      }
    }
  }
}

// O9
TEST_F(OperatorCases, LayerNormShardedBeforeTheNormalizedDimensions) {
  const Array a = Numbers(4).array({20, 5, 10}), w = Numbers(5).array({10});
  for (int d : {0, 1}) {
    const DTensor x = placed(a, Shard(d)), dw = placed(w, Replicate());
    const Communication communication;
    const DTensor result = layer_norm(x, {10}, dw);
    EXPECT_EQ(communication.count, 0);
    EXPECT_EQ(result.placements(), Placements{Shard(d)});
    EXPECT_LT(error_of(result, array_of(layer_norm(local(a), {10}, local(w)))), 1e-11);
  }
}

// O10
TEST_F(OperatorCases, TopkHasGlobalIndices) {
  const Array a = Numbers(6).array({12, 8, 8});
  const auto values = [](const auto& x) { return topk(x, 3, 0).values; };
  const auto indices = [](const auto& x) { return topk(x, 3, 0).indices; };
  for (const Placement& p : all(a.shape)) {
    same(a, p, values);
    same(a, p, indices);
  }
  quiet(a, Shard(1), indices);
  quiet(a, Shard(2), values);
  const DTensor x = placed(a, Shard(0));
  const Communication communication;
  topk(x, 3, 0);
  EXPECT_LE(communication.count, 1);
}

// O12
TEST_F(OperatorCases, EinsumTakesEveryLegalPlacementAsItIs) {
  struct Case {
    const char* equation;
    Shape a, b;
    std::vector<std::pair<Placement, Placement>> legal;
  };
  const Placement R = Replicate(), P = Partial();
  const auto S = [](int d) { return Placement(Shard(d)); };
  const std::vector<Case> cases{
      {"mk,kn->mn", {5, 7}, {7, 4}, {{S(0), R}, {R, S(1)}, {S(1), S(0)}, {P, R}, {R, P}}},
      {"bmk,bkn->bmn",
       {4, 2, 5},
       {4, 5, 3},
       {{S(0), S(0)}, {S(1), R}, {R, S(2)}, {S(2), S(1)}, {P, R}, {R, P}}},
      {"abcd,abcd->abcd",
       {4, 5, 2, 3},
       {4, 5, 2, 3},
       {{S(0), S(0)}, {S(1), S(1)}, {S(2), S(2)}, {S(3), S(3)}, {P, R}, {R, P}}}};
  for (const Case& c : cases) {
    const Array a = Numbers(7).array(c.a), b = Numbers(8).array(c.b);
    const Array expected = array_of(einsum(c.equation, local(a), local(b)));
    for (const auto& [p, q] : c.legal) {
      const DTensor x = placed(a, p), y = placed(b, q);
      const Communication communication;
      const DTensor result = einsum(c.equation, x, y);
      EXPECT_EQ(communication.count, 0) << c.equation << to_string(p) << to_string(q);
      EXPECT_LT(error_of(result, expected), 1e-11);
    }
    // The product of two sums is none of products.
    EXPECT_LT(error_of(einsum(c.equation, placed(a, P), placed(b, P)), expected), 1e-11);
  }
}

// O14, O15
TEST_F(OperatorCases, AViewIsRightOrAnErrorThatSaysWhatToDo) {
  struct Case {
    Shape from;
    Placement placement;
    Shape to;
  };
  for (const Case& c : std::vector<Case>{{{6, 256}, Shard(0), {-1}},
                                         {{6, 256}, Shard(1), {-1}},
                                         {{8, 256}, Shard(0), {-1}},
                                         {{8, 256}, Shard(1), {8, 2, -1}},
                                         {{12, 8}, Shard(1), {16, 6}},
                                         {{12, 8}, StridedShard(0, 2), {16, 6}},
                                         {{12, 8}, Partial(), {16, 6}}}) {
    const Array a = Numbers(9).array(c.from);
    const Array expected = array_of(view(local(a), c.to));
    const DTensor x = placed(a, c.placement);
    const Communication communication;
    try {
      const DTensor y = view(x, c.to);
      EXPECT_EQ(communication.count, 0);
      EXPECT_EQ(error_of(y, expected), 0) << to_string(c.placement);
    } catch (const LayoutError& e) {
      EXPECT_NE(std::string(e.what()).find("redistribute to"), std::string::npos) << e.what();
      EXPECT_FALSE(alone || c.placement.is_partial());
    }
    EXPECT_EQ(error_of(reshape(x, c.to), expected), 0) << to_string(c.placement);
  }
}

// O16
TEST_F(OperatorCases, StackPutsANewDimensionBesideTheShard) {
  const Array a = Numbers(10).array({8, 8});
  for (int d : {0, 1}) {
    const auto f = [d](const auto& x) { return stack({x, x}, d); };
    const DTensor result = quiet(a, Shard(1), f);
    EXPECT_EQ(result.placements(), Placements{Shard(2)});
    EXPECT_EQ(result.shape(), (d == 0 ? Shape{2, 8, 8} : Shape{8, 2, 8}));
  }
}

// O17, O18, O21
TEST_F(OperatorCases, ReductionsOfAnUnevenlyShardedDimension) {
  const Array a = Numbers(11).array({7, 5});
  for (const Placement& p : all(a.shape)) {
    for (int d : {0, 1}) {
      same(a, p, [d](const auto& x) { return max(x, d).indices; });
      same(a, p, [d](const auto& x) { return argmin(x, d); });
      same(a, p, [d](const auto& x) { return mean(x, d); });
      same(a, p, [d](const auto& x) { return stddev(x, d); });
      same(a, p, [d](const auto& x) { return var(x, d, 0); });
      same(a, p, [d](const auto& x) { return logsumexp(x, d); });
      for (double power : {1.0, 2.0, 3.5, double{INFINITY}}) {
        same(a, p, [=](const auto& x) { return norm(x, power, d); });
      }
    }
    same(a, p, [](const auto& x) { return argmax(x); });
  }
}

// O22
TEST_F(OperatorCases, PositionsAlongAShardedDimension) {
  const Array a = Numbers(12).array({7, 5});
  const Tensor index = Tensor::from_vector(std::vector<std::int64_t>{4, 0, 4}, {3});
  const Tensor places =
      Tensor::from_vector(std::vector<std::int64_t>{6, 0, 3, 2, 2, 1, 5, 5, 0, 4}, {2, 5});
  const auto like = [&](const auto& x, const Tensor& t) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(x)>, Tensor>) {
      return t;
    } else {
      return distribute_tensor(t, x.device_mesh(), {Replicate()});
    }
  };
  for (const Placement& p : all(a.shape)) {
    for (int d : {0, 1}) {
      same(a, p, [d](const auto& x) { return slice(x, d, 1, 5, 2); });
      same(a, p, [d](const auto& x) { return select(x, d, 3); });
      same(a, p, [&](const auto& x) { return index_select(x, d, like(x, index)); });
      same(a, p, [d](const auto& x) { return cat({x, x}, d); });
      same(a, p, [d](const auto& x) { return flip(x, {d}); });
      same(a, p, [d](const auto& x) { return roll(x, {2}, {d}); });
      same(a, p, [d](const auto& x) { return sort(x, d).indices; });
      same(a, p, [d](const auto& x) { return cumsum(x, d); });
    }
    same(a, p, [](const auto& x) { return pad(x, {1, 2, 0, 3}, 4); });
    same(a, p, [&](const auto& x) { return gather(x, 0, like(x, places)); });
    same(a, p, [&](const auto& x) {
      return scatter_add(x, 0, like(x, places), like(x, places.to(DType::float64)));
    });
  }
}

}  // namespace
}  // namespace dtensor
