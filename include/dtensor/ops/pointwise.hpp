// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Operators that work element by element, on `Tensor` and `DTensor` alike.
///
/// Operands are broadcast as in NumPy: dimensions are aligned from the last one, and an extent of 1
/// stands for any. Scalar types are promoted (docs/promotion.md); a number takes its tensor's type
/// unless it is of a higher kind. Results are new, row-major tensors. Integers wrap around. Names
/// and meaning are those of PyTorch.
///
/// `TypeError` for a scalar type that the operator does not take, and for a Tensor with a DTensor;
/// `ValueError` for shapes that do not fit and for an integer that its tensor's type cannot hold;
/// `LayoutError` for different meshes. All ranks find the same, before anything is communicated.
///
/// On DTensors: contributions (Partial) are handed on where that is exact (docs/operators.md), else
/// reduced first. Collective over the mesh when an input has to be redistributed and that
/// communicates, local otherwise.
///
/// A name that ends in an underscore works in place: the first operand takes the result, and no
/// part of it moves. Other operands may. `LayoutError` when its placements would have to change,
/// `TypeError` when its scalar type would, `ValueError` when its shape would; nothing is changed
/// then.
#pragma once

#include <optional>

#include "dtensor/ops/any_tensor.hpp"
#include "dtensor/ops/local/pointwise.hpp"

namespace dtensor {

namespace detail {
DTensor pointwise(PointwiseOp op, const Operands<DTensor>& operands, const char* name = nullptr);
void pointwise_in_place(PointwiseOp op, const Operands<DTensor>& operands,
                        const char* name = nullptr);

Tensor to(const char* function, const Tensor& a, DType dtype);
DTensor to(const char* function, const DTensor& a, DType dtype);
void fill(const Tensor& a, const Scalar& value);
void fill(const DTensor& a, const Scalar& value);
void copy(const Tensor& to, const Tensor& from);
void copy(const DTensor& to, const DTensor& from);

// The bounds that are given, as operators of one or two bounds. Throws `ValueError` for none.
template <class T>
std::pair<PointwiseOp, Operands<T>> clamp_operands(const char* function, const T& a,
                                                   const std::optional<Scalar>& min,
                                                   const std::optional<Scalar>& max) {
  if (min && max) return {PointwiseOp::clamp, {a, *min, *max}};
  if (min) return {PointwiseOp::maximum, {a, *min}};
  if (max) return {PointwiseOp::minimum, {a, *max}};
  throw ValueError(function, "no bound", "a lower bound, an upper bound or both");
}
}  // namespace detail

#define DTENSOR_UNARY_RESULT(name)                                       \
  template <AnyTensor T>                                                 \
  T name(const T& a) {                                                   \
    return detail::pointwise(PointwiseOp::name, detail::Operands<T>{a}); \
  }
#define DTENSOR_UNARY(name)                                                \
  DTENSOR_UNARY_RESULT(name)                                               \
  template <AnyTensor T>                                                   \
  T name##_(const T& a) {                                                  \
    detail::pointwise_in_place(PointwiseOp::name, detail::Operands<T>{a}); \
    return a;                                                              \
  }
#define DTENSOR_BINARY_RESULT(name)                                         \
  template <AnyTensor T>                                                    \
  T name(const T& a, const T& b) {                                          \
    return detail::pointwise(PointwiseOp::name, detail::Operands<T>{a, b}); \
  }                                                                         \
  template <AnyTensor T>                                                    \
  T name(const T& a, const Scalar& b) {                                     \
    return detail::pointwise(PointwiseOp::name, detail::Operands<T>{a, b}); \
  }                                                                         \
  template <AnyTensor T>                                                    \
  T name(const Scalar& a, const T& b) {                                     \
    return detail::pointwise(PointwiseOp::name, detail::Operands<T>{a, b}); \
  }                                                                         \
  DTENSOR_MIXED_OPERATOR(name)
#define DTENSOR_BINARY(name)                                                  \
  DTENSOR_BINARY_RESULT(name)                                                 \
  template <AnyTensor T>                                                      \
  T name##_(const T& a, const T& b) {                                         \
    detail::pointwise_in_place(PointwiseOp::name, detail::Operands<T>{a, b}); \
    return a;                                                                 \
  }                                                                           \
  template <AnyTensor T>                                                      \
  T name##_(const T& a, const Scalar& b) {                                    \
    detail::pointwise_in_place(PointwiseOp::name, detail::Operands<T>{a, b}); \
    return a;                                                                 \
  }                                                                           \
  DTENSOR_MIXED_OPERATOR(name##_)

/// The absolute value; of complex numbers their modulus, real. Not for bool. The lowest integer
/// keeps its sign.
DTENSOR_UNARY(abs)
/// Not for bool.
DTENSOR_UNARY(neg)
/// -1, 0 or 1; NaN for NaN. Integers and floating.
DTENSOR_UNARY(sign)
// The functions from here to `reciprocal` give float64 for integers and bool, and NaN outside of
// their domain. Those that say so take complex numbers.

/// The square root. Complex.
DTENSOR_UNARY(sqrt)
/// 1 / sqrt(a). Complex.
DTENSOR_UNARY(rsqrt)
/// a * a. Not for bool.
DTENSOR_UNARY(square)
/// Complex.
DTENSOR_UNARY(exp)
/// exp(a) - 1, precise near 0.
DTENSOR_UNARY(expm1)
/// Complex.
DTENSOR_UNARY(log)
/// log(1 + a), precise near 0.
DTENSOR_UNARY(log1p)
/// Complex.
DTENSOR_UNARY(log2)
/// Complex.
DTENSOR_UNARY(sin)
/// Complex.
DTENSOR_UNARY(cos)
/// Complex.
DTENSOR_UNARY(tan)
DTENSOR_UNARY(asin)
DTENSOR_UNARY(acos)
DTENSOR_UNARY(atan)
/// Complex.
DTENSOR_UNARY(sinh)
/// Complex.
DTENSOR_UNARY(cosh)
/// Complex.
DTENSOR_UNARY(tanh)
/// 1 / (1 + exp(-a)).
DTENSOR_UNARY(sigmoid)
/// The error function.
DTENSOR_UNARY(erf)
/// max(a, 0). Integers and floating.
DTENSOR_UNARY(relu)
/// a times the normal distribution function at a.
DTENSOR_UNARY(gelu)
/// The same with the approximation by tanh.
DTENSOR_UNARY(gelu_tanh)
/// a * sigmoid(a).
DTENSOR_UNARY(silu)
/// log(1 + exp(a)).
DTENSOR_UNARY(softplus)
/// 1 / a. Complex.
DTENSOR_UNARY(reciprocal)
/// To the next integer below, above, nearest (halves to even), towards zero. Integers stay as they
/// are; not for bool.
DTENSOR_UNARY(floor)
DTENSOR_UNARY(ceil)
DTENSOR_UNARY(round)
DTENSOR_UNARY(trunc)
/// bool. A complex number is NaN or infinite when a part is.
DTENSOR_UNARY_RESULT(isnan)
DTENSOR_UNARY_RESULT(isinf)
DTENSOR_UNARY_RESULT(isfinite)
/// bool: whether the element is zero.
DTENSOR_UNARY_RESULT(logical_not)
/// Integers; on bool, logical not.
DTENSOR_UNARY(bitwise_not)
/// The complex conjugate; a copy of anything real.
DTENSOR_UNARY(conj)
/// The parts of complex numbers, real. Anything real has itself and 0.
DTENSOR_UNARY_RESULT(real)
DTENSOR_UNARY_RESULT(imag)
/// The argument in [-pi, pi], real.
DTENSOR_UNARY_RESULT(angle)

/// On bool, "or".
DTENSOR_BINARY(add)
/// Not for bool.
DTENSOR_BINARY(sub)
/// On bool, "and".
DTENSOR_BINARY(mul)
/// The true quotient: integers and bool give float64.
DTENSOR_BINARY(div)
/// The quotient rounded down, and what remains, of the sign of the divisor: Python's // and %.
/// Integers and floating. An integer divided by zero gives 0, for the remainder as well.
DTENSOR_BINARY(floor_div)
DTENSOR_BINARY(remainder)
/// The remainder of the sign of the dividend: C's fmod. Else as `remainder`.
DTENSOR_BINARY(fmod)
/// Not for bool. An integer to a negative power is rounded towards zero: 0 but for 1 and -1.
DTENSOR_BINARY(pow)
/// NaN where one of the two is. Not for complex.
DTENSOR_BINARY(maximum)
DTENSOR_BINARY(minimum)
/// The angle of the point (b, a).
DTENSOR_BINARY(atan2)
DTENSOR_BINARY(hypot)
/// bool. Integers out of the tensor's range may be compared with. Complex numbers have no order.
DTENSOR_BINARY_RESULT(eq)
DTENSOR_BINARY_RESULT(ne)
DTENSOR_BINARY_RESULT(lt)
DTENSOR_BINARY_RESULT(le)
DTENSOR_BINARY_RESULT(gt)
DTENSOR_BINARY_RESULT(ge)
/// bool, of whether the elements are not zero.
DTENSOR_BINARY_RESULT(logical_and)
DTENSOR_BINARY_RESULT(logical_or)
DTENSOR_BINARY_RESULT(logical_xor)
/// Integers and bool.
DTENSOR_BINARY(bitwise_and)
DTENSOR_BINARY(bitwise_or)
DTENSOR_BINARY(bitwise_xor)
/// Integers. A shift by less than 0 or by more than there are bits shifts everything out.
DTENSOR_BINARY(bitwise_left_shift)
DTENSOR_BINARY(bitwise_right_shift)

#undef DTENSOR_UNARY_RESULT
#undef DTENSOR_UNARY
#undef DTENSOR_BINARY_RESULT
#undef DTENSOR_BINARY

/// `a` where the condition is not zero, else `b`.
template <AnyTensor T>
T where(const T& condition, const T& a, const T& b) {
  return detail::pointwise(PointwiseOp::where, detail::Operands<T>{condition, a, b});
}
template <AnyTensor T>
T where(const T& condition, const T& a, const Scalar& b) {
  return detail::pointwise(PointwiseOp::where, detail::Operands<T>{condition, a, b});
}
template <AnyTensor T>
T where(const T& condition, const Scalar& a, const T& b) {
  return detail::pointwise(PointwiseOp::where, detail::Operands<T>{condition, a, b});
}
template <AnyTensor T>
T where(const T& condition, const Scalar& a, const Scalar& b) {
  return detail::pointwise(PointwiseOp::where, detail::Operands<T>{condition, a, b});
}

/// min(max(a, lower), upper); a bound may be left out. NaN where an operand is. Not for complex.
template <AnyTensor T>
T clamp(const T& a, const std::optional<Scalar>& min,
        const std::optional<Scalar>& max = std::nullopt) {
  const auto [op, operands] = detail::clamp_operands("clamp", a, min, max);
  return detail::pointwise(op, operands, "clamp");
}
template <AnyTensor T>
T clamp(const T& a, const T& min, const T& max) {
  return detail::pointwise(PointwiseOp::clamp, detail::Operands<T>{a, min, max});
}
template <AnyTensor T>
T clamp_(const T& a, const std::optional<Scalar>& min,
         const std::optional<Scalar>& max = std::nullopt) {
  const auto [op, operands] = detail::clamp_operands("clamp_", a, min, max);
  detail::pointwise_in_place(op, operands, "clamp_");
  return a;
}
template <AnyTensor T>
T clamp_(const T& a, const T& min, const T& max) {
  detail::pointwise_in_place(PointwiseOp::clamp, detail::Operands<T>{a, min, max});
  return a;
}

/// a + weight * (b - a). Floating and complex.
template <AnyTensor T>
T lerp(const T& a, const T& b, const T& weight) {
  return detail::pointwise(PointwiseOp::lerp, detail::Operands<T>{a, b, weight});
}
template <AnyTensor T>
T lerp(const T& a, const T& b, const Scalar& weight) {
  return detail::pointwise(PointwiseOp::lerp, detail::Operands<T>{a, b, weight});
}
template <AnyTensor T>
T lerp_(const T& a, const T& b, const T& weight) {
  detail::pointwise_in_place(PointwiseOp::lerp, detail::Operands<T>{a, b, weight});
  return a;
}
template <AnyTensor T>
T lerp_(const T& a, const T& b, const Scalar& weight) {
  detail::pointwise_in_place(PointwiseOp::lerp, detail::Operands<T>{a, b, weight});
  return a;
}

/// a + value * b * c. Not for bool.
template <AnyTensor T>
T addcmul(const T& a, const T& b, const T& c, const Scalar& value = 1) {
  return detail::pointwise(PointwiseOp::addcmul, detail::Operands<T>{a, b, c, value});
}
template <AnyTensor T>
T addcmul_(const T& a, const T& b, const T& c, const Scalar& value = 1) {
  detail::pointwise_in_place(PointwiseOp::addcmul, detail::Operands<T>{a, b, c, value});
  return a;
}
/// a + value * b / c. Integers give float64.
template <AnyTensor T>
T addcdiv(const T& a, const T& b, const T& c, const Scalar& value = 1) {
  return detail::pointwise(PointwiseOp::addcdiv, detail::Operands<T>{a, b, c, value});
}
template <AnyTensor T>
T addcdiv_(const T& a, const T& b, const T& c, const Scalar& value = 1) {
  detail::pointwise_in_place(PointwiseOp::addcdiv, detail::Operands<T>{a, b, c, value});
  return a;
}

/// The same values in another scalar type; this tensor when it has that type already. Conversion is
/// that of C++, anything but 0 is true, and complex to real keeps the real part.
template <AnyTensor T>
T to(const T& a, DType dtype) {
  return detail::to("to", a, dtype);
}

/// Every element becomes `value`. Under Partial the logical value does, not each contribution.
/// Local.
template <AnyTensor T>
T fill_(const T& a, const Scalar& value) {
  detail::fill(a, value);
  return a;
}
template <AnyTensor T>
T zero_(const T& a) {
  return fill_(a, 0);
}
/// The values of another tensor, broadcast to the shape of `a`, converted to its scalar type and
/// redistributed to its placements. The tensors may overlap.
template <AnyTensor T>
T copy_(const T& a, const T& from) {
  detail::copy(a, from);
  return a;
}

DTENSOR_MIXED_OPERATOR(where)
DTENSOR_MIXED_OPERATOR(clamp)
DTENSOR_MIXED_OPERATOR(clamp_)
DTENSOR_MIXED_OPERATOR(lerp)
DTENSOR_MIXED_OPERATOR(lerp_)
DTENSOR_MIXED_OPERATOR(addcmul)
DTENSOR_MIXED_OPERATOR(addcmul_)
DTENSOR_MIXED_OPERATOR(addcdiv)
DTENSOR_MIXED_OPERATOR(addcdiv_)
DTENSOR_MIXED_OPERATOR(copy_)

// The operators of C++. `&&` and `||` evaluate both sides, and `==` gives a tensor of bool.
#define DTENSOR_OPERATOR(symbol, name)             \
  template <AnyTensor A, AnyTensor B>              \
  auto operator symbol(const A& a, const B& b) {   \
    return name(a, b);                             \
  }                                                \
  template <AnyTensor T>                           \
  T operator symbol(const T& a, const Scalar& b) { \
    return name(a, b);                             \
  }                                                \
  template <AnyTensor T>                           \
  T operator symbol(const Scalar& a, const T& b) { \
    return name(a, b);                             \
  }
#define DTENSOR_ASSIGNMENT(symbol, name)                  \
  template <AnyTensor A, AnyTensor B>                     \
  const A& operator symbol(const A& a, const B& b) {      \
    name(a, b);                                           \
    return a;                                             \
  }                                                       \
  template <AnyTensor T>                                  \
  const T& operator symbol(const T& a, const Scalar& b) { \
    name(a, b);                                           \
    return a;                                             \
  }
DTENSOR_OPERATOR(+, add)
DTENSOR_OPERATOR(-, sub)
DTENSOR_OPERATOR(*, mul)
DTENSOR_OPERATOR(/, div)
DTENSOR_OPERATOR(%, remainder)
DTENSOR_OPERATOR(==, eq)
DTENSOR_OPERATOR(!=, ne)
DTENSOR_OPERATOR(<, lt)
DTENSOR_OPERATOR(<=, le)
DTENSOR_OPERATOR(>, gt)
DTENSOR_OPERATOR(>=, ge)
DTENSOR_OPERATOR(&&, logical_and)
DTENSOR_OPERATOR(||, logical_or)
DTENSOR_OPERATOR(&, bitwise_and)
DTENSOR_OPERATOR(|, bitwise_or)
DTENSOR_OPERATOR(^, bitwise_xor)
DTENSOR_ASSIGNMENT(+=, add_)
DTENSOR_ASSIGNMENT(-=, sub_)
DTENSOR_ASSIGNMENT(*=, mul_)
DTENSOR_ASSIGNMENT(/=, div_)
DTENSOR_ASSIGNMENT(%=, remainder_)
DTENSOR_ASSIGNMENT(&=, bitwise_and_)
DTENSOR_ASSIGNMENT(|=, bitwise_or_)
DTENSOR_ASSIGNMENT(^=, bitwise_xor_)
#undef DTENSOR_OPERATOR
#undef DTENSOR_ASSIGNMENT

template <AnyTensor T>
T operator-(const T& a) {
  return neg(a);
}
template <AnyTensor T>
T operator!(const T& a) {
  return logical_not(a);
}
template <AnyTensor T>
T operator~(const T& a) {
  return bitwise_not(a);
}

}  // namespace dtensor
