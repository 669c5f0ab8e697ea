// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What dispatch costs in memory, and the scopes that limit what operators communicate.
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

#include "dtensor/comm/communication_scope.hpp"
#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/distributed/factories.hpp"
#include "dtensor/ops/ops.hpp"

extern std::int64_t allocations;  // counted_allocations.cpp

namespace dtensor {
namespace {

template <class F>
std::int64_t allocations_of(const F& f) {
  f();  // what is made once
  f();
  const std::int64_t before = allocations;
  f();
  return allocations - before;
}

DeviceMesh flat_mesh() { return DeviceMesh(Shape{Runtime::size()}); }

template <class F>
std::string error_text(const F& f) {
  try {
    f();
  } catch (const LayoutError& e) {
    return e.what();
  }
  return "";
}

TEST(Dispatch, AllocatesNothingButTheResult) {
  const DeviceMesh mesh = flat_mesh();
  const DTensor a = ones({16, 16}, mesh, {Shard(0)}), b = ones({16, 16}, mesh, {Shard(0)}),
                whole = ones({16, 16}, mesh, {Replicate()});
  const Tensor& local = a.to_local();
  // A DTensor is a local tensor and its handle.
  const std::int64_t result =
      1 + allocations_of([&] { Tensor::empty(local.shape(), DType::float64); });
  EXPECT_GT(result, 1);
  EXPECT_EQ(allocations_of([&] { add(a, b); }), result);
  EXPECT_EQ(allocations_of([&] { mul(a, 2.0); }), result);
  EXPECT_EQ(allocations_of([&] { exp(a); }), result);
  // KokkosBlas::gemm allocates the name of its profiling region.
  EXPECT_EQ(allocations_of([&] { matmul(a, whole); }),
            1 + allocations_of([&] { matmul(local, whole.to_local()); }));
}

TEST(ForbidImplicitCommunication, NamesOperatorInputPlacementsAndBytes) {
  const DeviceMesh mesh = flat_mesh();
  const DTensor rows = ones({12, 12}, mesh, {Shard(0)}), columns = ones({12, 12}, mesh, {Shard(1)});
  const ForbidImplicitCommunication forbidden;
  EXPECT_EQ(error_text([&] { add(rows, rows); }), "") << "nothing has to move";
  const std::string text = error_text([&] { add(rows, columns); });
  if (mesh.size() == 1) {
    EXPECT_EQ(text, "");
    return;
  }
  EXPECT_NE(text.find("add"), std::string::npos) << text;
  EXPECT_NE(text.find("input"), std::string::npos) << text;
  EXPECT_NE(text.find("S(1)"), std::string::npos) << text;
  EXPECT_NE(text.find("bytes"), std::string::npos) << text;
  // What the program asks for is allowed, and so is what follows from it.
  const DTensor moved = columns.redistribute({Shard(0)});
  EXPECT_EQ(error_text([&] { add(rows, moved); }), "");
  EXPECT_EQ(moved.full_tensor().to_vector<double>(), std::vector<double>(144, 1.0));
}

TEST(ForbidImplicitCommunication, HoldsForReductionsSortsAndInPlaceForms) {
  const DeviceMesh mesh = flat_mesh();
  if (mesh.size() == 1) return;
  const DTensor x = ones({24}, mesh, {Shard(0)}), partial = sum(ones({24, 3}, mesh, {Shard(0)}), 0);
  const ForbidImplicitCommunication forbidden;
  EXPECT_NE(error_text([&] { sqrt(partial); }), "");
  EXPECT_NE(error_text([&] { sort(x, 0); }), "");
  EXPECT_NE(error_text([&] { topk(x, 3, 0); }), "");
  EXPECT_NE(error_text([&] { argmax(x, 0); }), "");
  EXPECT_NE(error_text([&] { cumsum(x, 0); }), "");
  EXPECT_NE(error_text([&] { flip(x, {0}); }), "");
  const DTensor target = ones({24}, mesh, {Replicate()});
  EXPECT_NE(error_text([&] { add_(target, x); }), "");
}

// The operator under the name that was called, and the input as the program has it.
TEST(ForbidImplicitCommunication, NamesWhatTheProgramKnows) {
  const DeviceMesh mesh = flat_mesh();
  if (mesh.size() == 1) return;
  const DTensor x = ones({12, 12}, mesh, {Shard(0)}), y = ones({12, 12}, mesh, {Replicate()});
  const DTensor whole = to(x, DType::int64), partial = sum(whole, 0);
  const DTensor column_sums = sum(x, 0, true);
  const DTensor definite =
      distribute_tensor(eye(12, 12, DType::float64, mesh.device()), mesh, {Shard(0)});
  const auto expect = [](const std::string& text, const char* name, const char* input,
                         const char* placements) {
    EXPECT_NE(text.find(name), std::string::npos) << text;
    EXPECT_NE(text.find(input), std::string::npos) << text;
    EXPECT_NE(text.find(placements), std::string::npos) << text;
  };
  const ForbidImplicitCommunication forbidden;
  const std::string rows = "(12, 12) as [S(0)]";
  expect(error_text([&] { clamp(partial, std::nullopt, 0.5); }), "clamp", "input 0", "[P]");
  expect(error_text([&] { copy_(ones({12}, mesh, {Replicate()}), partial); }), "copy_", "input",
         "[P]");
  expect(error_text([&] { addcmul_(y, y, x); }), "addcmul_", "input 2", rows.c_str());
  const DTensor index = arange(0, 12, 1, mesh, {Shard(0)}, DType::int64);
  expect(error_text([&] { index_select(x, 0, index); }), "index_select", "input 1",
         "(12,) as [S(0)]");
  expect(error_text([&] { cat({y, column_sums}); }), "cat", "input 1", "(1, 12) as [P]");
  for (const auto& [name, f] : std::vector<std::pair<const char*, std::function<void()>>>{
           {"var", [&] { var(x); }},
           {"argmax", [&] { argmax(x, 0); }},
           {"logsumexp", [&] { logsumexp(x, 0); }},
           {"cumsum", [&] { cumsum(x, 0); }},
           {"norm", [&] { norm(x, 2); }},
           {"softmax", [&] { softmax(x, 0); }},
           {"equal", [&] { equal(x, x); }},
           {"cholesky", [&] { cholesky(definite); }},
           {"qr", [&] { qr(x); }}}) {
    expect(error_text(f), name, "input 0", rows.c_str());
  }
}

TEST(ForbidImplicitCommunication, EndsWithTheScope) {
  const DeviceMesh mesh = flat_mesh();
  const DTensor rows = ones({8, 8}, mesh, {Shard(0)}), columns = ones({8, 8}, mesh, {Shard(1)});
  {
    const ForbidImplicitCommunication forbidden;
    error_text([&] { add(rows, columns); });
  }
  EXPECT_EQ(add(rows, columns).full_tensor().to_vector<double>(), std::vector<double>(64, 2.0));
}

// Uneven shards, so that the ranks send different numbers of bytes and not all reach the limit.
TEST(CommunicationBudget, ThrowsOnEveryRankWhenOneExceedsIt) {
  const DeviceMesh mesh = flat_mesh();
  if (mesh.size() == 1) return;
  std::vector<std::int64_t> extents(static_cast<std::size_t>(mesh.size()), 0);
  extents[0] = 32;
  const DTensor x = ones({32}, mesh, {Shard(0, extents)}), y = ones({32}, mesh, {Shard(0)});
  CommunicationBudget outer(1 << 20);
  {
    CommunicationBudget budget(64);
    EXPECT_NE(error_text([&] { add(x, y); }), "") << "on rank " << Runtime::rank();
    EXPECT_EQ(budget.spent(), 0);
  }
  EXPECT_EQ(error_text([&] { add(x, y); }), "");
  EXPECT_LE(outer.spent(), 32 * 8);
}

TEST(CommunicationBudget, CountsWhatOperatorsSend) {
  const DeviceMesh mesh = flat_mesh();
  const DTensor rows = ones({12, 12}, mesh, {Shard(0)}), columns = ones({12, 12}, mesh, {Shard(1)});
  CommunicationBudget budget(1 << 20);
  add(rows, rows);
  EXPECT_EQ(budget.spent(), 0);
  add(rows, columns);
  const std::int64_t once = budget.spent();
  EXPECT_EQ(once > 0, mesh.size() > 1);
  add(rows, columns);
  EXPECT_EQ(budget.spent(), 2 * once);
  if (mesh.size() == 1) return;
  // A budget may be spent to its last byte.
  CommunicationBudget exact(once);
  EXPECT_EQ(error_text([&] { add(rows, columns); }), "");
  EXPECT_EQ(exact.spent(), once);
  EXPECT_NE(error_text([&] { add(rows, columns); }), "");
  EXPECT_EQ(exact.spent(), once);
}

}  // namespace
}  // namespace dtensor
