// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `Plan`: how a tensor gets from one layout to another, as pure arithmetic that every rank does
/// alike. Nothing here communicates.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dtensor/comm/events.hpp"
#include "dtensor/core/dtype.hpp"
#include "dtensor/layout/layout.hpp"
#include "dtensor/redistribute/cost_model.hpp"
#include "dtensor/redistribute/transfer.hpp"

namespace dtensor {

/// One step of a plan: a move from one layout to the next.
struct Step {
  enum class Kind : std::uint8_t {
    /// Every rank gets each element it needs and lacks straight from a rank that has it, in one
    /// round; contributions are reduced where they arrive, in the order of the mesh coordinates.
    exchange,
    /// The ranks of a group reduce equal local tensors: each reduces one part of the elements, then
    /// all exchange the parts (two rounds).
    all_reduce,
  };
  Kind kind = Kind::exchange;
  Layout from;
  Layout to;
  Collective collective = Collective::none;
  /// Mesh dimensions of `from` that are reduced.
  std::vector<int> reduced;
  ReduceOp op = ReduceOp::sum;
  /// What sums are divided by: the ranks of the averaged mesh dimensions.
  std::int64_t divisor = 1;
  /// Mesh dimensions of `to` that become Partial with the value on coordinate 0 and the identity of
  /// the operation on the others.
  std::vector<int> masked;
  /// Mesh dimensions of `to` that become Partial with the shard that each rank has, and the identity
  /// of the operation in the place of the others.
  std::vector<int> shards;
  /// What every element is divided by on becoming Partial(sum), a power of two; 1 for nothing.
  std::int64_t scale = 1;
};

/// The steps from one layout to another and what they cost.
class Plan {
 public:
  /// Candidates are the direct exchange and reductions followed by one; `model` picks. Without a
  /// reduction there is one step, one round, and each rank receives just what it needs and lacks.
  /// Throws `LayoutError` when the global shapes differ.
  Plan(const Layout& source, const Layout& destination, DType dtype,
       const CostModel& model = CostModel());

  const Layout& source() const noexcept { return source_; }
  const Layout& destination() const noexcept { return destination_; }
  DType dtype() const noexcept { return dtype_; }
  const std::vector<Step>& steps() const noexcept { return steps_; }

  /// Whether any rank sends anything.
  bool communicates() const noexcept { return rounds_ > 0; }
  /// Communication rounds, one after the other.
  int rounds() const noexcept { return rounds_; }
  /// Bytes that a rank (of `MPI_COMM_WORLD`) receives in all steps.
  std::int64_t bytes_received(int rank) const;
  /// Bytes over the network in all, sent or received.
  std::int64_t total_bytes() const;
  /// Bytes that a rank needs and does not hold. A value that must be reduced is held by nobody.
  std::int64_t lower_bound_bytes(int rank) const;
  std::int64_t total_lower_bound_bytes() const;

 private:
  Layout source_, destination_;
  DType dtype_;
  std::vector<Step> steps_;
  int rounds_ = 0;
};

/// A line per step: collective, layouts, bytes.
std::string to_string(const Plan& plan);

}  // namespace dtensor
