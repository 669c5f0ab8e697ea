// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The exceptions of the library. Each one says which function threw, what it was given and what
/// it expected. A collective function throws the same exception on every rank that takes part.
#pragma once

#include <exception>
#include <string>

namespace dtensor {

/// What an `Error` is about; one exception class belongs to each kind.
enum class ErrorKind : int {
  value,          ///< an argument has a value the function does not take
  type,           ///< a scalar type, memory space or View type that does not fit
  index,          ///< a dimension, rank or position out of range
  layout,         ///< placements that cannot describe the tensor or the move asked for
  mismatch,       ///< ranks called a collective function with different arguments
  state,          ///< MPI, Kokkos or an object is not in a state to be used
  communication,  ///< MPI or NCCL reported a failure
  io,             ///< a file is missing, damaged or of another kind
};

/// Base of every exception the library throws.
class Error : public std::exception {
 public:
  /// \param kind      what the error is about
  /// \param function  the public function that found it, without the namespace
  /// \param given     the offending values
  /// \param expected  what would have been right, and the way out where there is one
  /// \param rank      the rank that found it; -1 when every rank finds the same by itself
  Error(ErrorKind kind, std::string function, std::string given, std::string expected,
        int rank = -1);

  const char* what() const noexcept override { return what_.c_str(); }
  ErrorKind kind() const noexcept { return kind_; }
  const std::string& function() const noexcept { return function_; }
  const std::string& given() const noexcept { return given_; }
  const std::string& expected() const noexcept { return expected_; }
  int rank() const noexcept { return rank_; }

 private:
  ErrorKind kind_;
  std::string function_, given_, expected_;
  int rank_;
  std::string what_;
};

/// One class per kind, so that a program can catch just what it can handle.
template <ErrorKind Kind>
class ErrorOf : public Error {
 public:
  ErrorOf(std::string function, std::string given, std::string expected, int rank = -1)
      : Error(Kind, std::move(function), std::move(given), std::move(expected), rank) {}
};

using ValueError = ErrorOf<ErrorKind::value>;
using TypeError = ErrorOf<ErrorKind::type>;
using IndexError = ErrorOf<ErrorKind::index>;
using LayoutError = ErrorOf<ErrorKind::layout>;
using MismatchError = ErrorOf<ErrorKind::mismatch>;
using StateError = ErrorOf<ErrorKind::state>;
using CommunicationError = ErrorOf<ErrorKind::communication>;
using IoError = ErrorOf<ErrorKind::io>;

/// Throws the class that belongs to `kind`.
[[noreturn]] void throw_error(ErrorKind kind, std::string function, std::string given,
                              std::string expected, int rank = -1);

}  // namespace dtensor
