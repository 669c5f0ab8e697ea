// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The few operations on `Tensor` and `DTensor` that all operators of shapes are made of. Arguments
// are checked already, dimensions count from the front. `function` is for errors and events.
#pragma once

#include <optional>
#include <vector>

#include "dtensor/core/function_ref.hpp"
#include "dtensor/distributed/dtensor.hpp"
#include "rearrange.hpp"

namespace dtensor::detail {

/// Throws `ValueError` naming `function` for more dimensions than a tensor can have.
void check_rank(const char* function, std::size_t dims);

/// A number as an element of a tensor. Bool takes 0 and 1. Throws `TypeError` for a number of a
/// higher kind than the type, `ValueError` for an integer that it cannot hold.
Scalar as_element(const char* function, DType dtype, const Scalar& value);

/// Strides of a view of the same elements in another shape; empty where there is none.
std::optional<Extents> view_strides(const Shape& shape, const Extents& strides,
                                    const Shape& target);

/// \param may_copy  copies and moves where there is no view, else throws
Tensor reshaped(const char* function, const Tensor& a, const Shape& shape, bool may_copy);
DTensor reshaped(const char* function, const DTensor& a, const Shape& shape, bool may_copy);

Tensor permuted(const char* function, const Tensor& a, const std::vector<std::int64_t>& dims);
DTensor permuted(const char* function, const DTensor& a, const std::vector<std::int64_t>& dims);

/// Indices `start`, `start + step`, ..., `length` of them.
Tensor sliced(const char* function, const Tensor& a, int dim, std::int64_t start, std::int64_t step,
              std::int64_t length);
DTensor sliced(const char* function, const DTensor& a, int dim, std::int64_t start,
               std::int64_t step, std::int64_t length);

/// Shape and dimensions fit: new ones are in front.
Tensor expanded(const char* function, const Tensor& a, const Shape& shape);
DTensor expanded(const char* function, const DTensor& a, const Shape& shape);

/// Dimension `dim` with `extent` indices that come from where `segments` say; `fill` elsewhere.
Tensor rearranged(const char* function, const Tensor& a, int dim, std::int64_t extent,
                  const Segments& segments, const std::optional<Scalar>& fill = std::nullopt);
DTensor rearranged(const char* function, const DTensor& a, int dim, std::int64_t extent,
                   const Segments& segments, const std::optional<Scalar>& fill = std::nullopt);

/// At least once, and not of nothing.
Tensor repeated_along(const char* function, const Tensor& a, int dim, std::int64_t times);
DTensor repeated_along(const char* function, const DTensor& a, int dim, std::int64_t times);

Tensor concatenated(const char* function, const std::vector<Tensor>& tensors, int dim);
DTensor concatenated(const char* function, const std::vector<DTensor>& tensors, int dim);

/// The same value, Partial only where `keeps` says so; what is not kept is reduced.
/// \param input  which one of the operator's inputs it is
Tensor with_partials(const char* function, const Tensor& a, FunctionRef<bool(ReduceOp)> keeps,
                     int input = 0);
DTensor with_partials(const char* function, const DTensor& a, FunctionRef<bool(ReduceOp)> keeps,
                      int input = 0);
/// Whether the reduction of contributions that are all `value` is `value`, whatever their number.
bool is_fixed_point(ReduceOp op, const Scalar& value);

/// The layout with another extent of `dim`; given extents of its shards are replaced by even ones
/// where they no longer fit.
Layout resized(const Layout& layout, int dim, std::int64_t extent);

/// The number of ranks that share a dimension.
std::int64_t ranks_along(const Layout& layout, int dim);
/// The layout in which the ranks that share a dimension split another one instead, so that each has
/// whole lines along it: the largest that none splits. Empty where none has an index for each rank.
std::optional<Layout> whole_lines(const Layout& layout, int dim);

/// A DTensor whose local part `make` makes; not called on a rank outside of the mesh.
DTensor assemble(const DTensor& like, const Layout& layout, DType dtype, FunctionRef<Tensor()> make,
                 std::optional<Extents> strides = std::nullopt);

}  // namespace dtensor::detail
