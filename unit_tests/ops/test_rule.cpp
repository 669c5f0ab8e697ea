// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/rule.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "dtensor/core/error.hpp"
#include "ops/reference.hpp"

namespace dtensor {
namespace {

using testing::Array;
using testing::evaluate;
using testing::Numbers;

using Function = std::function<double(const std::vector<double>&)>;

std::string text(const Placements& inputs, const Placement& output) {
  std::string t;
  for (const Placement& p : inputs) t += (t.empty() ? "" : ",") + to_string(p);
  return t + "->" + to_string(output);
}

std::set<std::string> texts(const std::vector<Strategy>& list) {
  std::set<std::string> result;
  for (const Strategy& s : list) {
    EXPECT_TRUE(result.insert(text(s.inputs, s.output)).second) << text(s.inputs, s.output);
  }
  return result;
}

std::vector<Strategy> plain_strategies(const Rule& rule, const std::vector<Shape>& shapes) {
  return strategies(rule, shapes, Placements(shapes.size(), Replicate()));
}

bool close(const Array& a, const Array& b) {
  if (!(a.shape == b.shape)) return false;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    if (std::abs(a.values[i] - b.values[i]) > 1e-9) return false;
  }
  return true;
}

constexpr int ranks = 3;

// The part of an array that a rank holds under Shard of a dimension.
Array part(const Array& a, int dim, const Placement& placement, int rank) {
  const IndexSet set = IndexSet(0, a.shape[dim]).split(placement, rank, ranks);
  std::vector<std::int64_t> indices;
  for (const Interval& i : set.intervals()) {
    for (std::int64_t j = i.begin; j < i.end; ++j) indices.push_back(j);
  }
  Shape shape = a.shape;
  shape[dim] = set.size();
  Array result(shape);
  testing::for_each_index(shape, [&](Extents index) {
    const Extents at = index;
    index[dim] = indices[static_cast<std::size_t>(index[dim])];
    result.at(at) = a.at(index);
  });
  return result;
}

// What each rank holds of an array. Contributions are asymmetric and signed.
std::vector<Array> distribute(const Array& a, const Placement& placement, Numbers& numbers) {
  std::vector<Array> result;
  for (int r = 0; r < ranks; ++r) {
    if (placement.is_shard()) {
      result.push_back(part(a, placement.dim(), placement, r));
    } else {
      result.push_back(placement.is_partial() ? numbers.array(a.shape) : a);
    }
  }
  if (!placement.is_partial()) return result;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    if (placement.reduce_op() == ReduceOp::max || placement.reduce_op() == ReduceOp::min) {
      const double sign = placement.reduce_op() == ReduceOp::max ? -1 : 1;
      for (Array& p : result) p.values[i] = a.values[i] + sign * std::abs(p.values[i]);
      result[i % ranks].values[i] = a.values[i];
      continue;
    }
    double sum = placement.reduce_op() == ReduceOp::avg ? ranks * a.values[i] : a.values[i];
    for (int r = 1; r < ranks; ++r) sum -= result[static_cast<std::size_t>(r)].values[i];
    result[0].values[i] = sum;
  }
  return result;
}

// Whether what the ranks hold makes up `whole` under a placement.
bool makes_up(const std::vector<Array>& parts, const Array& whole, const Placement& placement) {
  if (placement.is_partial()) {
    Array total = parts[0];
    for (const Array& p : parts) {
      if (!(p.shape == whole.shape)) return false;
    }
    for (std::size_t i = 0; i < total.values.size(); ++i) {
      for (std::size_t r = 1; r < parts.size(); ++r) {
        const double v = parts[r].values[i];
        switch (placement.reduce_op()) {
          case ReduceOp::max:
            total.values[i] = std::max(total.values[i], v);
            break;
          case ReduceOp::min:
            total.values[i] = std::min(total.values[i], v);
            break;
          default:
            total.values[i] += v;
        }
      }
      if (placement.reduce_op() == ReduceOp::avg) total.values[i] /= ranks;
    }
    return close(total, whole);
  }
  for (int r = 0; r < ranks; ++r) {
    const Array expected =
        placement.is_shard() ? part(whole, placement.dim(), placement, r) : whole;
    if (!close(parts[static_cast<std::size_t>(r)], expected)) return false;
  }
  return true;
}

// The ranks' results when the inputs are placed like that; empty when they do not fit together.
std::vector<Array> run(const Rule& rule, const std::vector<Array>& arrays,
                       const Placements& placements, const Function& f) {
  Numbers numbers(17);
  std::vector<std::vector<Array>> locals;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    locals.push_back(distribute(arrays[i], placements[i], numbers));
  }
  std::vector<Array> results;
  for (std::size_t r = 0; r < ranks; ++r) {
    std::vector<Array> inputs;
    for (const auto& l : locals) inputs.push_back(l[r]);
    auto result = evaluate(rule.inputs(), rule.output(), inputs, f);
    if (!result) return {};
    results.push_back(std::move(*result));
  }
  return results;
}

// Replicate, Shard of each dimension, Partial.
Placements choices(int rank) {
  Placements list{Replicate(), Partial()};
  for (int d = 0; d < rank; ++d) list.push_back(Shard(d));
  return list;
}

// All combinations of placements whose results are right on three ranks, found by trying.
std::set<std::string> right_by_trial(const Rule& rule, const std::vector<Shape>& shapes,
                                     const Function& f) {
  Numbers numbers(3);
  std::vector<Array> arrays;
  for (const Shape& s : shapes) arrays.push_back(numbers.array(s));
  const Array whole = *evaluate(rule.inputs(), rule.output(), arrays, f);
  std::set<std::string> right;
  Shape counts;
  for (const Shape& s : shapes)
    counts.push_back(static_cast<std::int64_t>(choices(s.size()).size()));
  testing::for_each_index(counts, [&](const Extents& index) {
    Placements inputs;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      inputs.push_back(
          choices(shapes[i].size())[static_cast<std::size_t>(index[static_cast<int>(i)])]);
    }
    const auto results = run(rule, arrays, inputs, f);
    if (results.empty()) return;
    for (const Placement& output : choices(whole.shape.size())) {
      if (makes_up(results, whole, output)) right.insert(text(inputs, output));
    }
  });
  return right;
}

void expect_exactly_the_right_ones(const Rule& rule, const std::vector<Shape>& shapes,
                                   const Function& f) {
  std::set<std::string> found;
  for (const Strategy& s : plain_strategies(rule, shapes)) {
    // An average stands beside each sum; the trial leaves it out.
    bool averages = s.output.is_partial(ReduceOp::avg);
    if (!averages) found.insert(text(s.inputs, s.output));
  }
  EXPECT_EQ(found, right_by_trial(rule, shapes, f)) << to_string(rule);
}

const Function product = [](const std::vector<double>& x) { return x[0] * x[1]; };
const Function total = [](const std::vector<double>& x) { return x[0] + x[1]; };
const Function quotient = [](const std::vector<double>& x) { return x[0] / x[1]; };
const Function identity = [](const std::vector<double>& x) { return x[0]; };
const Function root = [](const std::vector<double>& x) {
  return std::sqrt(std::abs(x[0]) + x[0] * x[0]);
};

const PartialPasses in_each{linear_in({0}), linear_in({1})};

TEST(Rule, MatmulHasTheseStrategies) {
  const Rule rule("mk,kn->mn", in_each);
  EXPECT_EQ(texts(plain_strategies(rule, {Shape{5, 7}, Shape{7, 4}})),
            (std::set<std::string>{"R,R->R", "S(0),R->S(0)", "R,S(1)->S(1)", "S(1),S(0)->P",
                                   "P,R->P", "R,P->P", "P(avg),R->P(avg)", "R,P(avg)->P(avg)"}));
}

// What is added to a sum becomes a contribution with it, and is counted once.
TEST(Rule, AnAddedInputIsAContributionOfTheReducedDimension) {
  const Rule rule("+mn,mk,kn->mn", {linear_in({0, 1}), linear_in({0, 2})});
  EXPECT_EQ(to_string(rule), "+mn,mk,kn->mn");
  EXPECT_TRUE(rule.is_added(0));
  EXPECT_FALSE(rule.is_added(1));
  EXPECT_FALSE(rule == Rule("mn,mk,kn->mn", rule.passes()));
  EXPECT_EQ(texts(plain_strategies(rule, {Shape{5, 4}, Shape{5, 7}, Shape{7, 4}})),
            (std::set<std::string>{"R,R,R->R", "S(0),S(0),R->S(0)", "S(1),R,S(1)->S(1)",
                                   "P,S(1),S(0)->P", "P,P,R->P", "P,R,P->P",
                                   "P(avg),P(avg),R->P(avg)", "P(avg),R,P(avg)->P(avg)"}));
  EXPECT_EQ(
      texts(plain_strategies(Rule("+n,mk,kn->mn"), {Shape{4}, Shape{5, 7}, Shape{7, 4}})),
      (std::set<std::string>{"R,R,R->R", "R,S(0),R->S(0)", "S(0),R,S(1)->S(1)", "P,S(1),S(0)->P"}));
}

TEST(Rule, EveryRightPlacementIsFoundAndNoOther) {
  expect_exactly_the_right_ones(Rule("mk,kn->mn", in_each), {Shape{5, 7}, Shape{7, 4}}, product);
  expect_exactly_the_right_ones(Rule("bmk,bkn->bmn", in_each), {Shape{4, 2, 5}, Shape{4, 5, 4}},
                                product);
  expect_exactly_the_right_ones(Rule("abcd,abcd->abcd", in_each),
                                {Shape{4, 5, 2, 4}, Shape{4, 5, 2, 4}}, product);
  expect_exactly_the_right_ones(Rule("mk,k->m", in_each), {Shape{5, 7}, Shape{7}}, product);
  expect_exactly_the_right_ones(Rule("k,kn->n", in_each), {Shape{5}, Shape{5, 7}}, product);
  expect_exactly_the_right_ones(Rule("k,k->", in_each), {Shape{5}, Shape{5}}, product);
  expect_exactly_the_right_ones(Rule::pointwise({2, 2}, {linear_in({0, 1})}),
                                {Shape{5, 7}, Shape{5, 7}}, total);
  expect_exactly_the_right_ones(Rule::pointwise({2, 2}, {linear_in({0})}),
                                {Shape{5, 7}, Shape{5, 7}}, quotient);
  expect_exactly_the_right_ones(Rule::pointwise({2}), {Shape{5, 7}}, root);
  expect_exactly_the_right_ones(Rule("ab->b", {linear_in({0})}), {Shape{5, 7}}, identity);
  expect_exactly_the_right_ones(Rule("ab->a1", {linear_in({0})}), {Shape{5, 7}}, identity);
  expect_exactly_the_right_ones(Rule("ab->", {linear_in({0})}), {Shape{5, 7}}, identity);
  expect_exactly_the_right_ones(Rule("ab->ba", {linear_in({0})}), {Shape{5, 7}}, identity);
}

TEST(Rule, BroadcastDimensionsStayWhole) {
  const PartialPasses both{linear_in({0, 1})};
  expect_exactly_the_right_ones(Rule::pointwise({2, 1}, in_each), {Shape{5, 7}, Shape{7}}, product);
  expect_exactly_the_right_ones(Rule::pointwise({2, 2}, in_each), {Shape{5, 1}, Shape{1, 7}},
                                product);
  expect_exactly_the_right_ones(Rule::pointwise({2, 0}, both), {Shape{5, 7}, Shape{}}, total);
  EXPECT_EQ(texts(plain_strategies(Rule::pointwise({2, 2}, both), {Shape{5, 1}, Shape{1, 7}})),
            (std::set<std::string>{"R,R->R", "S(0),R->S(0)", "R,S(1)->S(1)", "P,P->P",
                                   "P(avg),P(avg)->P(avg)"}));
}

// Strategies with averages, moved maxima, given extents and strided shards are right as well.
TEST(Rule, WhatIsFoundIsRight) {
  struct Case {
    Rule rule;
    std::vector<Shape> shapes;
    Placements current;
    Function f;
    std::size_t count;
  };
  const Placement uneven = Shard(1, {1, 5, 1}), strided = StridedShard(0, 2);
  const std::vector<Case> cases{
      {Rule("mk,kn->mn", in_each), {Shape{5, 7}, Shape{7, 4}}, {uneven, strided}, product, 10},
      {Rule::pointwise({2, 2}, {linear_in({0, 1})}),
       {Shape{5, 7}, Shape{5, 7}},
       {uneven, strided},
       total,
       7},
      {Rule("ab->ba", moves_elements()), {Shape{5, 7}}, {uneven}, identity, 12},
      {Rule("ab->a", {linear_in({0})}), {Shape{5, 7}}, {uneven}, identity, 6}};
  for (const Case& c : cases) {
    Numbers numbers(5);
    std::vector<Array> arrays;
    for (const Shape& s : c.shapes) arrays.push_back(numbers.array(s));
    const Array whole = *evaluate(c.rule.inputs(), c.rule.output(), arrays, c.f);
    const auto list = strategies(c.rule, c.shapes, c.current);
    EXPECT_EQ(list.size(), c.count) << to_string(c.rule);
    for (const Strategy& s : list) {
      if (s.output.is_partial() && s.output.reduce_op() > ReduceOp::max) continue;
      const auto results = run(c.rule, arrays, s.inputs, c.f);
      ASSERT_FALSE(results.empty()) << text(s.inputs, s.output);
      EXPECT_TRUE(makes_up(results, whole, s.output)) << text(s.inputs, s.output);
    }
  }
}

TEST(Rule, OffersTheShardsThatInputsHave) {
  const Rule rule("ab->a");
  const Placement uneven = Shard(0, {2, 6, 1, 4});
  EXPECT_EQ(texts(strategies(rule, {Shape{13, 2}}, {uneven})),
            (std::set<std::string>{"R->R", "S(0)->S(0)", "S(0,[2, 6, 1, 4])->S(0,[2, 6, 1, 4])",
                                   "S(1)->P"}));
  EXPECT_EQ(texts(strategies(rule, {Shape{13, 2}}, {StridedShard(1, 2)})),
            (std::set<std::string>{"R->R", "S(0)->S(0)", "S(1)->P", "SS(1,2)->P"}));
}

TEST(Rule, KeepsMarkedDimensionsWhole) {
  EXPECT_EQ(texts(plain_strategies(Rule("ab!->ab"), {Shape{4, 4}})),
            (std::set<std::string>{"R->R", "S(0)->S(0)"}));
  EXPECT_FALSE(Rule("ab!->ab") == Rule("ab->ab"));
}

TEST(Rule, ReducesWithTheGivenOperation) {
  EXPECT_EQ(texts(plain_strategies(Rule("a->", {}, ReduceOp::max), {Shape{4}})),
            (std::set<std::string>{"R->R", "S(0)->P(max)"}));
}

TEST(Rule, ShapeOfTheResult) {
  EXPECT_EQ(Rule("mk,kn->mn").output_shape("f", {Shape{3, 2}, Shape{2, 5}}), (Shape{3, 5}));
  EXPECT_EQ(Rule("abc->a1c").output_shape("f", {Shape{3, 2, 5}}), (Shape{3, 1, 5}));
  EXPECT_EQ(Rule::pointwise({3, 2}).output_shape("f", {Shape{3, 1, 5}, Shape{4, 1}}),
            (Shape{3, 4, 5}));
  EXPECT_EQ(Rule::pointwise({1, 1}).output_shape("f", {Shape{0}, Shape{1}}), (Shape{0}));
  EXPECT_EQ(Rule::pointwise({1, 1}).output_shape("f", {Shape{1}, Shape{0}}), (Shape{0}));
}

TEST(Rule, ShapesThatDoNotFitAreErrors) {
  EXPECT_THROW(Rule("mk,kn->mn").output_shape("f", {Shape{3, 2}, Shape{4, 5}}), ValueError);
  EXPECT_THROW(Rule("mk,kn->mn").output_shape("f", {Shape{3, 1}, Shape{4, 5}}), ValueError);
  EXPECT_THROW(Rule("mk,kn->mn").output_shape("f", {Shape{3, 2}, Shape{2}}), ValueError);
  EXPECT_THROW(Rule("mk,kn->mn").output_shape("f", {Shape{3, 2}}), ValueError);
  EXPECT_THROW(Rule::pointwise({1, 1}).output_shape("f", {Shape{3}, Shape{4}}), ValueError);
  EXPECT_THROW(Rule::pointwise({1, 1}).output_shape("f", {Shape{0}, Shape{4}}), ValueError);
  try {
    Rule::pointwise({2, 1}).output_shape("add", {Shape{3, 2}, Shape{4}});
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_EQ(e.function(), "add");
    EXPECT_EQ(e.given(), "shapes (3, 2) and (4,)");
  }
}

TEST(Rule, EquationsOfAnotherFormAreErrors) {
  for (const char* equation : {"ab", "ab->c", "aa->a", "ab->aa", "aB->a", "a1->a", "!a->a",
                               "a b->a", "a->a->a", "+k,mk->m", "m+,mk->m", "++m,mk->m"}) {
    EXPECT_THROW(Rule{equation}, ValueError) << equation;
  }
  EXPECT_THROW(Rule("+m,mk->m", {}, ReduceOp::max), ValueError);
}

TEST(Rule, MoreDimensionsThanATensorHas) {
  const Rule rule("abcde,efghi->abcdfghi");
  EXPECT_EQ(rule.output_shape("f", {Shape{1, 2, 1, 2, 3}, Shape{3, 2, 1, 2, 1}}),
            (Shape{1, 2, 1, 2, 2, 1, 2, 1}));
  EXPECT_EQ(plain_strategies(rule, {Shape{1, 2, 1, 2, 3}, Shape{3, 2, 1, 2, 1}}).size(), 10u);
}

}  // namespace
}  // namespace dtensor
