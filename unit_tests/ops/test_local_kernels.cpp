// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>

#include "dtensor/ops/local/matmul.hpp"
#include "dtensor/ops/ops.hpp"
#include "ops/reference.hpp"

namespace dtensor {
namespace {

using testing::Array;
using testing::evaluate;
using testing::for_each_index;
using testing::Numbers;

// The elements as doubles, whatever the type; the real part of complex ones.
std::vector<double> doubles(const Tensor& t) { return t.to(DType::float64).to_vector<double>(); }

Tensor tensor(const Array& a, DType dtype = DType::float64) {
  return Tensor::from_vector(a.values, a.shape).to(dtype);
}

// The same values in memory that is laid out in another way.
std::vector<Tensor> with_other_strides(const Tensor& t) {
  std::vector<Tensor> result{t};
  // Reversed dimension order.
  std::vector<std::int64_t> reversed;
  Shape reversed_shape;
  for (int d = t.dim() - 1; d >= 0; --d) {
    reversed.push_back(d);
    reversed_shape.push_back(t.shape()[d]);
  }
  Tensor column_major = Tensor::empty(reversed_shape, t.dtype()).permute(reversed);
  column_major.copy_from(t);
  result.push_back(column_major);
  // A box inside of a larger tensor, every second element.
  Shape larger;
  for (std::int64_t extent : t.shape()) larger.push_back(2 * extent + 3);
  const Tensor outer = Tensor::full(larger, 99, t.dtype());
  Extents strides = outer.strides();
  for (std::int64_t& s : strides) s *= 2;
  const Tensor inner = outer.as_strided(t.shape(), strides, outer.dim() > 0 ? 1 : 0);
  inner.copy_from(t);
  result.push_back(inner);
  return result;
}

void expect_equal(const Tensor& result, const Array& expected, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(result.shape(), expected.shape) << what;
  const auto values = doubles(result);
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_NEAR(values[i], expected.values[i],
                tolerance * std::max(1.0, std::abs(expected.values[i])))
        << what << ", element " << i;
  }
}

struct BinaryOperator {
  const char* name;
  Tensor (*tensors)(const Tensor&, const Tensor&);
  double (*function)(double, double);
};

const BinaryOperator binary_operators[] = {{"add", add, [](double x, double y) { return x + y; }},
                                           {"sub", sub, [](double x, double y) { return x - y; }},
                                           {"mul", mul, [](double x, double y) { return x * y; }},
                                           {"div", div, [](double x, double y) { return x / y; }}};

// Letters for NumPy's alignment from the last dimension.
std::vector<std::string> aligned(int rank_a, int rank_b) {
  const std::string all =
      std::string("abcdefgh").substr(0, static_cast<std::size_t>(std::max(rank_a, rank_b)));
  return {all.substr(all.size() - static_cast<std::size_t>(rank_a)),
          all.substr(all.size() - static_cast<std::size_t>(rank_b)), all};
}

TEST(LocalPointwise, BroadcastsOverAllStrides) {
  const std::vector<std::pair<Shape, Shape>> shapes{{{3, 5}, {3, 5}},
                                                    {{3, 5}, {5}},
                                                    {{3, 5}, {3, 1}},
                                                    {{3, 1}, {1, 5}},
                                                    {{}, {4}},
                                                    {{}, {}},
                                                    {{2, 3, 4}, {3, 1}},
                                                    {{2, 1, 4}, {1, 3, 1}},
                                                    {{0, 4}, {4}},
                                                    {{0}, {1}},
                                                    {{1}, {0}},
                                                    {{3, 0}, {3, 1}},
                                                    {{2, 2, 2, 2, 1, 2, 2, 2}, {2, 1, 2}},
                                                    {{70001}, {70001}},
                                                    {{70001}, {1}},
                                                    {{1}, {70001}}};
  Numbers numbers(1);
  for (const auto& [a, b] : shapes) {
    const Array x = numbers.array(a), y = numbers.array(b);
    const auto letters = aligned(a.size(), b.size());
    for (const BinaryOperator& op : binary_operators) {
      const Array expected = *evaluate({letters[0], letters[1]}, letters[2], {x, y},
                                       [&](const auto& v) { return op.function(v[0], v[1]); });
      for (const Tensor& tx : with_other_strides(tensor(x))) {
        for (const Tensor& ty : with_other_strides(tensor(y))) {
          const Tensor result = op.tensors(tx, ty);
          EXPECT_TRUE(result.is_contiguous());
          expect_equal(result, expected, 0, op.name + to_string(a) + to_string(b));
        }
      }
    }
  }
}

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 1e-3;
    case DType::bfloat16:
      return 8e-3;
    case DType::float32:
    case DType::complex64:
      return 2e-7;
    default:
      return 1e-15;
  }
}

TEST(LocalPointwise, EveryScalarType) {
  // Values that every type but bool holds.
  const Array x = [] {
    Array a({7});
    for (int i = 0; i < 7; ++i) a.values[static_cast<std::size_t>(i)] = 10 + 3 * i;
    return a;
  }();
  const Array y = [] {
    Array a({7});
    for (int i = 0; i < 7; ++i) a.values[static_cast<std::size_t>(i)] = 1 + i % 4;
    return a;
  }();
  for (int t = 0; t < dtype_count; ++t) {
    const auto dtype = static_cast<DType>(t);
    if (dtype == DType::boolean) continue;
    for (const BinaryOperator& op : binary_operators) {
      const bool fraction = op.name == std::string("div");
      const bool integer = is_integral(dtype);
      Array expected({7}), with_number({7});
      for (std::size_t i = 0; i < 7; ++i) {
        expected.values[i] = op.function(x.values[i], y.values[i]);
        with_number.values[i] = op.function(x.values[i], 3);
      }
      const Tensor result = op.tensors(tensor(x, dtype), tensor(y, dtype));
      EXPECT_EQ(result.dtype(), fraction && integer ? DType::float64 : dtype);
      expect_equal(result, expected, tolerance_of(dtype), op.name + std::string(to_string(dtype)));
    }
    EXPECT_EQ(doubles(tensor(x, dtype) + 3)[6], 31);
    EXPECT_EQ(doubles(tensor(x, dtype) - 3)[6], 25);
    EXPECT_EQ(doubles(3 * tensor(x, dtype))[6], 84);
    EXPECT_EQ(doubles(tensor(x, dtype) / 4)[6], 7);
    EXPECT_EQ(doubles(84 / tensor(x, dtype))[6], 3);
    EXPECT_EQ(doubles(100 - tensor(x, dtype))[6], 72);
    EXPECT_NEAR(doubles(sqrt(tensor(x, dtype)))[5], 5, 5 * tolerance_of(dtype));
    if (dtype != DType::uint8) {
      EXPECT_EQ(doubles(-tensor(x, dtype))[6], -28);
    }
  }
}

TEST(LocalPointwise, ComplexArithmetic) {
  using Z = Kokkos::complex<double>;
  const std::complex<double> a(1.5, -2.25), b(-0.5, 0.75);
  const Tensor x = Tensor::full({3}, a, DType::complex128),
               y = Tensor::full({3}, b, DType::complex128);
  const auto expect = [](const Tensor& t, std::complex<double> z) {
    const Z got = t.to_vector<Z>().back();
    EXPECT_NEAR(got.real(), z.real(), 1e-14);
    EXPECT_NEAR(got.imag(), z.imag(), 1e-14);
  };
  expect(x + y, a + b);
  expect(x - y, a - b);
  expect(x * y, a * b);
  expect(x / y, a / b);
  expect(sqrt(x), std::sqrt(a));
  expect(-x, -a);
  expect(sum(x), 3.0 * a);
  expect(Tensor::full({3}, 2.0, DType::float64) * b, 2.0 * b);
  expect(mean(x + Tensor::full({3}, std::complex<double>(0, 1), DType::complex128)),
         a + std::complex<double>(0, 1));
}

TEST(LocalPointwise, IntegersWrapAround) {
  EXPECT_EQ((Tensor::full({1}, 127, DType::int8) + 1).item<std::int8_t>(), -128);
  EXPECT_EQ((Tensor::full({1}, 3, DType::uint8) - 4).item<std::uint8_t>(), 255);
  EXPECT_EQ((Tensor::full({1}, -32768, DType::int16) * Tensor::full({1}, -1, DType::int16))
                .item<std::int16_t>(),
            -32768);
  const auto lowest = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ((-Tensor::full({1}, lowest, DType::int64)).item<std::int64_t>(), lowest);
  EXPECT_EQ((Tensor::full({1}, lowest, DType::int64) - 1).item<std::int64_t>(),
            std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(sum(Tensor::full({2}, lowest, DType::int64)).item<std::int64_t>(), 0);
}

TEST(LocalPointwise, Bool) {
  const Tensor a = Tensor::from_vector(std::vector<bool>{false, false, true, true}, {4});
  const Tensor b = Tensor::from_vector(std::vector<bool>{false, true, false, true}, {4});
  EXPECT_EQ((a + b).to_vector<bool>(), (std::vector<bool>{false, true, true, true}));
  EXPECT_EQ((a * b).to_vector<bool>(), (std::vector<bool>{false, false, false, true}));
  EXPECT_EQ((a / true).dtype(), DType::float64);
  EXPECT_EQ((a + 1).dtype(), DType::int64);
  EXPECT_EQ((a + 1).to_vector<std::int64_t>(), (std::vector<std::int64_t>{1, 1, 2, 2}));
  EXPECT_THROW(a - b, TypeError);
  EXPECT_THROW(-a, TypeError);
  EXPECT_EQ(sum(a).item<std::int64_t>(), 2);
  EXPECT_EQ(mean(a).item<double>(), 0.5);
}

TEST(LocalPointwise, NumbersOfAHigherKind) {
  EXPECT_EQ((Tensor::full({1}, 3, DType::int32) + 0.5).dtype(), DType::float64);
  EXPECT_EQ((Tensor::full({1}, 3, DType::int32) + 0.5).item<double>(), 3.5);
  EXPECT_EQ((Tensor::full({1}, 3, DType::float32) * 0.5).dtype(), DType::float32);
  EXPECT_EQ((Tensor::full({1}, 3, DType::bfloat16) * 0.5).dtype(), DType::bfloat16);
  EXPECT_EQ((Tensor::full({1}, 3, DType::float32) * std::complex<double>(0, 1)).dtype(),
            DType::complex64);
  EXPECT_EQ((Tensor::full({1}, 3, DType::int8) * std::complex<double>(0, 1)).dtype(),
            DType::complex128);
  EXPECT_EQ((Tensor::full({1}, 3, DType::int8) * true).dtype(), DType::int8);
  EXPECT_THROW((Tensor::full({1}, 3, DType::int8) + 300), ValueError);
  EXPECT_THROW((Tensor::full({1}, 3, DType::uint8) * -1), ValueError);
  EXPECT_EQ((Tensor::full({1}, 3, DType::int8) / 300).item<double>(), 0.01);
}

// A factor keeps the precision of the arithmetic, not of the 16-bit type, where 1.005 is 1.
TEST(LocalPointwise, SixteenBitTypesComputeInFloat) {
  EXPECT_EQ(doubles(Tensor::full({1}, 200, DType::bfloat16) * 1.005)[0], 201);
  EXPECT_EQ(doubles(1.005 * Tensor::full({2, 1}, 200, DType::bfloat16).transpose(0, 1))[1], 201);
}

TEST(LocalPointwise, Errors) {
  const Tensor a = Tensor::zeros({2, 3}, DType::float64);
  EXPECT_THROW(a * Tensor::zeros({2}, DType::float64), ValueError);
  EXPECT_THROW(a / Tensor::zeros({0, 3}, DType::float64), ValueError);
}

TEST(LocalReduction, OverEveryChoiceOfDimensionsAndStrides) {
  Numbers numbers(2);
  for (const Shape& shape : {Shape{3, 4, 5}, Shape{1, 7, 2}, Shape{2, 0, 3}, Shape{6}, Shape{},
                             Shape{2, 600, 3}, Shape{3, 2, 5000}, Shape{2, 2, 3, 2, 2}}) {
    const Array x = numbers.array(shape);
    const std::string letters =
        std::string("abcdefgh").substr(0, static_cast<std::size_t>(shape.size()));
    const auto variants = with_other_strides(tensor(x));
    for (int choice = 0; choice < 1 << shape.size(); ++choice) {
      std::string output, kept;
      std::vector<std::int64_t> dims;
      double count = 1;
      for (int d = 0; d < shape.size(); ++d) {
        const char letter = letters[static_cast<std::size_t>(d)];
        const bool reduced = choice >> d & 1;
        if (reduced) {
          dims.push_back(d % 2 ? d - shape.size() : d);
          count *= static_cast<double>(shape[d]);
        } else {
          output += letter;
        }
        kept += reduced ? '1' : letter;
      }
      const auto identity = [](const std::vector<double>& v) { return v[0]; };
      const Array expected = *evaluate({letters}, output, {x}, identity);
      const Array with_dims = *evaluate({letters}, kept, {x}, identity);
      Array average = expected;
      for (double& v : average.values) v /= count;
      for (const Tensor& t : variants) {
        const std::string what = to_string(shape) + output;
        expect_equal(sum(t, dims), expected, 1e-13, what);
        expect_equal(sum(t, dims, true), with_dims, 1e-13, what);
        if (count > 0) {
          expect_equal(mean(t, dims), average, 1e-13, what);
        } else {
          for (double v : doubles(mean(t, dims))) EXPECT_TRUE(std::isnan(v));
        }
        if (choice == (1 << shape.size()) - 1) expect_equal(sum(t), expected, 1e-13, what);
      }
    }
  }
}

TEST(LocalReduction, EveryScalarType) {
  Array x({5, 3});
  for (std::size_t i = 0; i < 15; ++i) x.values[i] = static_cast<double>(i * 8);
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::boolean) continue;
    const Tensor t = tensor(x, dtype);
    EXPECT_EQ(sum(t, {0}).dtype(), is_integral(dtype) ? DType::int64 : dtype);
    EXPECT_EQ(mean(t, {0}).dtype(), is_integral(dtype) ? DType::float64 : dtype);
    EXPECT_EQ(doubles(sum(t, {0})), (std::vector<double>{240, 280, 320})) << to_string(dtype);
    EXPECT_EQ(doubles(sum(t, {1}))[4], 312) << to_string(dtype);
    EXPECT_EQ(doubles(mean(t))[0], 56) << to_string(dtype);
  }
}

TEST(LocalReduction, SixteenBitTypesAccumulateInFloat) {
  // In bfloat16 a running sum would stop at 256, in float16 at 2048.
  EXPECT_EQ(doubles(sum(Tensor::full({4096}, 1, DType::bfloat16)))[0], 4096);
  EXPECT_EQ(doubles(sum(Tensor::full({4096, 2}, 1, DType::bfloat16), {0}))[1], 4096);
  EXPECT_EQ(doubles(sum(Tensor::full({16384}, 1, DType::float16)))[0], 16384);
  // The sum is beyond float16, the mean is not.
  EXPECT_EQ(doubles(mean(Tensor::full({100000}, 3, DType::float16)))[0], 3);
}

TEST(LocalReduction, LongSumsKeepPrecision) {
  EXPECT_NEAR(doubles(sum(Tensor::full({10000000}, 0.1, DType::float32)))[0] / 1e6, 1, 1e-6);
}

TEST(LocalReduction, Errors) {
  const Tensor a = Tensor::zeros({2, 3}, DType::float64);
  EXPECT_THROW(sum(a, {2}), IndexError);
  EXPECT_THROW(mean(a, {0, -2}), ValueError);
}

TEST(LocalMatmul, AllSizesAndStrides) {
  Numbers numbers(3);
  const std::vector<std::int64_t> sizes{0, 1, 2, 5, 17};
  for (std::int64_t m : sizes) {
    for (std::int64_t k : sizes) {
      for (std::int64_t n : sizes) {
        const Array a = numbers.array({m, k}), b = numbers.array({k, n});
        const Array expected =
            *evaluate({"mk", "kn"}, "mn", {a, b}, [](const auto& v) { return v[0] * v[1]; });
        for (DType dtype : {DType::float64, DType::float32}) {
          for (const Tensor& x : with_other_strides(tensor(a, dtype))) {
            for (const Tensor& y : with_other_strides(tensor(b, dtype))) {
              const double tolerance = dtype == DType::float64 ? 1e-13 : 1e-4;
              const std::string what = to_string(x.shape()) + to_string(y.shape());
              const Tensor c = matmul(x, y);
              EXPECT_EQ(c.dtype(), dtype);
              expect_equal(c, expected, tolerance, what);
              const Tensor blocked = Tensor::empty(expected.shape, dtype);
              detail::gemm(1, x, y, 0, blocked, 4);
              expect_equal(blocked, expected, tolerance, what);
            }
          }
        }
      }
    }
  }
}

TEST(LocalMatmul, BlocksAndBroadcastViewsOfALargerMatrix) {
  Numbers numbers(4);
  const Array whole = numbers.array({20, 30});
  const Tensor t = tensor(whole);
  Array a({4, 6}), b({6, 5});
  for_each_index(a.shape, [&](const Extents& i) { a.at(i) = whole.at({i[0] + 3, i[1] + 2}); });
  for_each_index(b.shape, [&](const Extents& i) { b.at(i) = whole.at({i[1] + 7, i[0] + 9}); });
  const auto product = [](const std::vector<double>& v) { return v[0] * v[1]; };
  const Tensor x = t.narrow(0, 3, 4).narrow(1, 2, 6);
  const Tensor y = t.narrow(0, 7, 5).narrow(1, 9, 6).transpose(0, 1);
  expect_equal(matmul(x, y), *evaluate({"mk", "kn"}, "mn", {a, b}, product), 1e-13, "views");
  // One row for all.
  const Tensor repeated = tensor(Array({6}, 0.5)).as_strided({6, 5}, {0, 1}, 0);
  const Array half({6, 5}, 0.5);
  expect_equal(matmul(x, repeated), *evaluate({"mk", "kn"}, "mn", {a, half}, product), 1e-13, "");
}

// Rows that overlap in memory, as no leading dimension of BLAS can say.
TEST(LocalMatmul, OverlappingRows) {
  Numbers numbers(6);
  const Array line = numbers.array({8});
  Array a({4, 5});
  for_each_index(a.shape, [&](const Extents& i) { a.at(i) = line.at({i[0] + i[1]}); });
  const Tensor x = tensor(line).as_strided({4, 5}, {1, 1}, 0);
  const auto product = [](const std::vector<double>& v) { return v[0] * v[1]; };
  const Array gram = *evaluate({"mk", "nk"}, "mn", {a, a}, product);
  expect_equal(matmul(x, x.transpose(0, 1)), gram, 1e-13, "overlapping rows");
}

TEST(LocalMatmul, Vectors) {
  Numbers numbers(5);
  const Array a = numbers.array({3, 4}), v = numbers.array({4}), w = numbers.array({3});
  const auto product = [](const std::vector<double>& x) { return x[0] * x[1]; };
  for (const Tensor& x : with_other_strides(tensor(a))) {
    for (const Tensor& y : with_other_strides(tensor(v))) {
      expect_equal(matmul(x, y), *evaluate({"mk", "k"}, "m", {a, v}, product), 1e-13, "mk,k");
      expect_equal(matmul(y, y), *evaluate({"k", "k"}, "", {v, v}, product), 1e-13, "k,k");
    }
    for (const Tensor& y : with_other_strides(tensor(w))) {
      expect_equal(matmul(y, x), *evaluate({"k", "kn"}, "n", {w, a}, product), 1e-13, "k,kn");
    }
  }
}

TEST(LocalMatmul, Errors) {
  const Tensor a = Tensor::zeros({2, 3}, DType::float64);
  EXPECT_THROW(matmul(a, a), ValueError);
  EXPECT_THROW(matmul(a, Tensor::zeros({}, DType::float64)), ValueError);
  EXPECT_THROW(matmul(a, Tensor::zeros({3, 2}, DType::float32)), TypeError);
}

}  // namespace
}  // namespace dtensor
