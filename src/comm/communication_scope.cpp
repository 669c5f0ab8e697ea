// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/comm/communication_scope.hpp"

#include <fmt/format.h>

#include "dtensor/core/error.hpp"

namespace dtensor::detail {

namespace {
thread_local CommunicationScope* innermost = nullptr;
}

CommunicationScope::CommunicationScope(std::int64_t bytes) noexcept
    : bytes_(bytes), outer_(innermost) {
  innermost = this;
}

CommunicationScope::~CommunicationScope() { innermost = outer_; }

bool communication_limited() noexcept { return innermost != nullptr; }

std::exception_ptr charge(const char* operation, const char* reason, int input,
                          const Layout& source, const Layout& destination,
                          std::int64_t bytes_sent) {
  for (const CommunicationScope* s = innermost; s; s = s->outer_) {
    if (s->bytes_ >= 0 && s->spent_ + bytes_sent <= s->bytes_) continue;
    const std::string subject = input < 0 ? std::string() : fmt::format("input {}: ", input);
    return std::make_exception_ptr(LayoutError(
        operation,
        fmt::format("{}{} to {}, {} bytes to send: {}", subject, to_string(source),
                    to_string(destination.placements()), bytes_sent, reason),
        s->bytes_ < 0
            ? std::string("no communication that the program has not asked for (a "
                          "ForbidImplicitCommunication is in force); redistribute the input first")
            : fmt::format("at most {} bytes in this CommunicationBudget, of which {} are spent",
                          s->bytes_, s->spent_)));
  }
  for (CommunicationScope* s = innermost; s; s = s->outer_) s->spent_ += bytes_sent;
  return nullptr;
}

}  // namespace dtensor::detail
