// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every pointwise operator on local tensors of every scalar type, against the standard library.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <set>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/ops.hpp"
#include "dtensor/ops/promotion.hpp"

namespace dtensor {
namespace {

using Values = std::vector<double>;
using Z = std::complex<double>;
constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Values doubles(const Tensor& t) { return t.to(DType::float64).to_vector<double>(); }
std::vector<Z> complexes(const Tensor& t) {
  std::vector<Z> result;
  for (const auto& z : t.to(DType::complex128).to_vector<Kokkos::complex<double>>()) {
    result.emplace_back(z.real(), z.imag());
  }
  return result;
}
Tensor vector(const Values& values, DType dtype = DType::float64) {
  return Tensor::from_vector(values, {static_cast<std::int64_t>(values.size())}).to(dtype);
}

double tolerance_of(DType dtype) {
  switch (dtype) {
    case DType::float16:
      return 1e-3;
    case DType::bfloat16:
      return 8e-3;
    case DType::float32:
    case DType::complex64:
      return 1e-6;
    default:
      return 4e-15;
  }
}

// NaN equals NaN; zeros of one sign only where both have it.
void expect_near(double got, double expected, double tolerance, const std::string& what) {
  if (std::isnan(expected) || std::isinf(expected)) {
    EXPECT_TRUE(std::isnan(expected) ? std::isnan(got) : got == expected)
        << what << ": " << got << ", expected " << expected;
  } else {
    EXPECT_NEAR(got, expected, tolerance * std::max(1.0, std::abs(expected))) << what;
  }
}

// Values that the type holds, many enough for vector code and a remainder.
Values inputs(DType dtype) {
  Values values;
  if (dtype == DType::boolean) return {0, 1, 1, 0, 1};
  for (int i = 0; i < 37; ++i) {
    const double v = 0.375 * (i - 17);
    values.push_back(is_integral(dtype) ? (dtype == DType::uint8 ? i : i - 17) : v);
  }
  return values;
}

struct Unary {
  const char* name;
  Tensor (*op)(const Tensor&);
  double (*f)(double);
};
double sign_of(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

const Unary unary_operators[] = {
    {"abs", abs, [](double x) { return std::abs(x); }},
    {"neg", neg, [](double x) { return -x; }},
    {"sign", sign, sign_of},
    {"sqrt", sqrt, [](double x) { return std::sqrt(x); }},
    {"rsqrt", rsqrt, [](double x) { return 1 / std::sqrt(x); }},
    {"square", square, [](double x) { return x * x; }},
    {"exp", exp, [](double x) { return std::exp(x); }},
    {"expm1", expm1, [](double x) { return std::expm1(x); }},
    {"log", log, [](double x) { return std::log(x); }},
    {"log1p", log1p, [](double x) { return std::log1p(x); }},
    {"log2", log2, [](double x) { return std::log2(x); }},
    {"sin", sin, [](double x) { return std::sin(x); }},
    {"cos", cos, [](double x) { return std::cos(x); }},
    {"tan", tan, [](double x) { return std::tan(x); }},
    {"asin", asin, [](double x) { return std::asin(x); }},
    {"acos", acos, [](double x) { return std::acos(x); }},
    {"atan", atan, [](double x) { return std::atan(x); }},
    {"sinh", sinh, [](double x) { return std::sinh(x); }},
    {"cosh", cosh, [](double x) { return std::cosh(x); }},
    {"tanh", tanh, [](double x) { return std::tanh(x); }},
    {"sigmoid", sigmoid, sigmoid_of},
    {"erf", erf, [](double x) { return std::erf(x); }},
    {"relu", relu, [](double x) { return x < 0 ? 0 : x; }},
    {"gelu", gelu, [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); }},
    {"gelu_tanh", gelu_tanh,
     [](double x) {
       return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
     }},
    {"silu", silu, [](double x) { return x * sigmoid_of(x); }},
    {"softplus", softplus, [](double x) { return std::log1p(std::exp(x)); }},
    {"reciprocal", reciprocal, [](double x) { return 1 / x; }},
    {"floor", floor, [](double x) { return std::floor(x); }},
    {"ceil", ceil, [](double x) { return std::ceil(x); }},
    {"round", round, [](double x) { return std::nearbyint(x); }},
    {"trunc", trunc, [](double x) { return std::trunc(x); }},
    {"isnan", isnan, [](double x) { return std::isnan(x) ? 1.0 : 0.0; }},
    {"isinf", isinf, [](double x) { return std::isinf(x) ? 1.0 : 0.0; }},
    {"isfinite", isfinite, [](double x) { return std::isfinite(x) ? 1.0 : 0.0; }},
    {"logical_not", logical_not, [](double x) { return x == 0 ? 1.0 : 0.0; }},
    {"bitwise_not", bitwise_not,
     [](double x) { return static_cast<double>(~static_cast<std::int64_t>(x)); }},
    {"conj", conj, [](double x) { return x; }},
    {"real", real, [](double x) { return x; }},
    {"imag", imag, [](double) { return 0.0; }},
    {"angle", angle, [](double x) { return x < 0    ? M_PI
                                           : x >= 0 ? 0.0
                                                    : x; }}};

// What the documentation promises, independent of how the library derives it.
DType expected_dtype(const PointwiseRow& row, DType common) {
  const bool discrete = is_integral(common) || common == DType::boolean;
  switch (row.result) {
    case PointwiseResult::same:
      return common;
    case PointwiseResult::fractional:
    case PointwiseResult::real_fractional:
    case PointwiseResult::real:
      if (discrete && row.result != PointwiseResult::real) return DType::float64;
      if (row.result == PointwiseResult::fractional) return common;
      if (common == DType::complex128) return DType::float64;
      return common == DType::complex64 ? DType::float32 : common;
    case PointwiseResult::boolean:
      break;
  }
  return DType::boolean;
}

const PointwiseRow& row_named(const std::string& name) {
  for (const PointwiseRow& row : pointwise_table()) {
    if (name == row.name) return row;
  }
  throw ValueError("row_named", name, "an operator");
}

// The value that an integer type or bool stores for the mathematical one.
double stored(double value, DType dtype) {
  if (dtype == DType::boolean) return value != 0 ? 1 : 0;
  if (dtype != DType::uint8 && dtype != DType::int8) return value;
  const auto wrapped = static_cast<std::int64_t>(value);
  return dtype == DType::uint8 ? static_cast<std::uint8_t>(wrapped)
                               : static_cast<std::int8_t>(wrapped);
}

TEST(Pointwise, TheTableIsInOrderAndTestedInFull) {
  int i = 0;
  for (const PointwiseRow& row : pointwise_table()) EXPECT_EQ(static_cast<int>(row.op), i++);
  EXPECT_EQ(i, static_cast<int>(PointwiseOp::addcdiv) + 1);
  std::set<std::string> tested, rows;
  for (const Unary& op : unary_operators) tested.insert(op.name);
  for (const PointwiseRow& row : pointwise_table()) {
    if (row.arity == 1) rows.insert(row.name);
    EXPECT_EQ(row.name + std::string("_"), row.in_place_name);
  }
  EXPECT_EQ(tested, rows);
}

TEST(Pointwise, UnaryOnEveryScalarType) {
  for (const Unary& op : unary_operators) {
    const PointwiseRow& row = row_named(op.name);
    for (int t = 0; t < dtype_count; ++t) {
      const auto dtype = static_cast<DType>(t);
      const std::string what = op.name + std::string(" ") + to_string(dtype);
      const Tensor x = vector(inputs(dtype), dtype);
      if ((row.kinds & kinds::of(dtype)) == 0) {
        EXPECT_THROW(op.op(x), TypeError) << what;
        continue;
      }
      if (is_complex(dtype)) continue;
      const Tensor y = op.op(x);
      ASSERT_EQ(y.dtype(), expected_dtype(row, dtype)) << what;
      const Values in = doubles(x), out = doubles(y);
      for (std::size_t i = 0; i < in.size(); ++i) {
        double expected = op.f(in[i]);
        if (y.dtype() == DType::float16 && std::abs(expected) > 65504) continue;
        if (dtype == DType::boolean && op.op == +bitwise_not<Tensor>) expected = 1 - in[i];
        // Where a library function ends in a pole or an edge of its domain, half types may be past
        // it.
        expect_near(out[i], stored(expected, y.dtype()), 4 * tolerance_of(y.dtype()),
                    what + " of " + std::to_string(in[i]));
      }
    }
  }
}

TEST(Pointwise, ComplexFunctions) {
  struct Complex {
    Tensor (*op)(const Tensor&);
    Z (*f)(const Z&);
  };
  const Complex operators[] = {{abs, [](const Z& z) { return Z(std::abs(z)); }},
                               {neg, [](const Z& z) { return -z; }},
                               {sqrt, [](const Z& z) { return std::sqrt(z); }},
                               {rsqrt, [](const Z& z) { return 1.0 / std::sqrt(z); }},
                               {square, [](const Z& z) { return z * z; }},
                               {exp, [](const Z& z) { return std::exp(z); }},
                               {log, [](const Z& z) { return std::log(z); }},
                               {log2, [](const Z& z) { return std::log(z) / std::log(2.0); }},
                               {sin, [](const Z& z) { return std::sin(z); }},
                               {cos, [](const Z& z) { return std::cos(z); }},
                               {tan, [](const Z& z) { return std::tan(z); }},
                               {sinh, [](const Z& z) { return std::sinh(z); }},
                               {cosh, [](const Z& z) { return std::cosh(z); }},
                               {tanh, [](const Z& z) { return std::tanh(z); }},
                               {reciprocal, [](const Z& z) { return 1.0 / z; }},
                               {conj, [](const Z& z) { return std::conj(z); }},
                               {real, [](const Z& z) { return Z(z.real()); }},
                               {imag, [](const Z& z) { return Z(z.imag()); }},
                               {angle, [](const Z& z) { return Z(std::arg(z)); }},
                               {logical_not, [](const Z& z) { return Z(z == Z() ? 1 : 0); }}};
  std::vector<Kokkos::complex<double>> values;
  for (double x : {-2.5, -0.25, 0.75, 3.0}) {
    for (double y : {-1.5, -0.125, 0.5, 2.25, 0.0}) values.emplace_back(x, y);
  }
  int index = 0;
  for (DType dtype : {DType::complex128, DType::complex64}) {
    const Tensor x = Tensor::from_vector(values, {20}).to(dtype);
    for (const Complex& op : operators) {
      const Tensor y = op.op(x);
      const auto out = complexes(y);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const Z expected = op.f(Z(values[i].real(), values[i].imag()));
        EXPECT_LT(std::abs(out[i] - expected),
                  4 * tolerance_of(dtype) * std::max(1.0, std::abs(expected)))
            << index << " of " << values[i] << ": " << out[i] << ", expected " << expected;
      }
      ++index;
    }
    const Tensor y = Tensor::full({20}, Z(0.5, -1.25), dtype);
    const auto power = complexes(pow(x, y)), choice = complexes(where(x == y, x, Z(0, 2))),
               mixed = complexes(lerp(x, y, 0.25));
    for (std::size_t i = 0; i < values.size(); ++i) {
      const Z z(values[i].real(), values[i].imag());
      EXPECT_LT(std::abs(power[i] - std::pow(z, Z(0.5, -1.25))), 100 * tolerance_of(dtype)) << z;
      EXPECT_EQ(choice[i], Z(0, 2));
      EXPECT_LT(std::abs(mixed[i] - (0.75 * z + 0.25 * Z(0.5, -1.25))), 4 * tolerance_of(dtype));
    }
  }
  // Far from the axis, where the hyperbolic functions overflow.
  EXPECT_LT(std::abs(complexes(tanh(Tensor::full({1}, Z(-800, 1), DType::complex128)))[0] + 1.0),
            1e-15);
  EXPECT_EQ(complexes(pow(Tensor::full({1}, Z(0, 0), DType::complex128), 2.5))[0], Z(0, 0));
  EXPECT_EQ(complexes(exp(Tensor::full({1}, Z(1000, 0), DType::complex128)))[0], Z(inf, 0));
}

struct Binary {
  const char* name;
  Tensor (*op)(const Tensor&, const Tensor&);
  Tensor (*with_number)(const Tensor&, const Scalar&);
  Tensor (*number_with)(const Scalar&, const Tensor&);
  double (*f)(double, double);
};
double floor_div_of(double x, double y) { return std::floor(x / y); }
std::int64_t integer(double x) { return static_cast<std::int64_t>(x); }

#define OPERATOR(name, expression)                                                   \
  {                                                                                  \
#name, name, name, name, [](double x, double y) -> double { return expression; } \
  }
const Binary binary_operators[] = {
    OPERATOR(add, x + y),
    OPERATOR(sub, x - y),
    OPERATOR(mul, x* y),
    OPERATOR(div, x / y),
    OPERATOR(floor_div, floor_div_of(x, y)),
    OPERATOR(remainder, x - y * floor_div_of(x, y)),
    OPERATOR(fmod, std::fmod(x, y)),
    OPERATOR(pow, std::pow(x, y)),
    OPERATOR(maximum, x < y ? y : x),
    OPERATOR(minimum, x < y ? x : y),
    OPERATOR(atan2, std::atan2(x, y)),
    OPERATOR(hypot, std::sqrt(x* x + y * y)),
    OPERATOR(eq, x == y),
    OPERATOR(ne, x != y),
    OPERATOR(lt, x < y),
    OPERATOR(le, x <= y),
    OPERATOR(gt, x > y),
    OPERATOR(ge, x >= y),
    OPERATOR(logical_and, x != 0 && y != 0),
    OPERATOR(logical_or, x != 0 || y != 0),
    OPERATOR(logical_xor, (x != 0) != (y != 0)),
    OPERATOR(bitwise_and, static_cast<double>(integer(x) & integer(y))),
    OPERATOR(bitwise_or, static_cast<double>(integer(x) | integer(y))),
    OPERATOR(bitwise_xor, static_cast<double>(integer(x) ^ integer(y))),
    OPERATOR(bitwise_left_shift, static_cast<double>(integer(x) * (std::int64_t{1} << integer(y)))),
    OPERATOR(bitwise_right_shift,
             std::floor(x / static_cast<double>(std::int64_t{1} << integer(y))))};
#undef OPERATOR

TEST(Pointwise, BinaryOnEveryScalarType) {
  std::set<std::string> tested, rows;
  for (const PointwiseRow& row : pointwise_table()) {
    if (row.arity == 2) rows.insert(row.name);
  }
  for (const Binary& op : binary_operators) {
    tested.insert(op.name);
    const PointwiseRow& row = row_named(op.name);
    const bool shifts = std::string(op.name).find("shift") != std::string::npos;
    for (int t = 0; t < dtype_count; ++t) {
      const auto dtype = static_cast<DType>(t);
      if (is_complex(dtype)) continue;
      const std::string what = op.name + std::string(" ") + to_string(dtype);
      Values right;  // no zeros but for bool; small
      const Values left = inputs(dtype);
      for (std::size_t i = 0; i < left.size(); ++i) {
        const int small = 1 + static_cast<int>(i) % 3;
        const bool negative = i % 2 == 1 && dtype != DType::uint8 && !shifts &&
                              !(op.name == std::string("pow") && is_integral(dtype));
        right.push_back(dtype == DType::boolean ? static_cast<double>(i / 2 % 2)
                        : negative              ? -small
                                                : small);
      }
      const Tensor x = vector(left, dtype), y = vector(right, dtype);
      if ((row.kinds & kinds::of(dtype)) == 0) {
        EXPECT_THROW(op.op(x, y), TypeError) << what;
        continue;
      }
      const auto check = [&](const Tensor& z, const Values& a, const Values& b) {
        ASSERT_EQ(z.dtype(), expected_dtype(row, dtype)) << what;
        const Values out = doubles(z);
        for (std::size_t i = 0; i < out.size(); ++i) {
          expect_near(out[i], stored(op.f(a[i], b[i]), z.dtype()), 4 * tolerance_of(z.dtype()),
                      what + " of " + std::to_string(a[i]) + " and " + std::to_string(b[i]));
        }
      };
      check(op.op(x, y), doubles(x), doubles(y));
      if (dtype == DType::boolean) {
        check(op.with_number(x, true), doubles(x), Values(left.size(), 1));
        check(op.number_with(false, y), Values(left.size(), 0), doubles(y));
      } else {
        check(op.with_number(x, 2), doubles(x), Values(left.size(), 2));
        check(op.with_number(x, 3), doubles(x), Values(left.size(), 3));
        check(op.number_with(5, y), Values(left.size(), 5), doubles(y));
      }
    }
  }
  EXPECT_EQ(tested, rows);
}

TEST(Pointwise, OperatorsOfTheLanguage) {
  const Tensor x = vector({7, -3, 0}, DType::int32), y = vector({2, -3, 5}, DType::int32);
  EXPECT_EQ(doubles(x + y), (Values{9, -6, 5}));
  EXPECT_EQ(doubles(x % 4), (Values{3, 1, 0}));
  EXPECT_EQ(doubles(7 % y), (Values{1, -2, 2}));
  EXPECT_EQ(doubles(x == y), (Values{0, 1, 0}));
  EXPECT_EQ((x == y).dtype(), DType::boolean);
  EXPECT_EQ(doubles(x != 0), (Values{1, 1, 0}));
  EXPECT_EQ(doubles(3 < x), (Values{1, 0, 0}));
  EXPECT_EQ(doubles(x <= y), (Values{0, 1, 1}));
  EXPECT_EQ(doubles(x > -3), (Values{1, 0, 1}));
  EXPECT_EQ(doubles(x >= y), (Values{1, 1, 0}));
  EXPECT_EQ(doubles(x > 0 && y > 0), (Values{1, 0, 0}));
  EXPECT_EQ(doubles(x || false), (Values{1, 1, 0}));
  EXPECT_EQ(doubles(!x), (Values{0, 0, 1}));
  EXPECT_EQ(doubles(~x), (Values{-8, 2, -1}));
  EXPECT_EQ(doubles((x & 6) | 1), (Values{7, 5, 1}));
  EXPECT_EQ(doubles(x ^ y), (Values{5, 0, 5}));
  EXPECT_EQ(doubles(-5 * x == 2 * y), (Values{0, 0, 0}));
  Tensor z = vector({1, 2, 3});
  const Tensor alias = z;
  z += x;
  z *= 2;
  z -= 1;
  z /= y;
  EXPECT_EQ(doubles(alias), (Values{7.5, 1, 1}));
  z %= 2;
  EXPECT_EQ(doubles(alias), (Values{1.5, 1, 1}));
  Tensor bits = vector({6, 5, 3}, DType::uint8);
  bits &= 5;
  bits |= 2;
  bits ^= 3;
  EXPECT_EQ(doubles(bits), (Values{5, 4, 0}));
}

TEST(Pointwise, Promotion) {
  // One row per left type, in the order of DType: the table of docs/promotion.md.
  const std::string letters = "dfhbzclisauo";
  const std::string rows[dtype_count] = {"ddddzzdddddd", "dfffzcffffff", "dfhfzchhhhhh",
                                         "dffbzcbbbbbb", "zzzzzzzzzzzz", "zccczccccccc",
                                         "dfhbzcllllll", "dfhbzcliiiii", "dfhbzclissss",
                                         "dfhbzclisasa", "dfhbzclissuu", "dfhbzclisauo"};
  for (int a = 0; a < dtype_count; ++a) {
    for (int b = 0; b < dtype_count; ++b) {
      const auto x = static_cast<DType>(a), y = static_cast<DType>(b);
      const auto expected = static_cast<DType>(
          letters.find(rows[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]));
      EXPECT_EQ(promoted_dtype(x, y), expected) << to_string(x) << " " << to_string(y);
      const double left = x == DType::boolean ? 1 : 5, right = y == DType::boolean ? 1 : 3;
      const Tensor sum = Tensor::full({2, 3}, left, x) + Tensor::full({3}, right, y);
      EXPECT_EQ(sum.dtype(), expected);
      EXPECT_EQ(doubles(sum)[5], expected == DType::boolean ? 1 : left + right);
    }
  }
  // A tensor without dimensions takes part like any other.
  EXPECT_EQ((Tensor::full({2}, 1, DType::float32) + Tensor::full({}, 1, DType::float64)).dtype(),
            DType::float64);
  // Nothing is rounded on the way: 2^24 + 1 is no float.
  EXPECT_EQ(doubles(Tensor::full({1}, 16777217, DType::int32) *
                    Tensor::full({1}, 1.0, DType::float64))[0],
            16777217);
  EXPECT_EQ((Tensor::full({1}, 3, DType::int16) / Tensor::full({1}, 2, DType::float32)).dtype(),
            DType::float32);
  EXPECT_EQ(where(Tensor::full({1}, true, DType::boolean), 1, 2.5).dtype(), DType::float64);
  EXPECT_EQ(
      where(Tensor::full({1}, 0.5, DType::float64), Tensor::full({1}, 3, DType::int8), 2).dtype(),
      DType::int8);
}

TEST(Pointwise, ComparisonsWithNumbersOutOfRange) {
  const Tensor bytes = vector({0, 200, 255}, DType::uint8);
  EXPECT_EQ(doubles(bytes < 300), (Values{1, 1, 1}));
  EXPECT_EQ(doubles(-1 < bytes), (Values{1, 1, 1}));
  EXPECT_EQ(doubles(bytes == 256), (Values{0, 0, 0}));
  EXPECT_THROW(bytes + 256, ValueError);
  EXPECT_EQ(doubles(bytes > 199.5), (Values{0, 1, 1}));
}

// What is compared is what a tensor of the common type would hold.
TEST(Pointwise, ComparedNumbersHaveThePrecisionOfTheTensor) {
  for (const DType dtype : {DType::float16, DType::bfloat16, DType::float32}) {
    const Tensor x = Tensor::full({3}, 0.1, dtype);
    EXPECT_EQ(doubles(x == 0.1), (Values{1, 1, 1})) << to_string(dtype);
    EXPECT_EQ(doubles(0.1 <= x), (Values{1, 1, 1}));
    EXPECT_EQ(doubles(x < 0.1), (Values{0, 0, 0}));
    EXPECT_EQ(doubles(clamp(x, 0.2, 0.3)), doubles(Tensor::full({3}, 0.2, dtype)));
  }
}

TEST(Pointwise, IntegersAreCheckedAgainstTheCommonType) {
  const Tensor x = vector({1, 2}, DType::int8);
  EXPECT_EQ(doubles(clamp(x, 2.5, 300)), (Values{2.5, 2.5}));
  EXPECT_EQ(doubles(clamp(x, 300, 302.5)), (Values{300, 300}));
  EXPECT_THROW(clamp(x, 0, 300), ValueError);
}

// The sign of zero says on which side of a branch cut a number is; infinities have limits.
TEST(Pointwise, ComplexEdges) {
  std::vector<Z> values;
  for (double re : {-2.0, -0.0, 0.0, 3.0, inf, -inf, 1e300, 1e-310, nan}) {
    for (double im : {-1.0, -0.0, 0.0, 4.0, inf, -inf, 1e300, 1e-310}) values.emplace_back(re, im);
  }
  std::vector<Kokkos::complex<double>> input(values.begin(), values.end());
  const Tensor x = Tensor::from_vector(input, {static_cast<std::int64_t>(input.size())});
  const auto roots = complexes(sqrt(x)), inverses = complexes(reciprocal(x)),
             quotients = complexes(div(x, std::complex<double>(0.5, -2))),
             ones = complexes(pow(x, 0));
  const auto same = [&](Z got, Z expected, double tolerance, const char* what, std::size_t i) {
    for (auto part : {+[](const Z& z) { return z.real(); }, +[](const Z& z) { return z.imag(); }}) {
      const double g = part(got), e = part(expected);
      const std::string text = std::string(what) + " of " + std::to_string(values[i].real()) + " " +
                               std::to_string(values[i].imag());
      if (std::isnan(e)) {
        EXPECT_TRUE(std::isnan(g)) << text << ": " << g;
      } else if (std::isinf(e)) {
        EXPECT_EQ(g, e) << text;
      } else {
        EXPECT_LE(std::abs(g - e), tolerance * std::abs(expected)) << text << ": " << g << " " << e;
        if (e == 0) {
          EXPECT_EQ(std::signbit(g), std::signbit(e)) << text;
        }
      }
    }
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    same(roots[i], std::sqrt(values[i]), 1e-15, "sqrt", i);
    EXPECT_EQ(ones[i], Z(1, 0));
    if (std::isnan(values[i].real())) continue;
    const bool infinite = std::isinf(values[i].real()) || std::isinf(values[i].imag());
    if (infinite) {
      EXPECT_EQ(inverses[i], Z(0, 0));
      EXPECT_TRUE(std::isinf(quotients[i].real()) || std::isinf(quotients[i].imag()));
    } else if (std::abs(values[i]) > 1e-300) {
      same(inverses[i], Z(1) / values[i], 4e-16, "1 over", i);
      same(quotients[i], values[i] / Z(0.5, -2), 4e-16, "quotient", i);
    }
  }
}

TEST(Pointwise, SpecialValues) {
  const Tensor x = vector({nan, inf, -inf, -0.0, 2});
  const auto expect = [](const Tensor& t, const Values& expected) {
    const Values out = doubles(t);
    for (std::size_t i = 0; i < out.size(); ++i)
      expect_near(out[i], expected[i], 0, std::to_string(i));
  };
  expect(isnan(x), {1, 0, 0, 0, 0});
  expect(isinf(x), {0, 1, 1, 0, 0});
  expect(isfinite(x), {0, 0, 0, 1, 1});
  expect(isnan(vector({nan, 1}, DType::float16)), {1, 0});
  expect(isinf(vector({inf, 65504}, DType::float16)), {1, 0});
  expect(sign(x), {nan, 1, -1, 0, 1});
  expect(relu(x), {nan, inf, 0, 0, 2});
  expect(maximum(x, 1), {nan, inf, 1, 1, 2});
  expect(maximum(1, x), {nan, inf, 1, 1, 2});
  expect(minimum(x, vector({1, nan, 1, 1, nan})), {nan, nan, -inf, -0.0, nan});
  expect(clamp(x, -1, 1), {nan, 1, -1, 0, 1});
  expect(clamp(x, nan, 1), {nan, nan, nan, nan, nan});
  expect(clamp(x, 5, 3), {nan, 3, 3, 3, 3});
  expect(x == x, {0, 1, 1, 1, 1});
  expect(x != x, {1, 0, 0, 0, 0});
  expect(x <= x, {0, 1, 1, 1, 1});
  expect(x / 0, {nan, inf, -inf, nan, inf});
  expect(floor_div(x, 0), {nan, inf, -inf, nan, inf});
  expect(remainder(x, 0), {nan, nan, nan, nan, nan});
  expect(remainder(x, 3), {nan, nan, nan, 0, 2});
  expect(round(vector({0.5, 1.5, 2.5, -0.5, -1.5})), {0, 2, 2, 0, -2});
  expect(sqrt(x), {nan, inf, nan, 0, std::sqrt(2.0)});
  expect(softplus(vector({1000, -1000})), {1000, 0});
  expect(sigmoid(vector({1000, -1000})), {1, 0});
  expect(where(isnan(x), 0, x), {0, inf, -inf, 0, 2});
  expect(pow(x, 0), {1, 1, 1, 1, 1});
  expect(logical_not(x), {0, 0, 0, 1, 0});
  expect(floor_div(vector({-7, 7, -7, 1}), vector({2, -2, -2, 0.1})), {-4, -4, 3, 9});
  EXPECT_TRUE(std::signbit(doubles(sqrt(x))[3]));
  EXPECT_TRUE(std::signbit(doubles(-vector({0.0}))[0]));
  EXPECT_TRUE(std::signbit(doubles(remainder(vector({4}), -2))[0]));
}

TEST(Pointwise, IntegersNeverTrap) {
  const auto check = [](DType dtype, std::int64_t lowest) {
    const Tensor low = Tensor::full({3}, lowest, dtype);
    const Tensor divisors = vector({0, -1, 2}, dtype);
    const auto low_value = static_cast<double>(lowest);
    EXPECT_EQ(doubles(floor_div(low, divisors)), (Values{0, low_value, low_value / 2}));
    EXPECT_EQ(doubles(remainder(low, divisors)), (Values{0, 0, 0}));
    EXPECT_EQ(doubles(fmod(low, divisors)), (Values{0, 0, 0}));
    EXPECT_EQ(doubles(abs(low))[0], low_value);
    EXPECT_EQ(doubles(-low)[0], low_value);
    EXPECT_EQ(doubles(square(low))[0], 0);
    EXPECT_EQ(doubles(pow(low, 3))[0], 0);
  };
  check(DType::int8, -128);
  check(DType::int16, -32768);
  check(DType::int32, std::numeric_limits<std::int32_t>::min());
  check(DType::int64, std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(doubles(floor_div(vector({5}, DType::uint8), 0))[0], 0);
  EXPECT_EQ(doubles(pow(vector({2, 1, -1, -1, 0}, DType::int32),
                        vector({-1, -5, -3, -2, -1}, DType::int32))),
            (Values{0, 1, -1, 1, 0}));
  EXPECT_EQ(doubles(pow(vector({3}, DType::uint8), 5))[0], 243);
  EXPECT_EQ(doubles(pow(vector({3}, DType::uint8), 6))[0], 729 % 256);
  const Tensor shifts = vector({-1, 7, 8, 31, 100}, DType::int8);
  EXPECT_EQ(doubles(bitwise_left_shift(Tensor::full({5}, 1, DType::int8), shifts)),
            (Values{0, -128, 0, 0, 0}));
  EXPECT_EQ(doubles(bitwise_right_shift(Tensor::full({5}, -128, DType::int8), shifts)),
            (Values{-1, -1, -1, -1, -1}));
  EXPECT_EQ(doubles(bitwise_left_shift(Tensor::full({2}, 1, DType::int64),
                                       vector({63, 64}, DType::int64))),
            (Values{-0x1p63, 0}));
}

TEST(Pointwise, OperatorsOfThreeOperands) {
  const Tensor x = vector({1, -2, 3, 8}), y = vector({4, 5, -6, 1}), z = vector({0.5, 2, -1, 4});
  EXPECT_EQ(doubles(addcmul(x, y, z)), (Values{3, 8, 9, 12}));
  EXPECT_EQ(doubles(addcmul(x, y, z, -2)), (Values{-3, -22, -9, 0}));
  EXPECT_EQ(doubles(addcdiv(x, y, z, 2)), (Values{17, 3, 15, 8.5}));
  EXPECT_EQ(doubles(addcdiv(vector({1}, DType::int32), vector({1}, DType::int32),
                            vector({2}, DType::int32)))[0],
            1.5);
  EXPECT_EQ(doubles(lerp(x, y, 0.25)), (Values{1.75, -0.25, 0.75, 6.25}));
  EXPECT_EQ(doubles(lerp(x, y, vector({0, 1, 0.5, 2}))), (Values{1, 5, -1.5, -6}));
  EXPECT_EQ(doubles(lerp(vector({0.1}), vector({0.3}), 1))[0], 0.3);
  EXPECT_EQ(doubles(where(x > 0, x, y)), (Values{1, 5, 3, 8}));
  EXPECT_EQ(doubles(where(x, 1, vector({2}))), (Values{1, 1, 1, 1}));
  EXPECT_EQ(doubles(where(x > y, 10, z)), (Values{0.5, 2, 10, 10}));
  EXPECT_EQ(doubles(where(x > y, z, -1)), (Values{-1, -1, -1, 4}));
  EXPECT_EQ(where(x > y, vector({1}, DType::int8), vector({2}, DType::bfloat16)).dtype(),
            DType::bfloat16);
  EXPECT_EQ(doubles(clamp(x, 0, 5)), (Values{1, 0, 3, 5}));
  EXPECT_EQ(doubles(clamp(x, std::nullopt, 2)), (Values{1, -2, 2, 2}));
  EXPECT_EQ(doubles(clamp(x, 2)), (Values{2, 2, 3, 8}));
  EXPECT_EQ(doubles(clamp(x, z, y)), (Values{1, 2, -6, 1}));
  EXPECT_THROW(clamp(x, std::nullopt), ValueError);
  EXPECT_THROW(lerp(vector({1}, DType::int32), vector({2}, DType::int32), 1), TypeError);
  for (DType dtype : {DType::float32, DType::float16, DType::bfloat16, DType::int64, DType::int32,
                      DType::int16, DType::int8}) {
    EXPECT_EQ(doubles(addcmul(x.to(dtype), y.to(dtype), y.to(dtype))), (Values{17, 23, 39, 9}));
    EXPECT_EQ(doubles(clamp(x.to(dtype), 0, 5)), (Values{1, 0, 3, 5}));
    EXPECT_EQ(doubles(where(x > 0, x.to(dtype), y.to(dtype))), (Values{1, 5, 3, 8}));
  }
}

// Views of every kind: dense, reversed dimensions, every second element, one element for all.
std::vector<Tensor> views(const Tensor& t) {
  std::vector<Tensor> result{t};
  Tensor reversed = Tensor::empty({t.shape()[1], t.shape()[0]}, t.dtype()).transpose(0, 1);
  reversed.copy_from(t);
  result.push_back(reversed);
  const Tensor outer = Tensor::zeros({2 * t.shape()[0], 3 * t.shape()[1] + 1}, t.dtype());
  const Tensor inner =
      outer.as_strided(t.shape(), {2 * outer.strides()[0], 3 * outer.strides()[1]}, 1);
  inner.copy_from(t);
  result.push_back(inner);
  return result;
}

// Sizes around those of blocks and tiles; conversions with every kind of stride.
TEST(Pointwise, StridesSizesAndConversions) {
  for (const Shape& shape : {Shape{1, 1}, Shape{33, 70}, Shape{3, 1025}, Shape{1025, 3},
                             Shape{257, 300}, Shape{0, 5}, Shape{2, 70000}, Shape{70000, 2}}) {
    Values a(static_cast<std::size_t>(shape.product())), b = a;
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<double>(i % 113) - 50;
      b[i] = static_cast<double>(i % 61) - 7;
    }
    const Tensor x = Tensor::from_vector(a, shape), y = Tensor::from_vector(b, shape);
    const Tensor row =
        Tensor::from_vector(b, shape).narrow(0, 0, std::min<std::int64_t>(1, shape[0]));
    const bool has_row = shape[0] > 0;
    for (const Tensor& u : views(x)) {
      for (const Tensor& v0 : views(y)) {
        for (DType dtype : {DType::float64, DType::float32, DType::int8}) {
          const Tensor v = dtype == DType::float64 ? v0 : v0.to(dtype);
          const Values out = doubles(u - v);
          const Values with_row = has_row ? doubles(u - row.to(dtype)) : Values();
          const Values with_column = doubles(u - v.narrow(1, 0, 1));
          for (std::size_t i = 0; i < a.size(); ++i) {
            const std::size_t in_row = i % static_cast<std::size_t>(shape[1]);
            ASSERT_EQ(with_column[i], a[i] - b[i - in_row]) << to_string(shape) << " " << i;
            ASSERT_EQ(out[i], a[i] - b[i]) << to_string(shape) << " " << i;
            ASSERT_EQ(with_row[i], a[i] - b[in_row]) << to_string(shape) << " " << i;
          }
        }
      }
      for (const Tensor& target : views(y)) {
        const Tensor kept = target.clone();
        sub_(target, u);
        const Values out = doubles(target);
        for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(out[i], b[i] - a[i]);
        copy_(target, kept);
      }
    }
  }
  const Tensor none = Tensor::zeros({0, 3}, DType::float32);
  EXPECT_EQ((none + Tensor::zeros({3}, DType::int32)).shape(), (Shape{0, 3}));
  EXPECT_EQ(doubles(exp(Tensor::full({}, 0, DType::int8))), (Values{1}));
  EXPECT_EQ((Tensor::full({}, 2, DType::float64) * Tensor::full({1, 1}, 3, DType::float64)).shape(),
            (Shape{1, 1}));
}

TEST(Pointwise, InPlace) {
  Tensor x = vector({4, 9, 16});
  const void* memory = x.data();
  EXPECT_EQ(sqrt_(x).data(), memory);
  EXPECT_EQ(doubles(x), (Values{2, 3, 4}));
  mul_(add_(x, 1), vector({2}, DType::int32));
  EXPECT_EQ(doubles(x), (Values{6, 8, 10}));
  clamp_(x, 7, 9);
  EXPECT_EQ(doubles(x), (Values{7, 8, 9}));
  clamp_(x, std::nullopt, 8);
  lerp_(x, vector({0, 0, 0}), 0.5);
  EXPECT_EQ(doubles(x), (Values{3.5, 4, 4}));
  addcmul_(x, x, x);
  EXPECT_EQ(doubles(x), (Values{15.75, 20, 20}));
  addcdiv_(x, x, x, -1);
  EXPECT_EQ(doubles(x), (Values{14.75, 19, 19}));
  pow_(fill_(x, -3), 2);
  EXPECT_EQ(doubles(x), (Values{9, 9, 9}));
  EXPECT_EQ(doubles(zero_(x)), (Values{0, 0, 0}));
  Tensor half = vector({1, 2, 3}, DType::bfloat16);
  add_(half, vector({0.5, 1, -3}, DType::bfloat16));
  exp_(mul_(half, 0));
  EXPECT_EQ(doubles(half), (Values{1, 1, 1}));
  // Broadcast, converted, from itself.
  Tensor m = Tensor::from_vector(Values{1, 2, 3, 4}, {2, 2});
  copy_(m, m.transpose(0, 1));
  EXPECT_EQ(doubles(m), (Values{1, 3, 2, 4}));
  add_(m, m.transpose(0, 1));
  EXPECT_EQ(doubles(m), (Values{2, 5, 5, 8}));
  const Tensor line = vector({1, 2, 3, 4, 5});
  add_(line.narrow(0, 1, 4), line.narrow(0, 0, 4));
  EXPECT_EQ(doubles(line), (Values{1, 3, 5, 7, 9}));
  copy_(m, vector({7, 6}, DType::int8));
  EXPECT_EQ(doubles(m), (Values{7, 6, 7, 6}));
  m.narrow(0, 1, 1) -= 6;
  EXPECT_EQ(doubles(m), (Values{7, 6, 1, 0}));
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

// Tensors on the same memory that lie otherwise, and elements that share memory.
TEST(Pointwise, CopiesThroughSharedMemory) {
  const Tensor m = vector({1, 2, 3, 4, 5, 6, 7, 8, 9}).reshape({3, 3});
  const Tensor again =
      Tensor::from_blob(m.data(), {3, 3}, {1, 3}, DType::float64, m.device(), nullptr);
  copy_(again, m);
  EXPECT_EQ(doubles(m), (Values{1, 4, 7, 2, 5, 8, 3, 6, 9}));
  const Tensor one = vector({5});
  EXPECT_THROW(copy_(expand(one, {3}), vector({1, 2, 3})), ValueError);
  EXPECT_THROW(add_(expand(one, {3}), 1), ValueError);
  EXPECT_THROW(fill_(vector({1, 2}, DType::int8), 300), ValueError);
  EXPECT_EQ(doubles(one), (Values{5}));
}

TEST(Pointwise, Errors) {
  Tensor x = vector({1, 2, 3}), whole = vector({1, 2, 3}, DType::int32);
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  std::string text = given_of(ErrorKind::type, [&] { whole += 0.5; });
  has(text, "add_");
  has(text, "int32");
  has(text, "float64");
  given_of(ErrorKind::type, [&] { div_(whole, 2); });
  given_of(ErrorKind::type, [&] { sqrt_(whole); });
  given_of(ErrorKind::type, [&] { abs_(Tensor::full({1}, Z(1, 2), DType::complex64)); });
  has(given_of(ErrorKind::value,
               [&] {
                 add_(x, Tensor::zeros({2, 3}, DType::float64));
               }),
      "(2, 3)");
  given_of(ErrorKind::value, [&] { add_(vector({1}), x); });
  has(given_of(ErrorKind::value, [&] { mul_(x, vector({1, 2})); }), "mul_");
  given_of(ErrorKind::value, [&] { add_(x.as_strided({2, 3}, {0, 1}, 0), 1); });
  given_of(ErrorKind::value, [&] { add_(x.as_strided({2, 2}, {1, 1}, 0), 1); });
  given_of(ErrorKind::value, [&] { copy_(x, Tensor::zeros({2, 3}, DType::float64)); });
  given_of(ErrorKind::value, [&] { copy_(x, vector({1, 2})); });
  has(given_of(ErrorKind::type, [&] { Tensor::full({1}, Z(1, 2), DType::complex64) < 1; }),
      "complex64");
  given_of(ErrorKind::type, [&] { vector({1}, DType::int32) < Z(1, 2); });
  given_of(ErrorKind::type, [&] { bitwise_and(x, x); });
  given_of(ErrorKind::value, [&] { where(x, x, vector({1, 2})); });
  given_of(ErrorKind::state, [&] { Tensor() + 1; });
  EXPECT_EQ(doubles(x), (Values{1, 2, 3}));
  EXPECT_EQ(doubles(whole), (Values{1, 2, 3}));
}

}  // namespace
}  // namespace dtensor
