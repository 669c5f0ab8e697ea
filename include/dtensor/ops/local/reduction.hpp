// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The local kernels of reductions. All are local, and take what the operators in
/// `ops/reduction.hpp` have checked. Results are row-major; with `keepdim`, reduced dimensions stay
/// with extent 1.
#pragma once

#include <cstdint>
#include <vector>

#include "dtensor/core/tensor.hpp"
#include "dtensor/ops/dims.hpp"

namespace dtensor::detail {

/// Sum divided by `divisor` (1 for none) before it is rounded to `result`, the type of sums or,
/// after a conversion, of means. Over nothing 0, or NaN with a divisor of 0.
Tensor scaled_sum(const Tensor& a, DimSet dims, bool keepdim, DType result, std::int64_t divisor);
/// Over nothing 1.
Tensor product(const Tensor& a, DimSet dims, bool keepdim);

enum class Count : std::uint8_t {
  number,  ///< of elements that are not zero, int64
  any,     ///< whether there is one, bool
  all,     ///< whether none is zero, bool
};
Tensor count(const Tensor& a, DimSet dims, bool keepdim, Count what);

/// The largest or smallest elements; NaN where there is one. Over nothing the identity of the
/// operation.
Tensor extreme(const Tensor& a, DimSet dims, bool keepdim, bool largest);

/// The same with where the first of them is.
struct Extremes {
  Tensor values;
  Tensor indices;  ///< int64; counts the elements over `dims` in row-major order; -1 over nothing
};
Extremes extreme_with_index(const Tensor& a, DimSet dims, bool keepdim, bool largest);
/// One int64 tensor (2, ...) of the bits of the values (float64 or int64) and the indices.
Tensor pack(const Extremes& extremes);
Extremes unpack(const Tensor& packed, DType dtype);
/// From (parts * 2, ...) to (2, ...). \param dtype  of the values, which tells what the bits are
Tensor merge_extremes(const Tensor& parts, DType dtype, bool largest);
/// Positions in a part of a tensor as positions in the whole: for each of the reduced dimensions,
/// the starts of runs of consecutive indices, in the part and in the whole.
struct IndexRuns {
  std::int64_t local_extent, global_extent;
  std::vector<std::int64_t> local, global;
};
Tensor to_global(const Tensor& indices, const std::vector<IndexRuns>& runs);

/// Sums of |x|^p, or the extremes of |x| for infinite p. Not for p = 0. Floating-point and complex
/// types. \param root  take the p-th root; without it, 16-bit types give float32
Tensor power_sum(const Tensor& a, DimSet dims, bool keepdim, double p, bool root);
/// The p-th root of such sums.
Tensor norm_of_power_sum(const Tensor& sums, double p, DType result);

/// What variances are merged from, float64 (parts, ...): the mean (two parts for complex numbers)
/// and the sum of squared distances from it.
Tensor moments(const Tensor& a, DimSet dims);
/// From (parts * k, ...) to (k, ...). \param counts  the number of elements behind each part
Tensor merge_moments(const Tensor& parts, const std::vector<std::int64_t>& counts);
/// \param root  the standard deviation
Tensor variance(const Tensor& a, DimSet dims, bool keepdim, double correction, bool root);
Tensor variance_of_moments(const Tensor& moments, std::int64_t count, double correction, bool root,
                           DType result);

/// The largest element and the sum of exp(x - largest), float64 (2, ...). Floating-point types.
Tensor max_and_sum(const Tensor& a, DimSet dims);
/// From (parts * 2, ...) to (2, ...).
Tensor merge_max_and_sum(const Tensor& parts);
Tensor logsumexp(const Tensor& a, DimSet dims, bool keepdim);
Tensor logsumexp_of(const Tensor& max_and_sum, DType result);

/// Whether any two elements of tensors of one shape and type differ by more than
/// atol + rtol * |b|; bool, 0-d.
Tensor differ(const Tensor& a, const Tensor& b, double rtol, double atol, bool equal_nan);

}  // namespace dtensor::detail
