// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// A network inside one process: every rank's communicator, driven in turn by one thread. For tests
/// of the planner and executor and for dry runs without MPI.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "dtensor/comm/communicator.hpp"

namespace dtensor {

/// Messages between simulated ranks. A send ends only when its receive has taken the data, as large
/// messages do in MPI, so that an order of messages that could deadlock does so here too.
class SimulatedNetwork {
 public:
  explicit SimulatedNetwork(int size);

  /// The communicator of one rank. Valid as long as the network. Blocking calls never block: they
  /// throw `CommunicationError` when they would have to wait for another rank.
  std::shared_ptr<Communicator> communicator(int rank);

  int size() const noexcept { return size_; }
  /// Messages and bytes that a rank has sent and received since the last `reset_counters`.
  struct Counters {
    std::int64_t messages_sent = 0, bytes_sent = 0, bytes_received = 0;
  };
  const Counters& counters(int rank) const { return counters_[static_cast<std::size_t>(rank)]; }
  void reset_counters() { counters_.assign(counters_.size(), {}); }
  /// Whether no message is under way.
  bool quiet() const noexcept;

 private:
  friend class SimulatedCommunicator;
  struct Message {
    const void* source = nullptr;
    void* destination = nullptr;
    std::int64_t bytes = 0;
    std::uint64_t request = 0;
  };
  struct Channel {
    std::deque<Message> sends, receives;
  };
  using Key = std::tuple<int, int, int>;  // from, to, tag

  std::uint64_t new_request();
  void match(int from, int to, Channel& channel);

  int size_;
  std::vector<Counters> counters_;
  std::map<Key, Channel> channels_;
  std::vector<char> done_;  // by request
};

}  // namespace dtensor
