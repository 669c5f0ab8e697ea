// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What must be the same on every rank of MPI_COMM_WORLD.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <string>

#include "dtensor/core/error.hpp"

namespace dtensor::testing {

inline int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

inline int world_size() {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

inline std::string from_rank_0(std::string text) {
  int length = static_cast<int>(text.size());
  MPI_Bcast(&length, 1, MPI_INT, 0, MPI_COMM_WORLD);
  text.resize(static_cast<std::size_t>(length));
  MPI_Bcast(text.data(), length, MPI_CHAR, 0, MPI_COMM_WORLD);
  return text;
}

/// Runs `f` on every rank, expects the same `E` with the same text on all of them within 10 s, and
/// returns the text.
template <class E, class F>
std::string expect_error_everywhere(F&& f) {
  const auto begin = std::chrono::steady_clock::now();
  std::string text = "no exception";
  try {
    f();
  } catch (const E& e) {
    text = e.what();
  } catch (const std::exception& e) {
    text = std::string("another exception: ") + e.what();
    ADD_FAILURE() << text;
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_NE(text, "no exception");
  EXPECT_EQ(text, from_rank_0(text));
  EXPECT_LT(seconds.count(), 10.0);
  return text;
}

inline void expect_contains(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "\"" << part << "\" is not in: " << text;
}

}  // namespace dtensor::testing
