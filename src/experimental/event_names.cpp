// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "event_names.hpp"

#include <mutex>
#include <set>

namespace dtensor::experimental {

const char* event_name(const std::string& name) {
  static std::mutex mutex;
  static auto* names = new std::set<std::string>;
  std::lock_guard lock(mutex);
  return names->insert(name).first->c_str();
}

}  // namespace dtensor::experimental
