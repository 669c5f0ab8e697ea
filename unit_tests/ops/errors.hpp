// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What operators throw, as text.
#pragma once

#include <string>

#include "dtensor/core/error.hpp"

namespace dtensor::testing {

/// What `f` throws: "given; expected", empty when it throws nothing or another kind.
template <class F>
std::string thrown(ErrorKind kind, const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.kind() == kind ? e.function() + ": " + e.given() + "; expected " + e.expected() : "";
  }
  return "";
}

}  // namespace dtensor::testing
