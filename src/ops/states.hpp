// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Reductions whose parts are more than one number: each rank reduces what it holds to a state, and
/// only states travel.
#pragma once

#include <vector>

#include "dtensor/core/function_ref.hpp"
#include "dtensor/distributed/dtensor.hpp"
#include "dtensor/ops/dims.hpp"

namespace dtensor::detail {

/// The mesh dimensions of more than one rank over which a rule leaves its result Partial: those
/// that split the reduced dimensions.
std::vector<int> reducing_mesh_dims(const Layout& output);

/// The coordinates that differ from `coordinate` only along `mesh_dims`, the last one fastest.
std::vector<Extents> peers(const ProcessGrid& grid, const std::vector<int>& mesh_dims,
                           const Extents& coordinate);

/// The layout of a tensor whose reduced dimensions are kept with extent 1.
Layout with_unit_dims(const Layout& layout, DimSet reduced);
/// The layout of what is reduced over `dims`, which are dropped: Partial over the mesh dimensions
/// that split them.
Layout reduced_layout(const Layout& layout, DimSet dims);

/// From the states (parts * k, ...) of parts, in the order of `peers`, to the state (k, ...) of the
/// whole.
using MergeStates = FunctionRef<Tensor(const Tensor&)>;

/// The states of all peers for this rank's part of the result: (parts * k, ...). One all-gather.
/// \param input   layout of the operator's input 0, which errors name
/// \param states  this rank's, (k, ...) with the shape of its part of `output`
/// Collective over the mesh; only for its members.
Tensor gather_states(const char* operation, const DeviceMesh& mesh, const Layout& input,
                     const Layout& output, const Tensor& states);

/// The state of the whole, (k, ...) with the shape of this rank's part of the result, on every
/// rank. Few states are gathered by all; of many, every rank merges a part, and those are gathered.
Tensor merged_states(const char* operation, const DeviceMesh& mesh, const Layout& input,
                     const Layout& output, const Tensor& states, MergeStates merge);

}  // namespace dtensor::detail
