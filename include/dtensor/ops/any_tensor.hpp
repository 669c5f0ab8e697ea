// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Operators take `Tensor` and `DTensor` alike; what holds for both is said once.
#pragma once

#include <concepts>

#include "dtensor/distributed/dtensor.hpp"

namespace dtensor {

/// A tensor of either kind.
template <class T>
concept AnyTensor = std::same_as<T, Tensor> || std::same_as<T, DTensor>;

/// Values and where they are, from operators that find or order elements along a dimension.
template <AnyTensor T>
struct ValuesAndIndices {
  T values;
  T indices;  ///< int64, along the dimension of the whole tensor
};

namespace detail {
/// Throws `TypeError` naming `function`, with the way out: a plain tensor does not say which part
/// of a global tensor it is, so that together with a DTensor it is an error.
[[noreturn]] void throw_mixed(const char* function);
template <class A, class B>
concept Mixed = AnyTensor<A> && AnyTensor<B> && !std::same_as<A, B>;
}  // namespace detail

}  // namespace dtensor
