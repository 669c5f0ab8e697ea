// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What plans cost: the collectives of the known cases, rounds, bounds, large meshes and extents.
#include <gtest/gtest.h>

#include <chrono>

#include "dtensor/core/error.hpp"
#include "dtensor/redistribute/program.hpp"
#include "redistribute/simulation.hpp"

namespace dtensor::testing {
namespace {

struct Count {
  int all_gather = 0, all_to_all = 0, reduce_scatter = 0, all_reduce = 0, other = 0;
  int total() const { return all_gather + all_to_all + reduce_scatter + all_reduce + other; }
};

Plan plan(const Shape& shape, const Shape& mesh, const Placements& from, const Placements& to,
          DType dtype = DType::float64) {
  const auto grid = grid_of(mesh);
  return Plan(Layout(shape, grid, from), Layout(shape, grid, to), dtype);
}

Count count(const Plan& plan) {
  Count c;
  for (const Step& s : plan.steps()) {
    switch (s.collective) {
      case Collective::none:
        break;
      case Collective::all_gather:
        ++c.all_gather;
        break;
      case Collective::all_to_all:
        ++c.all_to_all;
        break;
      case Collective::reduce_scatter:
        ++c.reduce_scatter;
        break;
      case Collective::all_reduce:
        ++c.all_reduce;
        break;
      default:
        ++c.other;
        break;
    }
  }
  return c;
}

const Placement S0 = Shard(0), S1 = Shard(1), S2 = Shard(2), R = Replicate(), P = Partial();

TEST(Plan, GathersOnceFromShardToReplicate) {  // D1
  for (const Shape& s : {Shape{12, 3}, Shape{13, 3}, Shape{14, 3}}) {
    const Count c = count(plan(s, {4}, {S0}, {R}));
    EXPECT_EQ(c.all_gather, 1);
    EXPECT_EQ(c.total(), 1);
  }
  for (const Shape& s : {Shape{3, 12}, Shape{3, 13}, Shape{3, 14}}) {
    EXPECT_EQ(count(plan(s, {4}, {S1}, {R})).all_gather, 1);
  }
}

TEST(Plan, SendsNothingFromReplicate) {  // D2
  EXPECT_FALSE(plan({8, 3}, {4}, {R}, {R}).communicates());
  EXPECT_FALSE(plan({8, 3}, {4}, {R}, {S0}).communicates());
  EXPECT_FALSE(plan({8, 3}, {4}, {R}, {S1}).communicates());
}

TEST(Plan, ReducesPartialWithOneCollective) {  // D3, D4
  const Count c = count(plan({12, 3}, {4}, {P}, {R}));
  EXPECT_EQ(c.all_reduce, 1);
  EXPECT_EQ(c.total(), 1);
  for (const Shape& s : {Shape{12, 3}, Shape{13, 3}, Shape{14, 3}}) {
    const Count d = count(plan(s, {4}, {P}, {S0}));
    EXPECT_EQ(d.reduce_scatter, 1);
    EXPECT_EQ(d.total(), 1);
  }
}

TEST(Plan, ChangesTheShardedDimensionWithOneAllToAll) {  // D5, L6
  for (const Shape& s : {Shape{8, 8}, Shape{8, 8, 8}, Shape{8, 5}, Shape{5, 8}, Shape{5, 5}}) {
    for (const auto& [from, to] : {std::pair{S0, S1}, std::pair{S1, S0}}) {
      const Count c = count(plan(s, {4}, {from}, {to}));
      EXPECT_EQ(c.all_to_all, 1);
      EXPECT_EQ(c.total(), 1);
    }
  }
}

TEST(Plan, MovesOnSeveralMeshDimensionsInOneRound) {  // D6, D7: the bounds there are 1 to 3
  const Shape square{8, 8}, cube{8, 8, 8};
  EXPECT_EQ(count(plan(square, {2, 2}, {S0, S1}, {S0, S0})).total(), 1);
  EXPECT_EQ(count(plan(square, {2, 2}, {S0, S1}, {S1, S0})).total(), 1);
  EXPECT_EQ(count(plan(square, {2, 2}, {S0, S0}, {S1, S1})).total(), 1);
  EXPECT_EQ(count(plan(cube, {2, 2}, {S1, S1}, {S1, S2})).total(), 1);
  EXPECT_EQ(count(plan(cube, {2, 2, 2}, {S0, S0, S0}, {S1, S1, S1})).total(), 1);
  EXPECT_EQ(count(plan(cube, {2, 2, 2}, {S0, S1, S2}, {S2, S1, S0})).total(), 1);
}

TEST(Plan, IgnoresMeshDimensionsOfOneRank) {  // D8
  const Placement all[] = {S0, S1, R, P};
  for (const Placement& a : all) {
    for (const Placement& b : all) {
      EXPECT_FALSE(plan({8, 8}, {4, 1}, {S0, a}, {S0, b}).communicates())
          << to_string(a) << " to " << to_string(b);
    }
  }
}

TEST(Plan, EntersPartialWithoutCommunication) {  // D10
  for (ReduceOp op :
       {ReduceOp::sum, ReduceOp::avg, ReduceOp::min, ReduceOp::max, ReduceOp::product}) {
    EXPECT_FALSE(plan({8, 8}, {4}, {R}, {Partial(op)}).communicates());
  }
  EXPECT_FALSE(plan({8, 8}, {3}, {R}, {P}).communicates());
  // A shard is a contribution with the identity elsewhere, but to an average.
  for (ReduceOp op : {ReduceOp::sum, ReduceOp::min, ReduceOp::max, ReduceOp::product}) {
    EXPECT_FALSE(plan({8, 8}, {4}, {S0}, {Partial(op)}).communicates());
    EXPECT_FALSE(plan({8, 8}, {2, 3}, {S1, S0}, {Partial(op), S0}).communicates());
  }
  EXPECT_TRUE(plan({8, 8}, {4}, {S0}, {Partial(ReduceOp::avg)}).communicates());
}

TEST(Plan, ReducesOverSeveralMeshDimensionsAtOnce) {  // D13, D14
  EXPECT_EQ(count(plan({8, 8}, {4, 2}, {P, P}, {R, R})).all_reduce, 1);
  EXPECT_EQ(count(plan({8, 8}, {4, 2}, {P, P}, {R, R})).total(), 1);
  const Count scatter = count(plan({8, 8}, {4, 2}, {P, P}, {S0, S0}));
  EXPECT_EQ(scatter.reduce_scatter, 1);
  EXPECT_EQ(scatter.total(), 1);
  EXPECT_EQ(count(plan({8, 8}, {4, 2}, {S0, S0}, {R, R})).all_gather, 1);
  EXPECT_EQ(count(plan({8, 8}, {4, 2}, {S0, S0}, {R, R})).total(), 1);
  EXPECT_EQ(count(plan({8, 8}, {2, 2, 2}, {P, P, P}, {R, R, R})).total(), 1);
  const Count mixed = count(plan({8, 8}, {2, 2, 2}, {P, S0, P}, {R, R, R}));
  EXPECT_LE(mixed.total(), 3);
  EXPECT_LE(mixed.all_gather, 1);
}

TEST(Plan, KeepsPartialWhereItStays) {
  const Plan p = plan({8, 8}, {2, 2}, {P, S0}, {P, S1});
  ASSERT_EQ(p.steps().size(), 1u);
  EXPECT_TRUE(p.steps()[0].reduced.empty());
  EXPECT_EQ(p.total_bytes(), p.total_lower_bound_bytes());
}

TEST(Plan, ReducesLargeTensorsWithTheFewestBytes) {
  // An all-reduce over w ranks needs 2 (w - 1) / w of the tensor per rank.
  const std::int64_t n = 1 << 22;
  for (std::int64_t w : {2, 4, 8}) {
    const Plan p = plan({n}, {w}, {P}, {R});
    EXPECT_EQ(p.bytes_received(0), 2 * (w - 1) * n / w * 8);
    const Plan scatter = plan({n}, {w}, {P}, {S0});
    EXPECT_EQ(scatter.bytes_received(0), (w - 1) * n / w * 8);
  }
}

TEST(Plan, ReadsItsBoundsAndScratch) {
  const auto p = std::make_shared<const Plan>(plan({1024, 1024}, {4}, {S0}, {S1}));
  EXPECT_EQ(p->rounds(), 1);
  EXPECT_EQ(p->lower_bound_bytes(2), 3 * 256 * 256 * 8);
  EXPECT_EQ(p->bytes_received(2), p->lower_bound_bytes(2));
  const Program program = compile(p, {0, 1, 2, 3}, 2);
  EXPECT_EQ(program.bytes_sent, 3 * 256 * 256 * 8);
  EXPECT_GT(program.peak_scratch_bytes, 0);
  // Packing goes through a window, whatever the tensor's size.
  const auto large = std::make_shared<const Plan>(plan({1 << 16, 1 << 14}, {4}, {S0}, {S1}));
  EXPECT_LT(compile(large, {0, 1, 2, 3}, 0).peak_scratch_bytes, std::int64_t{64} << 20);
}

TEST(Plan, StaysWithinTheScratchItAnnounces) {
  const auto grid = grid_of({4});
  const Shape shape{512, 640};
  const Placement all[] = {S0, S1, StridedShard(0, 3), R, P};
  for (const Placement& a : all) {
    for (const Placement& b : all) {
      if (b.is_partial()) continue;
      const auto p = std::make_shared<const Plan>(Layout(shape, grid, {a}),
                                                  Layout(shape, grid, {b}), DType::float64);
      SimulatedNetwork network(4);
      std::vector<std::unique_ptr<Execution>> ranks;
      std::int64_t announced = 0, kept = 0;
      MessageLimits limits;
      limits.chunk_bytes = 1 << 16;
      limits.window_bytes = 1 << 18;
      std::vector<Tensor> sources;
      for (int r = 0; r < 4; ++r) {
        sources.push_back(Tensor::zeros(local_shape_on(p->source(), r), DType::float64));
      }
      reset_memory_peak();
      const std::int64_t before = memory_statistics().in_use;
      for (int r = 0; r < 4; ++r) {
        auto program = std::make_shared<const Program>(compile(p, {0, 1, 2, 3}, r, limits));
        announced += program->peak_scratch_bytes;
        const std::int64_t result = program->buffer_shapes.back().product() * 8;
        kept += p->steps().empty() ? 0 : result + result / 8 + 64;
        ranks.push_back(std::make_unique<Execution>(program, network.communicator(r),
                                                    sources[static_cast<std::size_t>(r)], nullptr));
      }
      bool all_done = false;
      while (!all_done) {
        all_done = true;
        for (auto& e : ranks) all_done &= e->test();
      }
      EXPECT_LE(memory_statistics().peak - before, announced + kept)
          << to_string(a) << " to " << to_string(b);
    }
  }
}

// Two ranks of one mesh start different moves: neither may get the other's data, of whatever size.
TEST(Execution, MessagesOfRanksThatDifferDoNotMeet) {
  const auto grid = grid_of({2});
  for (const Shape& other : {Shape{8, 8}, Shape{80, 80}}) {
    SimulatedNetwork network(2);
    std::vector<std::unique_ptr<Execution>> ranks;
    for (int r = 0; r < 2; ++r) {
      const Shape shape = r == 0 ? Shape{8, 8} : other;
      const Layout from(shape, grid, {S0}), to(shape, grid, {r == 0 ? R : S1});
      const auto p = std::make_shared<const Plan>(from, to, DType::float64);
      const auto communicator = network.communicator(r);
      ranks.push_back(std::make_unique<Execution>(
          std::make_shared<const Program>(compile(p, {0, 1}, r)), communicator,
          Tensor::zeros(local_shape_on(from, r), DType::float64),
          std::make_unique<Agreement>(*communicator, "test", to.hash(), nullptr)));
    }
    for (auto& rank : ranks) EXPECT_TRUE(rank->test()) << "the disagreement is known";
    for (int r = 0; r < 2; ++r) {
      EXPECT_GT(network.counters(r).bytes_sent, 0);
      EXPECT_EQ(network.counters(r).bytes_received, 3 * 8) << "the agreement's";
    }
  }
}

TEST(Plan, HandlesExtentsBeyond32Bits) {
  const std::int64_t n = std::int64_t{1} << 40;
  const Plan p = plan({n, 4}, {4}, {S0}, {S1}, DType::int8);
  EXPECT_EQ(p.bytes_received(1), 3 * (n / 4));
  EXPECT_EQ(p.total_bytes(), 3 * n);
}

TEST(Plan, TakesThousandsOfRanks) {
  const auto start = std::chrono::steady_clock::now();
  const Plan p = plan({4096, 4096}, {64, 64}, {S0, S1}, {S1, S0});
  std::vector<int> participants(4096);
  std::iota(participants.begin(), participants.end(), 0);
  const Program program = compile(std::make_shared<const Plan>(p), participants, 1234);
  EXPECT_EQ(program.bytes_sent, p.bytes_received(1234));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  EXPECT_LT(elapsed.count(), 5.0);
}

TEST(Plan, RefusesAnotherGlobalShape) {
  const auto grid = grid_of({2});
  EXPECT_THROW(Plan(Layout({4}, grid, {S0}), Layout({5}, grid, {S0}), DType::float64), LayoutError);
}

}  // namespace
}  // namespace dtensor::testing
