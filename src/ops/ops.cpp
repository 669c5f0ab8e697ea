// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/ops.hpp"

#include <fmt/format.h>

#include <numeric>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/promotion.hpp"

namespace dtensor {

namespace {

using Locals = std::vector<Tensor>;

// Sums of integers wrap around, and a conversion of the wrapped sum is not the sum of conversions:
// an operator that converts integers is linear in nothing. (Contributions of bool are combined by
// "or", so the same holds for them.)
PartialPasses unless_converted(DType from, DType to, PartialPasses passes) {
  const bool exact = from == to || is_floating(from) || is_complex(from);
  return exact ? std::move(passes) : not_linear();
}

DTensor binary(const char* name, const DTensor& a, const DTensor& b, DType result,
               const PartialPasses& passes, Tensor (*kernel)(const Tensor&, const Tensor&)) {
  const Rule rule =
      Rule::pointwise({a.dim(), b.dim()}, unless_converted(a.dtype(), result, passes));
  return dispatch({name, rule, result}, {a, b},
                  [&](const Locals& x) { return kernel(x[0], x[1]); });
}

template <class Kernel>
DTensor unary(const char* name, const DTensor& a, DType result, const PartialPasses& passes,
              const Kernel& kernel) {
  const Rule rule = Rule::pointwise({a.dim()}, unless_converted(a.dtype(), result, passes));
  return dispatch({name, rule, result}, {a}, [&](const Locals& x) { return kernel(x[0]); });
}

// Which operators are linear in what.
PartialPasses in_the_only_input() { return {linear_in({0})}; }
PartialPasses in_both_together() { return {linear_in({0, 1})}; }
PartialPasses in_each() { return {linear_in({0}), linear_in({1})}; }

DType quotient_dtype(const DTensor& a, const Scalar& number) {
  return common_dtype("div", fractional_dtype(a.dtype()), number);
}

DTensor reduce(const char* name, const DTensor& a, const std::vector<bool>& reduced, bool keepdim,
               bool averages) {
  std::string input, output;
  std::int64_t divisor = 1;
  for (int d = 0; d < a.dim(); ++d) {
    const char letter = static_cast<char>('a' + d);
    const bool is_reduced = reduced[static_cast<std::size_t>(d)];
    input += letter;
    if (!is_reduced) {
      output += letter;
    } else if (keepdim) {
      output += '1';
    }
    if (is_reduced && averages) divisor *= a.shape()[d];
  }
  const DType result = averages ? fractional_dtype(a.dtype()) : sum_dtype(a.dtype());
  const Rule rule(input + "->" + output, unless_converted(a.dtype(), result, in_the_only_input()));
  return dispatch({name, rule, result}, {a}, [&](const Locals& x) {
    return detail::scaled_sum(x[0], reduced, keepdim, result, divisor);
  });
}

std::vector<bool> all_dims(const DTensor& a) {
  return std::vector<bool>(static_cast<std::size_t>(a.dim()), true);
}

}  // namespace

DTensor add(const DTensor& a, const DTensor& b) {
  return binary("add", a, b, common_dtype("add", a.dtype(), b.dtype()), in_both_together(), add);
}
DTensor add(const DTensor& a, const Scalar& b) {
  return unary("add", a, common_dtype("add", a.dtype(), b), not_linear(),
               [&](const Tensor& x) { return add(x, b); });
}

DTensor sub(const DTensor& a, const DTensor& b) {
  refuse_bool("sub", a.dtype());
  return binary("sub", a, b, common_dtype("sub", a.dtype(), b.dtype()), in_both_together(), sub);
}
DTensor sub(const DTensor& a, const Scalar& b) {
  const DType result = common_dtype("sub", a.dtype(), b);
  refuse_bool("sub", result);
  return unary("sub", a, result, not_linear(), [&](const Tensor& x) { return sub(x, b); });
}
DTensor sub(const Scalar& a, const DTensor& b) {
  const DType result = common_dtype("sub", b.dtype(), a);
  refuse_bool("sub", result);
  return unary("sub", b, result, not_linear(), [&](const Tensor& x) { return sub(a, x); });
}

DTensor mul(const DTensor& a, const DTensor& b) {
  return binary("mul", a, b, common_dtype("mul", a.dtype(), b.dtype()), in_each(), mul);
}
DTensor mul(const DTensor& a, const Scalar& b) {
  return unary("mul", a, common_dtype("mul", a.dtype(), b), in_the_only_input(),
               [&](const Tensor& x) { return mul(x, b); });
}

DTensor div(const DTensor& a, const DTensor& b) {
  return binary("div", a, b, fractional_dtype(common_dtype("div", a.dtype(), b.dtype())),
                {linear_in({0})}, div);
}
DTensor div(const DTensor& a, const Scalar& b) {
  return unary("div", a, quotient_dtype(a, b), in_the_only_input(),
               [&](const Tensor& x) { return div(x, b); });
}
DTensor div(const Scalar& a, const DTensor& b) {
  return unary("div", b, quotient_dtype(b, a), not_linear(),
               [&](const Tensor& x) { return div(a, x); });
}

DTensor sqrt(const DTensor& a) {
  return unary("sqrt", a, fractional_dtype(a.dtype()), not_linear(),
               [](const Tensor& x) { return sqrt(x); });
}
DTensor neg(const DTensor& a) {
  refuse_bool("neg", a.dtype());
  return unary("neg", a, a.dtype(), in_the_only_input(), [](const Tensor& x) { return neg(x); });
}

DTensor sum(const DTensor& a) { return reduce("sum", a, all_dims(a), false, false); }
DTensor sum(const DTensor& a, const std::vector<std::int64_t>& dims, bool keepdim) {
  return reduce("sum", a, detail::reduced_dims("sum", dims, a.dim()), keepdim, false);
}
DTensor mean(const DTensor& a) { return reduce("mean", a, all_dims(a), false, true); }
DTensor mean(const DTensor& a, const std::vector<std::int64_t>& dims, bool keepdim) {
  return reduce("mean", a, detail::reduced_dims("mean", dims, a.dim()), keepdim, true);
}

DTensor matmul(const DTensor& a, const DTensor& b) {
  static const Rule rules[2][2] = {{Rule("k,k->", in_each()), Rule("k,kn->n", in_each())},
                                   {Rule("mk,k->m", in_each()), Rule("mk,kn->mn", in_each())}};
  detail::check_matmul(a.shape(), a.dtype(), b.shape(), b.dtype());
  return dispatch({"matmul", rules[a.dim() - 1][b.dim() - 1], a.dtype()}, {a, b},
                  [](const Locals& x) { return matmul(x[0], x[1]); });
}

DTensor transpose(const DTensor& a, std::int64_t dim0, std::int64_t dim1) {
  const int d0 = normalize_dim("transpose", dim0, a.dim());
  const int d1 = normalize_dim("transpose", dim1, a.dim());
  std::string letters(static_cast<std::size_t>(a.dim()), ' ');
  std::iota(letters.begin(), letters.end(), 'a');
  std::string exchanged = letters;
  std::swap(exchanged[static_cast<std::size_t>(d0)], exchanged[static_cast<std::size_t>(d1)]);
  Extents strides = a.stride();
  std::swap(strides[d0], strides[d1]);
  const Rule rule(letters + "->" + exchanged, moves_elements());
  return dispatch({"transpose", rule, a.dtype(), strides}, {a},
                  [&](const Locals& x) { return x[0].transpose(d0, d1); });
}

namespace detail {
void throw_mixed(const char* function) {
  throw TypeError(function, "a Tensor and a DTensor",
                  "two DTensors, or two Tensors: make a DTensor of the Tensor with "
                  "distribute_tensor (a whole tensor) or from_local (a part of one), or take "
                  "to_local() of the DTensor");
}
}  // namespace detail

}  // namespace dtensor
