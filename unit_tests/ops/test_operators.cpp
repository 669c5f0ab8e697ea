// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every operator under every combination of placements, against one process.
#include <gtest/gtest.h>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/ops/ops.hpp"
#include "ops/distributed_reference.hpp"
#include "ops/layouts.hpp"

namespace dtensor {
namespace {

using testing::Array;
using testing::choices;
using testing::Communication;
using testing::error_of;
using testing::evaluate;
using testing::flat_mesh;
using testing::layouts;
using testing::Numbers;
using testing::place;
using testing::square_mesh;
using testing::uneven;

using Values = std::vector<double>;

struct BinaryOperator {
  const char* name;
  DTensor (*operation)(const DTensor&, const DTensor&);
  double (*function)(double, double);
};

const BinaryOperator pointwise_operators[] = {
    {"add", add, [](double x, double y) { return x + y; }},
    {"sub", sub, [](double x, double y) { return x - y; }},
    {"mul", mul, [](double x, double y) { return x * y; }},
    {"div", div, [](double x, double y) { return x / y; }}};

std::string describe(const char* name, const DTensor& a, const DTensor& b, const DTensor& result) {
  return std::string(name) + " " + to_string(a.layout()) + " and " + to_string(b.layout()) +
         " gave " + to_string(result.placements());
}

void check_pointwise(const DeviceMesh& mesh) {
  const std::vector<std::pair<Shape, Shape>> shapes{
      {{5, 7}, {5, 7}}, {{5, 7}, {7}}, {{5, 1}, {1, 7}}, {{}, {5, 2}},
      {{1}, {3, 2}},    {{0, 4}, {4}}, {{2}, {2}}};
  Numbers numbers(11);
  for (const auto& [a, b] : shapes) {
    const Array x = numbers.array(a), y = numbers.array(b);
    const std::string all =
        std::string("abcdefgh").substr(0, static_cast<std::size_t>(std::max(a.size(), b.size())));
    const std::vector<std::string> letters{
        all.substr(all.size() - static_cast<std::size_t>(a.size())),
        all.substr(all.size() - static_cast<std::size_t>(b.size()))};
    for (const Layout& la : layouts(a, mesh, numbers)) {
      for (const Layout& lb : layouts(b, mesh, numbers)) {
        const DTensor dx = place(x, mesh, la), dy = place(y, mesh, lb);
        for (const BinaryOperator& op : pointwise_operators) {
          const DTensor result = op.operation(dx, dy);
          const Array expected = *evaluate(
              letters, all, {x, y}, [&](const Values& v) { return op.function(v[0], v[1]); });
          ASSERT_LT(error_of(result, expected), 1e-11) << describe(op.name, dx, dy, result);
        }
      }
    }
  }
}

TEST(Operators, PointwiseOnOneMeshDimension) { check_pointwise(flat_mesh()); }
TEST(Operators, PointwiseOnTwoMeshDimensions) { check_pointwise(square_mesh()); }

void check_matmul(const DeviceMesh& mesh) {
  struct Case {
    std::vector<std::string> letters;
    std::string output;
    Shape a, b;
  };
  const std::vector<Case> cases{{{"mk", "kn"}, "mn", {5, 7}, {7, 4}},
                                {{"mk", "kn"}, "mn", {1, 3}, {3, 2}},
                                {{"mk", "kn"}, "mn", {4, 0}, {0, 5}},
                                {{"mk", "kn"}, "mn", {0, 3}, {3, 2}},
                                {{"mk", "k"}, "m", {5, 7}, {7}},
                                {{"k", "kn"}, "n", {7}, {7, 3}},
                                {{"k", "k"}, "", {9}, {9}}};
  Numbers numbers(12);
  for (const Case& c : cases) {
    const Array x = numbers.array(c.a), y = numbers.array(c.b);
    const Array expected =
        *evaluate(c.letters, c.output, {x, y}, [](const Values& v) { return v[0] * v[1]; });
    for (const Layout& la : layouts(c.a, mesh, numbers)) {
      for (const Layout& lb : layouts(c.b, mesh, numbers)) {
        const DTensor dx = place(x, mesh, la), dy = place(y, mesh, lb);
        const DTensor result = matmul(dx, dy);
        ASSERT_LT(error_of(result, expected), 1e-11) << describe("matmul", dx, dy, result);
      }
    }
  }
}

TEST(Operators, MatmulOnOneMeshDimension) { check_matmul(flat_mesh()); }
TEST(Operators, MatmulOnTwoMeshDimensions) { check_matmul(square_mesh()); }

void check_unary(const DeviceMesh& mesh) {
  Numbers numbers(13);
  for (const Shape& shape :
       {Shape{5, 7}, Shape{2, 1}, Shape{0, 3}, Shape{}, Shape{4, 3, 2}, Shape{13}}) {
    Array x = numbers.array(shape);
    const std::string letters =
        std::string("abcdefgh").substr(0, static_cast<std::size_t>(shape.size()));
    for (const Layout& layout : layouts(shape, mesh, numbers)) {
      const DTensor dx = place(x, mesh, layout);
      const auto expect = [&](const char* name, const DTensor& result, auto&& f,
                              const std::string& output) {
        const Array expected =
            *evaluate({letters}, output, {x}, [&](const Values& v) { return f(v[0]); });
        ASSERT_LT(error_of(result, expected), 1e-11) << describe(name, dx, dx, result);
      };
      expect(
          "neg", -dx, [](double v) { return -v; }, letters);
      expect(
          "x*x sqrt", sqrt(dx * dx), [](double v) { return std::abs(v); }, letters);
      expect(
          "x - x", dx - dx, [](double) { return 0.0; }, letters);
      expect(
          "x * 2.5", dx * 2.5, [](double v) { return v * 2.5; }, letters);
      expect(
          "-3 * x", -3 * dx, [](double v) { return v * -3; }, letters);
      expect(
          "x / 4", dx / 4, [](double v) { return v / 4; }, letters);
      expect(
          "7 / x", 7 / dx, [](double v) { return 7 / v; }, letters);
      expect(
          "x + 10", dx + 10, [](double v) { return v + 10; }, letters);
      expect(
          "10 + x", 10 + dx, [](double v) { return v + 10; }, letters);
      expect(
          "x - 10", dx - 10, [](double v) { return v - 10; }, letters);
      expect(
          "10 - x", 10 - dx, [](double v) { return 10 - v; }, letters);
      const auto identity = [](double v) { return v; };
      for (int choice = 0; choice < 1 << shape.size(); ++choice) {
        std::string kept, with_dims;
        std::vector<std::int64_t> dims;
        double count = 1;
        for (int d = 0; d < shape.size(); ++d) {
          const char letter = letters[static_cast<std::size_t>(d)];
          if (choice >> d & 1) {
            dims.push_back(d - shape.size());
            count *= static_cast<double>(shape[d]);
            with_dims += '1';
          } else {
            kept += letter;
            with_dims += letter;
          }
        }
        expect("sum", sum(dx, dims), identity, kept);
        expect("sum keepdim", sum(dx, dims, true), identity, with_dims);
        if (count > 0)
          expect(
              "mean", mean(dx, dims), [&](double v) { return v / count; }, kept);
      }
      expect("sum of all", sum(dx), identity, "");
      for (int d = 1; d < shape.size(); ++d) {
        std::string exchanged = letters;
        std::swap(exchanged[0], exchanged[static_cast<std::size_t>(d)]);
        expect("transpose", transpose(dx, d - shape.size(), 0), identity, exchanged);
      }
    }
  }
}

TEST(Operators, UnaryOnOneMeshDimension) { check_unary(flat_mesh()); }
TEST(Operators, UnaryOnTwoMeshDimensions) { check_unary(square_mesh()); }

// What a rule says needs no communication communicates nothing.
TEST(Operators, NoCommunicationWhereNoneIsNeeded) {
  const DeviceMesh mesh = flat_mesh();
  const Placement R = Replicate(), P = Partial(), Pavg = Partial(ReduceOp::avg);
  const Placement S0 = Shard(0), S1 = Shard(1);
  const Placement U0 = Shard(0, uneven(12, mesh.size())), T0 = StridedShard(0, 2);
  Numbers numbers(14);
  const Array a = numbers.array({12, 8}), b = numbers.array({8, 4});
  const auto quiet = [&](const char* name, const auto& f, const Placement& expected) {
    const Communication communication;
    const DTensor result = f();
    EXPECT_EQ(communication.count, 0) << name;
    if (mesh.size() > 1) {
      EXPECT_EQ(to_string(result.placements()), to_string(Placements{expected})) << name;
    }
  };
  const auto product = [&](const Placement& x, const Placement& y, const Placement& expected) {
    const DTensor dx = place(a, mesh, Placements{x}), dy = place(b, mesh, Placements{y});
    quiet(
        "matmul", [&] { return matmul(dx, dy); }, expected);
  };
  product(S0, R, S0);
  product(U0, R, U0);
  product(T0, R, T0);
  product(R, S1, S1);
  product(S1, S0, P);
  product(P, R, P);
  product(R, Pavg, Pavg);
  product(R, R, R);
  product(R, S0, P);
  for (const Placement& p : {S0, S1, U0, T0, R, P, Pavg}) {
    const DTensor x = place(a, mesh, Placements{p});
    const bool shards = p.is_shard();
    quiet(
        "x + x", [&] { return x + x; }, p);
    quiet(
        "x - x", [&] { return x - x; }, p);
    quiet(
        "-x", [&] { return -x; }, p);
    quiet(
        "x * 2", [&] { return x * 2; }, p);
    quiet(
        "x / 2", [&] { return x / 2; }, p);
    quiet(
        "transpose", [&] { return transpose(x, 0, 1); }, shards ? p.with_dim(1 - p.dim()) : p);
    const Placement over_rows = p.is_shard(0) ? P : shards ? p.with_dim(0) : p;
    quiet(
        "sum", [&] { return sum(x, {0}); }, over_rows);
    quiet(
        "mean", [&] { return mean(x, {0}); }, over_rows);
    if (p.is_partial()) continue;
    quiet(
        "x * x", [&] { return x * x; }, p);
    quiet(
        "x / x", [&] { return x / x; }, p);
    quiet(
        "x + 1", [&] { return x + 1; }, p);
    quiet(
        "1 / x", [&] { return 1 / x; }, p);
    quiet(
        "sqrt", [&] { return sqrt(x); }, p);
  }
  // A product of contributions and whole values.
  const DTensor whole = place(a, mesh, Placements{R}), partial = place(a, mesh, Placements{P});
  quiet(
      "P * R", [&] { return partial * whole; }, P);
  quiet(
      "R * P", [&] { return whole * partial; }, P);
  quiet(
      "P / 3", [&] { return partial / 3; }, P);
}

TEST(Operators, CommunicationIsReportedWithItsReason) {
  const DeviceMesh mesh = flat_mesh();
  if (mesh.size() == 1) return;
  Numbers numbers(15);
  const Array a = numbers.array({12, 8});
  const DTensor x = place(a, mesh, Placements{Partial()});
  {
    const Communication communication;
    const DTensor y = sqrt(x * x);
    EXPECT_EQ(communication.operation, "mul");
    EXPECT_NE(communication.reason.find("Partial"), std::string::npos);
  }
  {
    // One tensor given twice is not moved twice.
    const Communication communication;
    const DTensor y = x / x;
    EXPECT_LE(communication.count, 2);
  }
  {
    const Communication communication;
    const DTensor y = place(a, mesh, Placements{Shard(0)}) + place(a, mesh, Placements{Shard(1)});
    EXPECT_EQ(communication.count, 1);
    EXPECT_EQ(communication.operation, "add");
    EXPECT_NE(communication.reason.find("placements"), std::string::npos);
    EXPECT_EQ(communication.collective, Collective::all_to_all);
  }
}

TEST(Operators, PartialOfOnesTimesANumberStaysPartial) {
  const DeviceMesh mesh = flat_mesh();
  for (ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
    const DTensor ones(mesh, Layout({8, 8}, mesh.grid(), {Partial(op)}),
                       Tensor::full({8, 8}, 1, DType::float64, mesh.device()));
    const Communication communication;
    const DTensor twice = ones * 2;
    EXPECT_EQ(communication.count, 0);
    EXPECT_TRUE(twice.placements()[0].is_partial(op));
    const double expected = op == ReduceOp::sum ? 2.0 * static_cast<double>(mesh.size()) : 2;
    EXPECT_EQ(error_of(twice, Array({8, 8}, expected)), 0);
  }
}

TEST(Operators, ANumberIsAddedOnceToPartial) {
  const DeviceMesh mesh = flat_mesh();
  const std::int64_t rank = mesh.local_rank(0);
  const DTensor x(
      mesh, Layout({2}, mesh.grid(), {Partial()}),
      Tensor::full({2}, rank == 0 ? 55 - 3 * (mesh.size() - 1) : 3, DType::float64, mesh.device()));
  EXPECT_EQ(error_of(x + 10, Array({2}, 65)), 0);
  EXPECT_EQ(error_of(10 - x, Array({2}, -45)), 0);
  EXPECT_EQ(error_of(-5 * x, Array({2}, -275)), 0);
  EXPECT_EQ(error_of(2 * x, Array({2}, 110)), 0);
}

TEST(Operators, RankAsPartialTimesAndOverTwo) {
  const DeviceMesh mesh = flat_mesh();
  const DTensor x(mesh, Layout({1}, mesh.grid(), {Partial()}),
                  Tensor::full({1}, mesh.local_rank(0), DType::float64, mesh.device()));
  const auto n = static_cast<double>(mesh.size());
  EXPECT_EQ(error_of(x * 2, Array({1}, n * (n - 1))), 0);
  EXPECT_EQ(error_of(x / 2, Array({1}, n * (n - 1) / 4)), 0);
}

// The cache knows nothing of numbers.
TEST(Operators, ARepeatedOperatorUsesItsOwnNumber) {
  const DeviceMesh mesh = flat_mesh();
  const DTensor x = place(Array({6}, 1.5), mesh, Placements{Shard(0)});
  for (double number : {2.0, -3.0, 0.5}) {
    EXPECT_EQ(error_of(x * number, Array({6}, 1.5 * number)), 0);
    EXPECT_EQ(error_of(x + number, Array({6}, 1.5 + number)), 0);
  }
}

TEST(Operators, MeanOfAnUnevenlyShardedDimensionIsThatOfTheWhole) {
  const DeviceMesh mesh = flat_mesh();
  Array x({7});
  for (std::size_t i = 0; i < 7; ++i) x.values[i] = static_cast<double>(i * i);
  for (const Placement& p : choices({7}, mesh.size())) {
    EXPECT_LT(error_of(mean(place(x, mesh, Placements{p})), Array({}, 13)), 1e-12) << to_string(p);
  }
  Array none({0, 3});
  const Tensor nothing = mean(place(none, mesh, Placements{Shard(0)}), {0}).full_tensor();
  for (double v : nothing.to_vector<double>()) EXPECT_TRUE(std::isnan(v));
}

// Contributions of integers wrap around, and of bool are combined by "or": converting them is not
// linear.
TEST(Operators, IntegerContributionsAreReducedBeforeTheyAreConverted) {
  const DeviceMesh mesh = flat_mesh();
  const auto contributions = [&](const Scalar& value, DType dtype) {
    return DTensor(mesh, Layout({4}, mesh.grid(), {Partial()}),
                   Tensor::full({4}, value, dtype, mesh.device()));
  };
  const auto wrapped = static_cast<double>(static_cast<std::int8_t>(100 * mesh.size()));
  const DTensor bytes = contributions(100, DType::int8);
  EXPECT_EQ(sum(bytes).dtype(), DType::int64);
  EXPECT_EQ(error_of(sum(bytes), Array({}, 4 * wrapped)), 0);
  EXPECT_EQ(error_of(mean(bytes), Array({}, wrapped)), 0);
  EXPECT_EQ(error_of(bytes / 2, Array({4}, wrapped / 2)), 0);
  const DTensor flags = contributions(true, DType::boolean);
  EXPECT_EQ(error_of(sum(flags), Array({}, 4)), 0);
  EXPECT_EQ(error_of(flags * 2, Array({4}, 2)), 0);
  const DTensor wide = contributions(3, DType::int64);
  const Communication communication;
  EXPECT_TRUE((mesh.size() == 1 || sum(wide).placements()[0].is_partial()));
  EXPECT_EQ(communication.count, 0);
}

TEST(Operators, TransposeIsAView) {
  const DeviceMesh mesh = flat_mesh();
  const DTensor x = place(Numbers(16).array({6, 4}), mesh, Placements{Shard(0)});
  const DTensor t = transpose(x, 0, 1);
  EXPECT_EQ(t.to_local().storage(), x.to_local().storage());
  EXPECT_EQ(t.shape(), (Shape{4, 6}));
  EXPECT_EQ(t.stride(), (Extents{1, 4}));
  const DTensor largest =
      place(Numbers(16).array({6, 4}), mesh, Placements{Partial(ReduceOp::max)});
  EXPECT_TRUE(transpose(largest, 0, 1).placements()[0].is_partial(ReduceOp::max));
}

TEST(Operators, ScalarTypesOfResults) {
  const DeviceMesh mesh = flat_mesh();
  const auto make = [&](DType dtype) {
    return DTensor(mesh, Layout({3}, mesh.grid(), {Replicate()}),
                   Tensor::full({3}, 2, dtype, mesh.device()));
  };
  EXPECT_EQ((make(DType::int32) / make(DType::int32)).dtype(), DType::float64);
  EXPECT_EQ((make(DType::int32) * 1.5).dtype(), DType::float64);
  EXPECT_EQ(sqrt(make(DType::float32)).dtype(), DType::float32);
  EXPECT_EQ(sum(make(DType::uint8)).dtype(), DType::int64);
  EXPECT_EQ(mean(make(DType::bfloat16)).dtype(), DType::bfloat16);
  EXPECT_EQ(error_of(make(DType::bfloat16) + make(DType::bfloat16), Array({3}, 4)), 0);
}

template <class F>
std::string given_of(ErrorKind kind, const F& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.given() + "; expected " + e.expected();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(Operators, Errors) {
  const DeviceMesh mesh = flat_mesh();
  const DeviceMesh named(Shape{Runtime::size()}, {"tp"});
  const DTensor x = place(Array({4, 3}), mesh, Placements{Shard(0)});
  const DTensor elsewhere = place(Array({4, 3}), named, Placements{Shard(0)});
  const std::string meshes = given_of(ErrorKind::layout, [&] { x + elsewhere; });
  EXPECT_NE(meshes.find("tp="), std::string::npos) << meshes;
  EXPECT_NE(given_of(ErrorKind::value, [&] { x + place(Array({2}), mesh, Placements{Shard(0)}); })
                .find("(4, 3) and (2,)"),
            std::string::npos);
  given_of(ErrorKind::value, [&] { matmul(x, x); });
  given_of(ErrorKind::index, [&] { sum(x, {2}); });
  given_of(ErrorKind::value, [&] { sum(x, {0, -2}); });
  given_of(ErrorKind::index, [&] { transpose(x, 0, 2); });
  const DTensor flags(mesh, x.layout(), x.to_local().to(DType::boolean));
  given_of(ErrorKind::type, [&] { -flags; });
  given_of(ErrorKind::type, [&] { flags - flags; });
}

TEST(Operators, ATensorAndADTensorDoNotMix) {
  const DeviceMesh mesh = flat_mesh();
  const DTensor x = place(Array({4}), mesh, Placements{Shard(0)});
  const Tensor plain = Tensor::zeros({4}, DType::float64);
  for (const std::string& text :
       {given_of(ErrorKind::type, [&] { x + plain; }),
        given_of(ErrorKind::type, [&] { plain - x; }), given_of(ErrorKind::type, [&] { plain* x; }),
        given_of(ErrorKind::type, [&] { x / plain; }),
        given_of(ErrorKind::type, [&] { matmul(plain, x); })}) {
    EXPECT_NE(text.find("distribute_tensor"), std::string::npos) << text;
    EXPECT_NE(text.find("from_local"), std::string::npos) << text;
  }
}

// A rank outside of the mesh makes the same calls and holds nothing.
TEST(Operators, OutsideOfTheMesh) {
  const DeviceMesh mesh = DeviceMesh::from_ranks({0}, Shape{1});
  const Layout layout(Shape{4, 3}, mesh.grid(), {Shard(0)});
  const DTensor x(mesh, layout,
                  Tensor::full(mesh.is_member() ? Shape{4, 3} : Shape{0, 0}, 2.0, DType::float64,
                               mesh.device()));
  const DTensor y = matmul(transpose(x, 0, 1), x * 2 + 1) / 4;
  EXPECT_EQ(y.shape(), (Shape{3, 3}));
  EXPECT_EQ(y.to_local().numel(), mesh.is_member() ? 9 : 0);
  const DTensor total = sum(y, {0}, true);
  EXPECT_EQ(total.shape(), (Shape{1, 3}));
  if (mesh.is_member()) {
    EXPECT_EQ(total.to_local().to_vector<double>(), (Values{30, 30, 30}));
  }
}

}  // namespace
}  // namespace dtensor
