// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `FunctionRef`: a callable that is called before the function it was given to returns.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace dtensor {

template <class Signature>
class FunctionRef;

/// Refers to a callable without owning or allocating anything, as `std::function_ref` of C++26.
template <class R, class... Args>
class FunctionRef<R(Args...)> {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
           std::is_invocable_r_v<R, F&, Args...>) FunctionRef(F&& callable)
  noexcept
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  R (*call_)(void*, Args...);
};

}  // namespace dtensor
