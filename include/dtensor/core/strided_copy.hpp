// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Kernels that move or set strided boxes of elements: the only ones that packing, views, fills
/// and conversions need.
#pragma once

#include "dtensor/core/dtype.hpp"
#include "dtensor/core/extents.hpp"
#include "dtensor/core/kokkos_compat.hpp"
#include "dtensor/core/scalar.hpp"

namespace dtensor {

/// A box of elements in memory: a first element and a stride per dimension, in elements.
struct StridedBox {
  void* data;
  Extents strides;
};

/// Copies `extents` elements of `element_size` bytes (1, 2, 4, 8 or 16) from one box to another
/// that does not overlap it. Both live in `kind` memory. Returns when submitted; see `fence`.
void copy_strided(const StridedBox& to, const StridedBox& from, const Extents& extents,
                  std::int64_t element_size, DeviceKind kind);

/// The same with conversion of the scalar type, as `scalar_cast` converts.
void convert_strided(const StridedBox& to, DType to_dtype, const StridedBox& from, DType from_dtype,
                     const Extents& extents, DeviceKind kind);

/// Sets every element to `value`.
void fill_strided(const StridedBox& to, DType dtype, const Extents& extents, const Scalar& value,
                  DeviceKind kind);

}  // namespace dtensor
