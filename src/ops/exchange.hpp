// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dtensor/comm/agreement.hpp"
#include "dtensor/comm/events.hpp"
#include "dtensor/distributed/dtensor.hpp"
#include "dtensor/layout/hash.hpp"

namespace dtensor::detail {

/// Tensors that the ranks of a mesh hand one another, all in one round.
class Exchange {
 public:
  explicit Exchange(const DeviceMesh& mesh) : mesh_(mesh) {}

  /// What `peer`, a position in the mesh, gets from this rank and this rank from `peer`. Both sides
  /// name the same shapes in the same order. Nothing travels for tensors without elements, nor to
  /// this rank itself.
  void send(std::int64_t peer, const Tensor& tensor);
  void receive(std::int64_t peer, const Tensor& dense);

  /// Bytes that this rank sends to others.
  std::int64_t bytes_sent() const noexcept { return bytes_sent_; }

  /// Carries it out. With an agreement under way, throws on every rank what that finds. Collective
  /// over the mesh, blocking.
  /// \param fingerprint  the same on all ranks, for the tags
  void run(std::uint64_t fingerprint, std::unique_ptr<Agreement> agreement = nullptr);

 private:
  struct Message {
    int peer;
    Tensor tensor;
  };
  DeviceMesh mesh_;
  std::vector<Message> sends_, receives_;
  std::int64_t bytes_sent_ = 0;
};

/// Tells observers of an exchange on behalf of an operation, and counts it for the scopes that
/// limit communication. Returns their error, which all ranks have to learn of.
[[nodiscard]] std::exception_ptr announce_exchange(const char* operation, const char* reason,
                                                   std::int64_t bytes_sent, const Layout& source,
                                                   const Layout& destination,
                                                   Collective collective = Collective::all_to_all);

/// A comparison of what all ranks of a mesh are about to do: `what` hashes it, `text` says it.
std::unique_ptr<Agreement> start_agreement(const DeviceMesh& mesh, const char* operation,
                                           const Hash& what, std::string text,
                                           std::exception_ptr error = nullptr);

}  // namespace dtensor::detail
