// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Scopes in which operators may communicate only so much, or not at all.
///
/// What counts is what an operator starts by itself: moving an input to other placements, reducing
/// a Partial, merging what ranks found. What a program asks for by name (`redistribute`,
/// `full_tensor`, `distribute_tensor`, checkpoints) is not hidden and never counts. Scopes hold for
/// the thread that makes them, may be nested, and are made and left by all ranks alike. The few
/// bytes with which ranks agree that all do the same, or on an error, do not count either.
#pragma once

#include <cstdint>
#include <exception>

#include "dtensor/layout/layout.hpp"

namespace dtensor {

namespace detail {

class CommunicationScope {
 public:
  CommunicationScope(const CommunicationScope&) = delete;
  CommunicationScope& operator=(const CommunicationScope&) = delete;

 protected:
  /// \param bytes  negative to forbid all communication
  explicit CommunicationScope(std::int64_t bytes) noexcept;
  ~CommunicationScope();

  std::int64_t bytes_;
  std::int64_t spent_ = 0;

 private:
  friend std::exception_ptr charge(const char*, const char*, int, const Layout&, const Layout&,
                                   std::int64_t);
  CommunicationScope* outer_;
};

/// Whether this thread is in a scope.
bool communication_limited() noexcept;

/// Counts what this rank is about to send on behalf of an operator. Returns the `LayoutError` to
/// throw, on all ranks, instead; null when the scopes allow it.
/// \param input  number of the operator's input, -1 where it is none
std::exception_ptr charge(const char* operation, const char* reason, int input,
                          const Layout& source, const Layout& destination, std::int64_t bytes_sent);

}  // namespace detail

/// While it lives, an operator that would communicate throws `LayoutError` on every rank instead,
/// naming the operator, the input, the placements and the bytes.
class ForbidImplicitCommunication : public detail::CommunicationScope {
 public:
  ForbidImplicitCommunication() noexcept : CommunicationScope(-1) {}
};

/// While it lives, operators may send so many bytes from each rank in all; the one that would
/// exceed them throws `LayoutError` on every rank instead, as above.
class CommunicationBudget : public detail::CommunicationScope {
 public:
  /// \param bytes  zero or more; a negative number counts as zero
  explicit CommunicationBudget(std::int64_t bytes) noexcept
      : CommunicationScope(bytes > 0 ? bytes : 0) {}
  /// Bytes that this rank has sent on behalf of operators so far, those included that it had
  /// started to send when another rank's scope refused.
  std::int64_t spent() const noexcept { return spent_; }
};

}  // namespace dtensor
