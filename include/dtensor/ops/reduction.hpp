// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Reductions over dimensions, on `Tensor` and `DTensor`.
#pragma once

#include <cstdint>
#include <vector>

#include "dtensor/ops/any_tensor.hpp"
#include "dtensor/ops/local/reduction.hpp"

namespace dtensor {

/// Over the given dimensions, or all. A reduced dimension that is sharded leaves the result
/// Partial, without communication.
DTensor sum(const DTensor& a);
DTensor sum(const DTensor& a, const std::vector<std::int64_t>& dims, bool keepdim = false);
/// The mean of the whole, whatever the shards' extents are.
DTensor mean(const DTensor& a);
DTensor mean(const DTensor& a, const std::vector<std::int64_t>& dims, bool keepdim = false);

}  // namespace dtensor
