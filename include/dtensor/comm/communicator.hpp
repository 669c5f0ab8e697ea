// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `Communicator`: what the library needs of a network. Implementations are MPI and, for tests and
/// dry runs, a simulation inside one process.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "dtensor/core/dtype.hpp"
#include "dtensor/layout/placement.hpp"

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

  /// Element-wise maximum over all ranks, in place. Collective.
  virtual Request iall_reduce_max(std::uint64_t* values, int count) = 0;

  /// Whether `iall_reduce` takes this scalar type and operation.
  virtual bool can_all_reduce(DType dtype, ReduceOp op) const = 0;
  /// Reduction of `count` elements over all ranks, from `in` to `out`. Collective.
  virtual Request iall_reduce(const void* in, void* out, std::int64_t count, DType dtype,
                              ReduceOp op) = 0;

  /// Marks finished requests as done. With `block`, returns once at least one has finished; without
  /// active requests at once. Local.
  virtual void progress(std::span<Request> requests, bool block) = 0;

  /// The texts of all ranks, by rank. Collective, blocking.
  virtual std::vector<std::string> all_gather_text(const std::string& text) = 0;

  /// Gives up requests that will never be matched: receives are cancelled, sends are left behind
  /// together with `keep_alive`, which holds their buffers.
  virtual void abandon(std::span<Request> receives, std::span<Request> sends,
                       std::shared_ptr<void> keep_alive) = 0;

  /// A tag for the next operation: the same on every rank, as all ranks start the same operations
  /// in the same order. `count` consecutive tags belong to the operation.
  int next_tags(int count) noexcept {
    const int tag = next_tag_ + count > max_tag_ ? 0 : next_tag_;
    next_tag_ = tag + count;
    return tag;
  }
  /// Where the next tags come from. Ranks that have started different operations by mistake have
  /// different positions, and go on from the highest.
  int tag_position() const noexcept { return next_tag_; }
  void set_tag_position(int position) noexcept { next_tag_ = position; }

 protected:
  Communicator(int rank, int size, int max_tag) : rank_(rank), size_(size), max_tag_(max_tag) {}

 private:
  int rank_;
  int size_;
  int max_tag_;
  int next_tag_ = 0;
};

}  // namespace dtensor
