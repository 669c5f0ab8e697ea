// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The way every operator on DTensors goes: decide on layouts, redistribute the inputs that need
/// it, run the local kernel, wrap its result.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "dtensor/distributed/dtensor.hpp"
#include "dtensor/ops/decision.hpp"

namespace dtensor {

/// An operator about to be applied.
struct Operation {
  const char* name;  ///< for errors and events; a literal
  const Rule& rule;
  DType result;  ///< scalar type of the result
  /// Global strides of the result; row-major when absent.
  std::optional<Extents> strides = std::nullopt;
};

/// From the inputs' local tensors to this rank's part of the result.
using LocalKernel = std::function<Tensor(const std::vector<Tensor>&)>;

/// Applies an operator. The decision comes from a bounded cache; its key is the rule, the layouts
/// and the scalar types. Scalar operands live in `kernel` and never in the cache. Throws
/// `LayoutError` naming both when inputs are on different meshes, `ValueError` when shapes do not
/// fit; every rank finds these alike, without communication. Collective over the mesh when an input
/// has to be redistributed and that communicates, local otherwise.
DTensor dispatch(const Operation& operation, const std::vector<DTensor>& inputs,
                 const LocalKernel& kernel);

/// The decision from the bounded cache, made on first use. Local.
Decision cached_decision(const char* function, const Rule& rule, const std::vector<Layout>& inputs,
                         const std::vector<DType>& dtypes, DType result);

}  // namespace dtensor
