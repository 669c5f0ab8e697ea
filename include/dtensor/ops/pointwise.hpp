// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Operators that work element by element, on `Tensor` and `DTensor`, with broadcasting.
#pragma once

#include "dtensor/ops/any_tensor.hpp"
#include "dtensor/ops/local/pointwise.hpp"

namespace dtensor {

/// Element by element, with broadcasting.
DTensor add(const DTensor& a, const DTensor& b);
DTensor add(const DTensor& a, const Scalar& b);
DTensor sub(const DTensor& a, const DTensor& b);
DTensor sub(const DTensor& a, const Scalar& b);
DTensor sub(const Scalar& a, const DTensor& b);
DTensor mul(const DTensor& a, const DTensor& b);
DTensor mul(const DTensor& a, const Scalar& b);
DTensor div(const DTensor& a, const DTensor& b);
DTensor div(const DTensor& a, const Scalar& b);
DTensor div(const Scalar& a, const DTensor& b);
DTensor sqrt(const DTensor& a);
DTensor neg(const DTensor& a);

template <AnyTensor T>
T operator-(const T& a) {
  return neg(a);
}

#define DTENSOR_BINARY(name)  \
  template <class A, class B> \
  requires detail::Mixed<A, B> DTensor name(const A&, const B&) { detail::throw_mixed(#name); }
DTENSOR_BINARY(add)
DTENSOR_BINARY(sub)
DTENSOR_BINARY(mul)
DTENSOR_BINARY(div)
#undef DTENSOR_BINARY

#define DTENSOR_OPERATOR(symbol, name)             \
  template <AnyTensor A, AnyTensor B>              \
  auto operator symbol(const A& a, const B& b) {   \
    return name(a, b);                             \
  }                                                \
  template <AnyTensor T>                           \
  T operator symbol(const T& a, const Scalar& b) { \
    return name(a, b);                             \
  }
DTENSOR_OPERATOR(+, add)
DTENSOR_OPERATOR(-, sub)
DTENSOR_OPERATOR(*, mul)
DTENSOR_OPERATOR(/, div)
#undef DTENSOR_OPERATOR

template <AnyTensor T>
T operator+(const Scalar& a, const T& b) {
  return add(b, a);
}
template <AnyTensor T>
T operator-(const Scalar& a, const T& b) {
  return sub(a, b);
}
template <AnyTensor T>
T operator*(const Scalar& a, const T& b) {
  return mul(b, a);
}
template <AnyTensor T>
T operator/(const Scalar& a, const T& b) {
  return div(a, b);
}

}  // namespace dtensor
