// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// From local tensors to the parameters of a user's function, `Tensor` or typed `Kokkos::View`.
#pragma once

#include <cstddef>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "dtensor/core/function_ref.hpp"
#include "dtensor/distributed/dtensor.hpp"

namespace dtensor::experimental::detail {

template <class T>
inline constexpr bool is_view = Kokkos::is_view<T>::value;
template <class T>
inline constexpr bool is_tensor_like = std::is_same_v<T, Tensor> || is_view<T>;

/// Parameter types of a callable; unknown (void) where its call operator is a template.
template <class F, class = void>
struct Parameters {
  template <std::size_t>
  using type = void;
};
template <class... P>
struct ParameterList {
  template <std::size_t I>
  using type = std::tuple_element_t<I, std::tuple<std::remove_cvref_t<P>...>>;
};
template <class R, class... P>
struct Parameters<R (*)(P...), void> : ParameterList<P...> {};
template <class R, class... P>
struct Parameters<R (*)(P...) noexcept, void> : ParameterList<P...> {};
template <class Member>
struct MemberParameters;
template <class R, class C, class... P>
struct MemberParameters<R (C::*)(P...) const> : ParameterList<P...> {};
template <class R, class C, class... P>
struct MemberParameters<R (C::*)(P...) const noexcept> : ParameterList<P...> {};
template <class R, class C, class... P>
struct MemberParameters<R (C::*)(P...)> : ParameterList<P...> {};
template <class F>
struct Parameters<F, std::void_t<decltype(&F::operator())>>
    : MemberParameters<decltype(&F::operator())> {};

/// The tensors that a function's arguments were made from, in whose memory its results may lie.
using Lent = std::vector<Tensor>;

/// The elements in the strides that a `Layout` has, in a copy where they are not.
Tensor row_major(const Tensor& tensor);
Tensor column_major(const Tensor& tensor);

template <class ViewType>
ViewType as_view(const Tensor& tensor, Lent& lent) {
  using Data = typename ViewType::non_const_data_type;
  using Layout = typename ViewType::array_layout;
  using Memory = typename ViewType::memory_space;
  Tensor shown = tensor;
  if constexpr (std::is_const_v<typename ViewType::value_type>) {
    if constexpr (std::is_same_v<Layout, Kokkos::LayoutRight>) {
      shown = row_major(tensor);
    } else if constexpr (std::is_same_v<Layout, Kokkos::LayoutLeft>) {
      shown = column_major(tensor);
    }
  }
  lent.push_back(shown);
  return shown.view<Data, Layout, Memory>();
}

template <class Parameter, class Arg, class Input>
decltype(auto) local_argument(const Arg& arg, const std::vector<Input>& inputs, std::size_t& next,
                              Lent& lent) {
  if constexpr (!std::is_same_v<Arg, DTensor>) {
    return (arg);
  } else {
    static_assert(!std::is_same_v<Parameter, DTensor>,
                  "a function given to local_map takes the local part of a DTensor: a Tensor or a "
                  "Kokkos::View");
    const Tensor& local = inputs[next++].tensor.to_local();
    if constexpr (is_view<Parameter>) {
      return as_view<Parameter>(local, lent);
    } else {
      lent.push_back(local);
      return (local);
    }
  }
}

template <class F, class Input, class... Args, std::size_t... I>
decltype(auto) apply_local(const F& function, const std::vector<Input>& inputs, std::size_t& next,
                           Lent& lent, std::index_sequence<I...>, const Args&... args) {
  using P = Parameters<F>;
  // Braces: arguments are made from left to right.
  std::tuple<decltype(local_argument<typename P::template type<I>>(args, inputs, next, lent))...>
      locals{local_argument<typename P::template type<I>>(args, inputs, next, lent)...};
  return std::apply(function, std::move(locals));
}
template <class F, class Input, class... Args>
auto apply_local(const F& function, const std::vector<Input>& inputs, std::size_t& next, Lent& lent,
                 const Args&... args) {
  return apply_local(function, inputs, next, lent, std::index_sequence_for<Args...>(), args...);
}

}  // namespace dtensor::experimental::detail
