// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions of local tensors and of Views as functions of DTensors.
#include <gtest/gtest.h>

#include <stdexcept>

#include "dtensor/comm/communication_scope.hpp"
#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/distributed/factories.hpp"
#include "dtensor/experimental/local_map.hpp"
#include "dtensor/ops/ops.hpp"
#include "ops/distributed_reference.hpp"

namespace dtensor::experimental {
namespace {

using testing::Array;
using testing::Communication;
using testing::error_of;
using testing::evaluate;
using testing::for_each_index;
using testing::Numbers;
using testing::place;

const Placement S0 = Shard(0), S1 = Shard(1), R = Replicate(), P = Partial();

std::vector<std::int64_t> uneven(std::int64_t extent, std::int64_t parts) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(parts), 0);
  for (std::int64_t i = 0; i < extent; ++i) ++extents[static_cast<std::size_t>((i * i) % parts)];
  return extents;
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
::testing::AssertionResult has(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    if (text.find(word) == std::string::npos) {
      return ::testing::AssertionFailure() << "no '" << word << "' in: " << text;
    }
  }
  return ::testing::AssertionSuccess();
}

class LocalMapTest : public ::testing::Test {
 protected:
  std::int64_t n = Runtime::size();
  DeviceMesh flat{Shape{n}};
  DeviceMesh square{n % 2 == 0 ? Shape{2, n / 2} : Shape{1, n}};
  Numbers numbers{21};
  Array a = numbers.array({7, 5}), b = numbers.array({7, 5}), w = numbers.array({5, 3});
};

// The product of a matrix in rows and a whole one, which keeps the rows; and in parts of the summed
// dimension, which leaves contributions.
TEST_F(LocalMapTest, TensorsOverAnyPlacements) {
  const auto expected =
      *evaluate({"mk", "kn"}, "mn", {a, w}, [](const auto& v) { return v[0] * v[1]; });
  const auto product = [](const Tensor& x, const Tensor& y) { return matmul(x, y); };
  const std::vector<std::tuple<DeviceMesh, Placements, Placements, Placements>> cases{
      {flat, {S0}, {R}, {S0}},
      {flat, {Shard(0, uneven(7, n))}, {R}, {Shard(0, uneven(7, n))}},
      {flat, {StridedShard(0, 2)}, {R}, {StridedShard(0, 2)}},
      {flat, {S1}, {S0}, {P}},
      {flat, {R}, {S1}, {S1}},
      {flat, {P}, {R}, {P}},
      {square, {S0, R}, {R, S1}, {S0, S1}},
      {square, {S0, S1}, {R, S0}, {S0, P}},
      {square, {S0, S0}, {R, R}, {S0, S0}},
      {square, {R, R}, {S1, S1}, {S1, S1}}};
  for (const auto& [mesh, of_x, of_y, out] : cases) {
    const DTensor x = place(a, mesh, of_x), y = place(w, mesh, of_y);
    Communication communication;
    const DTensor z = local_map(product, out, {of_x, of_y})(x, y);
    EXPECT_EQ(communication.count, 0);
    EXPECT_EQ(z.placements(), out);
    EXPECT_EQ(z.shape(), (Shape{7, 3})) << to_string(of_x) << to_string(of_y);
    EXPECT_LT(error_of(z, expected), 1e-13) << to_string(of_x) << to_string(of_y);
  }
}

// A kernel on Views: out(i, j) = factor * x(i, j) - y(i, j), for a mutable result of its own.
using Matrix = Kokkos::View<double**, Kokkos::LayoutRight, DeviceMemory>;
using ConstMatrix = Kokkos::View<const double**, Kokkos::LayoutRight, DeviceMemory>;
using ConstColumns = Kokkos::View<const double**, Kokkos::LayoutLeft, DeviceMemory>;

Matrix axpy_kernel(double factor, ConstMatrix x, ConstColumns y) {
  Matrix out("dtensor::test::out", x.extent(0), x.extent(1));
  Kokkos::parallel_for(
      "dtensor::test::axpy",
      Kokkos::RangePolicy<DeviceExecution>(0, static_cast<int>(x.extent(0) * x.extent(1))),
      KOKKOS_LAMBDA(int k) {
        const int columns = static_cast<int>(x.extent(1));
        out(k / columns, k % columns) =
            factor * x(k / columns, k % columns) - y(k / columns, k % columns);
      });
  return out;
}
void scale_kernel(Kokkos::View<double**, Kokkos::LayoutStride, DeviceMemory> x, double factor) {
  Kokkos::parallel_for(
      "dtensor::test::scale",
      Kokkos::RangePolicy<DeviceExecution>(0, static_cast<int>(x.extent(0) * x.extent(1))),
      KOKKOS_LAMBDA(int k) {
        const int columns = static_cast<int>(x.extent(1));
        x(k / columns, k % columns) *= factor;
      });
}

TEST_F(LocalMapTest, KernelsOnViews) {
  const auto expected =
      *evaluate({"ij", "ij"}, "ij", {a, b}, [](const auto& v) { return 3 * v[0] - v[1]; });
  for (const Placements& placements :
       std::vector<Placements>{{S0, S1}, {S0, S0}, {R, StridedShard(1, 2)}, {S1, R}}) {
    const DTensor x = place(a, square, placements), y = place(b, square, placements);
    const DTensor z = local_map(axpy_kernel, placements)(3.0, x, y);
    EXPECT_EQ(error_of(z, expected), 0) << to_string(placements);
    // Both of other strides than the Views': copies for const elements.
    const DTensor t = local_map(axpy_kernel, transpose(x, 0, 1).placements())(
        3.0, transpose(x, 0, 1), transpose(y, 0, 1));
    EXPECT_EQ(error_of(transpose(t, 0, 1), expected), 0) << to_string(placements);
    // Written in place, also through a transposed handle.
    local_map(scale_kernel, std::tuple<>())(x, -2.0);
    local_map(scale_kernel, std::tuple<>())(transpose(x, 0, 1), 0.5);
    EXPECT_EQ(error_of(neg(x), a), 0);
  }
  const DTensor x = place(a, flat, {R});
  const auto writes = [](Matrix m) { Kokkos::deep_copy(m, 0.0); };
  EXPECT_THROW(local_map(writes, std::tuple<>())(transpose(x, 0, 1)), ValueError);
  EXPECT_EQ(error_of(x, a), 0);
  EXPECT_NO_THROW(local_map(writes, std::tuple<>())(x));
  EXPECT_EQ(error_of(x, Array({7, 5})), 0);
  const auto floats = [](Kokkos::View<float**, Kokkos::LayoutStride, DeviceMemory>) {};
  EXPECT_THROW(local_map(floats, std::tuple<>())(x), TypeError);
}

// Several results: two DTensors, a plain value, in a tuple; and a vector of tensors.
TEST_F(LocalMapTest, SeveralResults) {
  const DTensor x = place(a, square, {S0, S1});
  const auto split = [](const Tensor& t, int extra) {
    return std::tuple(t.clone(), sum(t, {0}), t.numel() + extra, t);
  };
  Communication communication;
  const auto [same, sums, count, plain] = local_map(
      split, std::tuple(Placements{S0, S1}, Placements{P, S0}, std::nullopt, std::nullopt))(x, 100);
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(sums)>, DTensor>);
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(count)>, std::int64_t>);
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(plain)>, Tensor>);
  EXPECT_EQ(communication.count, 0);
  EXPECT_EQ(error_of(same, a), 0);
  EXPECT_LT(error_of(sums, *evaluate({"ij"}, "j", {a}, [](const auto& v) { return v[0]; })), 1e-13);
  EXPECT_EQ(count, x.to_local().numel() + 100);
  EXPECT_EQ(plain.data(), x.to_local().data());

  const auto list = [](const Tensor& t) { return std::vector<Tensor>{neg(t), t}; };
  const auto two = local_map(list, std::vector<Placements>{{S0, S1}, {S0, S1}})(x);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(error_of(neg(two[0]), a), 0);
  EXPECT_EQ(error_of(two[1], a), 0);
  const auto three = local_map(list, std::vector<Placements>(3, Placements{S0, S1}));
  EXPECT_TRUE(has(message_of<LayoutError>([&] { three(x); }), {"2 tensors", "3, as"}));

  const auto pair = [](const Tensor& t) { return std::pair(t, 7); };
  EXPECT_EQ(std::get<1>(local_map(pair, std::tuple(std::nullopt, std::nullopt))(x)), 7);
  EXPECT_EQ(local_map([](const auto& t) { return t.dim(); }, std::nullopt)(x), 2);
  const std::function<Tensor(Tensor)> wrapped = [](Tensor t) { return t; };
  EXPECT_EQ(error_of(local_map(wrapped, x.placements())(x), a), 0);
}

TEST_F(LocalMapTest, InputsAreRedistributedOnlyIfAsked) {
  const auto minus = [](const Tensor& x, double, const Tensor& y) { return x - y; };
  const DTensor x = place(a, square, {S0, R}), y = place(b, square, {P, S1});
  const InPlacements wanted{Placements{S0, R}, std::nullopt, Placements{S0, Replicate()}};
  const std::string text = message_of<LayoutError>([&] {
    local_map(minus, Placements{S0, R}, wanted, {.name = "minus"})(x, 1.0, y);
  });
  EXPECT_TRUE(has(text, {"minus", "argument 2", "[P, S(1)]", "[S(0), R]", "redistribute_inputs"}));

  Communication communication;
  const DTensor z = local_map(minus, Placements{Shard(-2), R},
                              {Placements{Shard(-2), R}, std::nullopt, Placements{S0, R}},
                              {.redistribute_inputs = true})(x, 1.0, y);
  EXPECT_LT(
      error_of(z, *evaluate({"ij", "ij"}, "ij", {a, b}, [](const auto& v) { return v[0] - v[1]; })),
      1e-13);
  if (n > 1) {
    EXPECT_GE(communication.count, 1);
  }
  const auto to_partial =
      local_map(minus, Placements{S0, R}, {std::nullopt, std::nullopt, Placements{S0, P}},
                {.redistribute_inputs = true});
  EXPECT_TRUE(has(message_of<LayoutError>([&] { to_partial(x, 1.0, x); }), {"argument 2", "P"}));
}

TEST_F(LocalMapTest, BadArguments) {
  const auto minus = [](const Tensor& x, const Tensor& y) { return x - y; };
  const DTensor x = place(a, square, {S0, R}), elsewhere = place(a, flat, {S0});
  const auto two = [&](InPlacements in, LocalMapOptions options = {}) {
    return local_map(minus, Placements{S0, R}, std::move(in), std::move(options));
  };
  EXPECT_TRUE(has(message_of<ValueError>([&] { two({std::nullopt})(x, x); }),
                  {"1 in_placements", "2 arguments"}));
  EXPECT_TRUE(has(message_of<ValueError>([&] {
                    two({std::nullopt, Placements{R, R}})(x, x.to_local());
                  }),
                  {"argument 1", "nullopt"}));
  EXPECT_TRUE(has(message_of<LayoutError>([&] { two({})(x, elsewhere); }),
                  {"argument 1", "argument 0 is"}));
  EXPECT_TRUE(has(message_of<LayoutError>([&] { two({}, {.device_mesh = flat})(x, x); }),
                  {"argument 0", "device_mesh"}));
  EXPECT_THROW(two({Placements{S0}, std::nullopt})(x, x), LayoutError);
  EXPECT_THROW(two({Placements{Shard(2), R}, std::nullopt})(x, x), IndexError);
  EXPECT_THROW(two({}, {.out_shapes = {Shape{7, 5}, Shape{7, 5}}})(x, x), ValueError);
  EXPECT_THROW(two({}, {.out_shapes = {Shape{7, 4}}})(x, x), LayoutError);
  EXPECT_THROW(two({})(x.to_local(), x.to_local()), StateError);
  // A plain tensor is passed on.
  const Tensor whole = Tensor::from_vector(a.values, a.shape);
  const DTensor made =
      local_map(minus, Placements{R, R}, {}, {.device_mesh = square})(whole, whole);
  EXPECT_EQ(error_of(made, Array({7, 5})), 0);
  const MeshScope scope(flat);
  EXPECT_EQ(local_map(minus, Placements{R})(whole, whole).device_mesh(), flat);
}

// Shapes that no input has: from the extents, from all ranks together, or given.
TEST_F(LocalMapTest, GlobalShapes) {
  const DTensor x = place(a, flat, {S0});
  const auto rows_of = [](std::int64_t rows) {
    return [rows](const Tensor&) { return Tensor::full({rows, 2}, rows, DType::float64); };
  };
  EXPECT_EQ(local_map(rows_of(9), Placements{S0})(x).shape(), (Shape{9 * n, 2}));
  // On some ranks x has two rows as well, and seven together: the ranks have to compare.
  EXPECT_EQ(local_map(rows_of(2), Placements{S0})(x).shape(), (Shape{2 * n, 2}));
  const auto quotas = uneven(2 * n + 1, n);
  const auto mine = [&](const Tensor&) {
    const std::int64_t rows = quotas[static_cast<std::size_t>(Runtime::rank())];
    return Tensor::full({rows, 2}, Runtime::rank(), DType::float32);
  };
  const DTensor given = local_map(mine, Placements{Shard(0, quotas)})(x);
  EXPECT_EQ(given.shape(), (Shape{2 * n + 1, 2}));
  EXPECT_EQ(given.dtype(), DType::float32);
  // The even split of 3 n - 1 rows, over both mesh dimensions.
  const Layout layout({3 * n - 1, 2}, square.grid(), {S0, S0});
  const auto part = [&](const Tensor&) {
    return Tensor::full(layout.local_shape(*square.coordinate()), 1, DType::float64);
  };
  const DTensor y = place(a, square, {R, R});
  EXPECT_EQ(local_map(part, Placements{S0, S0})(y).layout(), layout);
  EXPECT_EQ(
      local_map(part, Placements{S0, S0}, {}, {.out_shapes = {Shape{3 * n - 1, 2}}})(y).layout(),
      layout);
  EXPECT_EQ(local_map(part, Placements{S0, S0}, {},
                      {.out_shapes = {Shape{3 * n - 1, 2}}, .check = false})(y)
                .layout(),
            layout);
  // Where only the first mesh dimension splits, each of its coordinates counts once.
  const Layout first_only({3 * n - 1, 2}, square.grid(), {S0, R});
  const auto first_part = [&](const Tensor&) {
    return Tensor::full(first_only.local_shape(*square.coordinate()), 1, DType::float64);
  };
  EXPECT_EQ(local_map(first_part, Placements{S0, R})(y).layout(), first_only);
  // Without comparing, an input that is split alike tells the extent, and no other does.
  const auto same = [](const Tensor& t) { return t; };
  EXPECT_EQ(local_map(same, Placements{S0}, {}, {.check = false})(x).layout(), x.layout());
  std::vector<std::int64_t> first_has_two(static_cast<std::size_t>(n), 0);
  first_has_two.back() = 5;
  first_has_two.front() += 2;
  const std::int64_t rows = n == 1 ? 7 : 2;
  const DTensor z = place(a, flat, {Shard(0, first_has_two)});
  EXPECT_EQ(local_map(rows_of(rows), Placements{S0}, {}, {.check = false})(z).shape(),
            (Shape{rows * n, 2}));
  // Nothing at all.
  EXPECT_EQ(local_map(rows_of(0), Placements{S0})(x).shape(), (Shape{0, 2}));
  const DTensor scalar = local_map([](const Tensor& t) { return sum(t); }, Placements{P})(x);
  EXPECT_EQ(scalar.shape(), Shape());
  double total = 0;
  for (double v : a.values) total += v;
  EXPECT_NEAR(scalar.full_tensor().item<double>(), total, 1e-12);
}

TEST_F(LocalMapTest, WrongLocalShapesAreErrorsOnEveryRank) {
  const DTensor x = place(a, flat, {S0});
  const int last = Runtime::size() - 1;
  const std::int64_t rows = x.layout().local_shape(Extents{last})[0];
  const auto longer = [&](const Tensor& t) {
    return Runtime::rank() == last ? Tensor::zeros({rows + 6, 5}, t.dtype()) : t;
  };
  const auto with_shape =
      local_map(longer, Placements{S0}, {}, {.out_shapes = {Shape{7, 5}}, .name = "longer"});
  EXPECT_TRUE(has(message_of<LayoutError>([&] { with_shape(x); }),
                  {"longer", "result 0", to_string(Shape{rows + 6, 5}), to_string(Shape{rows, 5}),
                   "on rank " + std::to_string(last)}));
  if (n > 1) {  // a single rank has whatever it returns
    const std::string text = message_of<LayoutError>(
        [&] { local_map(longer, Placements{S0}, {}, {.name = "longer"})(x); });
    EXPECT_TRUE(has(text, {"longer", "result 0", "[S(0)]", "expected", "all ranks"})) << text;
    // The second of two results, wrong in a dimension that is not split.
    const auto wider = [&](const Tensor& t) {
      return std::pair(t, Runtime::rank() == last ? Tensor::zeros({4, 4}, t.dtype())
                                                  : Tensor::zeros({4, 3}, t.dtype()));
    };
    const auto wide = local_map(wider, std::tuple(Placements{S0}, Placements{R}));
    EXPECT_TRUE(has(message_of<LayoutError>([&] { wide(x); }), {"result 1", "(4, 4)", "(4, 3)"}));
    const auto typed = [&](const Tensor& t) {
      return t.to(Runtime::rank() == 0 ? DType::float32 : DType::float64);
    };
    EXPECT_TRUE(has(message_of<LayoutError>([&] { local_map(typed, Placements{S0})(x); }),
                    {"float32", "float64"}));
    const Placements differing{Runtime::rank() == last ? R : S0};
    EXPECT_TRUE(has(message_of<MismatchError>(
                        [&] { local_map([](const Tensor& t) { return t; }, differing)(x); }),
                    {"as [S(0)]", "as [R]"}));
  }
  EXPECT_THROW(local_map([](const Tensor& t) { return t.to(DType::int32); },
                         Placements{Partial(ReduceOp::avg)})(x),
               TypeError);
  EXPECT_THROW(local_map([](const Tensor&) { return Tensor(); }, Placements{S0})(x), LayoutError);
  // The mesh works on.
  EXPECT_EQ(error_of(local_map([](const Tensor& t) { return t; }, Placements{S0})(x), a), 0);
}

TEST_F(LocalMapTest, WhatOneRankThrowsAllThrow) {
  const DTensor x = place(a, flat, {S0});
  const int last = Runtime::size() - 1;
  const auto library = [&](const Tensor& t) {
    if (Runtime::rank() == last) throw MismatchError("inner", "one thing", "another");
    return t;
  };
  EXPECT_TRUE(has(message_of<MismatchError>([&] { local_map(library, Placements{S0})(x); }),
                  {"inner", "one thing"}));
  const auto standard = [&](const Tensor&) {
    if (Runtime::rank() == last) throw std::runtime_error("boiled over");
  };
  const auto kettle = local_map(standard, std::tuple<>(), {}, {.name = "kettle"});
  if (n == 1) {
    EXPECT_THROW(kettle(x), std::runtime_error);
  } else {
    EXPECT_TRUE(has(message_of<StateError>([&] { kettle(x); }), {"kettle", "boiled over"}));
  }
  // Without the check it stays where it is.
  const auto alone = local_map(standard, std::tuple<>(), {}, {.check = false});
  if (Runtime::rank() == last) {
    EXPECT_THROW(alone(x), std::runtime_error);
  } else {
    EXPECT_NO_THROW(alone(x));
  }
}

// What is sharded by several mesh dimensions in another order than the default.
class LocalMapOrders : public LocalMapTest {
 protected:
  ShardOrder other{{0, {1, 0}}};
  Layout swapped{{7, 5}, square.grid(), {S0, S0}, other};
  DTensor x = place(a, square, swapped), y = place(b, square, {S0, S0});
  static Tensor same(const Tensor& t) { return t; }
  static Tensor minus(const Tensor& s, const Tensor& t) { return s - t; }
};

TEST_F(LocalMapOrders, ResultsFollowTheOrderOfAnInput) {
  const std::vector<LocalMapOptions> all{{},
                                         {.check = false},
                                         {.out_shapes = {Shape{7, 5}}},
                                         {.out_shapes = {Shape{7, 5}}, .check = false}};
  for (const LocalMapOptions& options : all) {
    const DTensor z = local_map(same, Placements{S0, S0}, {}, options)(x);
    EXPECT_EQ(z.layout(), swapped);
    EXPECT_EQ(error_of(z, a), 0);
  }
  EXPECT_EQ(error_of(local_map(minus, Placements{Shard(-2), Shard(-2)})(x, x), Array({7, 5})), 0);
  // Another dimension of the input, and extents that only all ranks know together.
  const auto transposed = [](const Tensor& t) { return t.transpose(0, 1); };
  EXPECT_EQ(error_of(transpose(local_map(transposed, Placements{S1, S1})(x), 0, 1), a), 0);
  const Layout longer({3 * n - 1, 2}, square.grid(), {S0, S0}, other);
  const auto part = [&](const Tensor&) {
    return Tensor::full(longer.local_shape(*square.coordinate()), 1, DType::float64);
  };
  EXPECT_EQ(local_map(part, Placements{S0, S0})(x).layout(), longer);
  // Given extents of what the coarser split leaves.
  const std::int64_t left = 12 / square.size(1);
  const Placement given = Shard(0, square.size(0) == 2 ? std::vector<std::int64_t>{1, left - 1}
                                                       : std::vector<std::int64_t>{left});
  const Array c = numbers.array({12, 2});
  const Layout uneven_rows({12, 2}, square.grid(), {given, S0}, other);
  const DTensor z = local_map(same, Placements{given, S0})(place(c, square, uneven_rows));
  EXPECT_EQ(z.layout(), uneven_rows);
  EXPECT_EQ(error_of(z, c), 0);
}

TEST_F(LocalMapOrders, InPlacementsMeanTheDefaultOrder) {
  const Placements rows{S0, S0};
  EXPECT_TRUE(
      has(message_of<LayoutError>([&] { local_map(same, rows, {rows}, {.name = "keep"})(x); }),
          {"keep", "argument 0", "split by [1, 0]", "default shard order", "redistribute_inputs"}));
  const DTensor z = local_map(same, rows, {rows}, {.redistribute_inputs = true})(x);
  EXPECT_EQ(z.layout(), y.layout());
  EXPECT_EQ(error_of(z, a), 0);
}

TEST_F(LocalMapOrders, ContradictionsAreErrors) {
  const Placements rows{S0, S0};
  EXPECT_TRUE(
      has(message_of<LayoutError>([&] { local_map(minus, rows, {}, {.name = "less"})(x, y); }),
          {"less", "argument 1", "result 0", "split by [1, 0]", "in_placements"}));
  EXPECT_THROW(local_map(minus, rows, {}, {.check = false})(y, x), LayoutError);
  EXPECT_THROW(local_map(minus, rows, {rows, std::nullopt})(y, x), LayoutError);
  const DTensor z =
      local_map(minus, rows, {rows, std::nullopt}, {.redistribute_inputs = true})(x, y);
  EXPECT_LT(
      error_of(z, *evaluate({"ij", "ij"}, "ij", {a, b}, [](const auto& v) { return v[0] - v[1]; })),
      1e-13);
  // Which part of an order of three mesh dimensions a result is in follows from nothing.
  const DeviceMesh cube(n % 2 == 0 ? Shape{2, 1, n / 2} : Shape{1, 1, n});
  const DTensor t = place(a, cube, Layout({7, 5}, cube.grid(), {S0, S0, S0}, {{0, {2, 1, 0}}}));
  EXPECT_TRUE(has(message_of<LayoutError>([&] {
                    local_map(same, Placements{S0, R, S0})(t);
                  }),
                  {"argument 0", "split by [0, 2]"}));
  // What is not split by two of them has no order.
  const auto whole = [](const Tensor& v) { return sum(v); };
  EXPECT_EQ(local_map(whole, Placements{P, P})(x).shape(), Shape());
}

// Results that lie in an input's memory keep it when the input is gone.
TEST_F(LocalMapTest, ViewsOfWhatTheFunctionWasGivenStayAlive) {
  using Strided = Kokkos::View<double**, Kokkos::LayoutStride, DeviceMemory>;
  using Complex = Kokkos::View<Kokkos::complex<double>**, Kokkos::LayoutRight, DeviceMemory>;
  const auto after_reuse = [&](const auto& make) {
    const auto results = make();
    std::vector<Tensor> others;  // in what is free
    for (int i = 0; i < 20; ++i) {
      for (std::int64_t rows = 0; rows < 8; ++rows) {
        others.push_back(Tensor::full({rows, 5}, -99, DType::float64));
      }
      others.push_back(Tensor::full({7, 10}, -99, DType::float64));
    }
    for (const DTensor& t : results) EXPECT_EQ(error_of(t, a), 0);
    return results;
  };
  const Placements rows{S0};
  const auto same = [](Matrix m) { return m; };
  after_reuse([&] { return std::vector{local_map(same, rows)(place(a, flat, rows))}; });
  // Of the input that had to move, and of copies in other strides.
  after_reuse([&] {
    return std::vector{
        local_map(same, rows, {rows}, {.redistribute_inputs = true})(place(a, flat, {S1}))};
  });
  const auto columns = [](ConstColumns m) { return m; };
  after_reuse([&] { return std::vector{local_map(columns, rows)(place(a, flat, rows))}; });
  const auto of_tensor = [](const Tensor& t) { return std::vector{t.view<double**>()}; };
  after_reuse(
      [&] { return local_map(of_tensor, std::vector<Placements>{rows})(place(a, flat, rows)); });
  // A part of it, whose first element is not the input's.
  const auto inner = [](Matrix m) {
    return Strided(Kokkos::subview(m, Kokkos::ALL, std::pair(1, 6)));
  };
  Array wider({7, 8});
  for_each_index(a.shape, [&](const Extents& i) { wider.at({i[0], i[1] + 1}) = a.at(i); });
  after_reuse([&] { return std::vector{local_map(inner, rows)(place(wider, flat, rows))}; });
  // The same storage, not a copy: what is written arrives.
  const DTensor x = place(a, flat, rows);
  const DTensor y = local_map(inner, rows)(place(wider, flat, rows)), z = local_map(same, rows)(x);
  if (x.to_local().numel() > 0) {
    EXPECT_EQ(z.to_local().storage(), x.to_local().storage());
    EXPECT_EQ(y.to_local().strides()[0], 8);
  }
  fill_(z, 3);
  EXPECT_EQ(error_of(x, Array({7, 5}, 3)), 0);
  // Of another scalar type.
  const auto real_parts = [](Complex m) {
    return Strided(reinterpret_cast<double*>(m.data()),
                   Kokkos::LayoutStride(m.extent(0), 2 * m.extent(1), m.extent(1), 2));
  };
  after_reuse([&] {
    return std::vector{local_map(real_parts, rows)(to(place(a, flat, rows), DType::complex128))};
  });
}

TEST_F(LocalMapTest, ViewsOfMemoryThatNobodyOwnsAreRefused) {
  std::vector<double> memory(10, 1);
  const auto foreign = [&](Matrix) {
    return Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace>(memory.data(), 2, 5);
  };
  const DTensor x = place(a, flat, {S0});
  EXPECT_TRUE(has(message_of<ValueError>(
                      [&] { local_map(foreign, Placements{S0}, {}, {.name = "foreign"})(x); }),
                  {"foreign", "result 0", "own"}));
  const auto nothing = [](Matrix) { return Matrix(); };
  EXPECT_EQ(local_map(nothing, Placements{R})(x).shape(), (Shape{0, 0}));
}

TEST_F(LocalMapTest, ErrorsAndEventsCarryTheName) {
  const DTensor x = place(a, square, {S0, R});
  const auto same = [](const Tensor& t) { return t; };
  const auto mapped = [&](const Placements& out, InPlacements in) {
    return local_map(same, out, std::move(in), {.redistribute_inputs = true, .name = "my_fn"});
  };
  const auto named = [](const std::string& text, const std::string& word) {
    EXPECT_TRUE(has(text, {"my_fn", word}));
    EXPECT_EQ(text.find("local_map"), std::string::npos) << text;
    EXPECT_EQ(text.find("Layout:"), std::string::npos) << text;
  };
  const Placements kept{S0, R}, columns{S1, R};
  named(message_of<LayoutError>([&] { mapped(kept, {Placements{S0}})(x); }), "argument 0");
  named(message_of<IndexError>([&] { mapped(kept, {Placements{Shard(2), R}})(x); }), "argument 0");
  named(message_of<LayoutError>([&] { mapped({S0}, {})(x); }), "result 0");
  named(message_of<IndexError>([&] { mapped({R, Shard(2)}, {})(x); }), "result 0");
  const auto list = [](const Tensor& t) { return std::vector<Tensor>{t}; };
  named(message_of<LayoutError>(
            [&] { local_map(list, std::vector<Placements>(2, kept), {}, {.name = "my_fn"})(x); }),
        "1 tensors");
  if (square.size(0) == 1) return;
  {
    Communication communication;
    mapped(columns, {columns})(x).to_local();
    EXPECT_EQ(communication.operation, "my_fn");
  }
  const ForbidImplicitCommunication forbidden;
  named(message_of<LayoutError>([&] { mapped(columns, {columns})(x); }), "input 0");
  // What the ranks compare about the results moves no data.
  EXPECT_NO_THROW(mapped(kept, {kept})(x));
}

TEST_F(LocalMapTest, RanksOutsideOfTheMeshDoNotCall) {
  const DeviceMesh first = DeviceMesh::from_ranks({0}, {1});
  const DTensor x = ones({4, 3}, first, {S0});
  int calls = 0;
  const auto count = [&](const Tensor& t) {
    ++calls;
    return std::pair(t, calls);
  };
  const auto [y, c] = local_map(count, std::tuple(Placements{S0}, std::nullopt))(x);
  EXPECT_EQ(calls, first.is_member() ? 1 : 0);
  EXPECT_EQ(c, calls);
  EXPECT_EQ(y.defined(), first.is_member());
}

}  // namespace
}  // namespace dtensor::experimental
