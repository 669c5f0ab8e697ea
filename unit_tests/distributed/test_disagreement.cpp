// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ranks that call a collective function with different arguments: each throws the same error within
// seconds, and the same mesh works afterwards.
#include <gtest/gtest.h>

#include "comm/collective_checks.hpp"
#include "distributed/values.hpp"
#include "dtensor/distributed/factories.hpp"
#include "dtensor/ops/ops.hpp"

using namespace dtensor;
using namespace dtensor::testing;

namespace {

bool is_last() { return world_rank() == world_size() - 1; }

class Disagreement : public ::testing::Test {
 protected:
  /// The mesh still moves data right, small and large, at once and asynchronously.
  void TearDown() override {
    const std::int64_t live = MpiCommunicator::live_count();
    RedistributeOptions async;
    async.async_op = true;
    for (const Shape& shape : {Shape{7, 5}, Shape{700, 300}}) {
      const DTensor x =
          distribute_tensor(global_tensor<double>(shape), mesh_, {Shard(0)}, std::nullopt);
      expect_part<double>(x.redistribute({Shard(1)}), shape, {Shard(1)});
      expect_part<double>(x.redistribute({Shard(1)}, async).redistribute({Replicate()}, async),
                          shape, {Replicate()});
      const DTensor p = from_local(global_tensor<double>(shape), mesh_, {Partial(ReduceOp::min)});
      expect_part<double>(p.redistribute({Shard(0)}), shape, {Shard(0)});
    }
    EXPECT_EQ(MpiCommunicator::live_count(), live);
  }

  DeviceMesh mesh_{Shape{world_size()}};
};

}  // namespace

TEST_F(Disagreement, DistributeTensor) {
  std::string text = expect_error_everywhere<MismatchError>([&] {
    distribute_tensor(Tensor::zeros(is_last() ? Shape{5, 4} : Shape{4, 5}, DType::float64), mesh_,
                      {Shard(0)});
  });
  expect_contains(text, "5, 4");
  expect_contains(text, "4, 5");
  text = expect_error_everywhere<MismatchError>([&] {
    distribute_tensor(Tensor::zeros({4, 5}, is_last() ? DType::float32 : DType::float64), mesh_,
                      {Shard(0)});
  });
  expect_contains(text, "float32");
  expect_contains(text, "float64");
  for (const std::optional<int> source : {std::optional<int>(0), std::optional<int>()}) {
    text = expect_error_everywhere<MismatchError>([&] {
      distribute_tensor(Tensor::zeros({4, 5}, DType::float64), mesh_,
                        {is_last() ? Placement(Shard(1)) : Placement(Replicate())}, source);
    });
    expect_contains(text, "[S(1)]");
    expect_contains(text, "[R]");
  }
  text = expect_error_everywhere<MismatchError>([&] {
    distribute_tensor(Tensor::zeros(is_last() ? Shape{5, 4} : Shape{4, 5}, DType::float64), mesh_,
                      {Shard(0)}, std::nullopt);
  });
  expect_contains(text, "(5, 4)");
  expect_error_everywhere<MismatchError>([&] {
    distribute_tensor(Tensor::zeros({4, 5}, DType::float64), mesh_, {Shard(0)}, is_last() ? 1 : 0);
  });
  expect_error_everywhere<MismatchError>([&] {
    distribute_tensor(Tensor::zeros({4, 5}, DType::float64), mesh_, {Shard(0)},
                      is_last() ? std::optional<int>() : std::optional<int>(0));
  });
}

TEST_F(Disagreement, FromLocal) {
  std::string text = expect_error_everywhere<MismatchError>([&] {
    from_local(Tensor::zeros({4, is_last() ? 6 : 5}, DType::float64), mesh_, {Shard(0)});
  });
  expect_contains(text, "(4, 6)");
  expect_contains(text, "(4, 5)");
  text = expect_error_everywhere<MismatchError>([&] {
    from_local(Tensor::zeros({4, 5}, is_last() ? DType::int8 : DType::uint8), mesh_, {Shard(0)});
  });
  expect_contains(text, "uint8");
  text = expect_error_everywhere<MismatchError>([&] {
    from_local(Tensor::zeros({4, 5}, DType::float64), mesh_,
               {is_last() ? Placement(Partial()) : Placement(Replicate())});
  });
  expect_contains(text, "[P]");
  expect_contains(text, "[R]");
  expect_error_everywhere<MismatchError>([&] {
    FromLocalOptions options;
    options.run_check = is_last();
    from_local(Tensor::zeros({4, 5}, DType::float64), mesh_, {Replicate()}, options);
  });
}

TEST_F(Disagreement, WhatOneRankDoesWrongAllThrow) {
  const Tensor local = Tensor::zeros({4, 5}, DType::float64);
  expect_error_everywhere<IndexError>(
      [&] { from_local(local, mesh_, {is_last() ? Shard(7) : Shard(0)}); });
  expect_error_everywhere<StateError>(
      [&] { from_local(is_last() ? Tensor() : local, mesh_, {Shard(0)}); });
  expect_error_everywhere<ValueError>([&] {
    FromLocalOptions options;
    if (is_last()) options.shape = Shape{4, 5};
    from_local(local, mesh_, {Replicate()}, options);
  });
  expect_error_everywhere<LayoutError>([&] {
    distribute_tensor(local, mesh_, {is_last() ? Placement(Partial()) : Placement(Shard(0))});
  });
  expect_error_everywhere<ValueError>(
      [&] { distribute_tensor(local, mesh_, {Shard(0)}, is_last() ? 99 : 0); });
  const DTensor x = zeros({4, 5}, mesh_, {Shard(0)});
  for (bool async : {false, true}) {
    RedistributeOptions options;
    options.async_op = async;
    expect_error_everywhere<IndexError>(
        [&] { x.redistribute({is_last() ? Shard(7) : Shard(1)}, options).wait(); });
    expect_error_everywhere<LayoutError>([&] {
      x.redistribute({is_last() ? Placement(Partial()) : Placement(Replicate())}, options).wait();
    });
    expect_error_everywhere<LayoutError>([&] {
      x.redistribute(is_last() ? Placements{Shard(1), Shard(1)} : Placements{Shard(1)}, options)
          .wait();
    });
  }
}

// Small tensors travel with the call; large ones only once the receiver is ready. Both are under
// way before the ranks know that they disagree.
TEST_F(Disagreement, RedistributeToDifferentPlacements) {
  for (std::int64_t n : {12, 1200}) {
    const DTensor x = zeros({n, n}, mesh_, {Shard(0)});
    for (bool async : {false, true}) {
      RedistributeOptions options;
      options.async_op = async;
      const std::string text = expect_error_everywhere<MismatchError>([&] {
        x.redistribute({is_last() ? Placement(Shard(1)) : Placement(Replicate())}, options).wait();
      });
      expect_contains(text, "[S(1)]");
      expect_contains(text, "[R]");
      expect_contains(text, "rank " + std::to_string(world_size() - 1));
    }
  }
}

// Local moves are not collective: one rank may make them alone, as the checks afterwards show.
TEST_F(Disagreement, LocalMovesOnOneRankAreFine) {
  const DTensor x = zeros({8, 3}, mesh_, {Replicate()});
  if (is_last()) {
    x.redistribute({Shard(0)});
    x.redistribute({Shard(1)});
  }
}

TEST_F(Disagreement, RedistributeToDifferentScalarTypes) {
  if (world_size() == 1) return;
  const DTensor x = zeros({8, 3}, mesh_, {Shard(0)}, DType::float32);
  for (DType other : {DType::float64, DType::float16}) {
    const std::string text = expect_error_everywhere<MismatchError>([&] {
      RedistributeOptions options;
      if (is_last()) options.forward_dtype = other;
      x.redistribute({Replicate()}, options);
    });
    expect_contains(text, to_string(other));
  }
}

TEST_F(Disagreement, RedistributeOfDifferentTensors) {
  const auto local_layout = [&](const Shape& shape, const Placements& p) {
    return Layout(shape, mesh_.grid(), p);
  };
  // What only one rank believes cannot come from a checked function, but from parts.
  const auto make = [&](const Shape& shape, DType dtype) {
    const Layout layout = local_layout(shape, {Shard(0)});
    return DTensor(mesh_, layout,
                   Tensor::zeros(layout.local_shape(*mesh_.coordinate()), dtype, mesh_.device()));
  };
  for (std::int64_t n : {12, 1200}) {
    for (bool async : {false, true}) {
      RedistributeOptions options;
      options.async_op = async;
      for (int odd : {0, world_size() - 1}) {
        const bool is_odd = world_rank() == odd;
        // Larger and smaller than what the others expect.
        for (const Shape& shape : {Shape{n, n + 60}, Shape{n, n - 8}, Shape{2 * n, n}}) {
          const DTensor x = make(is_odd ? shape : Shape{n, n}, DType::float64);
          for (const Placement& to : Placements{Replicate(), Shard(1)}) {
            const std::string text = expect_error_everywhere<MismatchError>(
                [&] { x.redistribute({to}, options).wait(); });
            expect_contains(text, to_string(shape));
            expect_contains(text, to_string(Shape{n, n}));
          }
        }
        const DTensor x = make({n, n}, is_odd ? DType::complex128 : DType::float64);
        const std::string text = expect_error_everywhere<MismatchError>(
            [&] { x.redistribute({Shard(1)}, options).wait(); });
        expect_contains(text, "complex128");
      }
    }
  }
}

// Another function with the same arguments.
TEST_F(Disagreement, DifferentFunctions) {
  const DTensor rows = distribute_tensor(Tensor::zeros({8, 6}, DType::float64), mesh_, {Shard(0)});
  const DTensor columns = rows.redistribute({Shard(1)});
  std::string text =
      expect_error_everywhere<MismatchError>([&] { is_last() ? rows* columns : rows + columns; });
  expect_contains(text, "add of");
  expect_contains(text, "mul of");
  text = expect_error_everywhere<MismatchError>(
      [&] { is_last() ? log_softmax(columns, 1) : softmax(columns, 1); });
  expect_contains(text, "log_softmax of");
}

TEST_F(Disagreement, ReductionsOfDifferentKinds) {
  for (std::int64_t n : {12, 1200}) {
    const auto make = [&](ReduceOp op) {
      return DTensor(mesh_, Layout({n, n}, mesh_.grid(), {Partial(op)}),
                     Tensor::zeros({n, n}, DType::float64));
    };
    for (bool async : {false, true}) {
      RedistributeOptions options;
      options.async_op = async;
      const DTensor x = make(is_last() ? ReduceOp::max : ReduceOp::sum);
      expect_error_everywhere<MismatchError>(
          [&] { x.redistribute({Replicate()}, options).wait(); });
      // One stage on one rank, two on the others.
      const DTensor y = make(ReduceOp::sum);
      expect_error_everywhere<MismatchError>([&] {
        y.redistribute({is_last() ? Placement(Shard(0)) : Placement(Replicate())}, options).wait();
      });
    }
  }
}
