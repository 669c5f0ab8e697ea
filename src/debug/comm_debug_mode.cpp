// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/debug/comm_debug_mode.hpp"

#include <fmt/format.h>

namespace dtensor {

void CommDebugMode::on_event(const Event& event) {
  if (event.collective == Collective::none) return;
  for (Cost* cost : {&by_collective_[static_cast<std::size_t>(event.collective)],
                     &by_operation_[event.operation]}) {
    ++cost->count;
    cost->bytes_sent += event.bytes_sent;
  }
}

std::int64_t CommDebugMode::count(Collective collective) const noexcept {
  return by_collective_[static_cast<std::size_t>(collective)].count;
}

std::int64_t CommDebugMode::total_count() const noexcept {
  std::int64_t sum = 0;
  for (const Cost& c : by_collective_) sum += c.count;
  return sum;
}

std::int64_t CommDebugMode::bytes_sent(Collective collective) const noexcept {
  return by_collective_[static_cast<std::size_t>(collective)].bytes_sent;
}

std::int64_t CommDebugMode::total_bytes_sent() const noexcept {
  std::int64_t sum = 0;
  for (const Cost& c : by_collective_) sum += c.bytes_sent;
  return sum;
}

std::string CommDebugMode::to_string() const {
  std::string text = fmt::format("{:<16} {:>8} {:>14}\n", "collective", "count", "bytes sent");
  for (int i = 0; i < collective_count; ++i) {
    const Cost& c = by_collective_[static_cast<std::size_t>(i)];
    if (c.count == 0) continue;
    text += fmt::format("{:<16} {:>8} {:>14}\n", dtensor::to_string(static_cast<Collective>(i)),
                        c.count, c.bytes_sent);
  }
  text += fmt::format("{:<16} {:>8} {:>14}\n", "operation", "count", "bytes sent");
  for (const auto& [name, c] : by_operation_) {
    text += fmt::format("{:<16} {:>8} {:>14}\n", name, c.count, c.bytes_sent);
  }
  return text;
}

}  // namespace dtensor
