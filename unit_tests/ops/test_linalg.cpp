// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of matrices under all placements and of all scalar types, against one process.
#include <gtest/gtest.h>

#include "dtensor/ops/ops.hpp"
#include "ops/distributed_reference.hpp"
#include "ops/errors.hpp"
#include "ops/layouts.hpp"

namespace dtensor {
namespace {

using namespace testing;

double product(const std::vector<double>& v) { return v[0] * v[1]; }

struct Case {
  std::vector<std::string> letters;
  std::string output;
  Shape a, b;
};

// Batches of matrices, with broadcasting.
const std::vector<Case>& batches() {
  static const std::vector<Case> list{{{"bmk", "bkn"}, "bmn", {3, 5, 7}, {3, 7, 4}},
                                      {{"bmk", "kn"}, "bmn", {3, 5, 7}, {7, 4}},
                                      {{"mk", "bkn"}, "bmn", {5, 7}, {3, 7, 4}},
                                      {{"abmk", "bkn"}, "abmn", {2, 3, 5, 2}, {3, 2, 4}},
                                      {{"abmk", "abkn"}, "abmn", {2, 1, 3, 5}, {1, 3, 5, 2}},
                                      {{"k", "bkn"}, "bn", {7}, {3, 7, 4}},
                                      {{"bmk", "k"}, "bm", {3, 5, 7}, {7}},
                                      {{"bmk", "bkn"}, "bmn", {0, 5, 7}, {1, 7, 4}},
                                      {{"bmk", "bkn"}, "bmn", {2, 5, 0}, {2, 0, 4}},
                                      {{"bmk", "bkn"}, "bmn", {2, 33, 17}, {2, 17, 21}}};
  return list;
}

Tensor other_strides(const Tensor& t) {
  if (t.dim() < 2) return t;
  return t.transpose(-1, -2).contiguous().transpose(-1, -2);
}

Array values_of(const Tensor& t) {
  Array a(t.shape());
  a.values = t.to(DType::float64).to_vector<double>();
  return a;
}

constexpr DType all_types[] = {DType::float64,    DType::float32,   DType::float16, DType::bfloat16,
                               DType::complex128, DType::complex64, DType::int64,   DType::int32,
                               DType::int16,      DType::int8,      DType::uint8,   DType::boolean};

// Small integers, so that all types hold the sums exactly; none negative for uint8.
Array integers(const Shape& shape, DType dtype, Numbers& numbers) {
  Array a(shape);
  for (double& v : a.values) {
    v = dtype == DType::boolean ? (numbers.below(4) == 0)
        : dtype == DType::uint8 ? numbers.below(4)
                                : numbers.below(5) - 2;
  }
  return a;
}

Array sums_of_products(const Case& c, DType dtype, const Array& x, const Array& y) {
  Array expected = *evaluate(c.letters, c.output, {x, y}, product);
  if (dtype == DType::boolean) {
    for (double& v : expected.values) v = v != 0;
  }
  return expected;
}

TEST(LocalLinalg, ProductsOfAllTypesAndStrides) {
  std::vector<Case> cases = batches();
  cases.push_back({{"mk", "kn"}, "mn", {5, 7}, {7, 70}});
  cases.push_back({{"mk", "k"}, "m", {5, 7}, {7}});
  cases.push_back({{"k", "k"}, "", {7}, {7}});
  Numbers numbers(41);
  for (DType dtype : all_types) {
    for (const Case& c : cases) {
      const Array x = integers(c.a, dtype, numbers), y = integers(c.b, dtype, numbers);
      const Array expected = sums_of_products(c, dtype, x, y);
      const Tensor a = Tensor::from_vector(x.values, x.shape).to(dtype);
      const Tensor b = Tensor::from_vector(y.values, y.shape).to(dtype);
      for (const Tensor& left : {a, other_strides(a)}) {
        for (const Tensor& right : {b, other_strides(b)}) {
          const Tensor result = matmul(left, right);
          ASSERT_EQ(result.dtype(), dtype);
          ASSERT_EQ(result.shape(), expected.shape);
          ASSERT_EQ(values_of(result).values, expected.values)
              << to_string(a) << " " << to_string(b);
        }
      }
    }
  }
}

TEST(LocalLinalg, ComplexNumbersAreNotConjugated) {
  using C = Kokkos::complex<double>;
  for (std::int64_t n : {1, 40}) {  // by own kernel as part of a batch, and by BLAS
    const Tensor a = Tensor::full({2, n, n}, C(1, 2), DType::complex128);
    const Tensor b = Tensor::full({2, n, n}, C(3, -1), DType::complex128);
    for (const C& z : matmul(a, b.transpose(1, 2)).to_vector<C>()) {
      EXPECT_EQ(z, C(5, 5) * static_cast<double>(n));
    }
  }
  const Tensor v = Tensor::full({3}, C(0, 1), DType::complex64);
  EXPECT_EQ(dot(v, v).item<Kokkos::complex<float>>(), Kokkos::complex<float>(-3, 0));
}

TEST(LocalLinalg, IntegersWrapAround) {
  const Tensor a = Tensor::full({1, 3}, 100, DType::int8);
  EXPECT_EQ(matmul(a, a.transpose(0, 1)).item<std::int8_t>(), 48);  // 30000 - 117 * 256
  const Tensor b = Tensor::full({1, 2}, std::int64_t{1} << 62, DType::int64);
  EXPECT_EQ(matmul(b, Tensor::full({2, 1}, 3, DType::int64)).item<std::int64_t>(),
            std::numeric_limits<std::int64_t>::min());
}

TEST(LocalLinalg, HalvesAreSummedInFloat) {
  // In bfloat16 itself the sum would stop at 256.
  for (DType dtype : {DType::float16, DType::bfloat16}) {
    const Tensor ones = Tensor::full({1, 1024}, 1, dtype);
    EXPECT_EQ(values_of(matmul(ones, ones.transpose(0, 1))).values[0], 1024);
  }
}

void check_products(const DeviceMesh& mesh) {
  Numbers numbers(42);
  for (const Case& c : batches()) {
    const Array x = numbers.array(c.a), y = numbers.array(c.b);
    const Array expected = *evaluate(c.letters, c.output, {x, y}, product);
    std::vector<Layout> left = layouts(c.a, mesh, numbers), right = layouts(c.b, mesh, numbers);
    for (std::size_t i = 0; i < left.size() * right.size(); i += 5) {
      const Layout &la = left[i % left.size()], &lb = right[i / left.size()];
      const DTensor result = matmul(place(x, mesh, la), place(y, mesh, lb));
      ASSERT_LT(error_of(result, expected), 1e-11)
          << to_string(la) << " " << to_string(lb) << " gave " << to_string(result.placements());
    }
  }
}

TEST(Linalg, BatchesOnOneMeshDimension) { check_products(flat_mesh()); }
TEST(Linalg, BatchesOnTwoMeshDimensions) { check_products(square_mesh()); }

TEST(Linalg, AllTypesAreSummedOverShards) {
  const DeviceMesh mesh = flat_mesh();
  Numbers numbers(43);
  const Case c{{"mk", "kn"}, "mn", {5, 7}, {7, 4}};
  for (DType dtype : all_types) {
    const Array x = integers(c.a, dtype, numbers), y = integers(c.b, dtype, numbers);
    const auto placed = [&](const Array& a, int dim) {
      const DTensor d = place(a, mesh, Placements{Shard(dim)});
      return DTensor(mesh, d.layout(), d.to_local().to(dtype));
    };
    const DTensor result = matmul(placed(x, 1), placed(y, 0));
    EXPECT_EQ(result.dtype(), dtype);
    EXPECT_TRUE(mesh.size() == 1 || result.placements()[0].is_partial());
    EXPECT_EQ(error_of(result, sums_of_products(c, dtype, x, y)), 0) << to_string(dtype);
  }
}

TEST(Linalg, MatricesAndBatchesOfThem) {
  const DeviceMesh mesh = flat_mesh();
  Numbers numbers(44);
  const Array a = numbers.array({3, 5, 7}), b = numbers.array({3, 7, 4});
  const Array m = numbers.array({5, 7}), n = numbers.array({7, 4});
  for (int d = 0; d < 3; ++d) {
    EXPECT_LT(
        error_of(bmm(place(a, mesh, Placements{Shard(d)}), place(b, mesh, Placements{Shard(d)})),
                 *evaluate({"bmk", "bkn"}, "bmn", {a, b}, product)),
        1e-12);
  }
  EXPECT_LT(error_of(mm(place(m, mesh, Placements{Shard(1)}), place(n, mesh, Placements{Shard(0)})),
                     *evaluate({"mk", "kn"}, "mn", {m, n}, product)),
            1e-12);
}

TEST(Linalg, VectorsAndTheTrace) {
  for (const DeviceMesh& mesh : {flat_mesh(), square_mesh()}) {
    Numbers numbers(45);
    const Array x = numbers.array({9}), y = numbers.array({9}), z = numbers.array({4});
    const Array s = numbers.array({7, 7});
    const Array inner = *evaluate({"k", "k"}, "", {x, y}, product);
    const Array all = *evaluate({"m", "n"}, "mn", {x, z}, product);
    const Array sum = *evaluate({"ii"}, "", {s}, [](const std::vector<double>& v) { return v[0]; });
    for (int i = 0; i < 40; ++i) {
      const DTensor dx = place(x, mesh, any_layout(x.shape, mesh, numbers));
      const DTensor dy = place(y, mesh, any_layout(y.shape, mesh, numbers));
      const DTensor dz = place(z, mesh, any_layout(z.shape, mesh, numbers));
      const DTensor ds = place(s, mesh, any_layout(s.shape, mesh, numbers));
      EXPECT_LT(error_of(dot(dx, dy), inner), 1e-11);
      EXPECT_LT(error_of(outer(dx, dz), all), 1e-11);
      EXPECT_LT(error_of(trace(ds), sum), 1e-11) << to_string(ds);
    }
    // Blocks of a matrix: each rank sums what it has of the diagonal.
    if (mesh.dim() == 2) {
      const DTensor blocks = place(s, mesh, Placements{Shard(0), Shard(1)});
      const Communication communication;
      trace(blocks);
      EXPECT_EQ(communication.count, 0);
    }
  }
}

// Where the factors, the bias and the result of addmm are, without communication.
TEST(Linalg, AddmmNeedsNoCommunicationWhereTheProductNeedsNone) {
  const DeviceMesh mesh = flat_mesh();
  Numbers numbers(46);
  const Array a = numbers.array({12, 8}), b = numbers.array({8, 4}), bias = numbers.array({4});
  const Placement R = Replicate(), P = Partial(), S0 = Shard(0), S1 = Shard(1);
  Array expected = *evaluate({"mk", "kn"}, "mn", {a, b}, product);
  for_each_index(expected.shape, [&](const Extents& i) { expected.at(i) += bias.at({i[1]}); });
  struct Row {
    Placement a, b, bias, result;
  };
  for (const Row& row :
       {Row{S0, R, R, S0}, Row{R, S1, S0, S1}, Row{R, S1, R, S1}, Row{S1, S0, P, P},
        Row{S1, S0, R, P}, Row{S1, S0, S0, P}, Row{S1, S0, Shard(0, uneven(4, mesh.size())), P},
        Row{P, R, P, P}, Row{P, R, R, P}, Row{R, R, R, R}}) {
    const DTensor x = place(a, mesh, Placements{row.a}), y = place(b, mesh, Placements{row.b});
    const DTensor z = place(bias, mesh, Placements{row.bias});
    const DTensor result = [&] {
      const Communication communication;
      DTensor r = addmm(z, x, y);
      EXPECT_EQ(communication.count, 0) << to_string(row.a) << to_string(row.bias);
      return r;
    }();
    if (mesh.size() > 1) {
      EXPECT_EQ(to_string(result.placements()), to_string(Placements{row.result}));
    }
    EXPECT_LT(error_of(result, expected), 1e-12) << to_string(row.a) << to_string(row.bias);
  }
}

void check_addmm(const DeviceMesh& mesh) {
  Numbers numbers(47);
  const Array a = numbers.array({5, 7}), b = numbers.array({7, 4});
  const Array ab = *evaluate({"mk", "kn"}, "mn", {a, b}, product);
  for (const Shape& shape : {Shape{5, 4}, Shape{4}, Shape{1, 4}, Shape{5, 1}, Shape{1}, Shape{}}) {
    const Array bias = numbers.array(shape);
    Array expected = ab;
    for_each_index(ab.shape, [&](const Extents& i) {
      Extents at;
      for (int d = 0; d < shape.size(); ++d) {
        at.push_back(shape[d] == 1 ? 0 : i[d + 2 - shape.size()]);
      }
      expected.at(i) = 2.5 * bias.at(at) - 3 * ab.at(i);
    });
    for (int i = 0; i < 40; ++i) {
      const DTensor x = place(a, mesh, any_layout(a.shape, mesh, numbers));
      const DTensor y = place(b, mesh, any_layout(b.shape, mesh, numbers));
      const DTensor z = place(bias, mesh, any_layout(shape, mesh, numbers));
      ASSERT_LT(error_of(addmm(z, x, y, 2.5, -3), expected), 1e-11)
          << to_string(z) << to_string(x) << to_string(y);
    }
  }
}

TEST(Linalg, AddmmOnOneMeshDimension) { check_addmm(flat_mesh()); }
TEST(Linalg, AddmmOnTwoMeshDimensions) { check_addmm(square_mesh()); }

// Contributions of different signs times an infinity would be NaN.
TEST(Linalg, AddmmWithAnInfiniteFactor) {
  const DeviceMesh mesh = flat_mesh();
  std::vector<double> values;
  for (int i = 0; i < 12; ++i) values.push_back(i % 2 ? -1 - i : 3 + i);
  const Tensor a = Tensor::from_vector(values, {1, 12}),
               b = Tensor::full({12, 1}, 1, DType::float64);
  const Tensor bias = Tensor::full({1}, 2, DType::float64);
  const DTensor x = distribute_tensor(a, mesh, {Shard(1)}),
                y = distribute_tensor(b, mesh, {Shard(0)});
  const DTensor z = distribute_tensor(bias, mesh, {Replicate()});
  EXPECT_EQ(addmm(z, x, y, 1, INFINITY).full_tensor().item<double>(), INFINITY);
  EXPECT_EQ(addmm(z, x, y, -INFINITY, 1).full_tensor().item<double>(), -INFINITY);
  EXPECT_EQ(addmm(z, x, y, 0, INFINITY).full_tensor().item<double>(), INFINITY);
  EXPECT_EQ(addmm(bias, a, b, 1, INFINITY).item<double>(), INFINITY);
}

// A bias in uneven shards within shards, which fit no other layout.
TEST(Linalg, AddmmOfANestedBias) {
  if (Runtime::size() != 4) return;
  const DeviceMesh mesh(Shape{2, 2});
  Numbers numbers(48);
  const Array a = numbers.array({6, 4}), b = numbers.array({4, 4}), bias = numbers.array({6, 4});
  Array expected = *evaluate({"mk", "kn"}, "mn", {a, b}, product);
  for (std::size_t i = 0; i < expected.values.size(); ++i) expected.values[i] += bias.values[i];
  const DTensor z = place(bias, mesh, Placements{Shard(0), Shard(0, {1, 2})});
  const DTensor x = place(a, mesh, Placements{Replicate(), Shard(1)});
  const DTensor y = place(b, mesh, Placements{Shard(1), Shard(0)});
  EXPECT_LT(error_of(addmm(z, x, y), expected), 1e-12);
}

TEST(Linalg, ABetaOfZeroDoesNotReadTheBias) {
  const Tensor nan = Tensor::full({3}, NAN, DType::float64);
  const Tensor a = Tensor::full({2, 4}, 1, DType::float64);
  const Tensor b = Tensor::full({4, 3}, 2, DType::float64);
  EXPECT_EQ(addmm(nan, a, b, 0).to_vector<double>(), std::vector<double>(6, 8));
  EXPECT_EQ(addmm(nan, a.narrow(1, 0, 0), b.narrow(0, 0, 0), 0).to_vector<double>(),
            std::vector<double>(6, 0));
  const Tensor bias = Tensor::full({3}, 7, DType::float64);
  EXPECT_EQ(addmm(bias, a.narrow(1, 0, 0), b.narrow(0, 0, 0), 2).to_vector<double>(),
            std::vector<double>(6, 14));
}

TEST(Linalg, AddmmOfAllTypes) {
  for (DType dtype : all_types) {
    const Tensor ones = Tensor::full({2, 3}, 1, dtype);
    const bool flag = dtype == DType::boolean;
    const auto sum = values_of(addmm(ones.narrow(0, 0, 1), ones.narrow(1, 0, 2), ones)).values;
    EXPECT_EQ(sum, std::vector<double>(6, flag ? 1 : 3)) << to_string(dtype);
    if (flag) continue;
    const auto scaled = values_of(addmm(ones, ones.narrow(1, 0, 2), ones, 5, 2)).values;
    EXPECT_EQ(scaled, std::vector<double>(6, 9)) << to_string(dtype);
  }
}

TEST(Linalg, ErrorsAreFoundAlikeOnAllRanks) {
  const DeviceMesh mesh = flat_mesh();
  const DTensor x = place(Array({4, 3}), mesh, Placements{Shard(0)});
  const DTensor v = place(Array({3}), mesh, Placements{Shard(0)});
  const DTensor b = place(Array({2, 3, 3}), mesh, Placements{Shard(0)});
  const DTensor c = place(Array({5, 3, 3}), mesh, Placements{Shard(0)});
  const DTensor single(mesh, v.layout(), v.to_local().to(DType::float32));
  const auto value = [](auto&& f) { return thrown(ErrorKind::value, f); };
  EXPECT_NE(value([&] { matmul(x, x); }).find("matmul: shapes (4, 3) and (4, 3)"),
            std::string::npos)
      << value([&] { matmul(x, x); });
  EXPECT_NE(value([&] { matmul(b, c); }).find("(2, 3, 3) and (5, 3, 3)"), std::string::npos);
  EXPECT_NE(value([&] { matmul(x, place(Array({}), mesh, Placements{Replicate()})); }).find("()"),
            std::string::npos);
  EXPECT_NE(value([&] { mm(x, v); }).find("mm"), std::string::npos);
  EXPECT_NE(value([&] { bmm(b, c); }).find("bmm"), std::string::npos);
  EXPECT_NE(value([&] { bmm(x, x); }).find("bmm"), std::string::npos);
  EXPECT_NE(value([&] { dot(x, x); }).find("dot"), std::string::npos);
  EXPECT_NE(value([&] { outer(x, v); }).find("outer"), std::string::npos);
  EXPECT_NE(value([&] { trace(x); }).find("square"), std::string::npos);
  EXPECT_NE(value([&] { addmm(v, x, x); }).find("addmm"), std::string::npos);
  const DTensor t = transpose(x, 0, 1);
  EXPECT_NE(value([&] { addmm(v, x, t); }).find("(3,) and (4, 4)"), std::string::npos);
  const auto type = [](auto&& f) { return thrown(ErrorKind::type, f); };
  EXPECT_NE(type([&] { dot(v, single); }).find("float64 and float32"), std::string::npos);
  EXPECT_NE(type([&] { addmm(single, x, t); }).find("float64 and float32"), std::string::npos);
  const DTensor i(mesh, x.layout(), x.to_local().to(DType::int32));
  EXPECT_NE(type([&] { addmm(i, i, transpose(i, 0, 1), 0.5); }).find("0.5"), std::string::npos);
  EXPECT_NE(type([&] {
              matmul(x, Tensor::zeros({3, 2}, DType::float64));
            }).find("from_local"),
            std::string::npos);
}

}  // namespace
}  // namespace dtensor
