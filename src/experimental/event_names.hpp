// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

namespace dtensor::experimental {

/// A name that a program made up, for events: theirs live as long as the program, as those of the
/// library's operators do.
const char* event_name(const std::string& name);

}  // namespace dtensor::experimental
