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
template <class A, class B>
concept Mixed = AnyTensor<A> && AnyTensor<B> && !std::same_as<A, B>;
/// Tensors of both kinds among arguments of any type.
template <class... Args>
concept MixedTensors = (std::same_as<Args, Tensor> || ...) && (std::same_as<Args, DTensor> || ...);

/// Throws `TypeError` naming `function`, with the way out: a plain tensor does not say which part
/// of a global tensor it is, so that together with a DTensor it is an error.
[[noreturn]] void throw_mixed(const char* function);

/// Counts the scopes of this thread in which a plain tensor is taken as replicated; see
/// `experimental::ImplicitReplicationScope`.
void add_implicit_replication(int scopes) noexcept;
bool implicit_replication() noexcept;
/// `tensor` as the whole that every rank of `mesh` holds, without a copy.
DTensor as_replicated(const char* function, const Tensor& tensor, const DeviceMesh& mesh);

template <class First, class... Rest>
const DeviceMesh& mesh_of_first(const First& first, const Rest&... rest) {
  if constexpr (std::same_as<First, DTensor>) {
    return first.device_mesh();
  } else {
    return mesh_of_first(rest...);
  }
}

/// Calls an operator that was given tensors of both kinds: with the plain ones as replicated inside
/// of an implicit replication scope, else it throws as `throw_mixed`.
template <class Call, class... Args>
auto call_mixed(const char* function, const Call& call, const Args&... args) {
  if (!implicit_replication()) throw_mixed(function);
  const DeviceMesh& mesh = mesh_of_first(args...);
  const auto as_dtensor = [&]<class T>(const T& arg) -> decltype(auto) {
    if constexpr (std::same_as<T, Tensor>) {
      return as_replicated(function, arg, mesh);
    } else {
      return (arg);
    }
  };
  return call(as_dtensor(args)...);
}
}  // namespace detail

/// The overload of an operator for tensors of both kinds, with any other arguments.
#define DTENSOR_MIXED_OPERATOR(name)                                  \
  template <class... Args>                                            \
  requires detail::MixedTensors<Args...>                              \
  auto name(const Args&... args) {                                    \
    return detail::call_mixed(                                        \
        #name, [](const auto&... x) { return name(x...); }, args...); \
  }

}  // namespace dtensor
