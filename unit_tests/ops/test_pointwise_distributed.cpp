// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every pointwise operator on DTensors of every placement gives what the operator on local tensors,
// tested by itself, gives for the whole.
#include <gtest/gtest.h>

#include <complex>
#include <limits>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/ops/ops.hpp"
#include "dtensor/redistribute/combine.hpp"
#include "ops/distributed_reference.hpp"
#include "ops/layouts.hpp"

namespace dtensor {
namespace {

using testing::Array;
using testing::Communication;
using testing::error_of;
using testing::flat_mesh;
using testing::Numbers;
using testing::place;
using testing::square_mesh;
using testing::uneven;

using Values = std::vector<double>;
constexpr double inf = std::numeric_limits<double>::infinity();

const Placement R = Replicate(), P = Partial(), Pavg = Partial(ReduceOp::avg),
                Pmax = Partial(ReduceOp::max), Pmin = Partial(ReduceOp::min), S0 = Shard(0),
                S1 = Shard(1);

// All layouts on one mesh dimension, but for many ranks; a sample of those on several.
std::vector<Layout> some_layouts(const Shape& shape, const DeviceMesh& mesh, Numbers& numbers,
                                 bool averages) {
  Placements contributions{P, Pmax, Pmin};
  if (averages) contributions.push_back(Pavg);
  std::vector<Layout> result;
  if (mesh.dim() == 1) {
    for (const Placement& p : testing::choices(shape, mesh.size(), contributions)) {
      // A third of them where ranks outnumber cores by far.
      if (mesh.size() > 3 && numbers.below(3) != 0) continue;
      result.emplace_back(shape, mesh.grid(), Placements{p});
    }
    if (result.empty()) result.emplace_back(shape, mesh.grid(), Placements{R});
    return result;
  }
  while (result.size() < (mesh.size() > 3 ? 3u : 5u)) {
    result.push_back(testing::any_layout(shape, mesh, numbers, contributions));
  }
  return result;
}

// A global tensor, and the same under some layout. Integers are the eighths that `place` makes.
struct Pair {
  Tensor whole;
  DTensor parts;
};
Pair make(const Array& values, DType dtype, const DeviceMesh& mesh, const Layout& layout) {
  const DTensor placed = place(values, mesh, layout);
  const Tensor global = Tensor::from_vector(values.values, values.shape, mesh.device());
  if (dtype == DType::float64) return {global, placed};
  return {(global * 8).to(dtype), DTensor(mesh, layout, (placed.to_local() * 8).to(dtype))};
}

double difference(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) return inf;
  const Values x = a.to(DType::float64).to_vector<double>();
  const Values y = b.to(DType::float64).to_vector<double>();
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if ((std::isnan(x[i]) && std::isnan(y[i])) || x[i] == y[i]) continue;
    const double d = std::abs(x[i] - y[i]) / std::max(1.0, std::abs(y[i]));
    largest = d <= largest ? largest : d;
  }
  return largest;
}

// Operands of one call: those of the whole and those of the parts.
struct Calls {
  detail::Operands<Tensor> whole;
  detail::Operands<DTensor> parts;
  void add(const Pair& pair) {
    whole.push_back(pair.whole);
    parts.push_back(pair.parts);
  }
  void add(const Scalar& number) {
    whole.push_back(number);
    parts.push_back(number);
  }
};

void check(const PointwiseRow& row, const Calls& calls) {
  const DTensor result = detail::pointwise(row.op, calls.parts);
  const Tensor expected = detail::pointwise(row.op, calls.whole);
  std::string what = row.name;
  for (const auto& operand : calls.parts) {
    what +=
        " " + (operand.tensor ? to_string(operand.tensor->layout()) : to_string(operand.number));
  }
  ASSERT_LT(difference(result.full_tensor(), expected), 1e-11)
      << what << " gave " << to_string(result.placements());
}

void check_all(const DeviceMesh& mesh) {
  Numbers numbers(21);
  const Shape shape{5, 7};
  for (const PointwiseRow& row : pointwise_table()) {
    for (DType dtype : {DType::float64, DType::int64}) {
      if ((row.kinds & kinds::of(dtype)) == 0) continue;
      const bool averages = dtype == DType::float64;
      const auto random = [&](const Shape& of, const Layout& layout) {
        return make(numbers.array(of), dtype, mesh, layout);
      };
      for (const Layout& la : some_layouts(shape, mesh, numbers, averages)) {
        const Pair x = random(shape, la);
        if (row.arity == 1) {
          Calls calls;
          calls.add(x);
          check(row, calls);
          continue;
        }
        const Shape other = numbers.below(4) == 0 ? Shape{7} : shape;
        auto candidates = some_layouts(other, mesh, numbers, averages);
        if (row.passes.empty()) {
          const auto kept =
              static_cast<std::size_t>(numbers.below(static_cast<int>(candidates.size())));
          candidates = {candidates[kept]};
        }
        for (const Layout& lb : candidates) {
          const Pair y = random(other, lb);
          if (row.arity == 2) {
            Calls calls;
            calls.add(x);
            calls.add(y);
            check(row, calls);
            continue;
          }
          const auto thirds = some_layouts(shape, mesh, numbers, averages);
          const Pair z = random(
              shape,
              thirds[static_cast<std::size_t>(numbers.below(static_cast<int>(thirds.size())))]);
          // Each operand first once, so that contributions meet in every position.
          const Pair* turns[3] = {&x, &y, &z};
          const int turn = numbers.below(3);
          Calls calls;
          for (int i = 0; i < 3; ++i) calls.add(*turns[(turn + i) % 3]);
          if (row.arity == 4) calls.add(-3);
          check(row, calls);
        }
        const double own[] = {3, -2, 0};
        for (double number : own) {
          const Scalar n = dtype == DType::int64 ? Scalar(static_cast<std::int64_t>(number))
                                                 : Scalar(number + (number == 0 ? 0 : 0.5));
          Calls left, right;
          left.add(x);
          right.add(n);
          left.add(n);
          right.add(x);
          if (row.arity == 2) {
            check(row, left);
            check(row, right);
          } else if (row.arity == 3 && row.op != PointwiseOp::where) {
            left.add(4);
            check(row, left);
          } else if (row.op == PointwiseOp::where) {
            const Pair condition =
                make(Array(shape, 1), DType::boolean, mesh,
                     Layout(shape, mesh.grid(),
                            Placements(static_cast<std::size_t>(mesh.dim()), Replicate())));
            Calls first, second;
            first.add(condition);
            first.add(x);
            first.add(n);
            second.add(condition);
            second.add(n);
            second.add(x);
            check(row, first);
            check(row, second);
          }
        }
      }
    }
  }
}

TEST(PointwiseDistributed, EveryOperatorOnOneMeshDimension) { check_all(flat_mesh()); }
TEST(PointwiseDistributed, EveryOperatorOnTwoMeshDimensions) { check_all(square_mesh()); }

class Contributions : public ::testing::Test {
 protected:
  const DeviceMesh mesh = flat_mesh();
  Numbers numbers{31};
  const Array a = numbers.array({6, 4}), b = numbers.array({6, 4});

  DTensor with(const Placement& p, DType dtype = DType::float64) {
    return make(a, dtype, mesh, Layout(a.shape, mesh.grid(), {p})).parts;
  }
  // The result's placement, and whether anything was communicated.
  template <class F>
  void expect(const Placement& expected, bool quiet, const std::string& what, const F& f) {
    if (mesh.size() == 1) return;
    const Communication communication;
    const DTensor result = f();
    EXPECT_EQ(communication.count == 0, quiet) << what;
    if (quiet) {
      EXPECT_EQ(to_string(result.placements()), to_string(Placements{expected})) << what;
    } else {
      EXPECT_FALSE(result.placements()[0].is_partial()) << what;
    }
  }
};
#define KEEPS(placement, expression) \
  expect(placement, true, #expression, [&] { return expression; })
#define REDUCES(expression) expect(R, false, #expression, [&] { return expression; })

TEST_F(Contributions, OfSumsAndAverages) {
  const DTensor p = with(P), q = with(Pavg), r = with(R);
  KEEPS(P, p + p);
  KEEPS(P, p - p);
  KEEPS(P, -p);
  KEEPS(P, p * r);
  KEEPS(P, p * 2);
  KEEPS(P, -2 * p);
  KEEPS(P, p / -4);
  KEEPS(P, conj(p));
  KEEPS(P, real(p));
  KEEPS(P, lerp(p, p, 0.25));
  KEEPS(P, lerp(p, p, r));
  KEEPS(P, addcmul(p, p, r, 3));
  KEEPS(P, addcmul(p, r, p));
  KEEPS(P, where(r, p, p));
  KEEPS(P, where(r, p, 0));
  KEEPS(P, to(with(P, DType::float32), DType::float64));
  KEEPS(P, to(p, DType::complex128));
  KEEPS(Pavg, q + 10);
  KEEPS(Pavg, 10 - q);
  KEEPS(Pavg, q + r);
  KEEPS(Pavg, r - q);
  KEEPS(Pavg, where(r, q, 3));
  KEEPS(Pavg, addcmul(r, q, r));
  KEEPS(Pavg, addcdiv(q, r, r));
  REDUCES(p + 10);
  REDUCES(10 - p);
  REDUCES(p + r);
  REDUCES(p * p);
  REDUCES(p / r);
  REDUCES(r / p);
  REDUCES(addcdiv(p, p, r));
  REDUCES(addcdiv(r, q, r));
  REDUCES(2 / p);
  REDUCES(abs(p));
  REDUCES(relu(p));
  REDUCES(square(p));
  REDUCES(pow(p, 1));
  REDUCES(p == p);
  REDUCES(where(r, p, 3));
  REDUCES(where(r, p, r));
  REDUCES(lerp(r, p, 0.5));
  REDUCES(clamp(p, 0, 1));
  REDUCES(to(p, DType::int64));
  REDUCES(to(p, DType::float32));
  REDUCES(to(p, DType::complex64));
  REDUCES(maximum(p, p));
  REDUCES(logical_not(p));
}

// Ranks that hold nothing find it too, before anything moves.
TEST(PointwiseInPlace, ElementsThatShareMemoryAreAnErrorOnEveryRank) {
  const DeviceMesh mesh = flat_mesh();
  const DTensor x = distribute_tensor(Tensor::full({2}, 1, DType::float64), mesh, {Shard(0)});
  const DTensor repeated = expand(x, {3, 2});
  const DTensor other =
      distribute_tensor(Tensor::full({3, 2}, 1, DType::float64), mesh, {Shard(1)});
  const Communication communication;
  EXPECT_THROW(add_(repeated, 1), ValueError);
  EXPECT_THROW(add_(repeated, other), ValueError);
  EXPECT_THROW(copy_(repeated, other), ValueError);
  EXPECT_THROW(fill_(to(x, DType::int8), 300), ValueError);
  EXPECT_EQ(communication.count, 0);
  // A local tensor that overlaps itself on one rank alone is copied.
  const Tensor one = Tensor::full({1}, 3, DType::float64, mesh.device());
  const DTensor y =
      from_local(Runtime::rank() == 0 ? one.as_strided({4}, {0}, 0)
                                      : Tensor::full({4}, 3, DType::float64, mesh.device()),
                 mesh, {Shard(0)});
  add_(y, arange(0, 4 * mesh.size(), 1, mesh, {Shard(0)}));
  EXPECT_EQ(select(y, 0, 3).full_tensor().item<double>(), 6);
  EXPECT_EQ(one.item<double>(), 3);
}

// Over a zero, contributions of different signs would make NaN of what is infinite.
TEST_F(Contributions, OverATensorWithAZero) {
  for (const Placement& c : {P, Pavg}) {
    const Layout layout({2}, mesh.grid(), {c});
    const std::int64_t rank = mesh.local_rank(0);
    const DTensor x(mesh, layout,
                    Tensor::full({2}, rank == 0 ? 20 : -1, DType::float64, mesh.device()));
    const DTensor zero_and_two = arange(0, 4, 2, mesh, Placements{R}, DType::float64);
    const double value = select(x, 0, 0).full_tensor().item<double>();
    const auto same = [&](const DTensor& y, double first, double second) {
      EXPECT_EQ(select(y, 0, 0).full_tensor().item<double>(), first) << to_string(c);
      EXPECT_EQ(select(y, 0, 1).full_tensor().item<double>(), second) << to_string(c);
    };
    same(x / zero_and_two, inf, value / 2);
    same(addcdiv(x, x, zero_and_two), inf, value + value / 2);
  }
}

TEST_F(Contributions, OfMaximaAndMinima) {
  const DTensor p = with(Pmax), q = with(Pmin), r = with(R);
  for (const Placement& c : {Pmax, Pmin}) {
    const DTensor x = with(c);
    KEEPS(c, relu(x));
    KEEPS(c, exp(x));
    KEEPS(c, tanh(x));
    KEEPS(c, floor(x));
    KEEPS(c, round(x));
    KEEPS(c, sign(x));
    KEEPS(c, clamp(x, -1, 1));
    KEEPS(c, clamp(x, r, r));
    KEEPS(c, maximum(x, r));
    KEEPS(c, minimum(2, x));
    KEEPS(c, x * 2.5);
    KEEPS(c, x / 2.5);
    KEEPS(c, where(r, x, x));
    KEEPS(c, where(r, x, 3));
    KEEPS(c, to(x, DType::float32));
    REDUCES(-x);
    REDUCES(x + 1);
    REDUCES(x * -1);
    REDUCES(x * 0);
    REDUCES(2 / x);
    REDUCES(sqrt(x));
    REDUCES(log(x));
    REDUCES(x * r);
    REDUCES(x + x);
    REDUCES(abs(x));
    REDUCES(to(x, DType::int32));
  }
  KEEPS(Pmax, maximum(p, p));
  KEEPS(Pmin, minimum(q, q));
  REDUCES(minimum(p, p));
  REDUCES(maximum(q, q));
  // Integers wrap around when they are multiplied, and are exact when they are widened.
  const DTensor whole = with(Pmax, DType::int32);
  REDUCES(whole * 2);
  KEEPS(Pmax, to(whole, DType::int64));
  KEEPS(Pmax, to(whole, DType::float64));
  REDUCES(to(whole, DType::int8));
}

TEST_F(Contributions, OfIntegersAndBits) {
  const DTensor p = with(P, DType::int32), r = with(R, DType::int32);
  KEEPS(P, p * 3);
  KEEPS(P, to(p, DType::int8));
  REDUCES(to(p, DType::int64));
  REDUCES(p * with(R, DType::int64));
  REDUCES(p * 0.5);
  REDUCES(p / 2);
  for (ReduceOp op : {ReduceOp::band, ReduceOp::bor, ReduceOp::bxor}) {
    const Placement c = Partial(op);
    const std::int64_t rank = mesh.local_rank(0);
    const DTensor x(mesh, Layout({6, 4}, mesh.grid(), {c}),
                    Tensor::full({6, 4}, 0b1011 ^ (rank * 37), DType::int32, mesh.device()));
    const auto same = [&](const DTensor& y, const Tensor& expected) {
      EXPECT_EQ(difference(y.full_tensor(), expected), 0) << to_string(c);
    };
    const Tensor value = x.full_tensor(), mask = r.full_tensor();
    same(x & r, value & mask);
    same(x | r, value | mask);
    same(x ^ r, value ^ mask);
    same(x & x, value);
    same(x | x, value);
    same(x ^ x, value ^ value);
    same(~x, ~value);
    same(x & 6, value & 6);
    same(9 | x, 9 | value);
    KEEPS(c, x & r);
    if (op == ReduceOp::bxor) {
      KEEPS(c, x ^ x);
      REDUCES(x | r);
    } else {
      KEEPS(c, x | 6);
      REDUCES(x ^ r);
    }
    REDUCES(~x);
  }
}

// A result is not left with a reduction that its scalar type does not have.
TEST_F(Contributions, OfReductionsThatTheResultDoesNotHave) {
  const DTensor r = with(R, DType::boolean), x = with(Pmax),
                bits = with(Partial(ReduceOp::bor), DType::int32);
  const std::complex<double> z(1, 2);
  KEEPS(Pmax, where(r, x, 2.5));
  REDUCES(where(r, x, z));
  KEEPS(Partial(ReduceOp::bor), where(r, bits, 4));
  REDUCES(where(r, bits, 2.5));
  EXPECT_EQ(difference(where(r, bits, 2.5).full_tensor(), to(bits.full_tensor(), DType::float64)),
            0);
}

// What is exact for every number but some is reduced first for those.
TEST_F(Contributions, InfiniteFactorsAndDivisorsOfZero) {
  const double rank = static_cast<double>(mesh.local_rank(0)), n = static_cast<double>(mesh.size());
  // Contributions n, -1, -1, ...: the sum is 1.
  const DTensor x(mesh, Layout({2}, mesh.grid(), {P}),
                  Tensor::full({2}, rank == 0 ? n : -1.0, DType::float64, mesh.device()));
  const auto value = [](const DTensor& y) {
    return y.full_tensor().to(DType::float64).to_vector<double>()[1];
  };
  EXPECT_EQ(value(x * inf), inf);
  EXPECT_EQ(value(-inf * x), -inf);
  EXPECT_EQ(value(x / 0), inf);
  EXPECT_EQ(value(x / 2), 0.5);
  EXPECT_EQ(value(DTensor(mesh, x.layout(), x.to_local().to(DType::float32)) * 1e60), inf);
  // A maximum of infinities is none of NaN.
  const DTensor y(mesh, Layout({2}, mesh.grid(), {Pmax}),
                  Tensor::full({2}, rank == 0 ? 3.0 : -inf, DType::float64, mesh.device()));
  EXPECT_EQ(value(sqrt(y)), std::sqrt(3.0));
  EXPECT_EQ(value(y * 0), 0);
  EXPECT_EQ(value(y + inf), inf);
  EXPECT_EQ(value(to(y, DType::float32) * 1e-60), 0);
}

TEST(PointwiseDistributed, ValuesThatTheOriginalGetsWrong) {
  const DeviceMesh mesh = flat_mesh();
  const std::int64_t rank = mesh.local_rank(0);
  const DTensor x(
      mesh, Layout({2}, mesh.grid(), {P}),
      Tensor::full({2}, rank == 0 ? 55 - 3 * (mesh.size() - 1) : 3, DType::float64, mesh.device()));
  EXPECT_EQ(error_of(to(-5 * x == 2 * x, DType::float64), Array({2}, 0)), 0);
  EXPECT_EQ(error_of(to(2 * x == x + x, DType::float64), Array({2}, 1)), 0);
  EXPECT_EQ(error_of(x + 10, Array({2}, 65)), 0);
  EXPECT_EQ(error_of(to(x > 54, DType::float64), Array({2}, 1)), 0);
  for (double bound : {10.0, 60.0, 20.0}) {
    EXPECT_EQ(error_of(clamp(x, std::nullopt, bound), Array({2}, std::min(bound, 55.0))), 0);
  }
}

template <class F>
std::string given_of(ErrorKind kind, const F& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.what();
    return e.function() + ": " + e.given() + "; expected " + e.expected();
  }
  ADD_FAILURE() << "no error";
  return "";
}

TEST(PointwiseInPlace, FillSetsTheLogicalValue) {
  for (const DeviceMesh& mesh : {flat_mesh(), square_mesh()}) {
    for (int op = 0; op < reduce_op_count; ++op) {
      for (DType dtype : {DType::float64, DType::int32, DType::boolean}) {
        const auto reduce_op = static_cast<ReduceOp>(op);
        try {
          check_reduce_op("test", reduce_op, dtype);
        } catch (const TypeError&) {
          continue;
        }
        const double value = dtype == DType::boolean ? 1 : 8;
        std::vector<Placements> all{
            Placements(static_cast<std::size_t>(mesh.dim()), Partial(reduce_op))};
        if (mesh.dim() == 2) {
          all.push_back({Partial(reduce_op), S0});
          all.push_back({R, Partial(reduce_op)});
          if (reduce_op == ReduceOp::sum && dtype == DType::float64) all.push_back({P, Pavg});
        }
        for (const Placements& placements : all) {
          const Layout layout({4, 8}, mesh.grid(), placements);
          const DTensor x(
              mesh, layout,
              Tensor::full(layout.local_shape(*mesh.coordinate()), 1, dtype, mesh.device()));
          const Communication communication;
          fill_(x, value);
          EXPECT_EQ(communication.count, 0);
          EXPECT_EQ(error_of(to(x, DType::float64), Array({4, 8}, value)), 0)
              << to_string(placements) << to_string(dtype);
          EXPECT_EQ(error_of(to(zero_(x), DType::float64), Array({4, 8}, 0)), 0)
              << to_string(placements) << to_string(dtype);
        }
      }
    }
  }
}

TEST(PointwiseInPlace, KeepsMemoryAndPlacements) {
  Numbers numbers(41);
  for (const DeviceMesh& mesh : {flat_mesh(), square_mesh()}) {
    const Array a = numbers.array({5, 6}), b = numbers.array({5, 6}), c = numbers.array({6});
    for (const Layout& la : some_layouts(a.shape, mesh, numbers, true)) {
      for (const Layout& lb : some_layouts(b.shape, mesh, numbers, true)) {
        const Pair x = make(a, DType::float64, mesh, la), y = make(b, DType::float64, mesh, lb);
        const Tensor before = x.parts.to_local().clone();
        const std::string what = to_string(la) + " and " + to_string(lb);
        const void* const memory = x.parts.to_local().data();
        bool kept = true;
        try {
          const DTensor same = sub_(x.parts, y.parts);
          EXPECT_EQ(same.to_local().data(), memory);
        } catch (const LayoutError&) {
          kept = false;
        }
        EXPECT_EQ(x.parts.layout(), la) << what;
        EXPECT_EQ(x.parts.to_local().data(), memory) << what;
        if (kept) {
          EXPECT_LT(difference(x.parts.full_tensor(), x.whole - y.whole), 1e-11) << what;
        } else {
          EXPECT_TRUE(la.has_partial()) << what;
          EXPECT_EQ(difference(x.parts.to_local(), before), 0) << what;
        }
        // Averages take whole values, sums only sums.
        if (mesh.dim() == 1 && la.placement(0).is_partial()) {
          const bool alike = la.placement(0) == lb.placement(0);
          EXPECT_EQ(kept, la.placement(0) == Pavg || (la.placement(0) == P && alike)) << what;
        } else if (!la.has_partial()) {
          EXPECT_TRUE(kept) << what;
        }
      }
      // A smaller operand is broadcast wherever the larger one is sharded.
      if (la.has_partial()) continue;
      for (const Layout& lc : some_layouts(c.shape, mesh, numbers, true)) {
        const Pair x = make(a, DType::float64, mesh, la), z = make(c, DType::float64, mesh, lc);
        mul_(x.parts, z.parts);
        EXPECT_LT(difference(x.parts.full_tensor(), x.whole * z.whole), 1e-11)
            << to_string(la) << " " << to_string(lc);
        addcmul_(x.parts, z.parts, z.parts, 2);
        const Tensor expected = addcmul(x.whole * z.whole, z.whole, z.whole, 2);
        EXPECT_LT(difference(x.parts.full_tensor(), expected), 1e-11);
      }
    }
  }
}

TEST(PointwiseInPlace, IsRefusedWhereItWouldChangeTheTensor) {
  const DeviceMesh mesh = flat_mesh();
  const DTensor p = place(Array({4, 3}, 2), mesh, Placements{P});
  const DTensor x = place(Array({4, 3}, 2), mesh, Placements{S0});
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const Communication communication;
  std::string text = given_of(ErrorKind::layout, [&] { clamp_(p, std::nullopt, 10); });
  has(text, "placement P");
  text = given_of(ErrorKind::layout, [&] { add_(p, 1); });
  has(text, "add_");
  given_of(ErrorKind::layout, [&] { add_(p, x); });
  given_of(ErrorKind::layout, [&] { sqrt_(p); });
  given_of(ErrorKind::layout, [&] { div_(p, 0); });
  const DTensor whole(mesh, x.layout(), x.to_local().to(DType::int32));
  text = given_of(ErrorKind::type, [&] {
    DTensor y = whole;
    y *= 0.5;
  });
  has(text, "int32");
  given_of(ErrorKind::value, [&] { add_(x, place(Array({2, 4, 3}), mesh, Placements{R})); });
  given_of(ErrorKind::value, [&] { add_(x, place(Array({5}), mesh, Placements{R})); });
  const DeviceMesh named(Shape{Runtime::size()}, {"tp"});
  given_of(ErrorKind::layout, [&] { add_(x, place(Array({4, 3}), named, Placements{S0})); });
  given_of(ErrorKind::layout, [&] { copy_(x, place(Array({4, 3}), named, Placements{S0})); });
  given_of(ErrorKind::value, [&] { copy_(x, place(Array({2, 4, 3}), mesh, Placements{R})); });
  const Tensor plain = Tensor::zeros({4, 3}, DType::float64);
  given_of(ErrorKind::type, [&] { add_(x, plain); });
  given_of(ErrorKind::type, [&] { x < plain; });
  given_of(ErrorKind::type, [&] { maximum(plain, x); });
  EXPECT_EQ(communication.count, 0);
  // What is linear stays possible.
  mul_(p, 3);
  add_(p, p);
  EXPECT_EQ(error_of(p, Array({4, 3}, 12)), 0);
  // A product of contributions and the whole, which is made of the second operand alone.
  mul_(p, p);
  EXPECT_EQ(error_of(p, Array({4, 3}, 144)), 0);
}

TEST(PointwiseInPlace, MovesTheOtherOperandOnly) {
  const DeviceMesh mesh = flat_mesh();
  if (mesh.size() == 1) return;
  // The first is much smaller: out of place, it would be the one to move.
  const DTensor x = place(Array({2, 1}, 1), mesh, Placements{S0});
  const DTensor y = place(Array({2, 1}, 3), mesh, Placements{R});
  {
    const Communication communication;
    add_(x, y);
    EXPECT_EQ(communication.count, 0);
  }
  const DTensor a = place(Array({6, 4}, 1), mesh, Placements{S0});
  const DTensor b = place(Array({6, 4}, 3), mesh, Placements{S1});
  const Communication communication;
  add_(a, b);
  EXPECT_EQ(communication.count, 1);
  EXPECT_EQ(communication.operation, "add_");
  EXPECT_EQ(communication.collective, Collective::all_to_all);
  EXPECT_EQ(error_of(a, Array({6, 4}, 4)), 0);
}

TEST(PointwiseInPlace, CopyConvertsBroadcastsAndRedistributes) {
  Numbers numbers(51);
  for (const DeviceMesh& mesh : {flat_mesh(), square_mesh()}) {
    const Array a = numbers.array({4, 6});
    for (const Shape& from : {Shape{4, 6}, Shape{6}, Shape{4, 1}, Shape{}}) {
      const Array b = numbers.array(from);
      for (const Layout& la : some_layouts(a.shape, mesh, numbers, true)) {
        for (const Layout& lb : some_layouts(from, mesh, numbers, true)) {
          const DTensor x = place(a, mesh, la), y = place(b, mesh, lb);
          EXPECT_EQ(copy_(x, y).layout(), la);
          const Tensor expected = Tensor::full(a.shape, 0, DType::float64, mesh.device()) +
                                  Tensor::from_vector(b.values, from, mesh.device());
          EXPECT_LT(difference(x.full_tensor(), expected), 1e-11)
              << to_string(la) << " " << to_string(lb);
        }
      }
    }
    const DTensor whole = place(Array({4, 6}, 0), mesh,
                                Placements(static_cast<std::size_t>(mesh.dim()), Replicate()));
    const DTensor bytes(mesh, whole.layout(), whole.to_local().to(DType::int8));
    copy_(bytes, whole + 2.75);
    EXPECT_EQ(error_of(bytes, Array({4, 6}, 2)), 0);
  }
}

TEST(PointwiseInPlace, OutsideOfTheMesh) {
  const DeviceMesh mesh = DeviceMesh::from_ranks({0}, Shape{1});
  const DTensor x(mesh, Layout({3}, mesh.grid(), {S0}),
                  Tensor::full({mesh.is_member() ? 3 : 0}, 2.0, DType::float64, mesh.device()));
  add_(mul_(x, 2), x);
  clamp_(x, 0, 5);
  const DTensor y = where(x > 4, x * 2, 0);
  copy_(x, y);
  if (mesh.is_member()) {
    EXPECT_EQ(x.to_local().to_vector<double>(), (Values{10, 10, 10}));
  }
  fill_(x, 7);
  if (mesh.is_member()) {
    EXPECT_EQ(x.to_local().to_vector<double>(), (Values{7, 7, 7}));
  }
  EXPECT_EQ(x.to_local().numel(), mesh.is_member() ? 3 : 0);
}

}  // namespace
}  // namespace dtensor
