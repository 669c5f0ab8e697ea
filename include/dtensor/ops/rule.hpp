// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `Rule`: what an operator says about its dimensions and about contributions (Partial), as data.
/// Every legal placement follows from it. Pure arithmetic.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dtensor/core/extents.hpp"
#include "dtensor/layout/layout.hpp"

namespace dtensor {

/// Contributions that an operator hands on: where all of `inputs` are Partial with the same one of
/// `ops` and the other inputs are whole, the results are contributions of that kind to the result.
struct PartialPass {
  std::uint32_t inputs;  ///< bit i stands for input i
  std::uint32_t ops;     ///< bit i stands for the `ReduceOp` of that value
  friend bool operator==(const PartialPass&, const PartialPass&) = default;

  static constexpr std::uint32_t bit(ReduceOp op) noexcept {
    return std::uint32_t{1} << static_cast<int>(op);
  }
  bool takes(int input) const noexcept { return (inputs >> input & 1) != 0; }
  bool takes(ReduceOp op) const noexcept { return (ops & bit(op)) != 0; }
};

/// How an operator treats contributions.
using PartialPasses = std::vector<PartialPass>;

/// Nothing is handed on: contributions are reduced first.
inline PartialPasses not_linear() { return {}; }
/// The operator is linear in all of the given inputs together, with the others held fixed.
inline PartialPass linear_in(std::initializer_list<int> inputs) {
  PartialPass pass{0, PartialPass::bit(ReduceOp::sum) | PartialPass::bit(ReduceOp::avg)};
  for (int i : inputs) pass.inputs |= std::uint32_t{1} << i;
  return pass;
}
inline PartialPasses in_the_only_input() { return {linear_in({0})}; }
inline PartialPasses in_both_together() { return {linear_in({0, 1})}; }
inline PartialPasses in_each() { return {linear_in({0}), linear_in({1})}; }
/// The one input's elements are only moved, which commutes with every reduction.
inline PartialPasses moves_elements() { return {{1, (std::uint32_t{1} << reduce_op_count) - 1}}; }

/// An operator's dimensions, named once. A cheap handle: copies share what they say. A letter
/// stands for a dimension of the operator; a dimension that is missing in the output is reduced.
class Rule {
 public:
  /// \param equation  one letter (a to z) per tensor dimension, inputs separated by commas:
  ///                  "mk,kn->mn". A "1" in the output is a dimension of extent 1, a "!" after a
  ///                  letter says that no rank may hold only a part of that dimension. A "+" before
  ///                  an input says that it is added to the result, whose dimensions it has:
  ///                  "+mn,mk,kn->mn". Where the result is contributions to a sum, it is, too.
  /// \param passes    how it treats contributions
  /// \param reduction what reduced dimensions are reduced with
  /// Throws `ValueError` for an equation of another form.
  explicit Rule(std::string_view equation, PartialPasses passes = {},
                ReduceOp reduction = ReduceOp::sum);

  /// Element by element, with NumPy's broadcasting: dimensions are aligned from the last one, and
  /// one of extent 1 stands for any extent.
  static Rule pointwise(const std::vector<int>& ranks, PartialPasses passes = {});

  const std::vector<std::string>& inputs() const noexcept { return impl_->inputs; }
  const std::string& output() const noexcept { return impl_->output; }
  const PartialPasses& passes() const noexcept { return impl_->passes; }
  ReduceOp reduction() const noexcept { return impl_->reduction; }
  bool broadcasts() const noexcept { return impl_->broadcasts; }
  /// Whether no rank may hold only a part of the dimension.
  bool is_whole(char letter) const noexcept {
    return impl_->whole.find(letter) != std::string::npos;
  }
  /// Whether the input is added to the result.
  bool is_added(std::size_t input) const noexcept { return (impl_->added >> input & 1) != 0; }
  /// The letters of all dimensions, each once, in the order they first appear.
  std::string letters() const;

  /// The extent of each dimension of `letters()`. Throws `ValueError` naming `function` when the
  /// shapes do not fit together.
  std::vector<std::int64_t> extents(const char* function, const std::vector<Shape>& shapes) const;
  /// Shape of the result. Throws as `extents` does.
  Shape output_shape(const char* function, const std::vector<Shape>& shapes) const;

  std::size_t hash() const noexcept { return impl_->hash; }
  friend bool operator==(const Rule& a, const Rule& b) noexcept {
    return a.impl_ == b.impl_ || *a.impl_ == *b.impl_;
  }

 private:
  struct Impl {
    std::size_t hash = 0;
    std::vector<std::string> inputs;
    std::string output;
    std::string whole;
    std::uint32_t added = 0;  // bit i stands for input i
    PartialPasses passes;
    ReduceOp reduction = ReduceOp::sum;
    bool broadcasts = false;
    friend bool operator==(const Impl& a, const Impl& b) = default;
  };
  explicit Rule(Impl impl, std::string_view equation);

  std::shared_ptr<const Impl> impl_;
};

/// The equation, "mk,kn->mn".
std::string to_string(const Rule& rule);

/// What one mesh dimension does with the inputs and the result of an operator.
struct Strategy {
  Placements inputs;
  Placement output;
  char letter = 0;  ///< the dimension that the mesh dimension splits, 0 for none
};

/// Every legal strategy for a mesh dimension. The first one replicates everything.
/// \param shapes   global shapes of the inputs
/// \param current  their placements on the mesh dimension; uneven and strided shards are offered
///                 where an input has them
std::vector<Strategy> strategies(const Rule& rule, const std::vector<Shape>& shapes,
                                 const Placements& current);

}  // namespace dtensor
