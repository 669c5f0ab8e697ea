// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/sequences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagonal.hpp"
#include "dtensor/core/error.hpp"
#include "local/sequences.hpp"

namespace dtensor {

namespace {

void check_whole(const char* function, const Placements& placements) {
  for (const Placement& p : placements) {
    if (!p.is_partial()) continue;
    throw LayoutError(function, to_string(placements),
                      "Shard or Replicate; a Partial tensor comes from from_local");
  }
}

Placements placements_of(const FactoryOptions& options, const DeviceMesh& mesh) {
  return options.placements.value_or(Placements(static_cast<std::size_t>(mesh.dim()), Replicate()));
}

detail::Sequence arange_sequence(const Scalar& start, const Scalar& end, const Scalar& step,
                                 DType dtype) {
  const auto fail = [&](const std::string& expected) {
    throw ValueError("arange",
                     fmt::format("from {} to {} in steps of {}", to_string(start), to_string(end),
                                 to_string(step)),
                     expected);
  };
  const auto is_integer = [](const Scalar& s) { return s.kind() <= Scalar::Kind::integer; };
  const bool integers = is_integer(start) && is_integer(end) && is_integer(step);
  const bool real = std::max({start.kind(), end.kind(), step.kind()}) < Scalar::Kind::complex;
  if (!real || !(is_floating(dtype) || (is_integral(dtype) && integers))) {
    throw TypeError("arange",
                    fmt::format("{} from {} to {} in steps of {}", to_string(dtype),
                                to_string(start), to_string(end), to_string(step)),
                    "real numbers and a floating-point type, or integers and an integer type");
  }
  detail::Sequence s{0, 0, 0, start.to<double>(), step.to<double>(), false, 0};
  const double span = end.to<double>() - s.start;
  if (!std::isfinite(span) || !std::isfinite(s.step) || s.step == 0 || span / s.step < 0) {
    fail("finite numbers, and a step other than zero that leads from the first to the last");
  }
  if (integers) {
    s.integer_start = start.to<std::int64_t>();
    s.integer_step = step.to<std::int64_t>();
    std::int64_t whole = 0;
    if (__builtin_sub_overflow(end.to<std::int64_t>(), s.integer_start, &whole)) {
      fail("a distance below 2^63");
    }
    s.count = whole / s.integer_step + (whole % s.integer_step != 0);
  } else {
    const double count = std::ceil(span / s.step);
    if (count > 1e18) fail("less than 1e18 numbers");
    s.count = static_cast<std::int64_t>(count);
  }
  return s;
}

detail::Sequence linspace_sequence(double start, double end, std::int64_t steps, DType dtype) {
  if (steps < 0) throw ValueError("linspace", fmt::format("{} numbers", steps), "0 or more");
  if (!is_floating(dtype)) {
    throw TypeError("linspace", to_string(dtype), "a floating-point type");
  }
  const double step = steps > 1 ? (end - start) / static_cast<double>(steps - 1) : 0;
  return {steps, 0, 0, start, step, steps > 1, end};
}

Tensor local_sequence(const detail::Sequence& s, DType dtype, DeviceKind device) {
  Tensor t = Tensor::empty({s.count}, dtype, device);
  detail::fill_sequence(t, s, 0);
  fence(device, "dtensor::sequence");
  return t;
}

DTensor sequence(const char* function, const detail::Sequence& s, const DeviceMesh& mesh,
                 const Placements& placements, DType dtype) {
  check_whole(function, placements);
  DTensor result = empty({s.count}, mesh, placements, dtype);
  if (!mesh.is_member()) return result;
  std::int64_t position = 0;
  const IndexSet held = result.layout().index_set(*mesh.coordinate(), 0);
  for (const Interval& i : held.intervals()) {
    detail::fill_sequence(result.to_local().narrow(0, position, i.length()), s, i.begin);
    position += i.length();
  }
  fence(mesh.device(), "dtensor::sequence");
  return result;
}

Shape matrix(std::int64_t rows, std::int64_t columns) {
  if (rows < 0 || columns < -1) {
    throw ValueError("eye", fmt::format("{} rows and {} columns", rows, columns), "0 or more");
  }
  return {rows, columns == -1 ? rows : columns};
}

void set_diagonal(const Tensor& matrix, const Shape& shape, const IndexSet& rows,
                  const IndexSet& columns) {
  const detail::Diagonal main = detail::diagonal_of(shape[0], shape[1], 0);
  for (const auto& piece : detail::diagonal_pieces(main, rows, columns)) {
    detail::diagonal_view(matrix, 0, 1, piece).fill(1);
  }
  fence(matrix.device(), "dtensor::eye");
}

}  // namespace

DTensor arange(const Scalar& start, const Scalar& end, const Scalar& step, const DeviceMesh& mesh,
               const Placements& placements, DType dtype) {
  return sequence("arange", arange_sequence(start, end, step, dtype), mesh, placements, dtype);
}
DTensor arange(const Scalar& start, const Scalar& end, const Scalar& step,
               const FactoryOptions& options) {
  const DeviceMesh& mesh = DeviceMesh::current();
  return arange(start, end, step, mesh, placements_of(options, mesh), options.dtype);
}
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, DType dtype,
              DeviceKind device) {
  return local_sequence(arange_sequence(start, end, step, dtype), dtype, device);
}

DTensor linspace(double start, double end, std::int64_t steps, const DeviceMesh& mesh,
                 const Placements& placements, DType dtype) {
  return sequence("linspace", linspace_sequence(start, end, steps, dtype), mesh, placements, dtype);
}
DTensor linspace(double start, double end, std::int64_t steps, const FactoryOptions& options) {
  const DeviceMesh& mesh = DeviceMesh::current();
  return linspace(start, end, steps, mesh, placements_of(options, mesh), options.dtype);
}
Tensor linspace(double start, double end, std::int64_t steps, DType dtype, DeviceKind device) {
  return local_sequence(linspace_sequence(start, end, steps, dtype), dtype, device);
}

DTensor eye(std::int64_t rows, std::int64_t columns, const DeviceMesh& mesh,
            const Placements& placements, DType dtype) {
  check_whole("eye", placements);
  const Shape shape = matrix(rows, columns);
  DTensor result = zeros(shape, mesh, placements, dtype);
  if (mesh.is_member()) {
    const Extents& self = *mesh.coordinate();
    set_diagonal(result.to_local(), shape, result.layout().index_set(self, 0),
                 result.layout().index_set(self, 1));
  }
  return result;
}
DTensor eye(std::int64_t rows, std::int64_t columns, const FactoryOptions& options) {
  const DeviceMesh& mesh = DeviceMesh::current();
  return eye(rows, columns, mesh, placements_of(options, mesh), options.dtype);
}
Tensor eye(std::int64_t rows, std::int64_t columns, DType dtype, DeviceKind device) {
  const Shape shape = matrix(rows, columns);
  Tensor result = Tensor::zeros(shape, dtype, device);
  set_diagonal(result, shape, IndexSet(0, shape[0]), IndexSet(0, shape[1]));
  return result;
}

}  // namespace dtensor
