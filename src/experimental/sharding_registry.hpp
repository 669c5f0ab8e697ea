// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <string_view>

#include "dtensor/experimental/register_sharding.hpp"
#include "dtensor/ops/decision.hpp"

namespace dtensor::experimental {

using Decided = std::shared_ptr<const Decision>;

/// The decision of what is registered for an operator, kept with the registration; null where
/// nothing is. Throws as `register_sharding` says.
Decided registered_decision(const char* name, const OperatorCall& call,
                            const std::vector<Layout>& inputs);

/// The choices of an operator that accepts `acceptable`, checked.
Choices acceptable_choices(const char* name, const OperatorCall& call,
                           std::vector<AcceptableSharding> acceptable);

/// The decision among those.
Decided decide_among(const char* name, const OperatorCall& call,
                     std::vector<AcceptableSharding> acceptable, const std::vector<Layout>& inputs);

/// `attributes` without those that never decide on placements.
Attributes placement_attributes(const Attributes& attributes);

}  // namespace dtensor::experimental
