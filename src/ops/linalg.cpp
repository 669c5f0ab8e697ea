// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/linalg.hpp"

#include <fmt/format.h>

#include <cmath>

#include "contraction.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/einsum.hpp"
#include "dtensor/ops/local/matmul.hpp"
#include "dtensor/ops/pointwise.hpp"
#include "dtensor/ops/promotion.hpp"
#include "shape_primitives.hpp"

namespace dtensor::detail {

namespace {

[[noreturn]] void throw_shapes(const char* name, const Shape& a, const Shape& b,
                               const char* expected) {
  throw ValueError(name, fmt::format("shapes {} and {}", to_string(a), to_string(b)), expected);
}

template <class T>
void check_ranks(const char* name, const T& a, const T& b, int rank, const char* expected) {
  if (a.dim() != rank || b.dim() != rank) throw_shapes(name, a.shape(), b.shape(), expected);
}

constexpr const char* matrices = "matrices (m, k) and (k, n) with equal k";

template <class T>
T product(const char* name, const T& a, const T& b) {
  static const Contraction flat[2][2] = {{{"k", "k", ""}, {"k", "kn", "n"}},
                                         {{"mk", "k", "m"}, {"mk", "kn", "mn"}}};
  static constexpr const char* batched[2][2] = {{"", "k,...kn->...n"},
                                                {"...mk,k->...m", "...mk,...kn->...mn"}};
  common_dtype(name, a.dtype(), b.dtype());
  const Shape &x = a.shape(), &y = b.shape();
  const bool fits = x.size() > 0 && y.size() > 0 && x[x.size() - 1] == y[std::max(y.size() - 2, 0)];
  bool broadcasts = fits;
  for (int d = 3; fits && d <= std::min(x.size(), y.size()); ++d) {
    const std::int64_t m = x[x.size() - d], n = y[y.size() - d];
    broadcasts &= m == n || m == 1 || n == 1;
  }
  if (!broadcasts) {
    throw_shapes(name, x, y,
                 "matrices or vectors, (..., m, k) and (..., k, n), with equal k and other "
                 "dimensions that can be broadcast");
  }
  const int i = x.size() > 1, j = y.size() > 1;
  if (x.size() <= 2 && y.size() <= 2) return contract(name, flat[i][j], a, b);
  return einsum(name, batched[i][j], std::vector<T>{a, b});
}

template <class T>
T batch_product(const T& a, const T& b) {
  static const Contraction contraction("bmk", "bkn", "bmn");
  constexpr const char* expected = "batches of matrices (b, m, k) and (b, k, n) with equal b and k";
  common_dtype("bmm", a.dtype(), b.dtype());
  check_ranks("bmm", a, b, 3, expected);
  if (a.shape()[0] != b.shape()[0] || a.shape()[2] != b.shape()[1]) {
    throw_shapes("bmm", a.shape(), b.shape(), expected);
  }
  return contract("bmm", contraction, a, b);
}

template <class T>
T inner_product(const T& a, const T& b) {
  check_ranks("dot", a, b, 1, "vectors of equal length");
  return product("dot", a, b);
}

template <class T>
T outer_product(const T& a, const T& b) {
  static const Contraction contraction("m", "n", "mn");
  common_dtype("outer", a.dtype(), b.dtype());
  check_ranks("outer", a, b, 1, "two vectors");
  return contract("outer", contraction, a, b);
}

template <class T>
T diagonal_sum(const T& a) {
  static const Reordering sum("a", "");
  if (a.dim() != 2 || a.shape()[0] != a.shape()[1]) {
    throw ValueError("trace", fmt::format("shape {}", to_string(a.shape())), "a square matrix");
  }
  return reorder("trace", sum, diagonal("trace", a, 0, 1));
}

bool is_equal(const Scalar& number, double value) {
  const auto z = number.to<Kokkos::complex<double>>();
  return z.real() == value && z.imag() == 0;
}
bool is_finite(const Scalar& number) {
  const auto z = number.to<Kokkos::complex<double>>();
  return std::isfinite(z.real()) && std::isfinite(z.imag());
}
bool is_zero(const Scalar& number) { return is_equal(number, 0); }

void check_addmm(const Shape& bias, DType bias_dtype, const Shape& a, DType a_dtype, const Shape& b,
                 DType b_dtype, const Scalar& beta, const Scalar& alpha) {
  const DType dtype = common_dtype("addmm", common_dtype("addmm", a_dtype, b_dtype), bias_dtype);
  for (const Scalar& factor : {beta, alpha}) {
    if (is_zero(factor) || is_equal(factor, 1)) continue;
    if (common_dtype("addmm", dtype, factor) == dtype) continue;
    throw TypeError(
        "addmm",
        fmt::format("the factor {} for tensors of {}", to_string(factor), to_string(dtype)),
        "factors that the tensors' scalar type can hold");
  }
  if (a.size() != 2 || b.size() != 2 || a[1] != b[0]) throw_shapes("addmm", a, b, matrices);
  const Shape product{a[0], b[1]};
  bool fits = bias.size() <= 2;
  for (int d = 1; fits && d <= bias.size(); ++d) {
    const std::int64_t extent = bias[bias.size() - d];
    fits = extent == 1 || extent == product[2 - d];
  }
  if (!fits) {
    throw_shapes("addmm", bias, product, "a bias that can be broadcast to the product's shape");
  }
}

// Whether a bias runs along a dimension of the product, instead of being the same all along it.
bool runs_along(const Shape& bias, const Shape& product, int dim) {
  const int d = dim - (product.size() - bias.size());
  return d >= 0 && bias[d] == product[dim];
}

// Without the dimensions that it does not run along, and of what rule it then is an input.
struct Bias {
  bool rows, columns;

  Bias(const Shape& bias, const Shape& product)
      : rows(runs_along(bias, product, 0)), columns(runs_along(bias, product, 1)) {}

  template <class T>
  T squeezed(const T& bias, const Shape& product) const {
    Shape shape;
    if (rows) shape.push_back(product[0]);
    if (columns) shape.push_back(product[1]);
    return bias.shape() == shape ? bias : reshaped("addmm", bias, shape, true);
  }
  const Rule& rule() const {
    // Linear in the bias together with a factor; an average takes the others as they are.
    static const auto make = [](const char* equation) {
      constexpr std::uint32_t average = PartialPass::bit(ReduceOp::avg);
      return Rule(equation,
                  {linear_in({0, 1}), linear_in({0, 2}), {1, average}, {2, average}, {4, average}});
    };
    static const Rule rules[2][2] = {{make("+,mk,kn->mn"), make("+n,mk,kn->mn")},
                                     {make("+m,mk,kn->mn"), make("+mn,mk,kn->mn")}};
    return rules[rows][columns];
  }
  Tensor broadcast(const Tensor& squeezed, const Shape& product) const {
    const Extents& strides = squeezed.strides();
    return squeezed.as_strided(product,
                               {rows ? strides[0] : 0, columns ? strides[strides.size() - 1] : 0},
                               squeezed.storage_offset());
  }
};

Tensor add_product(const Tensor* bias, const Bias& form, const Tensor& a, const Tensor& b,
                   const Scalar& beta, const Scalar& alpha) {
  const Tensor result = Tensor::empty({a.shape()[0], b.shape()[1]}, a.dtype(), a.device());
  if (bias) result.copy_from(form.broadcast(*bias, result.shape()));
  gemm(alpha, a, b, bias ? beta : Scalar(0), result);
  return result;
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) { return product("matmul", a, b); }
DTensor matmul(const DTensor& a, const DTensor& b) { return product("matmul", a, b); }

Tensor mm(const Tensor& a, const Tensor& b) {
  check_ranks("mm", a, b, 2, matrices);
  return product("mm", a, b);
}
DTensor mm(const DTensor& a, const DTensor& b) {
  check_ranks("mm", a, b, 2, matrices);
  return product("mm", a, b);
}

Tensor bmm(const Tensor& a, const Tensor& b) { return batch_product(a, b); }
DTensor bmm(const DTensor& a, const DTensor& b) { return batch_product(a, b); }
Tensor dot(const Tensor& a, const Tensor& b) { return inner_product(a, b); }
DTensor dot(const DTensor& a, const DTensor& b) { return inner_product(a, b); }
Tensor outer(const Tensor& a, const Tensor& b) { return outer_product(a, b); }
DTensor outer(const DTensor& a, const DTensor& b) { return outer_product(a, b); }
Tensor trace(const Tensor& a) { return diagonal_sum(a); }
DTensor trace(const DTensor& a) { return diagonal_sum(a); }

Tensor addmm(const Tensor& bias, const Tensor& a, const Tensor& b, const Scalar& beta,
             const Scalar& alpha) {
  check_addmm(bias.shape(), bias.dtype(), a.shape(), a.dtype(), b.shape(), b.dtype(), beta, alpha);
  check_same_memory("addmm", a, b);
  check_same_memory("addmm", a, bias);
  const Shape product{a.shape()[0], b.shape()[1]};
  const Bias form(bias.shape(), product);
  const Tensor squeezed = form.squeezed(bias, product);
  return add_product(is_zero(beta) ? nullptr : &squeezed, form, a, b, beta, alpha);
}

DTensor addmm(const DTensor& bias, const DTensor& a, const DTensor& b, const Scalar& beta,
              const Scalar& alpha) {
  static const Rule without_bias("mk,kn->mn", in_each());
  check_addmm(bias.shape(), bias.dtype(), a.shape(), a.dtype(), b.shape(), b.dtype(), beta, alpha);
  if (!is_finite(alpha) || !is_finite(beta)) {
    // An infinite factor times contributions of different signs is NaN, times their sum it is not.
    const DTensor scaled = dtensor::mul(dtensor::mm(a, b), alpha);
    return is_zero(beta) ? scaled : dtensor::add(scaled, dtensor::mul(bias, beta));
  }
  const Shape product{a.shape()[0], b.shape()[1]};
  const Bias form(bias.shape(), product);
  if (is_zero(beta)) {
    return dispatch({"addmm", without_bias, a.dtype()}, {a, b},
                    [&](Locals x) { return add_product(nullptr, form, x[0], x[1], beta, alpha); });
  }
  return dispatch({"addmm", form.rule(), a.dtype()}, {form.squeezed(bias, product), a, b},
                  [&](Locals x) { return add_product(&x[0], form, x[1], x[2], beta, alpha); });
}

}  // namespace dtensor::detail
