// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// From local tensors to the parameters of a user's function, `Tensor` or typed `Kokkos::View`, and
/// back.
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

/// Tensors that Views were made from, until the function has returned.
using KeptCopies = std::vector<Tensor>;

/// The elements in the strides that a `Layout` has, in a copy where they are not.
Tensor row_major(const Tensor& tensor);
Tensor column_major(const Tensor& tensor);

template <class ViewType>
ViewType as_view(const Tensor& tensor, KeptCopies& copies) {
  using Data = typename ViewType::non_const_data_type;
  using Layout = typename ViewType::array_layout;
  using Memory = typename ViewType::memory_space;
  if constexpr (std::is_const_v<typename ViewType::value_type>) {
    if constexpr (std::is_same_v<Layout, Kokkos::LayoutRight>) {
      copies.push_back(row_major(tensor));
    } else if constexpr (std::is_same_v<Layout, Kokkos::LayoutLeft>) {
      copies.push_back(column_major(tensor));
    } else {
      copies.push_back(tensor);
    }
    return copies.back().template view<Data, Layout, Memory>();
  } else {
    return tensor.view<Data, Layout, Memory>();
  }
}

inline Tensor as_tensor(const Tensor& tensor) { return tensor; }
template <class ViewType>
requires is_view<ViewType> Tensor as_tensor(const ViewType& view) {
  return Tensor::from_view(view);
}

/// Throws `LayoutError` when a function returned another number of tensors than have placements.
void check_result_count(std::size_t results, std::size_t placements);

template <class Parameter, class Arg, class Input>
decltype(auto) local_argument(const Arg& arg, const std::vector<Input>& inputs, std::size_t& next,
                              KeptCopies& copies) {
  if constexpr (!std::is_same_v<Arg, DTensor>) {
    return (arg);
  } else {
    static_assert(!std::is_same_v<Parameter, DTensor>,
                  "a function given to local_map takes the local part of a DTensor: a Tensor or a "
                  "Kokkos::View");
    const Tensor& local = inputs[next++].tensor.to_local();
    if constexpr (is_view<Parameter>) {
      return as_view<Parameter>(local, copies);
    } else {
      return (local);
    }
  }
}

template <class F, class Input, class... Args, std::size_t... I>
decltype(auto) apply_local(const F& function, const std::vector<Input>& inputs, std::size_t& next,
                           KeptCopies& copies, std::index_sequence<I...>, const Args&... args) {
  using P = Parameters<F>;
  // Braces: arguments are made from left to right.
  std::tuple<decltype(local_argument<typename P::template type<I>>(args, inputs, next, copies))...>
      locals{local_argument<typename P::template type<I>>(args, inputs, next, copies)...};
  return std::apply(function, std::move(locals));
}
template <class F, class Input, class... Args>
auto apply_local(const F& function, const std::vector<Input>& inputs, std::size_t& next,
                 KeptCopies& copies, const Args&... args) {
  return apply_local(function, inputs, next, copies, std::index_sequence_for<Args...>(), args...);
}

}  // namespace dtensor::experimental::detail
