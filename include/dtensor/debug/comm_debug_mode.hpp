// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `CommDebugMode`: counts the collectives and bytes of a stretch of a program.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "dtensor/comm/events.hpp"

namespace dtensor {

/// Observes the event stream of this thread from construction to destruction.
///
///     CommDebugMode comm;
///     y = x.redistribute({Replicate()});
///     std::cout << comm.to_string();
class CommDebugMode final : public Observer {
 public:
  CommDebugMode() { add_observer(*this); }
  ~CommDebugMode() override { remove_observer(*this); }
  CommDebugMode(const CommDebugMode&) = delete;
  CommDebugMode& operator=(const CommDebugMode&) = delete;

  void on_event(const Event& event) override;

  /// Number of collectives of one kind, or of all kinds, that this rank took part in.
  std::int64_t count(Collective collective) const noexcept;
  std::int64_t total_count() const noexcept;
  /// Bytes that this rank has sent.
  std::int64_t bytes_sent(Collective collective) const noexcept;
  std::int64_t total_bytes_sent() const noexcept;
  /// The same for each public function that communicated.
  struct Cost {
    std::int64_t count = 0;
    std::int64_t bytes_sent = 0;
  };
  const std::map<std::string, Cost>& by_operation() const noexcept { return by_operation_; }

  /// A line per kind of collective and per operation.
  std::string to_string() const;

 private:
  std::array<Cost, collective_count> by_collective_{};
  std::map<std::string, Cost> by_operation_;
};

}  // namespace dtensor
