// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `register_sharding`: which placements an operator takes without communication, for operators of
/// a program's own and instead of the library's rules. After
/// `torch.distributed.tensor.experimental.register_sharding`.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "dtensor/core/dtype.hpp"
#include "dtensor/core/extents.hpp"
#include "dtensor/layout/placement.hpp"

namespace dtensor::experimental {

/// A tensor as a whole, without its values and its layout.
struct TensorDescription {
  Shape shape;
  DType dtype = DType::float64;
  friend bool operator==(const TensorDescription&, const TensorDescription&) = default;
};

/// Named arguments of an operator that are no tensors. A double is a value that the kernel
/// computes with; all others may also decide on placements.
using Attribute = std::variant<bool, std::int64_t, double, std::string, std::vector<std::int64_t>>;
using Attributes = std::map<std::string, Attribute>;

/// What a sharding function is asked about.
struct OperatorCall {
  std::vector<TensorDescription> inputs;
  std::vector<TensorDescription> outputs;
  /// Without the doubles. Empty for operators of the library.
  Attributes attributes;
  /// "mk,kn->mn" for operators of the library, which name their dimensions so; empty for others.
  std::string equation;
};

/// What an operator's kernel computes right on ONE mesh dimension: from inputs under these
/// placements, results under those. One per tensor. `Shard` is given without extents.
struct AcceptableSharding {
  Placements outputs;
  Placements inputs;
};

/// Follows from its argument alone and is the same on every rank; its answers are kept.
using ShardingFunction = std::function<std::vector<AcceptableSharding>(const OperatorCall&)>;

/// Ends the registration when it is destroyed.
class [[nodiscard]] ShardingRegistration {
 public:
  ShardingRegistration() = default;
  ~ShardingRegistration() { unregister(); }
  ShardingRegistration(ShardingRegistration&&) noexcept = default;
  ShardingRegistration& operator=(ShardingRegistration&& other) noexcept {
    unregister();
    entry_ = std::move(other.entry_);
    return *this;
  }
  /// Before the end of the object's life. Decisions made with it are forgotten.
  void unregister() noexcept;

 private:
  explicit ShardingRegistration(std::shared_ptr<void> entry) : entry_(std::move(entry)) {}
  friend ShardingRegistration register_sharding(const std::string&, ShardingFunction);
  std::shared_ptr<void> entry_;
};

/// From now on the operator of that name ("softmax", or that of a `CustomOperator`) takes its
/// inputs as `function` says, instead of by a rule of its own. Over several mesh dimensions the
/// cheapest combination is searched as for every operator; replicating everything is always among
/// the choices, and where an input has a shard of given extents, or a strided one, of a dimension
/// that is accepted as `Shard`, that is accepted as well.
///
/// The operator then throws `LayoutError` naming itself and the entry, on every rank and before
/// anything is communicated, when an entry contradicts itself:
/// - a number of placements other than the number of inputs or results, a shard dimension out of
///   range, a shard with given extents or a strided one;
/// - sharded dimensions whose extents are no multiples of the smallest one (where they are, but are
///   not equal, the entry counts where the ranks divide that one);
/// - a sharded result without a sharded input;
/// - a replicated result of inputs of which one is sharded or Partial, a sharded result of a
///   Partial one;
/// - Partial inputs of two reduce operations;
/// - a Partial(sum), (product) or (bxor) result of replicated inputs, which would count W times.
/// Whether the kernel really computes that is the program's word.
///
/// Of the library's operators those count that a rule decides on; docs/extending.md lists them.
/// Operators that are made of several steps ask for each of them, and those that are made of other
/// operators (`mse_loss`) follow these.
///
/// Throws `ValueError` for an empty name or function, for a name that has a registration, and for
/// an operator of the library that would not ask for one ("transpose", "sort", everything in
/// place). Local: every rank makes the same registrations.
ShardingRegistration register_sharding(const std::string& operator_name, ShardingFunction function);

}  // namespace dtensor::experimental
