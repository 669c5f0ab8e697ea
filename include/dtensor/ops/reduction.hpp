// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Reductions over dimensions, on `Tensor` and `DTensor`.
///
/// All take `dims`: one dimension, a list, or `all_dims`. Negative ones count from the end; an
/// empty list reduces nothing. With `keepdim`, reduced dimensions stay with extent 1. On local
/// tensors they are local and results are row-major. On DTensors, a reduced dimension that is
/// sharded leaves the result Partial without communication where that is exact; the others say what
/// they send. All throw `IndexError` for a dimension out of range, `ValueError` for one given
/// twice.
#pragma once

#include <cmath>

#include "dtensor/ops/any_tensor.hpp"
#include "dtensor/ops/dims.hpp"

namespace dtensor {

namespace detail {

#define DTENSOR_REDUCTION(name)                                               \
  Tensor name(const char* function, const Tensor& a, DimSet d, bool keepdim); \
  DTensor name(const char* function, const DTensor& a, DimSet d, bool keepdim);
DTENSOR_REDUCTION(sum)
DTENSOR_REDUCTION(mean)
DTENSOR_REDUCTION(prod)
DTENSOR_REDUCTION(amax)
DTENSOR_REDUCTION(amin)
DTENSOR_REDUCTION(any)
DTENSOR_REDUCTION(all)
DTENSOR_REDUCTION(count_nonzero)
DTENSOR_REDUCTION(logsumexp)
#undef DTENSOR_REDUCTION

Tensor variance(const char* function, const Tensor& a, DimSet dims, double correction, bool keepdim,
                bool root);
DTensor variance(const char* function, const DTensor& a, DimSet dims, double correction,
                 bool keepdim, bool root);
Tensor norm(const Tensor& a, double p, DimSet dims, bool keepdim);
DTensor norm(const DTensor& a, double p, DimSet dims, bool keepdim);

/// Over several dimensions, indices count the elements over them in row-major order.
ValuesAndIndices<Tensor> extreme_with_index(const char* function, const Tensor& a, DimSet dims,
                                            bool keepdim, bool largest);
ValuesAndIndices<DTensor> extreme_with_index(const char* function, const DTensor& a, DimSet dims,
                                             bool keepdim, bool largest);

// `equal` takes other shapes for unequal tensors.
bool equal(const Tensor& a, const Tensor& b);
bool equal(const DTensor& a, const DTensor& b);
bool close(const char* function, const Tensor& a, const Tensor& b, double rtol, double atol,
           bool equal_nan);
bool close(const char* function, const DTensor& a, const DTensor& b, double rtol, double atol,
           bool equal_nan);

}  // namespace detail

/// The sum; 0 over nothing. Integers and bool give int64 and wrap around, 16-bit types are
/// accumulated in float. Sums are pairwise. After `torch.sum`.
template <AnyTensor T>
T sum(const T& a, const Dims& dims = all_dims, bool keepdim = false) {
  return detail::sum("sum", a, dims.of("sum", a.dim()), keepdim);
}
/// The sum divided by the number of elements of the whole, whatever the shards' extents are.
/// Integers and bool give float64. NaN over nothing. After `torch.mean`.
template <AnyTensor T>
T mean(const T& a, const Dims& dims = all_dims, bool keepdim = false) {
  return detail::mean("mean", a, dims.of("mean", a.dim()), keepdim);
}
/// The product; 1 over nothing. Scalar types as for `sum`; the result is `Partial(product)`.
/// After `torch.prod`.
template <AnyTensor T>
T prod(const T& a, const Dims& dims = all_dims, bool keepdim = false) {
  return detail::prod("prod", a, dims.of("prod", a.dim()), keepdim);
}
/// The largest and the smallest element, NaN where there is one; `Partial(max)` and `Partial(min)`.
/// Not for complex numbers (`TypeError`) and not over nothing (`ValueError`). After `torch.amax`.
template <AnyTensor T>
T amax(const T& a, const Dims& dims = all_dims, bool keepdim = false) {
  return detail::amax("amax", a, dims.of("amax", a.dim()), keepdim);
}
template <AnyTensor T>
T amin(const T& a, const Dims& dims = all_dims, bool keepdim = false) {
  return detail::amin("amin", a, dims.of("amin", a.dim()), keepdim);
}
/// Whether any element, or every one, is not zero: bool, as `Partial(bor)` and `Partial(band)`.
/// Over nothing false and true. After `torch.any`, `torch.all`.
template <AnyTensor T>
T any(const T& a, const Dims& dims = all_dims, bool keepdim = false) {
  return detail::any("any", a, dims.of("any", a.dim()), keepdim);
}
template <AnyTensor T>
T all(const T& a, const Dims& dims = all_dims, bool keepdim = false) {
  return detail::all("all", a, dims.of("all", a.dim()), keepdim);
}
/// The number of elements that are not zero, int64. After `torch.count_nonzero`.
template <AnyTensor T>
T count_nonzero(const T& a, const Dims& dims = all_dims, bool keepdim = false) {
  return detail::count_nonzero("count_nonzero", a, dims.of("count_nonzero", a.dim()), keepdim);
}

/// The variance and the standard deviation, in one pass with merged means and squared distances
/// (Chan, Golub, LeVeque 1979), so that a large mean costs no digits. Complex numbers give the real
/// sum of the variances of both parts, integers and bool float64. Where there are no more than
/// `correction` elements it is infinite, or NaN if all are equal. Throws `ValueError` unless
/// `correction` is finite. A sharded reduced dimension costs one all-gather of two numbers (three
/// for complex ones) per result. After `torch.var`, `torch.std`, whose name belongs to C++. \param
/// correction  subtracted from the number of elements in the divisor: 1 unbiased, 0 biased
template <AnyTensor T>
T var(const T& a, const Dims& dims = all_dims, double correction = 1, bool keepdim = false) {
  return detail::variance("var", a, dims.of("var", a.dim()), correction, keepdim, false);
}
template <AnyTensor T>
T stddev(const T& a, const Dims& dims = all_dims, double correction = 1, bool keepdim = false) {
  return detail::variance("stddev", a, dims.of("stddev", a.dim()), correction, keepdim, true);
}

/// The vector norm: (sum |x|^p)^(1/p), the largest or smallest |x| for p = inf and -inf, the number
/// of elements that are not zero for p = 0. Real; integers and bool give float64. Sharded reduced
/// dimensions leave `Partial(sum)`, `Partial(max)` or `Partial(min)` for p of 0, 1, inf and -inf;
/// otherwise the sums are all-reduced before the root. Throws `ValueError` for NaN and for infinite
/// p over nothing. After `torch.linalg.vector_norm`.
template <AnyTensor T>
T norm(const T& a, double p = 2, const Dims& dims = all_dims, bool keepdim = false) {
  return detail::norm(a, p, dims.of("norm", a.dim()), keepdim);
}

/// log(sum(exp(x))), computed from the largest element so that nothing overflows; -inf over
/// nothing. Integers and bool give float64; not for complex numbers (`TypeError`). A sharded
/// reduced dimension costs one all-gather of two numbers per result. After `torch.logsumexp`.
template <AnyTensor T>
T logsumexp(const T& a, const Dims& dims = all_dims, bool keepdim = false) {
  return detail::logsumexp("logsumexp", a, dims.of("logsumexp", a.dim()), keepdim);
}

/// The largest (smallest) element; as `amax` (`amin`).
template <AnyTensor T>
T max(const T& a) {
  return detail::amax("max", a, Dims(all_dims).of("max", a.dim()), false);
}
template <AnyTensor T>
T min(const T& a) {
  return detail::amin("min", a, Dims(all_dims).of("min", a.dim()), false);
}
/// The largest (smallest) elements along a dimension and where they are in the whole tensor: the
/// first of equal ones, whatever the sharding; the first NaN where there is one. Errors as for
/// `amax`. Where the dimension is sharded, one all-gather of a value and an index per result.
/// After `torch.max(input, dim)`.
template <AnyTensor T>
ValuesAndIndices<T> max(const T& a, std::int64_t dim, bool keepdim = false) {
  return detail::extreme_with_index("max", a, Dims(dim).of("max", a.dim()), keepdim, true);
}
template <AnyTensor T>
ValuesAndIndices<T> min(const T& a, std::int64_t dim, bool keepdim = false) {
  return detail::extreme_with_index("min", a, Dims(dim).of("min", a.dim()), keepdim, false);
}
/// Where the largest (smallest) elements are, along a dimension or, without one, in the tensor's
/// row-major order. As the indices of `max` and `min`. After `torch.argmax`, `torch.argmin`.
template <AnyTensor T>
T argmax(const T& a, std::int64_t dim, bool keepdim = false) {
  return detail::extreme_with_index("argmax", a, Dims(dim).of("argmax", a.dim()), keepdim, true)
      .indices;
}
template <AnyTensor T>
T argmin(const T& a, std::int64_t dim, bool keepdim = false) {
  return detail::extreme_with_index("argmin", a, Dims(dim).of("argmin", a.dim()), keepdim, false)
      .indices;
}
template <AnyTensor T>
T argmax(const T& a) {
  return detail::extreme_with_index("argmax", a, Dims(all_dims).of("argmax", a.dim()), false, true)
      .indices;
}
template <AnyTensor T>
T argmin(const T& a) {
  return detail::extreme_with_index("argmin", a, Dims(all_dims).of("argmin", a.dim()), false, false)
      .indices;
}

/// Whether two tensors have the same shape and equal elements; NaN equals nothing. Throws
/// `TypeError` for two scalar types, `LayoutError` for two meshes. On DTensors the same on every
/// rank of the mesh, for one small all-reduce; a rank outside of the mesh, which has no elements to
/// compare, gets true. After `torch.equal`.
template <AnyTensor T>
bool equal(const T& a, const T& b) {
  return detail::equal(a, b);
}
/// Whether |a - b| <= atol + rtol * |b| for all elements. Infinities are close to themselves only,
/// NaN to NaN with `equal_nan`. Shapes must be equal (`ValueError`); else as `equal`. After
/// `torch.allclose`.
template <AnyTensor T>
bool allclose(const T& a, const T& b, double rtol = 1e-5, double atol = 1e-8,
              bool equal_nan = false) {
  return detail::close("allclose", a, b, rtol, atol, equal_nan);
}
DTENSOR_MIXED_OPERATOR(equal)
DTENSOR_MIXED_OPERATOR(allclose)

}  // namespace dtensor
