// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/comm/events.hpp"

#include <algorithm>
#include <vector>

namespace dtensor {

namespace {
std::vector<Observer*>& observers() {
  thread_local std::vector<Observer*> list;
  return list;
}
}  // namespace

const char* to_string(Collective collective) noexcept {
  constexpr const char* names[collective_count] = {"none",           "all_gather", "all_to_all",
                                                   "reduce_scatter", "all_reduce", "point_to_point",
                                                   "scatter",        "broadcast"};
  return names[static_cast<int>(collective)];
}

void add_observer(Observer& observer) { observers().push_back(&observer); }

void remove_observer(Observer& observer) noexcept { std::erase(observers(), &observer); }

namespace detail {
bool observed() noexcept { return !observers().empty(); }

void emit(const Event& event) {
  for (Observer* o : observers()) o->on_event(event);
}
}  // namespace detail

}  // namespace dtensor
