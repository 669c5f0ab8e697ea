// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Operators on `DTensor`, and the same on local tensors.
///
/// An operator takes its inputs under the placements that they have wherever the result can be
/// computed like that without communication. Else it redistributes them, as `CommDebugMode` and
/// other observers see with the reason. What Partial does: linear operators hand contributions on,
/// all others reduce them first.
///
/// All of these throw `LayoutError` when the inputs are on different meshes, and what the operator
/// of the same name on `Tensor` throws; every rank finds the same. They are collective over the
/// mesh when an input has to be redistributed and that communicates, and local otherwise.
#pragma once

#include "dtensor/ops/einsum.hpp"
#include "dtensor/ops/factorization.hpp"
#include "dtensor/ops/indexing.hpp"
#include "dtensor/ops/learning.hpp"
#include "dtensor/ops/linalg.hpp"
#include "dtensor/ops/pointwise.hpp"
#include "dtensor/ops/reduction.hpp"
#include "dtensor/ops/scan.hpp"
#include "dtensor/ops/sequences.hpp"
#include "dtensor/ops/shape.hpp"
#include "dtensor/ops/sorting.hpp"
#include "dtensor/ops/triangle.hpp"
