// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `Program`: what one rank does to carry out a plan: messages, reductions and local copies, in an
/// order that cannot deadlock. Pure arithmetic.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dtensor/comm/communicator.hpp"
#include "dtensor/redistribute/plan.hpp"

namespace dtensor {

/// A message that leaves this rank.
struct Send {
  int peer;           ///< index among the participants
  Transfer transfer;  ///< source positions are this rank's
};

/// A part of this rank's result.
struct Piece {
  Transfer transfer;               ///< destination positions are this rank's
  std::vector<int> contributors;   ///< participants in the order of reduction; own index included
  std::size_t first_contribution;  ///< number of contributors to the pieces before
};

/// A message that arrives at this rank.
struct Receive {
  int peer;           ///< index among the participants
  std::size_t piece;  ///< the part it contributes to
  std::size_t slot;   ///< its place among the part's contributors
  std::size_t slice;  ///< which slice of what its sender sends
};

/// One communication round.
struct Stage {
  std::size_t input = 0;   ///< buffer 0 is the source's local tensor
  std::size_t output = 0;  ///< equal to `input` for a stage that works in place
  /// Local shapes; one dimension of all elements where the stage ignores the tensor's dimensions.
  Shape input_shape, output_shape;
  std::vector<Send> sends;
  std::vector<Receive> receives;
  std::vector<Piece> pieces;
  std::size_t contributions = 0;  ///< contributors to all pieces
  bool reduces = false;
  std::int64_t group = 1;  ///< contributions to each element
  ReduceOp op = ReduceOp::sum;
  std::int64_t divisor = 1;
  /// The output starts as the identity of this operation.
  std::optional<ReduceOp> identity;
  std::int64_t scale = 1;
  std::size_t step = 0;  ///< index of the plan's step
  int tag = 0;           ///< the same on every rank that takes part in the round
};

/// Sizes that trade memory and latency for overlap.
struct MessageLimits {
  /// Parts that have to be packed, unpacked or reduced travel in messages of about this size, so
  /// that a part is handled while the next is under way and while it is still in cache. A rank's
  /// own part is copied in pieces of this size.
  std::int64_t chunk_bytes = std::int64_t{4} << 20;
  /// Scratch memory that one direction of one redistribution holds, but for one message, or one
  /// slice of all contributions to a reduction, when these are larger.
  std::int64_t window_bytes = std::int64_t{16} << 20;
  /// The largest message, and the smallest that a reduction is cut into.
  std::int64_t max_message_bytes = Communicator::max_message_bytes;
  std::int64_t min_message_bytes = std::int64_t{16} << 10;
};

/// Everything one rank does for a plan.
struct Program {
  std::shared_ptr<const Plan> plan;
  MessageLimits limits;
  int self = 0;                      ///< own index among the participants
  std::vector<Shape> buffer_shapes;  ///< local shapes; buffer 0 is the source, the last the result
  std::vector<Stage> stages;
  std::int64_t bytes_sent = 0;
  std::vector<std::int64_t> step_bytes_sent;  ///< the same for each step of the plan
  /// Bytes of scratch and intermediate buffers at most held at once, for a dense source.
  std::int64_t peak_scratch_bytes = 0;
  /// Bytes of the scratch blocks without which it cannot be carried out at all.
  std::vector<std::int64_t> min_scratch;
};

/// \param participants  ranks of `MPI_COMM_WORLD` in the order of the communicator that is used;
///                      they contain both meshes
/// \param rank          this rank of `MPI_COMM_WORLD`, one of the participants
Program compile(std::shared_ptr<const Plan> plan, const std::vector<int>& participants, int rank,
                const MessageLimits& limits = {});

/// The local shape of `layout` on a rank; all zero on a rank outside of its mesh.
Shape local_shape_on(const Layout& layout, int rank);

}  // namespace dtensor
