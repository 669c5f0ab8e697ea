// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/decision.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace dtensor {
namespace {

std::shared_ptr<const ProcessGrid> grid(const Shape& shape) {
  std::vector<int> ranks(static_cast<std::size_t>(shape.product()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return std::make_shared<const ProcessGrid>(shape, ranks);
}

// "[S(0)] [R] -> [S(0)]".
std::string decided(const Rule& rule, const std::vector<Layout>& inputs) {
  const Decision d = decide("test", rule, inputs, std::vector<DType>(inputs.size(), DType::float64),
                            DType::float64);
  std::string text;
  for (const Layout& layout : d.inputs) text += to_string(layout.placements()) + " ";
  return text + "-> " + to_string(d.output.placements());
}

const PartialPasses in_each{linear_in({0}), linear_in({1})};
const Rule matmul("mk,kn->mn", in_each);
const Rule add2 = Rule::pointwise({2, 2}, {linear_in({0, 1})});
const Rule mul2 = Rule::pointwise({2, 2}, in_each);
const Rule sqrt2 = Rule::pointwise({2});
const Placement S0 = Shard(0), S1 = Shard(1), R = Replicate(), P = Partial();
const Placement Pavg = Partial(ReduceOp::avg), Pmax = Partial(ReduceOp::max);

std::string on_one_dim(const Rule& rule, const Shape& a, const Placement& pa, const Shape& b,
                       const Placement& pb) {
  const auto g = grid(Shape{4});
  return decided(rule, {Layout(a, g, {pa}), Layout(b, g, {pb})});
}

TEST(Decision, MatmulWithoutCommunicationKeepsPlacements) {
  const Shape a{12, 8}, b{8, 4};
  EXPECT_EQ(on_one_dim(matmul, a, S0, b, R), "[S(0)] [R] -> [S(0)]");
  EXPECT_EQ(on_one_dim(matmul, a, R, b, S1), "[R] [S(1)] -> [S(1)]");
  EXPECT_EQ(on_one_dim(matmul, a, S1, b, S0), "[S(1)] [S(0)] -> [P]");
  EXPECT_EQ(on_one_dim(matmul, a, R, b, R), "[R] [R] -> [R]");
  EXPECT_EQ(on_one_dim(matmul, a, P, b, R), "[P] [R] -> [P]");
  EXPECT_EQ(on_one_dim(matmul, a, R, b, Pavg), "[R] [P(avg)] -> [P(avg)]");
}

TEST(Decision, SlicesAReplicaRatherThanGathersAShard) {
  const Shape a{12, 8}, b{8, 4};
  EXPECT_EQ(on_one_dim(matmul, a, R, b, S0), "[S(1)] [S(0)] -> [P]");
  EXPECT_EQ(on_one_dim(add2, a, S0, a, R), "[S(0)] [S(0)] -> [S(0)]");
}

TEST(Decision, NeverMultipliesContributions) {
  const Shape a{12, 8}, b{8, 4};
  const std::string product = on_one_dim(matmul, a, P, b, P);
  EXPECT_EQ(product.find("[P] [P]"), std::string::npos) << product;
  EXPECT_EQ(on_one_dim(mul2, a, P, a, P).find("[P] [P]"), std::string::npos);
}

TEST(Decision, SumsOfContributionsOfOneKindStayPartial) {
  const Shape a{12, 8};
  EXPECT_EQ(on_one_dim(add2, a, P, a, P), "[P] [P] -> [P]");
  EXPECT_EQ(on_one_dim(add2, a, Pavg, a, Pavg), "[P(avg)] [P(avg)] -> [P(avg)]");
  for (const auto& [x, y] : std::vector<std::pair<Placement, Placement>>{
           {P, R}, {R, P}, {P, S0}, {S1, P}, {P, Pavg}, {Pmax, Pmax}, {Pmax, R}}) {
    EXPECT_EQ(on_one_dim(add2, a, x, a, y).find('P'), std::string::npos)
        << to_string(x) << to_string(y);
  }
}

// Only to be added to contributions does a whole value become one.
TEST(Decision, AnAddedInputFollowsTheOthers) {
  const Rule rule("+mn,mk,kn->mn",
                  {linear_in({0, 1}), linear_in({0, 2}), {1, PartialPass::bit(ReduceOp::avg)}});
  const auto g = grid(Shape{4});
  const Shape c{12, 4}, a{12, 8}, b{8, 4};
  const auto of = [&](const Placement& pc, const Placement& pa, const Placement& pb) {
    return decided(rule, {Layout(c, g, {pc}), Layout(a, g, {pa}), Layout(b, g, {pb})});
  };
  EXPECT_EQ(of(R, S1, S0), "[P] [S(1)] [S(0)] -> [P]");
  EXPECT_EQ(of(S0, S1, S0), "[P] [S(1)] [S(0)] -> [P]");
  EXPECT_EQ(of(P, S1, S0), "[P] [S(1)] [S(0)] -> [P]");
  EXPECT_EQ(of(R, P, R), "[P] [P] [R] -> [P]");
  EXPECT_EQ(of(S0, R, R), "[S(0)] [S(0)] [R] -> [S(0)]");
  EXPECT_EQ(of(R, R, S1), "[S(1)] [R] [S(1)] -> [S(1)]");
  EXPECT_EQ(of(R, R, R), "[R] [R] [R] -> [R]");
  EXPECT_EQ(of(Pavg, R, R), "[P(avg)] [R] [R] -> [P(avg)]");
  EXPECT_EQ(of(S0, Pavg, R).find("P(avg)] ->"), std::string::npos);
}

TEST(Decision, ReducesOntoShards) {
  // A quarter of what an all-reduce would receive.
  EXPECT_EQ(decided(sqrt2, {Layout({12, 8}, grid(Shape{4}), {P})}), "[S(0)] -> [S(0)]");
  EXPECT_EQ(decided(sqrt2, {Layout({1, 8}, grid(Shape{4}), {P})}), "[S(1)] -> [S(1)]");
  EXPECT_EQ(decided(Rule::pointwise({0}), {Layout({}, grid(Shape{4}), {P})}), "[R] -> [R]");
}

TEST(Decision, MovesTheSmallerInput) {
  const Shape big{400, 400}, small{400, 1};
  EXPECT_EQ(on_one_dim(add2, big, S1, small, S0), "[S(1)] [R] -> [S(1)]");
  EXPECT_EQ(on_one_dim(add2, small, S0, big, S1), "[R] [S(1)] -> [S(1)]");
  const Shape wide{400, 4000};
  EXPECT_EQ(on_one_dim(matmul, Shape{4, 400}, S0, wide, S1), "[R] [S(1)] -> [S(1)]");
}

TEST(Decision, KeepsGivenExtentsAndStridedShards) {
  const auto g = grid(Shape{4});
  const Placement uneven = Shard(0, {2, 6, 1, 4});
  const Shape a{13, 8};
  EXPECT_EQ(decided(add2, {Layout(a, g, {uneven}), Layout(a, g, {uneven})}),
            "[S(0,[2, 6, 1, 4])] [S(0,[2, 6, 1, 4])] -> [S(0,[2, 6, 1, 4])]");
  EXPECT_EQ(decided(add2, {Layout(a, g, {R}), Layout(a, g, {uneven})}),
            "[S(0,[2, 6, 1, 4])] [S(0,[2, 6, 1, 4])] -> [S(0,[2, 6, 1, 4])]");
  EXPECT_EQ(decided(matmul, {Layout(a, g, {uneven}), Layout({8, 3}, g, {R})}),
            "[S(0,[2, 6, 1, 4])] [R] -> [S(0,[2, 6, 1, 4])]");
  const Placement strided = StridedShard(1, 2);
  EXPECT_EQ(decided(matmul, {Layout({3, 13}, g, {strided}), Layout(a, g, {StridedShard(0, 2)})}),
            "[SS(1,2)] [SS(0,2)] -> [P]");
  // The same dimension, but other indices: one of the two has to move.
  const Decision d = decide("test", add2, {Layout(a, g, {uneven}), Layout(a, g, {S0})},
                            {DType::float64, DType::float64}, DType::float64);
  EXPECT_EQ(d.inputs[0].placement(0), d.inputs[1].placement(0));
}

TEST(Decision, SearchesMeshDimensionsTogether) {
  const auto g = grid(Shape{2, 3});
  const Shape a{12, 18}, b{18, 24};
  EXPECT_EQ(decided(matmul, {Layout(a, g, {S0, S1}), Layout(b, g, {R, S0})}),
            "[S(0), S(1)] [R, S(0)] -> [S(0), P]");
  EXPECT_EQ(decided(matmul, {Layout(a, g, {P, S0}), Layout(b, g, {R, R})}),
            "[P, S(0)] [R, R] -> [P, S(0)]");
  EXPECT_EQ(decided(matmul, {Layout(a, g, {P, R}), Layout(b, g, {R, P})}),
            "[P, R] [R, P] -> [P, P]");
  EXPECT_EQ(decided(add2, {Layout(a, g, {S0, R}), Layout(a, g, {R, S1})}),
            "[S(0), S(1)] [S(0), S(1)] -> [S(0), S(1)]");
}

TEST(Decision, KeepsTheShardOrder) {
  const auto g = grid(Shape{2, 3});
  const ShardOrder inner_first{{0, {1, 0}}};
  const Layout swapped(Shape{13, 5}, g, {S0, S0}, inner_first);
  const Layout plain(Shape{13, 5}, g, {S0, S0});
  const Decision d =
      decide("test", add2, {swapped, swapped}, {DType::float64, DType::float64}, DType::float64);
  EXPECT_EQ(d.inputs[0], swapped);
  EXPECT_EQ(d.inputs[1], swapped);
  EXPECT_EQ(d.output, swapped);
  const Decision transposed =
      decide("test", Rule("ab->ba", moves_elements()), {swapped}, {DType::float64}, DType::float64);
  EXPECT_EQ(transposed.output, Layout(Shape({5, 13}), g, {S1, S1}, {{1, {1, 0}}}));
  // Different orders are different indices.
  const Decision mixed =
      decide("test", add2, {swapped, plain}, {DType::float64, DType::float64}, DType::float64);
  EXPECT_EQ(mixed.inputs[0], mixed.inputs[1]);
}

TEST(Decision, GivenExtentsThatFitNoMoreAreLeft) {
  // Extents that fit the whole dimension do not fit half of it.
  const auto g = grid(Shape{2, 2});
  const Layout a(Shape{13, 5}, g, {Shard(0, {9, 4}), R});
  const Layout b(Shape{13, 5}, g, {R, Shard(0, {2, 11})});
  const Decision d = decide("test", add2, {a, b}, {DType::float64, DType::float64}, DType::float64);
  EXPECT_EQ(d.inputs[0], d.inputs[1]);
}

// There are 10^8 combinations here: the search must not try them all.
TEST(Decision, ManyMeshDimensions) {
  const auto g = grid(Shape{2, 2, 2, 2, 2, 2, 2, 2});
  const Rule rule = Rule::pointwise({8, 8}, {linear_in({0, 1})});
  const Shape shape{4, 4, 4, 4, 4, 4, 4, 4};
  const Layout a(shape, g, {S0, S1, Shard(2), R, P, Shard(5), Shard(6), Shard(7)});
  const Layout b(shape, g, {S0, R, Shard(2), R, P, Shard(5), Shard(6), R});
  const std::string all = "[S(0), S(1), S(2), R, P, S(5), S(6), S(7)]";
  EXPECT_EQ(decided(rule, {a, b}), all + " " + all + " -> " + all);
}

TEST(Decision, MeshOfOneChangesNothing) {
  for (const Placement& p : {S0, S1, R, P, Pavg}) {
    const Layout layout(Shape{5, 7}, grid(Shape{1}), {p});
    EXPECT_EQ(
        decide("test", add2, {layout, layout}, {DType::float64, DType::float64}, DType::float64)
            .output,
        layout);
  }
}

}  // namespace
}  // namespace dtensor
