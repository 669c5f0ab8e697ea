// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Symmetric failure: before a collective operation relies on its arguments, all ranks learn
/// whether they agree, and throw the same exception when they do not.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "dtensor/comm/communicator.hpp"
#include "dtensor/core/error.hpp"

namespace dtensor {

/// One comparison under way. Every rank of `communicator` starts the same comparisons in the same
/// order. The result comes from one small all-reduce by dissemination (Hensgen, Finkel and Manber,
/// "Two algorithms for barrier synchronization", 1988) in ceil(log2(ranks)) rounds, the first of
/// which the constructor starts: the maximum does not mind that it meets a value twice.
class Agreement {
 public:
  /// \param fingerprint  hash of everything that must be equal
  /// \param describe     the compared values in words; called only when ranks differ
  /// \param error        what this rank found wrong by itself, if anything
  Agreement(Communicator& communicator, std::string function, std::uint64_t fingerprint,
            std::function<std::string()> describe, std::exception_ptr error = nullptr);
  /// Ends the comparison without looking at its result.
  ~Agreement();
  Agreement(const Agreement&) = delete;
  Agreement& operator=(const Agreement&) = delete;

  /// This rank's own.
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }
  /// The requests of the round under way, for waiting on them together with others; then
  /// `next_round` goes on.
  std::span<Request> requests() noexcept { return requests_; }
  /// Starts the next round when the requests of this one are done. Whether rounds are left.
  bool next_round();
  /// Whether the comparison has ended; never blocks.
  bool test();
  /// Whether a comparison that has ended found a failure; `wait` throws it.
  bool failed() const noexcept;
  /// Blocks for the result. Throws on every rank the error that the lowest failing rank found, or
  /// `MismatchError` with the values of each group of ranks when fingerprints differ. Collective.
  void wait();

 private:
  using Words = std::array<std::uint64_t, 3>;  // fingerprint, its complement, whether one failed

  bool under_way() const noexcept { return wire_ && round_ < wire_->rounds; }
  void start_round();
  [[noreturn]] void throw_failure();

  Communicator& communicator_;
  std::string function_;
  std::function<std::string()> describe_;
  std::exception_ptr error_;
  // What messages are sent from and received into: per round what this rank knows by then, and
  // what another adds to it.
  struct Wire {
    int rounds;
    Words known[Communicator::rounds_per_agreement + 1];
    Words received;
  };
  std::unique_ptr<Wire> wire_;
  std::uint64_t fingerprint_;
  int tag_ = 0;
  int round_ = 0;
  std::array<Request, 2> requests_;
};

/// Runs `check` on every rank and makes its failure everyone's: an exception on any rank is thrown
/// on all, and so is a difference in the fingerprint it returns. Collective, blocking.
/// \param check returns the fingerprint; throws `Error` for what this rank finds wrong
void agree(Communicator& communicator, const std::string& function,
           const std::function<std::uint64_t()>& check,
           const std::function<std::string()>& describe);

/// The same without a fingerprint: a failure of `body` on any rank is thrown on every rank.
void all_or_none(Communicator& communicator, const std::string& function,
                 const std::function<void()>& body);

}  // namespace dtensor
