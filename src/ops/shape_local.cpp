// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The primitives of shapes on local tensors.
#include <fmt/format.h>

#include "dtensor/core/error.hpp"
#include "dtensor/core/strided_copy.hpp"
#include "shape_primitives.hpp"

namespace dtensor::detail {

std::optional<Extents> view_strides(const Shape& shape, const Extents& strides,
                                    const Shape& target) {
  if (shape.product() == 0) return row_major_strides(target);
  // Blocks of dimensions that lie dense in memory, from the last one on, must be made up by
  // consecutive dimensions of the target.
  Extents result = target;
  int t = target.size() - 1;
  std::int64_t block = 1, made = 1;
  std::int64_t stride = shape.size() > 0 ? strides[shape.size() - 1] : 1;
  for (int d = shape.size() - 1; d >= 0; --d) {
    block *= shape[d];
    const bool ends = d == 0 || (shape[d - 1] != 1 && strides[d - 1] != block * stride);
    if (!ends) continue;
    while (t >= 0 && (made < block || target[t] == 1)) {
      result[t] = made * stride;
      made *= target[t--];
    }
    if (made != block) return std::nullopt;
    if (d > 0) stride = strides[d - 1];
    block = made = 1;
  }
  for (; t >= 0; --t) result[t] = 1;  // a single element
  return result;
}

Tensor reshaped(const char* function, const Tensor& a, const Shape& shape, bool may_copy) {
  const auto strides = view_strides(a.shape(), a.strides(), shape);
  if (strides) return a.as_strided(shape, *strides, a.storage_offset());
  if (!may_copy) {
    throw ValueError(function,
                     fmt::format("shape {} of a tensor of shape {} with strides {}",
                                 to_string(shape), to_string(a.shape()), to_string(a.strides())),
                     "a shape that its strides allow; reshape copies where they do not");
  }
  return a.contiguous().reshape(shape);
}

Tensor permuted(const char*, const Tensor& a, const std::vector<std::int64_t>& dims) {
  return a.permute(dims);
}

Tensor sliced(const char*, const Tensor& a, int dim, std::int64_t start, std::int64_t step,
              std::int64_t length) {
  Shape shape = a.shape();
  Extents strides = a.strides();
  const std::int64_t offset = length > 0 ? start * strides[dim] : 0;
  shape[dim] = length;
  strides[dim] *= step;
  return a.as_strided(shape, strides, a.storage_offset() + offset);
}

Tensor expanded(const char*, const Tensor& a, const Shape& shape) {
  const int added = shape.size() - a.dim();
  Extents strides = Extents::filled(shape.size(), 0);
  for (int d = added; d < shape.size(); ++d) {
    if (shape[d] == a.shape()[d - added]) strides[d] = a.strides()[d - added];
  }
  return a.as_strided(shape, strides, a.storage_offset());
}

namespace {

std::vector<Run> as_runs(const Segments& segments) {
  std::vector<Run> runs;
  for (const Segment& s : segments) runs.push_back({s.to, s.from, s.length, s.step});
  return runs;
}

}  // namespace

Tensor rearranged(const char*, const Tensor& a, int dim, std::int64_t extent,
                  const Segments& segments, const std::optional<Scalar>& fill) {
  Shape shape = a.shape();
  shape[dim] = extent;
  Tensor result = Tensor::empty(shape, a.dtype(), a.device());
  if (fill) result.fill(*fill);
  copy_runs(result, a, dim, as_runs(segments));
  fence(a.device(), "dtensor::rearranged");
  return result;
}

Tensor repeated_along(const char*, const Tensor& a, int dim, std::int64_t times) {
  Shape shape = a.shape();
  shape[dim] *= times;
  const Tensor result = Tensor::empty(shape, a.dtype(), a.device());
  // What follows on an index of the dimensions before, `times` times in a row.
  const Tensor dense = a.contiguous();
  std::int64_t outer = 1, block = 1;
  for (int d = 0; d < a.dim(); ++d) (d < dim ? outer : block) *= a.shape()[d];
  copy_strided({result.data(), {times * block, block, 1}}, {dense.data(), {block, 0, 1}},
               {outer, times, block}, size_of(a.dtype()), a.device());
  fence(a.device(), "dtensor::repeated");
  return result;
}

Tensor concatenated(const char*, const std::vector<Tensor>& tensors, int dim) {
  Shape shape = tensors.front().shape();
  shape[dim] = 0;
  for (const Tensor& t : tensors) shape[dim] += t.shape()[dim];
  Tensor result = Tensor::empty(shape, tensors.front().dtype(), tensors.front().device());
  std::int64_t position = 0;
  for (const Tensor& t : tensors) {
    const std::int64_t extent = t.shape()[dim];
    copy_runs(result, t, dim, {{position, 0, extent, 1}});
    position += extent;
  }
  fence(result.device(), "dtensor::concatenated");
  return result;
}

Tensor with_partials(const char*, const Tensor& a, FunctionRef<bool(ReduceOp)>, int) { return a; }

bool is_fixed_point(ReduceOp op, const Scalar& value) {
  const auto number = value.to<Kokkos::complex<double>>();
  const bool zero = number.real() == 0 && number.imag() == 0;
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::bxor:
    case ReduceOp::avg:  // an average of equal numbers rounds
      return zero;
    case ReduceOp::product:
      return zero || (number.real() == 1 && number.imag() == 0);
    case ReduceOp::min:
    case ReduceOp::max:
    case ReduceOp::band:
    case ReduceOp::bor:
      break;
  }
  return true;
}

}  // namespace dtensor::detail
