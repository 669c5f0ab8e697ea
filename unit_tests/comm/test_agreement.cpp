// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/comm/agreement.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

#include "comm/collective_checks.hpp"
#include "dtensor/comm/device_mesh.hpp"

using namespace dtensor;
using dtensor::testing::expect_contains;
using dtensor::testing::expect_error_everywhere;
using dtensor::testing::world_rank;
using dtensor::testing::world_size;

namespace {

class AgreementTest : public ::testing::Test {
 protected:
  MpiCommunicator& comm() { return *mesh_.communicator(); }
  int last() const { return world_size() - 1; }

  DeviceMesh mesh_{Shape{world_size()}};
};

}  // namespace

TEST_F(AgreementTest, EqualFingerprintsAgree) {
  for (std::uint64_t fingerprint : {std::uint64_t{0}, std::uint64_t{42}, ~std::uint64_t{0}}) {
    agree(
        comm(), "f", [&] { return fingerprint; }, [] { return std::string("never asked"); });
  }
  all_or_none(comm(), "f", [] {});
}

TEST_F(AgreementTest, ADifferenceOnAnyRankIsShownWithTheRanks) {
  if (world_size() == 1) return;
  for (int odd = 0; odd < world_size(); ++odd) {
    const bool is_odd = world_rank() == odd;
    const std::string text = expect_error_everywhere<MismatchError>([&] {
      agree(
          comm(), "some_function", [&] { return std::uint64_t{is_odd ? 1u : 2u}; },
          [&] { return std::string(is_odd ? "one value" : "other value"); });
    });
    expect_contains(text, "some_function");
    expect_contains(text, "one value on rank " + std::to_string(odd));
    expect_contains(text, "other value on rank");
  }
}

TEST_F(AgreementTest, AnErrorOfOneRankIsEveryones) {
  const auto throwing = [&](int rank, auto error) {
    return [&, rank, error] {
      all_or_none(comm(), "f", [&] {
        if (world_rank() == rank) throw error;
      });
    };
  };
  std::string text =
      expect_error_everywhere<ValueError>(throwing(last(), ValueError("g", "seven", "eight")));
  expect_contains(text, "g: given seven; expected eight");
  expect_error_everywhere<TypeError>(throwing(0, TypeError("g", "a", "b")));
  expect_error_everywhere<IndexError>(throwing(last(), IndexError("g", "a", "b")));
  expect_error_everywhere<LayoutError>(throwing(last(), LayoutError("g", "a", "b")));
  expect_error_everywhere<MismatchError>(throwing(last(), MismatchError("g", "a", "b")));
  expect_error_everywhere<StateError>(throwing(last(), StateError("g", "a", "b")));
  expect_error_everywhere<IoError>(throwing(last(), IoError("g", "", "line\nbreak")));
  expect_error_everywhere<CommunicationError>(throwing(0, CommunicationError("g", "a", "b")));
  if (world_size() > 1) {
    text = expect_error_everywhere<StateError>(throwing(last(), std::runtime_error("foreign")));
    expect_contains(text, "foreign");
  }
}

TEST_F(AgreementTest, TheLowestFailingRankIsHeard) {
  const std::string text = expect_error_everywhere<ValueError>([&] {
    all_or_none(comm(), "f", [&] {
      if (world_rank() > 0 || world_size() == 1) {
        throw ValueError("g", "rank " + std::to_string(world_rank()), "nothing");
      }
    });
  });
  expect_contains(text, world_size() == 1 ? "given rank 0" : "given rank 1");
}

TEST_F(AgreementTest, DoesNotBlockBeforeItIsWaitedFor) {
  if (world_size() == 1) return;
  Agreement first(comm(), "first", 1, nullptr);
  Agreement second(comm(), "second", world_rank() == 0 ? 1 : 2,
                   [] { return "value " + std::to_string(world_rank() == 0 ? 1 : 2); });
  while (!first.test() || !second.test()) {
  }
  EXPECT_FALSE(first.failed());
  EXPECT_TRUE(second.failed());
  first.wait();
  expect_error_everywhere<MismatchError>([&] { second.wait(); });
}
