// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `Decision`: in which layouts an operator takes its inputs and leaves its result. Pure
/// arithmetic, which every rank does alike.
#pragma once

#include <vector>

#include "dtensor/core/dtype.hpp"
#include "dtensor/ops/rule.hpp"

namespace dtensor {

/// The layouts of an operator's inputs and result.
struct Decision {
  std::vector<Layout> inputs;
  Layout output;
  bool moves = true;  ///< whether an input has another layout than it came with
};

/// Chooses among all combinations of one strategy per mesh dimension. Where nothing needs to be
/// communicated that is chosen, with as few placements changed as possible. Else the choice is
/// what receives the least: to redistribute the inputs, and later to reduce what the result leaves
/// Partial. No input becomes Partial, and the shard order of an input is kept.
/// \param function  the operator, for errors
/// \param inputs    layouts on one mesh
/// \param dtypes    their scalar types
/// \param result    the result's scalar type
/// Throws `ValueError` when the shapes do not fit the rule.
Decision decide(const char* function, const Rule& rule, const std::vector<Layout>& inputs,
                const std::vector<DType>& dtypes, DType result);

}  // namespace dtensor
