// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <vector>

#include "dtensor/distributed/dtensor.hpp"
#include "local/sorting.hpp"

namespace dtensor::detail {

/// Sorts lines of pairs that several ranks share. Each rank has sorted its part of every line; the
/// result is this rank's part, under the same layout. Collective over the mesh.
/// \param pairs  (lines, own extent, 2), sorted
/// \param dim    the dimension of the layout that the lines go along
Tensor sample_sort(const Tensor& pairs, const DeviceMesh& mesh, const Layout& layout, int dim,
                   DType dtype, const PairOrder& order);

}  // namespace dtensor::detail
