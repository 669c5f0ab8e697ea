// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// One stream of what the library does that costs communication or I/O, for counters, logs and
/// traces to observe.
#pragma once

#include <cstdint>
#include <string>

#include "dtensor/layout/layout.hpp"

namespace dtensor {

/// The communication pattern of a step, named after the collective it amounts to.
enum class Collective : std::uint8_t {
  none,            ///< only local copies
  all_gather,      ///< every rank keeps what it had and gains the others' parts
  all_to_all,      ///< every rank gives parts away and gains others
  reduce_scatter,  ///< contributions are reduced, each element on the rank that keeps it
  all_reduce,      ///< contributions are reduced, every rank keeps the result
  point_to_point,  ///< between meshes
  scatter,         ///< from one rank to all
  broadcast,       ///< from one rank to all, the same
};

inline constexpr int collective_count = 8;

/// "all_gather", ...
const char* to_string(Collective collective) noexcept;

/// Something that happened on this rank.
struct Event {
  Collective collective = Collective::none;
  const char* operation = "";           ///< the public function, "redistribute", "matmul", ...
  const char* reason = "";              ///< why, when the program did not ask for it
  std::int64_t bytes_sent = 0;          ///< by this rank
  const Layout* source = nullptr;       ///< valid during the call
  const Layout* destination = nullptr;  ///< valid during the call
  std::int64_t bytes_of_files = 0;      ///< written or read by this rank
};

/// Receives events on the thread that causes them. Keep it fast; do not communicate in it.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_event(const Event& event) = 0;
};

/// Local. An observer sees the events from `add_observer` until `remove_observer`.
void add_observer(Observer& observer);
void remove_observer(Observer& observer) noexcept;

namespace detail {
bool observed() noexcept;
void emit(const Event& event);
}  // namespace detail

}  // namespace dtensor
