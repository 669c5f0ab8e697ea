// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions of local tensors: every scalar type, every shape of work, against plain loops.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/ops.hpp"
#include "ops/errors.hpp"
#include "ops/layouts.hpp"
#include "ops/reduction_reference.hpp"

namespace dtensor {
namespace {

using namespace testing;  // the references

const double nan = std::nan("");

constexpr DType all_dtypes[] = {DType::float64,  DType::float32,    DType::float16,
                                DType::bfloat16, DType::complex128, DType::complex64,
                                DType::int64,    DType::int32,      DType::int16,
                                DType::int8,     DType::uint8,      DType::boolean};

Values values_of(const Tensor& t) { return t.to(DType::float64).to_vector<double>(); }

double tolerance(DType dtype) {
  if (dtype == DType::float16) return 2e-3;
  if (dtype == DType::bfloat16) return 1.6e-2;
  return dtype == DType::float32 || dtype == DType::complex64 ? 2e-5 : 1e-12;
}

void expect_close(const Tensor& result, const std::vector<Values>& in,
                  double (*reference)(const Values&), double tol, const std::string& what) {
  const Values v = values_of(result);
  ASSERT_EQ(v.size(), in.size()) << what;
  for (std::size_t i = 0; i < v.size(); ++i) {
    const double expected = reference(in[i]);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(v[i])) << what << " " << i;
    } else {
      ASSERT_NEAR(v[i], expected, tol * std::max(1.0, std::abs(expected))) << what << " " << i;
    }
  }
}

// Every operator, scalar type and subset of dimensions, of dense and strided tensors.
TEST(Reduction, EveryScalarType) {
  Numbers numbers(1);
  for (const DType dtype : all_dtypes) {
    for (const Shape& shape : {Shape{3, 5, 4}, Shape{2, 37}, Shape{}, Shape{1, 1}}) {
      Array a = numbers.array(shape);
      if (!is_floating(dtype) && !is_complex(dtype)) {
        for (double& v : a.values) {
          v = std::floor(dtype == DType::boolean || dtype == DType::uint8 ? std::abs(v) : v);
          if (dtype == DType::boolean) v = v > 1;
        }
      }
      if (dtype == DType::float16 || dtype == DType::bfloat16) {
        for (double& v : a.values) v /= 2;
      }
      const Tensor dense = Tensor::from_vector(a.values, shape).to(dtype);
      const Tensor strided =
          shape.size() > 1 ? dense.transpose(0, 1).contiguous().transpose(0, 1) : dense;
      const Tensor tensors[] = {dense, strided};
      for (unsigned dims = 0; dims < 1u << shape.size(); ++dims) {
        const std::vector<Values> in = groups(a, dims);
        for (const auto& op : reduction_operators<Tensor>()) {
          const std::string name = op.name;
          const bool ordered = name[0] == 'a' && name[1] == 'm';
          if (is_complex(dtype) && (ordered || name == "logsumexp")) continue;
          for (const Tensor& t : tensors) {
            for (const bool keepdim : {false, true}) {
              const Tensor result = op.apply(t, list_of(dims, shape.size()), keepdim);
              const std::string what = name + " of " + to_string(t) + " over " +
                                       std::to_string(dims) + (keepdim ? " keepdim" : "");
              ASSERT_EQ(result.dim(), keepdim ? shape.size() : shape.size() - std::popcount(dims))
                  << what;
              expect_close(result, in, op.reference, tolerance(dtype) * (name == "prod" ? 20 : 1),
                           what);
            }
          }
        }
      }
    }
  }
}

// Long enough for several pieces and blocks, along and across rows, with odd ends.
TEST(Reduction, EveryShapeOfWork) {
  struct Case {
    Shape shape;
    unsigned dims;
  };
  Numbers numbers(2);
  for (const Case& c :
       {Case{{300001}, 1}, Case{{3, 150001}, 2}, Case{{9001, 37}, 1}, Case{{9001, 37}, 2},
        Case{{5, 2053}, 1}, Case{{600, 1300}, 1}, Case{{40, 70, 90}, 5}, Case{{40, 70, 90}, 2},
        Case{{40, 70, 90}, 7}, Case{{2000, 3}, 2}, Case{{300, 3, 300}, 5}}) {
    Array a = numbers.array(c.shape);
    for (double& v : a.values) v /= 64;
    const Tensor dense = Tensor::from_vector(a.values, c.shape);
    // Only every second element of memory.
    const Tensor wide = Tensor::zeros({c.shape.product(), 2}, DType::float64);
    wide.narrow(1, 0, 1).copy_from(dense.reshape({c.shape.product(), 1}));
    Extents strides = row_major_strides(c.shape);
    for (std::int64_t& s : strides) s *= 2;
    const Tensor tensors[] = {dense, dense.to(DType::float32),
                              wide.as_strided(c.shape, strides, 0)};
    const std::vector<Values> in = groups(a, c.dims);
    for (const auto& op : reduction_operators<Tensor>()) {
      if (std::string(op.name) == "prod") continue;
      for (const Tensor& t : tensors) {
        expect_close(op.apply(t, list_of(c.dims, c.shape.size()), false), in, op.reference,
                     t.dtype() == DType::float32 ? 1e-5 : 1e-12,
                     std::string(op.name) + " of " + to_string(t));
      }
    }
    if (std::popcount(c.dims) == 1) {
      const int dim = std::countr_zero(c.dims);
      for (const Tensor& t : tensors) {
        expect_close(max(t, dim).indices, in, reference_argmax, 0, "argmax of " + to_string(t));
      }
    }
  }
}

TEST(Reduction, LargestWithTheirPlaces) {
  Numbers numbers(3);
  for (const DType dtype : all_dtypes) {
    if (is_complex(dtype)) continue;
    const Shape shape{4, 7, 3};
    Array a = numbers.array(shape);
    // Few different values: many ties.
    for (double& v : a.values) v = dtype == DType::boolean ? v > 0 : std::floor(std::abs(v));
    const Tensor t = Tensor::from_vector(a.values, shape).to(dtype);
    for (int d = 0; d < 3; ++d) {
      const std::vector<Values> in = groups(a, 1u << d);
      const auto largest = max(t, d), smallest = min(t, d - 3, true);
      expect_close(
          largest.values, in, [](const Values& v) { return *std::max_element(v.begin(), v.end()); },
          0, "max");
      expect_close(largest.indices, in, reference_argmax, 0, "max indices");
      EXPECT_EQ(largest.values.dtype(), dtype);
      EXPECT_EQ(largest.indices.dtype(), DType::int64);
      EXPECT_EQ(smallest.values.shape()[d], 1);
      expect_close(
          smallest.values, in,
          [](const Values& v) { return *std::min_element(v.begin(), v.end()); }, 0, "min");
      expect_close(
          argmin(t, d), in,
          [](const Values& v) { return double(std::min_element(v.begin(), v.end()) - v.begin()); },
          0, "argmin");
    }
    expect_close(argmax(t), groups(a, 7), reference_argmax, 0, "argmax of all");
    expect_close(argmax(t.transpose(0, 2).contiguous().transpose(0, 2)), groups(a, 7),
                 reference_argmax, 0, "argmax of all, strided");
  }
}

TEST(Reduction, NotANumber) {
  const Tensor t = Tensor::from_vector(Values{1, nan, 7, nan, -infinity, 2, 3, infinity}, {2, 4});
  const auto largest = max(t, 1);
  EXPECT_TRUE(std::isnan(values_of(largest.values)[0]));
  EXPECT_EQ(values_of(largest.values)[1], infinity);
  EXPECT_EQ(values_of(largest.indices), (Values{1, 3}));
  EXPECT_EQ(values_of(argmin(t, 1)), (Values{1, 0}));
  EXPECT_EQ(values_of(argmax(t, 0)), (Values{0, 0, 0, 0}));
  EXPECT_TRUE(std::isnan(max(t).item<double>()));
  EXPECT_TRUE(std::isnan(min(t).item<double>()));
  EXPECT_TRUE(std::isnan(norm(t, infinity).item<double>()));
  EXPECT_TRUE(std::isnan(norm(t, -infinity).item<double>()));
  EXPECT_TRUE(std::isnan(logsumexp(t).item<double>()));
  EXPECT_TRUE(all(t).item<bool>());
  // The largest numbers are no NaN's neighbours either, in every block of a long row.
  std::vector<double> row(5000, -infinity);
  EXPECT_EQ(argmax(Tensor::from_vector(row, {5000})).item<std::int64_t>(), 0);
  row[4321] = nan;
  EXPECT_TRUE(std::isnan(max(Tensor::from_vector(row, {5000})).item<double>()));
  EXPECT_EQ(argmin(Tensor::from_vector(row, {5000, 1}), 0).item<std::int64_t>(), 4321);
}

// In a column that is reduced together with others, and with infinities of both signs beside it.
TEST(Reduction, NotANumberAcrossRows) {
  Array a({100, 3}, 1);
  a.at({57, 1}) = nan;
  a.at({56, 1}) = a.at({10, 2}) = infinity;
  a.at({11, 2}) = -infinity;
  for (const DType dtype : {DType::float64, DType::float32, DType::bfloat16}) {
    const Tensor t = Tensor::from_vector(a.values, a.shape).to(dtype);
    const auto largest = values_of(amax(t, 0)), smallest = values_of(amin(t, 0));
    EXPECT_EQ(largest[0], 1);
    EXPECT_TRUE(std::isnan(largest[1]) && std::isnan(smallest[1]));
    EXPECT_EQ(largest[2], infinity);
    EXPECT_EQ(smallest[2], -infinity);
    EXPECT_EQ(values_of(argmax(t, 0)), (Values{0, 57, 10}));
    EXPECT_EQ(values_of(argmin(t, 0)), (Values{0, 57, 11}));
    EXPECT_TRUE(std::isnan(values_of(norm(t, infinity, 0))[1]));
    EXPECT_TRUE(std::isnan(values_of(norm(t, -infinity, 0))[1]));
    EXPECT_TRUE(std::isnan(values_of(logsumexp(t, 0))[1]));
    EXPECT_EQ(values_of(logsumexp(t, 0))[2], infinity);
  }
}

TEST(Reduction, OverNothing) {
  const Tensor t = Tensor::zeros({3, 0}, DType::float32);
  EXPECT_EQ(values_of(sum(t, 1)), (Values{0, 0, 0}));
  EXPECT_EQ(values_of(prod(t, 1)), (Values{1, 1, 1}));
  EXPECT_EQ(values_of(any(t, 1)), (Values{0, 0, 0}));
  EXPECT_EQ(values_of(all(t, 1)), (Values{1, 1, 1}));
  EXPECT_EQ(values_of(norm(t, 2, 1)), (Values{0, 0, 0}));
  EXPECT_EQ(values_of(logsumexp(t, 1)), (Values{-infinity, -infinity, -infinity}));
  for (const Tensor& r : {mean(t, 1), var(t, 1), stddev(t, 1, 0)}) {
    for (double v : values_of(r)) EXPECT_TRUE(std::isnan(v));
  }
  EXPECT_EQ(amax(t, 0).numel(), 0);
  EXPECT_EQ(argmax(t, 0).shape(), (Shape{0}));
  const std::string text = thrown(ErrorKind::value, [&] { amax(t, -1); });
  EXPECT_NE(text.find("amax: dimension 1"), std::string::npos) << text;
  EXPECT_NE(thrown(ErrorKind::value, [&] { argmin(t); }), "");
  EXPECT_NE(thrown(ErrorKind::value, [&] { min(t, 1); }), "");
  EXPECT_NE(thrown(ErrorKind::value, [&] { norm(t, infinity); }), "");
  EXPECT_TRUE(std::isnan(var(Tensor::zeros({1}, DType::float64)).item<double>()));
}

// A mean that is large beside the deviations, exponents that overflow, sums that lose digits.
TEST(Reduction, KeepsDigits) {
  const std::int64_t n = 100000;
  Values far(static_cast<std::size_t>(n)), ones(static_cast<std::size_t>(n), 0.1);
  for (std::size_t i = 0; i < far.size(); ++i) far[i] = 1e9 + static_cast<double>(i % 3);
  const double expected = reference_variance(Values{0, 1, 2}, 0);
  for (const Shape& shape : {Shape{n, 1}, Shape{n / 50, 50}}) {
    const Tensor t = Tensor::from_vector(far, shape);
    EXPECT_NEAR(var(t, all_dims, 0).item<double>(), expected, 1e-4);
    for (double v : values_of(var(t, 0, 0))) EXPECT_NEAR(v, expected, 2e-3);
  }
  EXPECT_NEAR(logsumexp(Tensor::from_vector(far, {n})).item<double>(),
              1e9 + 2 + std::log(n / 3.0 * (1 + std::exp(-1) + std::exp(-2))), 1e-5);
  EXPECT_EQ(logsumexp(Tensor::from_vector(Values{-infinity, -infinity}, {2})).item<double>(),
            -infinity);
  EXPECT_EQ(logsumexp(Tensor::from_vector(Values{infinity, 1}, {2})).item<double>(), infinity);
  const Tensor single = Tensor::from_vector(ones, {n}).to(DType::float32);
  EXPECT_NEAR(sum(single).to(DType::float64).item<double>(), 0.1f * double(n), 1e-2);
  EXPECT_NEAR(sum(single.reshape({n, 1}), 0).to(DType::float64).item<double>(), 0.1f * double(n),
              1e-2);
  const Tensor half = Tensor::full({4096}, 0.5, DType::float16);
  EXPECT_EQ(sum(half).to(DType::float64).item<double>(), 2048);
  EXPECT_EQ(sum(Tensor::full({3}, 100, DType::int8)).item<std::int64_t>(), 300);
}

TEST(Reduction, ComplexNumbers) {
  using C = std::complex<double>;
  const std::vector<C> z{{3, 4}, {-1, 2}, {0, 0}, {2, -2}};
  Tensor t = Tensor::empty({4}, DType::complex128, DeviceKind::host);
  for (std::size_t i = 0; i < 4; ++i) static_cast<C*>(t.data())[i] = z[i];
  C mean = 0;
  for (C x : z) mean += x / 4.0;
  double variance = 0, norm3 = 0;
  for (C x : z) {
    variance += std::norm(x - mean) / 3;
    norm3 += std::pow(std::abs(x), 3);
  }
  EXPECT_EQ(norm(t).dtype(), DType::float64);
  EXPECT_NEAR(norm(t).item<double>(), std::sqrt(25 + 5 + 8), 1e-14);
  EXPECT_NEAR(norm(t, 3).item<double>(), std::cbrt(norm3), 1e-13);
  EXPECT_EQ(norm(t, infinity).item<double>(), 5);
  EXPECT_EQ(norm(t, -infinity).item<double>(), 0);
  EXPECT_EQ(norm(t, 0).item<double>(), 3);
  EXPECT_NEAR(var(t).item<double>(), variance, 1e-14);
  EXPECT_EQ(var(t.to(DType::complex64)).dtype(), DType::float32);
  const auto result = prod(t.narrow(0, 0, 2)).item<Kokkos::complex<double>>();
  EXPECT_NEAR(result.real(), (z[0] * z[1]).real(), 1e-14);
  EXPECT_NEAR(result.imag(), (z[0] * z[1]).imag(), 1e-14);
  EXPECT_NE(thrown(ErrorKind::type, [&] { amax(t); }).find("complex128"), std::string::npos);
  EXPECT_NE(thrown(ErrorKind::type, [&] { argmax(t, 0); }), "");
  EXPECT_NE(thrown(ErrorKind::type, [&] { logsumexp(t); }), "");
}

TEST(Reduction, Comparisons) {
  const Tensor a = Tensor::from_vector(Values{1, -2, 3, 4}, {2, 2});
  const Tensor b = Tensor::from_vector(Values{1, 3, -2, 4}, {2, 2});
  EXPECT_TRUE(equal(a, a));
  EXPECT_TRUE(equal(a, b.transpose(0, 1)));
  EXPECT_FALSE(equal(a, b));
  EXPECT_FALSE(equal(a, a.reshape({4})));
  EXPECT_TRUE(allclose(a, b, 0, 5));
  EXPECT_FALSE(allclose(a, b, 0, 4.9));
  // Relative to the second one.
  const Tensor one = Tensor::from_vector(Values{1}, {1}), two = Tensor::from_vector(Values{2}, {1});
  EXPECT_TRUE(allclose(one, two, 0.5, 0));
  EXPECT_FALSE(allclose(two, one, 0.5, 0));
  const Tensor odd = Tensor::from_vector(Values{nan, infinity, -infinity}, {3});
  EXPECT_FALSE(equal(odd, odd));
  EXPECT_FALSE(allclose(odd, odd));
  EXPECT_TRUE(allclose(odd, odd, 0, 0, true));
  const Tensor finite = Tensor::from_vector(Values{nan, 1e308, -infinity}, {3});
  EXPECT_FALSE(allclose(odd, finite, 1, 1, true));
  EXPECT_FALSE(allclose(finite, odd, 1, 1, true));
  EXPECT_TRUE(equal(Tensor::zeros({0, 3}, DType::int8), Tensor::zeros({0, 3}, DType::int8)));
  for (const DType dtype : all_dtypes) {
    const Tensor zeros = Tensor::zeros({70000}, dtype), other = zeros.clone();
    EXPECT_TRUE(equal(zeros, other)) << to_string(dtype);
    other.narrow(0, 69999, 1).fill(1);
    EXPECT_FALSE(equal(zeros, other)) << to_string(dtype);
    EXPECT_TRUE(allclose(zeros, other, 0, 1));
  }
  const Tensor large = Tensor::full({1}, (std::int64_t{1} << 60) + 1, DType::int64);
  EXPECT_FALSE(equal(large, Tensor::full({1}, std::int64_t{1} << 60, DType::int64)));
  EXPECT_FALSE(allclose(large, Tensor::full({1}, std::int64_t{1} << 60, DType::int64), 0, 0.5));
  const Tensor lowest = Tensor::full({1}, INT64_MIN, DType::int64);
  const Tensor highest = Tensor::full({1}, INT64_MAX, DType::int64);
  EXPECT_FALSE(allclose(highest, Tensor::full({1}, INT64_MAX - 1, DType::int64), 0, 0.5));
  EXPECT_TRUE(allclose(highest, Tensor::full({1}, INT64_MAX - 1, DType::int64), 0, 1));
  EXPECT_FALSE(allclose(lowest, highest, 0, 1e19));
  EXPECT_TRUE(allclose(lowest, highest, 0, 1.9e19));
  EXPECT_NE(thrown(ErrorKind::type, [&] { equal(a, a.reshape({4}).to(DType::float32)); }), "");
  EXPECT_NE(thrown(ErrorKind::type, [&] { equal(a, a.to(DType::float32)); }).find("float32"),
            std::string::npos);
  EXPECT_NE(thrown(ErrorKind::value, [&] { allclose(a, one); }).find("(2, 2) and (1,)"),
            std::string::npos);
  EXPECT_NE(thrown(ErrorKind::value, [&] { allclose(a, a, -1); }), "");
}

TEST(Reduction, Corrections) {
  const Tensor a = Tensor::from_vector(Values{1, 2, 3}, {3});
  EXPECT_EQ(var(a, 0, 3).item<double>(), infinity);
  EXPECT_EQ(stddev(a, 0, 4).item<double>(), infinity);
  EXPECT_TRUE(std::isnan(var(Tensor::full({3}, 2, DType::float64), 0, 3).item<double>()));
  EXPECT_EQ(var(a, 0, -1).item<double>(), 0.5);
  for (const double bad : {nan, infinity, -infinity}) {
    EXPECT_NE(thrown(ErrorKind::value, [&] { var(a, 0, bad); }).find("correction"),
              std::string::npos);
  }
}

TEST(Reduction, BadDimensions) {
  const Tensor t = Tensor::zeros({2, 3}, DType::float64);
  EXPECT_NE(thrown(ErrorKind::index, [&] { sum(t, 2); }).find("sum"), std::string::npos);
  EXPECT_NE(thrown(ErrorKind::value,
                   [&] {
                     stddev(t, {0, -2});
                   })
                .find("stddev"),
            std::string::npos);
  EXPECT_NE(thrown(ErrorKind::index, [&] { argmax(t, -3); }).find("argmax"), std::string::npos);
  EXPECT_NE(thrown(ErrorKind::value, [&] { norm(t, nan); }), "");
}

}  // namespace
}  // namespace dtensor
