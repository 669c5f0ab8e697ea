// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels that pick elements. Index tensors are dense int64 in the memory of the others, and have
// been checked.
#pragma once

#include <cstdint>
#include <utility>

#include "dtensor/core/tensor.hpp"
#include "dtensor/layout/index_set.hpp"

namespace dtensor::detail {

/// Smallest and largest number; 0 and -1 of none.
std::pair<std::int64_t, std::int64_t> range_of(const Tensor& index);

/// The positions `index` of dimension `dim`.
Tensor select_indices(const Tensor& a, int dim, const Tensor& index);

/// Elements along `dim` of a tensor that holds the indices `held` of it; zero for others.
Tensor gather_held(const Tensor& a, int dim, const Tensor& index, const IndexSet& held);

/// Adds to the elements of `to` along `dim`, of which it holds the indices `held`; others are left
/// out. The same order on any device.
void add_held(const Tensor& to, int dim, const Tensor& index, const Tensor& src,
              const IndexSet& held);

/// With broadcasting.
Tensor fill_masked(const Tensor& a, const Tensor& mask, const Scalar& value);

Tensor make_one_hot(const Tensor& index, std::int64_t classes);

}  // namespace dtensor::detail
