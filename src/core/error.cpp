// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/core/error.hpp"

#include <fmt/format.h>

#include <utility>

namespace dtensor {

Error::Error(ErrorKind kind, std::string function, std::string given, std::string expected,
             int rank)
    : kind_(kind),
      function_(std::move(function)),
      given_(std::move(given)),
      expected_(std::move(expected)),
      rank_(rank),
      what_(fmt::format("dtensor::{}: given {}; expected {}", function_, given_, expected_)) {
  if (rank_ >= 0) what_ += fmt::format(" (found by rank {})", rank_);
}

void throw_error(ErrorKind kind, std::string function, std::string given, std::string expected,
                 int rank) {
  auto raise = [&]<ErrorKind Kind>() {
    throw ErrorOf<Kind>(std::move(function), std::move(given), std::move(expected), rank);
  };
  switch (kind) {
    case ErrorKind::value:
      raise.operator()<ErrorKind::value>();
      break;
    case ErrorKind::type:
      raise.operator()<ErrorKind::type>();
      break;
    case ErrorKind::index:
      raise.operator()<ErrorKind::index>();
      break;
    case ErrorKind::layout:
      raise.operator()<ErrorKind::layout>();
      break;
    case ErrorKind::mismatch:
      raise.operator()<ErrorKind::mismatch>();
      break;
    case ErrorKind::state:
      raise.operator()<ErrorKind::state>();
      break;
    case ErrorKind::communication:
      raise.operator()<ErrorKind::communication>();
      break;
    case ErrorKind::io:
      raise.operator()<ErrorKind::io>();
      break;
  }
  throw Error(kind, std::move(function), std::move(given), std::move(expected), rank);
}

}  // namespace dtensor
