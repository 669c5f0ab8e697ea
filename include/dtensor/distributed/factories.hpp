// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// DTensors of given shape and value. Each rank makes its own part only; nothing communicates.
#pragma once

#include <optional>

#include "dtensor/distributed/dtensor.hpp"

namespace dtensor {

/// Where and as what a new DTensor is made.
struct FactoryOptions {
  DType dtype = DType::float64;
  /// One per mesh dimension; Replicate everywhere when absent.
  std::optional<Placements> placements = std::nullopt;
};

/// Uninitialized. All of these: \param mesh the current `MeshScope`'s when left out. Throw
/// `LayoutError` when placements do not fit or are Partial, `ValueError` for a bad shape.
DTensor empty(const Shape& shape, const DeviceMesh& mesh, const Placements& placements,
              DType dtype = DType::float64);
DTensor empty(const Shape& shape, const FactoryOptions& options = {});
DTensor zeros(const Shape& shape, const DeviceMesh& mesh, const Placements& placements,
              DType dtype = DType::float64);
DTensor zeros(const Shape& shape, const FactoryOptions& options = {});
DTensor ones(const Shape& shape, const DeviceMesh& mesh, const Placements& placements,
             DType dtype = DType::float64);
DTensor ones(const Shape& shape, const FactoryOptions& options = {});
DTensor full(const Shape& shape, const Scalar& value, const DeviceMesh& mesh,
             const Placements& placements, DType dtype = DType::float64);
DTensor full(const Shape& shape, const Scalar& value, const FactoryOptions& options = {});

}  // namespace dtensor
