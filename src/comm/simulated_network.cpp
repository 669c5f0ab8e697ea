// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/comm/simulated_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "dtensor/core/error.hpp"

namespace dtensor {

class SimulatedCommunicator final : public Communicator {
 public:
  SimulatedCommunicator(SimulatedNetwork& network, int rank)
      : Communicator(rank, network.size(), std::numeric_limits<int>::max()), network_(network) {}

  Request isend(const void* data, std::int64_t bytes, int peer, int tag) override {
    auto& counters = network_.counters_[static_cast<std::size_t>(rank())];
    ++counters.messages_sent;
    counters.bytes_sent += bytes;
    auto& channel = network_.channels_[{rank(), peer, tag}];
    const std::uint64_t request = network_.new_request();
    channel.sends.push_back({data, nullptr, bytes, request});
    network_.match(rank(), peer, channel);
    return Request(request);
  }

  Request irecv(void* data, std::int64_t bytes, int peer, int tag) override {
    auto& channel = network_.channels_[{peer, rank(), tag}];
    const std::uint64_t request = network_.new_request();
    channel.receives.push_back({nullptr, data, bytes, request});
    network_.match(peer, rank(), channel);
    return Request(request);
  }

  void progress(std::span<Request> requests, bool block) override {
    bool any_active = false, any_done = false;
    for (Request& r : requests) {
      if (!r.active()) continue;
      any_active = true;
      if (network_.done_[r.handle()]) {
        r.set_done();
        any_done = true;
      }
    }
    if (block && any_active && !any_done) throw_would_block();
  }

  std::vector<std::string> all_gather_text(const std::string& text) override {
    if (size() > 1) throw_would_block();
    return {text};
  }

  void abandon(std::span<Request>, std::span<Request>, std::shared_ptr<void>) override {}

 private:
  [[noreturn]] void throw_would_block() const {
    throw CommunicationError("SimulatedNetwork",
                             fmt::format("a blocking call on rank {} of {}", rank(), size()),
                             "calls that need not wait for another rank");
  }

  SimulatedNetwork& network_;
};

SimulatedNetwork::SimulatedNetwork(int size)
    : size_(size), counters_(static_cast<std::size_t>(size)) {}

std::shared_ptr<Communicator> SimulatedNetwork::communicator(int rank) {
  return std::make_shared<SimulatedCommunicator>(*this, rank);
}

bool SimulatedNetwork::quiet() const noexcept {
  return std::all_of(channels_.begin(), channels_.end(), [](const auto& item) {
    return item.second.sends.empty() && item.second.receives.empty();
  });
}

std::uint64_t SimulatedNetwork::new_request() {
  done_.push_back(0);
  return done_.size() - 1;
}

void SimulatedNetwork::match(int from, int to, Channel& channel) {
  while (!channel.sends.empty() && !channel.receives.empty()) {
    const Message send = channel.sends.front();
    const Message receive = channel.receives.front();
    channel.sends.pop_front();
    channel.receives.pop_front();
    if (send.bytes != receive.bytes) {
      throw CommunicationError("SimulatedNetwork",
                               fmt::format("{} bytes sent from rank {} to rank {}, {} expected",
                                           send.bytes, from, to, receive.bytes),
                               "equal sizes on both ends");
    }
    std::memcpy(receive.destination, send.source, static_cast<std::size_t>(send.bytes));
    counters_[static_cast<std::size_t>(to)].bytes_received += send.bytes;
    done_[send.request] = done_[receive.request] = 1;
  }
}

}  // namespace dtensor
