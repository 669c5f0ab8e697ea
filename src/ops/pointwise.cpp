// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/pointwise.hpp"

#include "dtensor/core/error.hpp"
#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/promotion.hpp"

namespace dtensor {

namespace {

DTensor binary(const char* name, const DTensor& a, const DTensor& b, DType result,
               const PartialPasses& passes, Tensor (*kernel)(const Tensor&, const Tensor&)) {
  const Rule rule =
      Rule::pointwise({a.dim(), b.dim()}, unless_converted(a.dtype(), result, passes));
  return dispatch({name, rule, result}, {a, b}, [&](Locals x) { return kernel(x[0], x[1]); });
}

template <class Kernel>
DTensor unary(const char* name, const DTensor& a, DType result, const PartialPasses& passes,
              const Kernel& kernel) {
  const Rule rule = Rule::pointwise({a.dim()}, unless_converted(a.dtype(), result, passes));
  return dispatch({name, rule, result}, {a}, [&](Locals x) { return kernel(x[0]); });
}

DType quotient_dtype(const DTensor& a, const Scalar& number) {
  return common_dtype("div", fractional_dtype(a.dtype()), number);
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

}  // namespace dtensor
