// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Operators on `DTensor`, and the same on local tensors.
///
/// An operator takes its inputs under the placements that they have wherever the result can be
/// computed like that without communication. Else it redistributes them, as `CommDebugMode` and
/// other observers see with the reason. What Partial does: linear operators hand contributions on,
/// all others reduce them first.
///
/// All of these throw `LayoutError` when the inputs are on different meshes, and what the operator
/// of the same name on `Tensor` throws; every rank finds the same. They are collective over the
/// mesh when an input has to be redistributed and that communicates, and local otherwise.
#pragma once

#include <concepts>
#include <cstdint>
#include <vector>

#include "dtensor/distributed/dtensor.hpp"
#include "dtensor/ops/local/matmul.hpp"
#include "dtensor/ops/local/pointwise.hpp"
#include "dtensor/ops/local/reduction.hpp"

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

/// Over the given dimensions, or all. A reduced dimension that is sharded leaves the result
/// Partial, without communication.
DTensor sum(const DTensor& a);
DTensor sum(const DTensor& a, const std::vector<std::int64_t>& dims, bool keepdim = false);
/// The mean of the whole, whatever the shards' extents are.
DTensor mean(const DTensor& a);
DTensor mean(const DTensor& a, const std::vector<std::int64_t>& dims, bool keepdim = false);

/// Products of matrices and vectors. Where both inputs are sharded along the summed dimension, the
/// result is Partial, without communication.
DTensor matmul(const DTensor& a, const DTensor& b);

/// A view with two dimensions exchanged. Nothing is copied or communicated.
/// Throws `IndexError` for a dimension out of range.
DTensor transpose(const DTensor& a, std::int64_t dim0, std::int64_t dim1);
inline Tensor transpose(const Tensor& a, std::int64_t dim0, std::int64_t dim1) {
  return a.transpose(dim0, dim1);
}

/// A tensor of either kind.
template <class T>
concept AnyTensor = std::same_as<T, Tensor> || std::same_as<T, DTensor>;

template <AnyTensor T>
T operator-(const T& a) {
  return neg(a);
}

namespace detail {
/// Throws `TypeError` naming `function`, with the way out.
[[noreturn]] void throw_mixed(const char* function);
template <class A, class B>
concept Mixed = AnyTensor<A> && AnyTensor<B> && !std::same_as<A, B>;
}  // namespace detail

// A plain tensor does not say which part of a global tensor it is: together with a DTensor it is an
// error, always.
#define DTENSOR_BINARY(name)  \
  template <class A, class B> \
  requires detail::Mixed<A, B> DTensor name(const A&, const B&) { detail::throw_mixed(#name); }
DTENSOR_BINARY(add)
DTENSOR_BINARY(sub)
DTENSOR_BINARY(mul)
DTENSOR_BINARY(div)
DTENSOR_BINARY(matmul)
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
