// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `Decision`: in which layouts an operator takes its inputs and leaves its result. Pure
/// arithmetic, which every rank does alike.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "dtensor/core/dtype.hpp"
#include "dtensor/ops/rule.hpp"

namespace dtensor {

/// The layouts of an operator's inputs and results.
struct Decision {
  std::vector<Layout> inputs;
  Layout output;
  bool moves = true;  ///< whether an input has another layout than it came with
  std::vector<Layout> further_outputs = {};  ///< of an operator that has several results
};

/// Chooses among all combinations of one strategy per mesh dimension. Where nothing needs to be
/// communicated that is chosen, with as few placements changed as possible. Else the choice is
/// what receives the least: to redistribute the inputs, and later to reduce what the result leaves
/// Partial. No input becomes Partial but those that are added to the result, and the shard order of
/// an input is kept.
/// \param function  the operator, for errors
/// \param inputs    layouts on one mesh
/// \param dtypes    their scalar types
/// \param result    the result's scalar type
/// Throws `ValueError` when the shapes do not fit the rule.
Decision decide(const char* function, const Rule& rule, const std::vector<Layout>& inputs,
                const std::vector<DType>& dtypes, DType result);

/// What one mesh dimension may do with the inputs and results of an operator.
struct Choice {
  Placements inputs;
  Placements outputs;
  int axis = -1;  ///< the axis of the operator that the mesh dimension splits, -1 for none
  /// Extent that the ranks which split the axis together must divide, 0 for any number of ranks.
  std::int64_t divided_extent = 0;
};

/// What a decision is made from. An operator's axes are numbered from 0; dimensions of tensors that
/// lie along one axis are split by the same mesh dimensions in the same order.
struct Choices {
  std::vector<std::vector<int>> input_axes;   ///< per dimension of each input, -1 for none
  std::vector<std::vector<int>> output_axes;  ///< the same of each result
  int axes = 0;                               ///< their number
  std::uint32_t added = 0;                    ///< bit i says that input i is added to the result
  std::vector<Shape> output_shapes;
  std::vector<DType> results;  ///< scalar types of the results
  /// For a mesh dimension on which the inputs have the given placements. The first choice
  /// replicates everything.
  std::function<std::vector<Choice>(const Placements& current)> of_mesh_dim;
};

/// As above, for an operator whose choices come from something else than a rule.
Decision decide(const Choices& choices, const std::vector<Layout>& inputs,
                const std::vector<DType>& dtypes);

/// Seconds that it may take to redistribute a tensor: an estimate in closed form, without a plan.
double estimated_seconds(const Layout& from, const Layout& to, DType dtype);

}  // namespace dtensor
