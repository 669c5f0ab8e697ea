// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The arithmetic of Partial: reducing contributions and their neutral elements.
#pragma once

#include <cstdint>
#include <vector>

#include "dtensor/core/dtype.hpp"
#include "dtensor/core/kokkos_compat.hpp"
#include "dtensor/core/scalar.hpp"
#include "dtensor/layout/placement.hpp"

namespace dtensor {

/// out[i] = (c0[i] op c1[i] op ...) / divisor, in the order given, in float for 16-bit types.
/// Integers wrap around; min and max keep NaN. `out` may be the first contribution.
void combine(void* out, const std::vector<const void*>& contributions, std::int64_t count,
             DType dtype, ReduceOp op, std::int64_t divisor, DeviceKind kind);

/// The value that leaves every other unchanged under `op`.
Scalar identity_of(ReduceOp op, DType dtype);

/// data[i] = data[i] / divisor. Floating and complex types.
void divide(void* data, std::int64_t count, DType dtype, std::int64_t divisor, DeviceKind kind);

}  // namespace dtensor
