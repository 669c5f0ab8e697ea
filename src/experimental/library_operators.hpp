// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <string_view>

namespace dtensor::experimental {

/// What decides on the placements of the library's operators.
enum class DecidedBy {
  no_operator,  ///< the library has none of that name
  rule,         ///< a rule, or what is registered instead of it
  itself,       ///< code of its own, which asks for no registration
};
DecidedBy decided_by(std::string_view operator_name);

/// Those that a rule decides on, in words.
std::string operators_with_rules();

}  // namespace dtensor::experimental
