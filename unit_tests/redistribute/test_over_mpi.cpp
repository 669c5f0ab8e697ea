// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A random sample of redistributions over MPI, against the plain model; and what only real messages
// can show: asynchrony, counts beyond 32 bits, equal bits on all replicas.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/distributed/dtensor.hpp"
#include "dtensor/distributed/factories.hpp"
#include "redistribute/reference.hpp"

namespace dtensor::testing {
namespace {

const Placement S0 = Shard(0), S1 = Shard(1), R = Replicate(), P = Partial();

std::vector<int> increasing(int n) {
  std::vector<int> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

// Small values that every scalar type holds exactly.
double value_at(std::int64_t element, std::int64_t contribution) {
  return static_cast<double>((element * 7 + contribution * 5 + 3) % 4 + 1);
}

Shape random_mesh(std::mt19937& random, int world) {
  std::vector<Shape> all{{world}};
  for (int a = 1; a <= world; ++a) {
    if (world % a != 0) continue;
    all.push_back({a, world / a});
    for (int b = 1; b <= world / a; ++b) {
      if (world / a % b == 0) all.push_back({a, b, world / a / b});
    }
  }
  return all[random() % all.size()];
}

DeviceMesh random_device_mesh(std::mt19937& random, int world) {
  if (random() % 2 == 0) return DeviceMesh(random_mesh(random, world));
  std::vector<int> ranks = increasing(world);
  std::shuffle(ranks.begin(), ranks.end(), random);
  const int members = 1 + static_cast<int>(random() % static_cast<unsigned>(world));
  ranks.resize(static_cast<std::size_t>(members));
  return DeviceMesh::from_ranks(ranks, random_mesh(random, members));
}

Placement random_placement(std::mt19937& random, int dims, std::optional<ReduceOp> op) {
  const unsigned choice = static_cast<unsigned>(random() % 6);
  if (choice < 3 && dims > 0)
    return Shard(static_cast<int>(random() % static_cast<unsigned>(dims)));
  if (choice == 3 && dims > 0) {
    return StridedShard(static_cast<int>(random() % static_cast<unsigned>(dims)), 2);
  }
  if (choice == 4 && op) return Partial(*op);
  return Replicate();
}

Indices own_elements(const Layout& layout, const Extents& coordinate) {
  return naive_elements(layout.shape(),
                        naive_indices(layout.shape(), layout.placements(), layout.grid()->shape(),
                                      coordinate, increasing(layout.grid()->dim())));
}

TEST(OverMpi, RandomMovesGiveTheRightValues) {
  const int world = Runtime::size();
  std::mt19937 random(static_cast<unsigned>(world));
  constexpr ReduceOp ops[] = {ReduceOp::sum, ReduceOp::min, ReduceOp::max,  ReduceOp::product,
                              ReduceOp::avg, ReduceOp::bor, ReduceOp::bxor, ReduceOp::band};
  for (int trial = 0; trial < 250; ++trial) {
    const DeviceMesh from_mesh = random_device_mesh(random, world);
    const DeviceMesh to_mesh = random() % 2 ? from_mesh : random_device_mesh(random, world);
    Shape shape;
    for (unsigned d = random() % 4; d > 0; --d) {
      shape.push_back(static_cast<std::int64_t>(random() % 9));
    }
    const auto dtype = static_cast<DType>(random() % dtype_count);
    std::optional<ReduceOp> op = ops[random() % 8];
    try {
      check_reduce_op("test", *op, dtype);
    } catch (const TypeError&) {
      op.reset();
    }
    if (dtype == DType::boolean) op.reset();  // its sums are not numbers; see test_combine
    Placements from, to;
    std::int64_t contributions = 1;
    for (int m = 0; m < from_mesh.dim(); ++m) {
      from.push_back(random_placement(random, shape.size(), op));
      if (from.back().is_partial()) contributions *= from_mesh.size(m);
    }
    // A product of many contributions must stay exact in the narrow types.
    if (op == ReduceOp::product && contributions > 3) continue;
    for (int m = 0; m < to_mesh.dim(); ++m) {
      to.push_back(random_placement(random, shape.size(), std::nullopt));
    }
    const bool async = random() % 2;
    const Layout from_layout(shape, from_mesh.grid(), from);
    const Layout to_layout(shape, to_mesh.grid(), to);
    SCOPED_TRACE(to_string(dtype) + (" " + to_string(from_layout)) + " to " + to_string(to_layout));

    Tensor local =
        Tensor::zeros(from_mesh.is_member() ? from_layout.local_shape(*from_mesh.coordinate())
                                            : Extents::filled(std::max(shape.size(), 1), 0),
                      dtype);
    const auto divisor = static_cast<double>(op == ReduceOp::avg ? contributions : 1);
    if (from_mesh.is_member()) {
      std::int64_t contribution = 0;
      for (int m = 0; m < from_mesh.dim(); ++m) {
        if (from[static_cast<std::size_t>(m)].is_partial()) {
          contribution = contribution * from_mesh.size(m) + (*from_mesh.coordinate())[m];
        }
      }
      std::vector<double> values;
      for (std::int64_t e : own_elements(from_layout, *from_mesh.coordinate())) {
        values.push_back(value_at(e, contribution) * divisor);
      }
      local.copy_from(Tensor::from_vector(values, local.shape()));
    }
    const DTensor source(from_mesh, from_layout, local);
    RedistributeOptions options;
    options.async_op = async;
    const DTensor result = source.redistribute(to_mesh, to, options);
    const std::vector<double> got = result.to_local().to(DType::float64).to_vector<double>();
    if (!to_mesh.is_member()) {
      EXPECT_TRUE(got.empty());
      continue;
    }
    const Indices own = own_elements(to_layout, *to_mesh.coordinate());
    ASSERT_EQ(got.size(), own.size());
    for (std::size_t i = 0; i < own.size(); ++i) {
      double expected = value_at(own[i], 0) * divisor;
      for (std::int64_t c = 1; c < contributions; ++c) {
        expected = naive_reduce(*op, expected, value_at(own[i], c) * divisor);
      }
      ASSERT_EQ(got[i], dtype == DType::boolean ? 1.0 : expected / divisor) << "element " << own[i];
    }
  }
}

TEST(OverMpi, SeveralAsynchronousMovesAtOnce) {
  const DeviceMesh mesh({Runtime::size()});
  std::vector<DTensor> moves;
  const Shape shape{37, 41};
  std::vector<double> values(37 * 41);
  std::iota(values.begin(), values.end(), 0.0);
  const DTensor x = distribute_tensor(Tensor::from_vector(values, shape), mesh, {S0});
  RedistributeOptions async;
  async.async_op = true;
  for (int i = 0; i < 8; ++i) moves.push_back(x.redistribute({i % 2 ? S1 : R}, async));
  // Chained on moves still under way, and waited for out of order.
  const DTensor chained = moves[1].redistribute({R}, async);
  for (std::size_t i = moves.size(); i-- > 0;) {
    const Tensor full = moves[i].full_tensor();
    ASSERT_EQ(full.to_vector<double>(), values);
  }
  EXPECT_EQ(chained.to_local().to_vector<double>(), values);
}

TEST(OverMpi, ReplicasHaveEqualBits) {
  const int world = Runtime::size();
  std::vector<DeviceMesh> meshes{DeviceMesh({world})};
  if (world % 2 == 0) meshes.push_back(DeviceMesh({2, world / 2}));
  for (const DeviceMesh& mesh : meshes) {
    for (DType dtype : {DType::float64, DType::float32, DType::float16, DType::bfloat16}) {
      for (std::int64_t n : {7, 1000, 100000}) {
        std::mt19937 random(static_cast<unsigned>(Runtime::rank()));
        std::vector<double> values(static_cast<std::size_t>(n));
        for (double& v : values) v = std::uniform_real_distribution<double>(-1, 1)(random);
        const Tensor local = Tensor::from_vector(values, {n}).to(dtype);
        const Placements partial(static_cast<std::size_t>(mesh.dim()), P);
        const Tensor full = from_local(local, mesh, partial).full_tensor();
        const auto bytes = static_cast<std::size_t>(n * size_of(dtype));
        std::vector<char> mine(bytes), first(bytes);
        std::memcpy(mine.data(), full.to(DeviceKind::host).data(), bytes);
        first = mine;
        MPI_Bcast(first.data(), static_cast<int>(bytes), MPI_CHAR, 0, MPI_COMM_WORLD);
        EXPECT_EQ(mine, first) << to_string(dtype) << " " << n;
      }
    }
  }
}

TEST(OverMpi, RepeatedMovesReuseTheirProgram) {
  const DeviceMesh mesh({Runtime::size()});
  const DTensor x = ones({64, 64}, mesh, {S0});
  const double total = x.redistribute({S1}).full_tensor().to_vector<double>()[63];
  for (int i = 0; i < 3000; ++i) {
    ASSERT_EQ(x.redistribute({S1}).to_local().numel(),
              x.layout().with_placements({S1}).local_shape(*mesh.coordinate()).product());
  }
  EXPECT_EQ(total, 1.0);
}

}  // namespace
}  // namespace dtensor::testing
