// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A Tensor together with a DTensor, inside and outside of an implicit replication scope.
#include <gtest/gtest.h>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/experimental/implicit_replication.hpp"
#include "dtensor/ops/ops.hpp"
#include "ops/distributed_reference.hpp"

namespace dtensor {
namespace {

using experimental::ImplicitReplicationScope;
using testing::Array;
using testing::Communication;
using testing::error_of;
using testing::evaluate;
using testing::Numbers;
using testing::place;

Tensor whole(const Array& a) { return Tensor::from_vector(a.values, a.shape); }

template <class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const TypeError& e) {
    return e.what();
  }
  return "nothing was thrown";
}

class ImplicitReplication : public ::testing::Test {
 protected:
  std::int64_t n = Runtime::size();
  DeviceMesh mesh{n % 2 == 0 ? Shape{2, n / 2} : Shape{1, n}};
  Numbers numbers{5};
  Array a = numbers.array({7, 5}), b = numbers.array({7, 5}), row = numbers.array({5});
};

TEST_F(ImplicitReplication, OutsideItIsATypeErrorThatSaysHow) {
  const DTensor x = place(a, mesh, {Shard(0), Shard(1)});
  for (const std::string& text :
       {message_of([&] { return x + whole(b); }), message_of([&] { return whole(b) * x; }),
        message_of([&] { return matmul(x, whole(row)); })}) {
    for (const char* word : {"a Tensor and a DTensor", "distribute_tensor", "from_local",
                             "ImplicitReplicationScope"}) {
      EXPECT_NE(text.find(word), std::string::npos) << text;
    }
  }
  EXPECT_NE(message_of([&] { return matmul(x, whole(row)); }).find("matmul"), std::string::npos);
}

TEST_F(ImplicitReplication, InsideATensorCountsAsReplicated) {
  const auto minus =
      evaluate({"ij", "ij"}, "ij", {a, b}, [](const auto& v) { return v[0] - v[1]; });
  const auto product =
      evaluate({"ij", "j"}, "i", {a, row}, [](const auto& v) { return v[0] * v[1]; });
  const auto scaled =
      evaluate({"j", "ij"}, "ij", {row, a}, [](const auto& v) { return v[0] * v[1]; });
  for (const Placements& placements : std::vector<Placements>{{Shard(0), Shard(1)},
                                                              {Shard(0), Shard(0)},
                                                              {Replicate(), StridedShard(1, 2)},
                                                              {Shard(1), Replicate()}}) {
    const DTensor x = place(a, mesh, placements);
    Communication communication;
    const ImplicitReplicationScope scope;
    const DTensor difference = x - whole(b);
    const DTensor reverse = whole(b) - x;
    const DTensor rows = whole(row) * x;
    const DTensor products = matmul(x, whole(row));
    EXPECT_EQ(communication.count, 0) << to_string(placements);
    // On a mesh dimension of one rank all placements are the same.
    if (n >= 4) {
      EXPECT_EQ(difference.placements(), x.placements());
    }
    EXPECT_EQ(error_of(difference, *minus), 0);
    EXPECT_EQ(error_of(neg(reverse), *minus), 0);
    EXPECT_EQ(error_of(rows, *scaled), 0);
    EXPECT_LT(error_of(products, *product), 1e-14);
  }
}

// The families of operators define their overloads by one macro; one of each.
TEST_F(ImplicitReplication, EveryFamilyOfOperators) {
  const Array w = numbers.array({5, 3});
  const DTensor x = place(a, mesh, {Shard(0), Shard(1)});
  EXPECT_THROW(einsum("ij,jk->ik", x, whole(w)), TypeError);
  EXPECT_THROW(where(whole(b), x, 0), TypeError);
  EXPECT_THROW(equal(x, whole(a)), TypeError);
  EXPECT_THROW(add_(x, whole(b)), TypeError);
  EXPECT_EQ(error_of(x, a), 0);
  const ImplicitReplicationScope scope;
  const auto product =
      evaluate({"ij", "jk"}, "ik", {a, w}, [](const auto& v) { return v[0] * v[1]; });
  EXPECT_LT(error_of(einsum("ij,jk->ik", x, whole(w)), *product), 1e-13);
  EXPECT_EQ(error_of(where(gt(whole(b), 0), x, 0),
                     *evaluate({"ij", "ij"}, "ij", {a, b},
                               [](const auto& v) { return v[1] > 0 ? v[0] : 0.0; })),
            0);
  EXPECT_TRUE(equal(x, whole(a)));
  EXPECT_FALSE(equal(whole(b), x));
  const Tensor picks = Tensor::from_vector(std::vector<std::int64_t>{3, 0}, {2});
  EXPECT_EQ(index_select(x, 1, picks).shape(), (Shape{7, 2}));
  EXPECT_EQ(mse_loss(x, whole(a)).full_tensor().item<double>(), 0);
}

// What is written in place arrives, whichever of the two is written to.
TEST_F(ImplicitReplication, InPlace) {
  const auto sum = evaluate({"ij", "ij"}, "ij", {a, b}, [](const auto& v) { return v[0] + v[1]; });
  const DTensor x = place(a, mesh, {Shard(0), Shard(1)}), y = place(a, mesh, {Shard(0), Shard(1)});
  const Tensor t = whole(b);
  const ImplicitReplicationScope scope;
  add_(x, t);
  EXPECT_EQ(error_of(x, *sum), 0);
  add_(t, y);
  EXPECT_EQ(t.to_vector<double>(), sum->values);
}

// A whole tensor plus contributions: the contributions are reduced first, and it counts once.
TEST_F(ImplicitReplication, WithPartialItCountsOnce) {
  const auto sum = evaluate({"ij", "ij"}, "ij", {a, b}, [](const auto& v) { return v[0] + v[1]; });
  const DTensor x = place(a, mesh, {Partial(), Shard(0)});
  const ImplicitReplicationScope scope;
  EXPECT_LT(error_of(x + whole(b), *sum), 1e-13);
}

TEST_F(ImplicitReplication, ScopesNestAndEnd) {
  const DTensor x = place(a, mesh, {Shard(0), Shard(1)});
  {
    const ImplicitReplicationScope outer;
    { const ImplicitReplicationScope inner; }
    EXPECT_NO_THROW(x + whole(b));
    EXPECT_THROW(x + whole(numbers.array({7, 3})), ValueError);
  }
  EXPECT_THROW(x + whole(b), TypeError);
}

TEST_F(ImplicitReplication, TheTensorIsNotCopied) {
  const DTensor x = place(a, mesh, {Shard(0), Shard(1)});
  const Tensor t = whole(b);
  const DTensor replicated = detail::as_replicated("test", t, mesh);
  EXPECT_EQ(replicated.to_local().data(), t.data());
  EXPECT_EQ(replicated.placements(), (Placements{Replicate(), Replicate()}));
}

// Every rank calls, also those outside of the mesh.
TEST_F(ImplicitReplication, RanksOutsideOfTheMesh) {
  const DeviceMesh first = DeviceMesh::from_ranks({0}, {1});
  const Layout layout({7, 5}, first.grid(), {Shard(0)});
  const DTensor x(first, layout,
                  first.is_member() ? whole(a) : Tensor::empty({0, 0}, DType::float64));
  const ImplicitReplicationScope scope;
  const DTensor y = x + whole(b);
  EXPECT_EQ(y.shape(), (Shape{7, 5}));
  EXPECT_EQ(y.to_local().numel(), first.is_member() ? 35 : 0);
}

}  // namespace
}  // namespace dtensor
