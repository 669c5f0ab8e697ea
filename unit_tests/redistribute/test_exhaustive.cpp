// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every placement to every placement, on simulated ranks in one process, against the plain model.
#include "redistribute/simulation.hpp"

namespace dtensor::testing {
namespace {

// Extents that add up to n and differ from rank to rank, with an empty one in the middle.
std::vector<std::int64_t> uneven(std::int64_t n, std::int64_t parts) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(parts), 0);
  std::int64_t left = n;
  for (std::int64_t i = 0; i + 1 < parts; ++i) {
    const std::int64_t take = i == 1 ? 0 : std::min<std::int64_t>(left, (i * 5 + 2) % 7);
    extents[static_cast<std::size_t>(i)] = take;
    left -= take;
  }
  extents.back() = left;
  return extents;
}

// All assignments of one of `choices` to each mesh dimension.
std::vector<Placements> assignments(const std::vector<Placement>& choices, int mesh_dims) {
  std::vector<Placements> result{{}};
  for (int m = 0; m < mesh_dims; ++m) {
    std::vector<Placements> next;
    for (const Placements& p : result) {
      for (const Placement& c : choices) {
        next.push_back(p);
        next.back().push_back(c);
      }
    }
    result = std::move(next);
  }
  return result;
}

class Counter {
 public:
  template <class T>
  void check(const Case& c) {
    Simulation<T>(c, static_cast<unsigned>(count_)).run();
    ++count_;
  }
  bool failed() const { return ::testing::Test::HasFatalFailure(); }
  long count() const { return count_; }

 private:
  long count_ = 0;
};

constexpr ReduceOp all_ops[] = {ReduceOp::sum,     ReduceOp::avg,  ReduceOp::min, ReduceOp::max,
                                ReduceOp::product, ReduceOp::band, ReduceOp::bor, ReduceOp::bxor};

void check_pairs(Counter& counter, const Shape& shape, const Shape& mesh,
                 const std::vector<Placement>& choices, ReduceOp op, int stride = 1) {
  const auto grid = grid_of(mesh);
  const auto all = assignments(choices, mesh.size());
  // Bitwise operations need integers, averages need floating point.
  const bool integers = op >= ReduceOp::band;
  int turn = 0;
  for (const Placements& from : all) {
    for (const Placements& to : all) {
      if (turn++ % stride != 0) continue;
      Case c{shape, grid, grid, from, to};
      c.transposed_locals = turn % 3 == 0;
      if (integers) {
        counter.check<std::int64_t>(c);
      } else {
        counter.check<double>(c);
      }
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Exhaustive, OneDimensionalTensorsOnOneDimensionalMeshes) {
  Counter counter;
  for (std::int64_t n = 0; n <= 17; ++n) {
    for (std::int64_t w = 1; w <= 8; ++w) {
      for (ReduceOp op : all_ops) {
        const std::vector<Placement> choices{Shard(0),           Shard(0, uneven(n, w)),
                                             StridedShard(0, 2), StridedShard(0, 3),
                                             Replicate(),        Partial(op)};
        check_pairs(counter, {n}, {w}, choices, op);
        ASSERT_FALSE(HasFatalFailure());
      }
    }
  }
  EXPECT_GE(counter.count(), 18 * 8 * 8 * 36);
}

TEST(Exhaustive, OneDimensionalTensorsOnTwoDimensionalMeshes) {
  Counter counter;
  int turn = 0;
  for (std::int64_t n = 0; n <= 17; ++n) {
    for (const Shape& mesh : {Shape{2, 2}, Shape{2, 3}, Shape{3, 2}, Shape{4, 2}, Shape{1, 4}}) {
      const ReduceOp op = all_ops[turn++ % reduce_op_count];
      const std::vector<Placement> choices{Shard(0), StridedShard(0, 2), Replicate(), Partial(op)};
      check_pairs(counter, {n}, mesh, choices, op);
      ASSERT_FALSE(HasFatalFailure());
    }
  }
  EXPECT_EQ(counter.count(), 18 * 5 * 256);
}

TEST(Exhaustive, TwoDimensionalTensors) {
  Counter counter;
  int turn = 0;
  for (const Shape& shape : {Shape{5, 3}, Shape{4, 6}, Shape{1, 7}, Shape{8, 8}, Shape{0, 4}}) {
    for (std::int64_t w = 1; w <= 8; ++w) {
      for (ReduceOp op : all_ops) {
        const std::vector<Placement> choices{
            Shard(0),           Shard(1),    Shard(1, uneven(shape[1], w)),
            StridedShard(0, 2), Replicate(), Partial(op)};
        check_pairs(counter, shape, {w}, choices, op);
        ASSERT_FALSE(HasFatalFailure());
      }
    }
    for (const Shape& mesh : {Shape{2, 2}, Shape{2, 3}, Shape{4, 2}, Shape{2, 4}}) {
      const ReduceOp op = all_ops[turn++ % reduce_op_count];
      const std::vector<Placement> choices{Shard(0), Shard(1), StridedShard(1, 2), Replicate(),
                                           Partial(op)};
      check_pairs(counter, shape, mesh, choices, op);
      ASSERT_FALSE(HasFatalFailure());
    }
  }
  EXPECT_EQ(counter.count(), 5 * (8 * 8 * 36 + 4 * 625));
}

TEST(Exhaustive, ThreeDimensionalTensorsOnThreeDimensionalMeshes) {
  Counter counter;
  int turn = 0;
  for (const Shape& shape : {Shape{3, 2, 4}, Shape{5, 4, 3}, Shape{1, 1, 9}}) {
    const ReduceOp op = all_ops[turn++ % reduce_op_count];
    const std::vector<Placement> choices{Shard(0), Shard(1), Shard(2), Replicate(), Partial(op)};
    check_pairs(counter, shape, {2, 2, 2}, choices, op, 5);
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_EQ(counter.count(), 3 * 3125);
}

TEST(Exhaustive, ScalarsOnAnyMesh) {
  Counter counter;
  for (const Shape& mesh : {Shape{1}, Shape{4}, Shape{2, 3}, Shape{2, 2, 2}}) {
    for (ReduceOp op : all_ops) {
      check_pairs(counter, {}, mesh, {Replicate(), Partial(op)}, op);
      ASSERT_FALSE(HasFatalFailure());
    }
  }
}

TEST(Exhaustive, BetweenMeshes) {
  Counter counter;
  const auto grids = {grid_of({2}, {0, 1}),
                      grid_of({2}, {2, 3}),
                      grid_of({4}, {3, 1, 0, 2}),
                      grid_of({3}, {0, 1, 2}),
                      grid_of({2, 2}, {4, 5, 1, 0}),
                      grid_of({1}, {5}),
                      grid_of({3, 2}, {5, 4, 3, 2, 1, 0})};
  int turn = 0;
  for (const auto& from : grids) {
    for (const auto& to : grids) {
      for (const Shape& shape : {Shape{13}, Shape{6, 5}, Shape{}}) {
        const ReduceOp op = all_ops[turn++ % reduce_op_count];
        std::vector<Placement> choices{Replicate(), Partial(op)};
        if (shape.size() > 0) choices.push_back(Shard(0));
        if (shape.size() > 0) choices.push_back(StridedShard(0, 2));
        if (shape.size() > 1) choices.push_back(Shard(1));
        for (const Placements& a : assignments(choices, from->dim())) {
          for (const Placements& b : assignments(choices, to->dim())) {
            if (op >= ReduceOp::band) {
              counter.check<std::int64_t>({shape, from, to, a, b});
            } else {
              counter.check<double>({shape, from, to, a, b});
            }
            ASSERT_FALSE(HasFatalFailure());
          }
        }
      }
    }
  }
}

TEST(Exhaustive, ShardOrders) {
  Counter counter;
  for (const Shape& shape : {Shape{13, 4}, Shape{8, 8}, Shape{3, 1}}) {
    const auto grid = grid_of({2, 3});
    const std::vector<Placements> all{
        {Shard(0), Shard(0)}, {Shard(1), Shard(1)}, {StridedShard(0, 2), Shard(0)}};
    const auto orders = [](const Placements& p) {
      return std::vector<ShardOrder>{{}, {{p[0].dim(), {1, 0}}}};
    };
    for (const auto& from : all) {
      for (const auto& to : all) {
        for (const auto& from_order : orders(from)) {
          for (const auto& to_order : orders(to)) {
            counter.check<double>({shape, grid, grid, from, to, from_order, to_order});
            ASSERT_FALSE(HasFatalFailure());
          }
        }
      }
    }
  }
}

// Messages of a few bytes and windows of one or two of them: nothing may be lost or deadlock.
TEST(Exhaustive, SmallMessagesAndWindows) {
  Counter counter;
  for (std::int64_t chunk : {8, 16, 40}) {
    for (std::int64_t window : {8, 64, 200}) {
      for (ReduceOp op : {ReduceOp::sum, ReduceOp::max}) {
        const std::vector<Placement> choices{Shard(0), Shard(1), StridedShard(0, 2), Replicate(),
                                             Partial(op)};
        for (const Shape& mesh : {Shape{5}, Shape{2, 3}}) {
          const auto grid = grid_of(mesh);
          const auto all = assignments(choices, mesh.size());
          for (const Placements& from : all) {
            for (const Placements& to : all) {
              Case c{{7, 6}, grid, grid, from, to};
              c.limits = {chunk, window, 24, 8};
              counter.check<double>(c);
              ASSERT_FALSE(HasFatalFailure());
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace dtensor::testing
