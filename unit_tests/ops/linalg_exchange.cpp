// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes arguments and results of linear algebra for check_linalg.py to compute again.
#include <gtest/gtest.h>

#include "dtensor/checkpoint/checkpoint.hpp"
#include "dtensor/ops/ops.hpp"
#include "ops/distributed_reference.hpp"
#include "ops/layouts.hpp"

namespace dtensor {
namespace {

using namespace testing;

TEST(LinalgExchange, Write) {
  ASSERT_EQ(Runtime::size(), 4);
  const DeviceMesh mesh = square_mesh();
  const Placements blocks{Shard(0), Shard(1)}, rows{Shard(0), Shard(0)};
  Numbers numbers(61);
  std::map<std::string, DTensor> t;
  const auto add = [&](const char* name, const Shape& shape, const Placements& placements) {
    t.emplace(name, place(numbers.array(shape), mesh, placements));
  };
  add("a", {61, 50}, blocks);
  add("b", {50, 43}, blocks);
  add("batch", {3, 20, 50}, {Shard(1), Shard(0)});
  add("tall", {93, 7}, rows);
  add("square", {150, 150}, blocks);
  add("right", {150, 5}, blocks);
  t.emplace("product", matmul(t["a"], t["b"]));
  t.emplace("products", matmul(t["batch"], t["b"]));
  t.emplace("sums", einsum("bij,kj,jl->ikl", t["batch"], t["a"], t["b"]));
  add("bias", {43}, {Shard(0), Replicate()});
  t.emplace("added", addmm(t["bias"], t["a"], t["b"].redistribute(rows), -2, 0.5));
  t.emplace("positive", matmul(t["square"], transpose(t["square"], 0, 1)));
  t.emplace("cholesky", cholesky(t["positive"]));
  const QR<DTensor> factors = qr(t["tall"]);
  t.emplace("q", factors.q);
  t.emplace("r", factors.r);
  t.emplace("solution", solve(t["square"], t["right"]));
  t.emplace("substituted",
            solve_triangular(t["cholesky"], t["right"], {false, MatrixOp::transpose}));
  checkpoint::save(LINALG_DIRECTORY, t);
}

}  // namespace
}  // namespace dtensor
