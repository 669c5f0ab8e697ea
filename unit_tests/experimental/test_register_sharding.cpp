// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators of a program's own, and rules of its own for the library's.
#include <gtest/gtest.h>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/distributed/factories.hpp"
#include "dtensor/experimental/custom_operator.hpp"
#include "dtensor/ops/ops.hpp"
#include "ops/distributed_reference.hpp"

namespace dtensor::experimental {
namespace {

using testing::Array;
using testing::Communication;
using testing::error_of;
using testing::evaluate;
using testing::Numbers;
using testing::place;

using List = std::vector<AcceptableSharding>;
const Placement S0 = Shard(0), S1 = Shard(1), R = Replicate(), P = Partial();

DeviceMesh flat_mesh() { return DeviceMesh(Shape{Runtime::size()}); }
DeviceMesh square_mesh() {
  const std::int64_t n = Runtime::size();
  return DeviceMesh(n % 2 == 0 ? Shape{2, n / 2} : Shape{1, n});
}

// Extents for each rank that add up, some of them zero.
std::vector<std::int64_t> uneven(std::int64_t extent, std::int64_t parts) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(parts), 0);
  for (std::int64_t i = 0; i < extent; ++i) ++extents[static_cast<std::size_t>((i * i) % parts)];
  return extents;
}

// The dot product of each row of one matrix with the same row of another, times a number: rows may
// be split, and a split of the columns leaves contributions.
int kernel_calls = 0;
const CustomOperator row_dots(
    "test::row_dots",
    [](Locals x, const Attributes& attributes) {
      ++kernel_calls;
      return sum(x[0] * x[1], {1}) * std::get<double>(attributes.at("factor"));
    },
    [](const std::vector<TensorDescription>& in, const Attributes&) {
      if (!(in[0] == in[1])) {
        throw ValueError("test::row_dots", to_string(in[1].shape), to_string(in[0].shape));
      }
      return TensorDescription{{in[0].shape[0]}, in[0].dtype};
    });
const Attributes by_three{{"factor", 3.0}};
List row_dots_shardings(const OperatorCall&) { return {{{S0}, {S0, S0}}, {{P}, {Shard(-1), S1}}}; }

Array expected_dots(const Array& a, const Array& b, double factor) {
  return *evaluate({"ij", "ij"}, "i", {a, b}, [&](const auto& v) { return factor * v[0] * v[1]; });
}

template <class E, class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing of that type was thrown";
}

TEST(CustomOperator, WithoutRegistrationReplicates) {
  const DeviceMesh mesh = flat_mesh();
  Numbers numbers(3);
  const Array a = numbers.array({7, 5}), b = numbers.array({7, 5});
  Communication communication;
  const DTensor y = row_dots({place(a, mesh, {S0}), place(b, mesh, {R})}, by_three);
  EXPECT_EQ(y.placements(), Placements{R});
  EXPECT_EQ(communication.count, mesh.size() > 1 ? 1 : 0);
  if (mesh.size() > 1) {
    EXPECT_EQ(communication.operation, "test::row_dots");
    EXPECT_EQ(communication.collective, Collective::all_gather);
  }
  EXPECT_LT(error_of(y, expected_dots(a, b, 3)), 1e-13);
}

TEST(CustomOperator, TakesWhatIsRegisteredOnEveryMeshDimension) {
  const auto registration = register_sharding("test::row_dots", row_dots_shardings);
  Numbers numbers(4);
  const Array a = numbers.array({7, 5}), b = numbers.array({7, 5});
  const Array expected = expected_dots(a, b, 3);
  const DeviceMesh flat = flat_mesh(), square = square_mesh();
  const Placement given = Shard(0, uneven(7, flat.size()));
  // Mesh, the placements of both inputs, those of the result.
  const std::vector<std::tuple<DeviceMesh, Placements, Placements>> kept{
      {flat, {S0}, {S0}},
      {flat, {given}, {given}},
      {flat, {StridedShard(0, 2)}, {StridedShard(0, 2)}},
      {flat, {S1}, {P}},
      {flat, {R}, {R}},
      {square, {S0, S1}, {S0, P}},
      {square, {S0, S0}, {S0, S0}},
      {square, {S1, R}, {P, R}},
      {square, {S1, S1}, {P, P}}};
  for (const auto& [mesh, placements, result] : kept) {
    const DTensor x = place(a, mesh, placements), z = place(b, mesh, placements);
    Communication communication;
    const DTensor y = row_dots({x, z}, by_three);
    EXPECT_EQ(communication.count, 0) << to_string(placements);
    EXPECT_EQ(y.placements(), result) << to_string(placements);
    EXPECT_LT(error_of(y, expected), 1e-13) << to_string(placements);
  }
  // Inputs that do not fit together are brought together, Partial ones reduced.
  for (const Placements& one : std::vector<Placements>{{S0, P}, {R, S1}, {S1, S0}, {P, P}}) {
    for (const Placements& other : std::vector<Placements>{{S1, S0}, {P, R}, {S0, S0}}) {
      const DTensor y = row_dots({place(a, square, one), place(b, square, other)}, by_three);
      EXPECT_LT(error_of(y, expected), 1e-13) << to_string(one) << to_string(other);
      EXPECT_EQ(y.dtype(), DType::float64);
    }
  }
}

TEST(CustomOperator, ShardOrdersAreKept) {
  const auto registration = register_sharding("test::row_dots", row_dots_shardings);
  const DeviceMesh mesh = square_mesh();
  Numbers numbers(5);
  const Array a = numbers.array({7, 5}), b = numbers.array({7, 5});
  const Layout swapped({7, 5}, mesh.grid(), {S0, S0}, {{0, {1, 0}}});
  Communication communication;
  const DTensor y = row_dots({place(a, mesh, swapped), place(b, mesh, swapped)}, by_three);
  EXPECT_EQ(communication.count, 0);
  if (mesh.size() > 1) {
    EXPECT_EQ(y.layout().split_by(0), (std::vector<int>{1, 0}));
  }
  EXPECT_LT(error_of(y, expected_dots(a, b, 3)), 1e-13);
}

TEST(CustomOperator, DecisionsAreKeptWithoutNumbersAndForgottenAtTheEnd) {
  const DeviceMesh mesh = flat_mesh();
  Numbers numbers(6);
  const Array a = numbers.array({7, 5}), b = numbers.array({7, 5});
  const DTensor x = place(a, mesh, {S0}), z = place(b, mesh, {S0});
  int asked = 0;
  {
    const auto registration = register_sharding("test::row_dots", [&](const OperatorCall& call) {
      ++asked;
      EXPECT_TRUE(call.attributes.empty());
      EXPECT_EQ(call.inputs.size(), 2u);
      EXPECT_EQ(call.inputs[1].shape, (Shape{7, 5}));
      EXPECT_EQ(call.outputs.at(0).shape, Shape{7});
      return row_dots_shardings(call);
    });
    for (double factor : {2.0, -3.0, 2.0}) {
      const DTensor y = row_dots({x, z}, {{"factor", factor}});
      EXPECT_LT(error_of(y, expected_dots(a, b, factor)), 1e-13);
    }
    EXPECT_EQ(asked, 1);
  }
  EXPECT_EQ(row_dots({x, z}, by_three).placements(), Placements{R});
  EXPECT_EQ(asked, 1);
  auto columns = register_sharding("test::row_dots", [&](const OperatorCall&) {
    ++asked;
    return List{{{P}, {S1, S1}}};
  });
  EXPECT_NE(row_dots({x, z}, by_three).placements(), Placements{S0});
  EXPECT_EQ(asked, 2);
  const ShardingRegistration moved = std::move(columns);
  columns.unregister();
  row_dots({x, z}, by_three);
  EXPECT_THROW(columns = register_sharding("test::row_dots", row_dots_shardings), ValueError);
  EXPECT_THROW(columns = register_sharding("", row_dots_shardings), ValueError);
  EXPECT_THROW(columns = register_sharding("x", nullptr), ValueError);
}

// Attributes decide on placements: the sum along one dimension.
TEST(CustomOperator, AttributesArePartOfTheKey) {
  const CustomOperator along(
      "test::along",
      [](Locals x, const Attributes& a) {
        return sum(x[0], {std::get<std::int64_t>(a.at("dim"))});
      },
      [](const std::vector<TensorDescription>& in, const Attributes& a) {
        TensorDescription out = in[0];
        out.shape.erase(static_cast<int>(std::get<std::int64_t>(a.at("dim"))));
        return out;
      });
  const auto registration = register_sharding("test::along", [](const OperatorCall& call) {
    return std::get<std::int64_t>(call.attributes.at("dim")) == 0 ? List{{{S0}, {S1}}, {{P}, {S0}}}
                                                                  : List{{{S0}, {S0}}, {{P}, {S1}}};
  });
  const DeviceMesh mesh = flat_mesh();
  Numbers numbers(7);
  const Array a = numbers.array({6, 6});
  const DTensor x = place(a, mesh, {S0});
  const auto first = [](const auto& v) { return v[0]; };
  for (int dim : {0, 1, 0}) {
    const DTensor y = along({x}, {{"dim", dim}});
    EXPECT_EQ(y.placements(), Placements{dim == 0 ? P : S0});
    EXPECT_LT(error_of(y, *evaluate({"ij"}, dim == 0 ? "j" : "i", {a}, first)), 1e-13);
  }
}

TEST(CustomOperator, SeveralResultsWithPlacementsOfTheirOwn) {
  const CustomOperator both(
      "test::copy_and_sums",
      [](Locals x, const Attributes&) {
        return std::vector<Tensor>{x[0].clone(), sum(x[0], {0})};
      },
      [](const std::vector<TensorDescription>& in, const Attributes&) {
        return std::vector<TensorDescription>{in[0], {{in[0].shape[1]}, in[0].dtype}};
      });
  const auto registration = register_sharding("test::copy_and_sums", [](const OperatorCall&) {
    return List{{{S0, P}, {S0}}, {{S1, S0}, {S1}}};
  });
  const DeviceMesh mesh = square_mesh();
  Numbers numbers(8);
  const Array a = numbers.array({5, 7});
  const DTensor x = place(a, mesh, {S0, S1});
  Communication communication;
  const auto y = both.results({x});
  EXPECT_EQ(communication.count, 0);
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(y[0].placements(), (Placements{S0, S1}));
  EXPECT_EQ(y[1].placements(), (Placements{P, S0}));
  EXPECT_EQ(error_of(y[0], a), 0);
  EXPECT_LT(error_of(y[1], *evaluate({"ij"}, "j", {a}, [](const auto& v) { return v[0]; })), 1e-13);
  EXPECT_NE(message_of<ValueError>([&] { both({x}); }).find("2 results"), std::string::npos);
}

// Two elements of the result for each of the input: kept where the ranks divide it.
TEST(CustomOperator, MultiplesStayWhereRanksDivideThem) {
  const CustomOperator twice(
      "test::twice",
      [](Locals x, const Attributes&) {
        const Tensor t = Tensor::empty({2 * x[0].numel()}, DType::float64);
        t.as_strided(x[0].shape(), {2}, 0).copy_from(x[0]);
        t.as_strided(x[0].shape(), {2}, x[0].numel() == 0 ? 0 : 1).copy_from(x[0]);
        return t;
      },
      [](const std::vector<TensorDescription>& in, const Attributes&) {
        return TensorDescription{{2 * in[0].shape[0]}, in[0].dtype};
      });
  const auto registration = register_sharding("test::twice", [](const OperatorCall&) {
    return List{{{S0}, {S0}}};
  });
  const DeviceMesh mesh = flat_mesh();
  for (std::int64_t extent : {12, 11}) {
    Numbers numbers(9);
    const Array a = numbers.array({extent});
    Array expected(Shape{2 * extent});
    for (std::size_t i = 0; i < expected.values.size(); ++i) expected.values[i] = a.values[i / 2];
    const DTensor y = twice({place(a, mesh, {S0})});
    const bool stays = extent % mesh.size() == 0;
    EXPECT_EQ(y.placements(), Placements{stays ? S0 : R}) << extent;
    EXPECT_EQ(error_of(y, expected), 0);
  }
}

TEST(CustomOperator, OnTensorsAndOutsideOfTheMesh) {
  Numbers numbers(10);
  const Array a = numbers.array({4, 3}), b = numbers.array({4, 3});
  const Tensor x = Tensor::from_vector(a.values, a.shape),
               z = Tensor::from_vector(b.values, b.shape);
  EXPECT_NEAR(row_dots({x, z}, by_three).to_vector<double>()[2], expected_dots(a, b, 3).values[2],
              1e-13);
  const auto registration = register_sharding("test::row_dots", row_dots_shardings);
  const DeviceMesh first = DeviceMesh::from_ranks({0}, {1});
  const auto on_first = [&](const Tensor& t) {
    return DTensor(first, Layout({4, 3}, first.grid(), {S0}),
                   first.is_member() ? t : Tensor::empty({0, 0}, DType::float64));
  };
  kernel_calls = 0;
  const DTensor y = row_dots({on_first(x), on_first(z)}, by_three);
  EXPECT_EQ(kernel_calls, first.is_member() ? 1 : 0);
  EXPECT_EQ(y.shape(), Shape{4});
  EXPECT_EQ(y.to_local().numel(), first.is_member() ? 4 : 0);
}

TEST(CustomOperator, FailuresReachEveryRank) {
  const DeviceMesh mesh = flat_mesh();
  const int last = Runtime::size() - 1;
  const auto describe = [](const std::vector<TensorDescription>& in, const Attributes&) {
    return in[0];
  };
  const auto make = [&](auto kernel) {
    return CustomOperator("test::failing", std::move(kernel), describe);
  };
  const auto registration = register_sharding("test::failing", [](const OperatorCall&) {
    return List{{{S0}, {S0}}};
  });
  const DTensor x = ones({7, 3}, mesh, {S0});
  const auto one_row_more = make([&](Locals l, const Attributes&) {
    if (Runtime::rank() != last) return l[0];
    return Tensor::zeros({l[0].shape()[0] + 1, 3}, DType::float64);
  });
  const std::int64_t rows = x.layout().local_shape(Extents{last})[0];
  const std::string text = message_of<LayoutError>([&] { one_row_more({x}); });
  EXPECT_NE(text.find("test::failing"), std::string::npos) << text;
  EXPECT_NE(text.find("float64 " + to_string(Shape{rows + 1, 3}) + " as result 0"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("float64 " + to_string(Shape{rows, 3})), std::string::npos) << text;
  const auto wrong_type =
      make([&](Locals l, const Attributes&) { return l[0].to(DType::float32); });
  EXPECT_THROW(wrong_type({x}), LayoutError);
  const auto too_many = make([&](Locals l, const Attributes&) {
    return std::vector<Tensor>{l[0], l[0]};
  });
  EXPECT_NE(message_of<LayoutError>([&] { too_many({x}); }).find("2 results"), std::string::npos);
  const auto thrower = make([&](Locals l, const Attributes&) -> Tensor {
    if (Runtime::rank() == last) throw IndexError("inner", "a thing", "another");
    return l[0];
  });
  EXPECT_NE(message_of<IndexError>([&] { thrower({x}); }).find("a thing"), std::string::npos);
  EXPECT_THROW(row_dots({x, ones({7, 4}, mesh, {S0})}, by_three), ValueError);
  EXPECT_THROW(row_dots(std::vector<DTensor>{}, by_three), ValueError);
  EXPECT_EQ(error_of(make([](Locals l, const Attributes&) { return l[0]; })({x}), Array({7, 3}, 1)),
            0);
}

// A contradiction is found on every rank, before anything is communicated, and names the entry.
TEST(RegisterSharding, ContradictionsAreErrors) {
  const DeviceMesh mesh = flat_mesh();
  const CustomOperator op(
      "test::contradiction", [](Locals x, const Attributes&) { return x[0]; },
      [](const std::vector<TensorDescription>& in, const Attributes&) { return in[0]; });
  const DTensor x = ones({6, 4}, mesh, {S0}), z = ones({6, 5}, mesh, {R});
  const Placement highest = Partial(ReduceOp::max);
  const std::vector<std::pair<AcceptableSharding, std::string>> wrong{
      {{{S0}, {S0}}, "one for each of the 2 inputs"},
      {{{S0, S0}, {S0, S0}}, "one for each of the 1 results"},
      {{{}, {S0, S0}}, "one for each of the 1 results"},
      {{{S0}, {Shard(2), S0}}, "a dimension from -2 to 1"},
      {{{Shard(-3)}, {S0, S0}}, "a dimension from -2 to 1"},
      {{{Shard(0, {1, 5})}, {S0, S0}}, "Shard(dim)"},
      {{{S0}, {S0, StridedShard(0, 2)}}, "Shard(dim)"},
      {{{S1}, {S0, S0}}, "equal extents"},
      {{{S0}, {S0, S1}}, "equal extents"},
      {{{S0}, {R, R}}, "a sharded input"},
      {{{S0}, {P, R}}, "Partial results of a Partial input"},
      {{{R}, {P, R}}, "Partial results of a Partial input"},
      {{{R}, {S0, R}}, "Shard or Partial results"},
      {{{P}, {P, highest}}, "one reduce operation"},
      {{{P}, {P, Partial(ReduceOp::avg)}}, "one reduce operation"},
      {{{P}, {R, R}}, "Replicate"},
      {{{Partial(ReduceOp::product)}, {R, R}}, "Replicate"}};
  for (const auto& [sharding, expected] : wrong) {
    const auto registration = register_sharding("test::contradiction", [&](const OperatorCall&) {
      return List{{{S0}, {S0, R}}, sharding};
    });
    Communication communication;
    const std::string text = message_of<LayoutError>([&] { op({x, z}); });
    EXPECT_EQ(communication.count, 0);
    EXPECT_NE(text.find("test::contradiction"), std::string::npos) << text;
    EXPECT_NE(text.find("acceptable sharding 1, " + to_string(sharding.outputs)), std::string::npos)
        << text;
    EXPECT_NE(text.find(expected), std::string::npos) << expected << " in " << text;
  }
  const auto registration = register_sharding("test::contradiction", [&](const OperatorCall&) {
    return List{{{highest}, {R, R}}, {{highest}, {highest, R}}, {{P}, {S0, R}}};
  });
  EXPECT_NO_THROW(op({z.redistribute({R}), z}));
  const CustomOperator comparison(
      "test::comparison", [](Locals x0, const Attributes&) { return x0[0].to(DType::boolean); },
      [](const std::vector<TensorDescription>& in, const Attributes&) {
        return TensorDescription{in[0].shape, DType::boolean};
      });
  const auto averages = register_sharding("test::comparison", [](const OperatorCall&) {
    return List{{{Partial(ReduceOp::avg)}, {S0}}};
  });
  EXPECT_THROW(comparison({x}), TypeError);
}

// The square root is monotone, which the library's rule does not use.
TEST(RegisterSharding, ReplacesTheLibrarysRules) {
  const DeviceMesh mesh = flat_mesh();
  const Placement highest = Partial(ReduceOp::max);
  Numbers numbers(12);
  Array a = numbers.array({5, 7});
  for (double& v : a.values) v = 100 + v;
  Array roots = a;
  for (double& v : roots.values) v = std::sqrt(v);
  const DTensor x = place(a, mesh, {highest}), rows = place(a, mesh, {S0});
  EXPECT_NE(sqrt(x).placements(), Placements{mesh.size() > 1 ? highest : S1});
  {
    int asked = 0;
    const auto registration = register_sharding("sqrt", [&](const OperatorCall& call) {
      ++asked;
      EXPECT_EQ(call.inputs.at(0), (TensorDescription{{5, 7}, DType::float64}));
      EXPECT_EQ(call.outputs.at(0).shape, (Shape{5, 7}));
      EXPECT_EQ(call.equation, "ab->ab");
      return List{{{highest}, {highest}}};
    });
    Communication communication;
    const DTensor y = sqrt(x);
    EXPECT_EQ(y.placements(), Placements{highest});
    EXPECT_EQ(communication.count, 0);
    EXPECT_LT(error_of(y, roots), 1e-14);
    // Shards are accepted no more, but by the other operators of the same rule.
    EXPECT_EQ(sqrt(rows).placements(), Placements{R});
    EXPECT_EQ(neg(rows).placements(), Placements{S0});
    EXPECT_EQ(sqrt(x).placements(), Placements{highest});
    EXPECT_EQ(asked, 2);
  }
  EXPECT_EQ(sqrt(rows).placements(), Placements{S0});
  EXPECT_NE(sqrt(x).placements(), Placements{mesh.size() > 1 ? highest : S1});
  const auto wrong = register_sharding("neg", [](const OperatorCall&) {
    return List{{{R}, {S0}}};
  });
  EXPECT_NE(message_of<LayoutError>([&] { neg(rows); }).find("neg"), std::string::npos);
  EXPECT_NO_THROW(sqrt(rows));
}

}  // namespace
}  // namespace dtensor::experimental
