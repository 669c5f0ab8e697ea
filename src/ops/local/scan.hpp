// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Running sums and products of local tensors.
#pragma once

#include <vector>

#include "dtensor/ops/scan.hpp"

namespace dtensor::detail {

/// The type that scans are accumulated in.
DType scan_dtype(DType dtype);

/// Writes the scan of `in` along a dimension into `out`, which has the same shape and the type of
/// sums. \param carry  what comes before: without `dim`, of `scan_dtype`, row-major; or undefined
void scan_into(const Tensor& out, const Tensor& in, int dim, Scan operation, const Tensor& carry);

/// The sum (product) along a dimension, which is removed, of `scan_dtype`.
Tensor scan_total(const Tensor& in, int dim, Scan operation);

/// The sum (product) of some rows of a row-major tensor (rows, ...) of `scan_dtype`, in the order
/// given.
Tensor fold_rows(const Tensor& rows, const std::vector<std::int64_t>& which, Scan operation);

}  // namespace dtensor::detail
