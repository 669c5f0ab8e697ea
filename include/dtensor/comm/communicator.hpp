// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `Communicator`: what the library needs of a network. Implementations are MPI and, for tests and
/// dry runs, a simulation inside one process.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dtensor/layout/hash.hpp"

namespace dtensor {

/// A started operation. Done when default-constructed.
class Request {
 public:
  Request() = default;
  explicit Request(std::uint64_t handle) : handle_(handle), active_(true) {}
  bool active() const noexcept { return active_; }
  std::uint64_t handle() const noexcept { return handle_; }
  void update(std::uint64_t handle) noexcept { handle_ = handle; }
  void set_done() noexcept { active_ = false; }

 private:
  std::uint64_t handle_ = 0;
  bool active_ = false;
};

/// A group of processes that exchange messages. Ranks here count the group, from 0.
/// Buffers stay untouched until the request is done. Failures throw `CommunicationError`.
class Communicator {
 public:
  virtual ~Communicator() = default;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }

  /// Point to point. At most `max_message_bytes` at once; messages between two ranks with one tag
  /// arrive in the order sent. Local.
  virtual Request isend(const void* data, std::int64_t bytes, int peer, int tag) = 0;
  virtual Request irecv(void* data, std::int64_t bytes, int peer, int tag) = 0;
  static constexpr std::int64_t max_message_bytes = std::int64_t{1} << 30;

  /// Marks finished requests as done. With `block`, returns once at least one has finished; without
  /// active requests at once. Local.
  virtual void progress(std::span<Request> requests, bool block) = 0;

  /// The texts of all ranks, by rank. Collective, blocking.
  virtual std::vector<std::string> all_gather_text(const std::string& text) = 0;

  /// Gives up requests that will never be matched: receives are cancelled, sends are left behind
  /// together with `keep_alive`, which holds their buffers.
  virtual void abandon(std::span<Request> receives, std::span<Request> sends,
                       std::shared_ptr<void> keep_alive) = 0;

  /// The first of `tags_per_operation` tags for the next operation; all ranks start the same
  /// operations in the same order. Operations that are under way together have different tags, and
  /// so have, with the chance that a hash gives, ranks whose operations differ in `fingerprint`:
  /// their messages never meet.
  int next_tags(std::uint64_t fingerprint) noexcept {
    Hash h;
    h.add(fingerprint);
    h.add(operations_);
    const auto block = static_cast<std::uint64_t>(tags_per_operation * operations_under_way);
    const std::uint64_t blocks =
        std::max<std::uint64_t>(static_cast<std::uint64_t>(first_agreement_tag()) / block, 1);
    const std::uint64_t number = operations_++ % static_cast<std::uint64_t>(operations_under_way);
    return static_cast<int>(h.value() % blocks * block +
                            number * static_cast<std::uint64_t>(tags_per_operation));
  }
  static constexpr int tags_per_operation = 4;
  static constexpr int operations_under_way = 256;

  /// The first of `rounds_per_agreement` tags for the next `Agreement`; all ranks start the same
  /// agreements in the same order, whatever they are about.
  int next_agreement_tags() noexcept {
    return first_agreement_tag() +
           static_cast<int>(agreements_++ % agreements_under_way) * rounds_per_agreement;
  }
  static constexpr int rounds_per_agreement = 32;
  static constexpr int agreements_under_way = 128;

  /// Operations started so far. Ranks that have started different ones by mistake have to agree on
  /// the number before they go on.
  std::uint64_t operations() const noexcept { return operations_; }
  void set_operations(std::uint64_t count) noexcept { operations_ = count; }

 protected:
  Communicator(int rank, int size, int max_tag) : rank_(rank), size_(size), max_tag_(max_tag) {}

 private:
  int first_agreement_tag() const noexcept {
    return max_tag_ - rounds_per_agreement * agreements_under_way + 1;
  }

  int rank_;
  int size_;
  int max_tag_;
  std::uint64_t operations_ = 0;
  std::uint64_t agreements_ = 0;
};

}  // namespace dtensor
