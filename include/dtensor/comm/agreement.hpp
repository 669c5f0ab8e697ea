// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Symmetric failure: before a collective operation relies on its arguments, all ranks learn
/// whether they agree, and throw the same exception when they do not.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "dtensor/comm/communicator.hpp"
#include "dtensor/core/error.hpp"

namespace dtensor {

/// One comparison under way. Every rank of `communicator` starts the same comparisons in the same
/// order; the result needs one small all-reduce, started by the constructor.
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
  /// The all-reduce under way, for waiting on it together with other requests.
  Request& request() noexcept { return request_; }
  /// Whether the comparison has ended; never blocks.
  bool test();
  /// Whether a comparison that has ended found a failure; `wait` throws it.
  bool failed() const noexcept;
  /// Blocks for the result. Throws on every rank the error that the lowest failing rank found, or
  /// `MismatchError` with the values of each group of ranks when fingerprints differ. Collective.
  void wait();

 private:
  [[noreturn]] void throw_failure();

  Communicator& communicator_;
  std::string function_;
  std::function<std::string()> describe_;
  std::exception_ptr error_;
  struct Wire {
    std::uint64_t fingerprint, complement, failed;
  };
  std::unique_ptr<Wire> wire_;
  std::uint64_t fingerprint_;
  Request request_;
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
