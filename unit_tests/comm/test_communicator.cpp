// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include <set>

#include <numeric>

#include "comm/collective_checks.hpp"
#include "dtensor/comm/device_mesh.hpp"
#include "dtensor/core/error.hpp"

using namespace dtensor;
using dtensor::testing::world_rank;
using dtensor::testing::world_size;

namespace {

void wait_all(Communicator& communicator, std::vector<Request>& requests) {
  const auto active = [&] {
    return std::any_of(requests.begin(), requests.end(),
                       [](const Request& r) { return r.active(); });
  };
  while (active()) communicator.progress(requests, true);
}

}  // namespace

TEST(Communicator, MessagesArriveByTagAndInOrder) {
  const DeviceMesh mesh({world_size()});
  MpiCommunicator& c = *mesh.communicator();
  const int to = (c.rank() + 1) % c.size(), from = (c.rank() + c.size() - 1) % c.size();
  const int tag = c.next_tags(0);
  const int sent[] = {100 * c.rank(), 100 * c.rank() + 1, 100 * c.rank() + 2};
  int got[3] = {-1, -1, -1};
  std::vector<Request> requests;
  requests.push_back(c.irecv(&got[2], sizeof(int), from, tag + 1));
  requests.push_back(c.irecv(&got[0], sizeof(int), from, tag));
  requests.push_back(c.irecv(&got[1], sizeof(int), from, tag));
  requests.push_back(c.isend(&sent[0], sizeof(int), to, tag));
  requests.push_back(c.isend(&sent[1], sizeof(int), to, tag));
  requests.push_back(c.isend(&sent[2], sizeof(int), to, tag + 1));
  requests.push_back(Request());  // done from the start
  wait_all(c, requests);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(got[i], 100 * from + i);
}

TEST(Communicator, GathersTextsOfAnyLength) {
  const DeviceMesh mesh({world_size()});
  const auto text_of = [](int rank) {
    return std::string(static_cast<std::size_t>(rank * rank), static_cast<char>('a' + rank));
  };
  const auto texts = mesh.communicator()->all_gather_text(text_of(world_rank()));
  ASSERT_EQ(texts.size(), static_cast<std::size_t>(world_size()));
  for (int r = 0; r < world_size(); ++r) EXPECT_EQ(texts[static_cast<std::size_t>(r)], text_of(r));
}

TEST(Communicator, AMessageThatDoesNotFitIsAnErrorAndEndsTheRequest) {
  if (world_size() == 1) return;  // MPI need not notice it within a process
  const DeviceMesh mesh({world_size()});
  MpiCommunicator& c = *mesh.communicator();
  const int to = (c.rank() + 1) % c.size(), from = (c.rank() + c.size() - 1) % c.size();
  const int tag = c.next_tags(0);
  const std::vector<char> large(100, 'x');
  std::vector<char> small(10);
  std::vector<Request> requests;
  requests.push_back(c.irecv(small.data(), std::ssize(small), from, tag));
  requests.push_back(c.isend(large.data(), std::ssize(large), to, tag));
  int errors = 0;
  while (requests[0].active() || requests[1].active()) {
    try {
      c.progress(requests, true);
    } catch (const CommunicationError&) {
      ++errors;
    }
  }
  EXPECT_EQ(errors, 1);
}

TEST(Communicator, OperationsUnderWayHaveDifferentTags) {
  const DeviceMesh mesh({world_size()});
  MpiCommunicator& c = *mesh.communicator();
  std::set<int> seen;
  for (int i = 0; i < MpiCommunicator::operations_under_way; ++i) {
    const int first = c.next_tags(static_cast<std::uint64_t>(i % 3));
    for (int t = 0; t < MpiCommunicator::tags_per_operation; ++t) {
      EXPECT_TRUE(seen.insert(first + t).second);
    }
  }
}

TEST(Communicator, RanksThatDifferHaveDifferentTags) {
  const DeviceMesh mesh({world_size()});
  MpiCommunicator& c = *mesh.communicator();
  int equal = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const std::uint64_t before = c.operations();
    const int tag = c.next_tags(i);
    c.set_operations(before);
    EXPECT_EQ(c.next_tags(i), tag);
    c.set_operations(before);
    equal += c.next_tags(i + 1) == tag;
  }
  EXPECT_LT(equal, 5);
}
