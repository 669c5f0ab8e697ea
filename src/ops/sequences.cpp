// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/sequences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagonal.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/ops/promotion.hpp"
#include "local/sequences.hpp"

namespace dtensor {

namespace {

// Uninitialized, under placements that are checked on behalf of `function`.
DTensor made(const char* function, const Shape& shape, const DeviceMesh& mesh,
             const Placements& placements, DType dtype) {
  for (const Placement& p : placements) {
    if (!p.is_partial()) continue;
    throw LayoutError(function, to_string(placements),
                      "Shard or Replicate; a Partial tensor comes from from_local");
  }
  try {
    return empty(shape, mesh, placements, dtype);
  } catch (const Error& e) {
    throw_error(e.kind(), function, e.given(), e.expected(), e.rank());
  }
}

Placements placements_of(const FactoryOptions& options, const DeviceMesh& mesh) {
  return options.placements.value_or(Placements(static_cast<std::size_t>(mesh.dim()), Replicate()));
}

// Whether steps lead from one number to another and not away from it.
template <class Number>
bool leads_to(Number start, Number end, Number step) {
  return step > 0 ? start <= end : step < 0 && start >= end;
}

// The number of steps from one integer to before another. Distances need all 64 bits.
std::uint64_t steps_between(std::int64_t start, std::int64_t end, std::int64_t step) {
  const auto minus = [](std::int64_t a, std::int64_t b) {
    return static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b);
  };
  const std::uint64_t span = step > 0 ? minus(end, start) : minus(start, end);
  const std::uint64_t by = step > 0 ? minus(step, 0) : minus(0, step);
  return span / by + (span % by != 0);
}

// What numbers are divided by while they are made, where a double does not hold their distance.
double scale_for(double start, double end) { return std::isfinite(end - start) ? 1 : 2; }

detail::Sequence arange_sequence(const Scalar& start, const Scalar& end, const Scalar& step,
                                 DType dtype) {
  const auto given = [&] {
    return fmt::format("{} from {} to {} in steps of {}", to_string(dtype), to_string(start),
                       to_string(end), to_string(step));
  };
  const auto check = [&](bool fits, const char* expected) {
    if (!fits) throw ValueError("arange", given(), expected);
  };
  const auto is_integer = [](const Scalar& s) { return s.kind() <= Scalar::Kind::integer; };
  const bool integers = is_integer(start) && is_integer(end) && is_integer(step);
  const bool real = std::max({start.kind(), end.kind(), step.kind()}) < Scalar::Kind::complex;
  if (!real || !(is_floating(dtype) || (is_integral(dtype) && integers))) {
    throw TypeError("arange", given(),
                    "real numbers and a floating-point type, or integers and an integer type");
  }
  constexpr const char* leading = "a step other than zero that leads from the first to the last";
  const double first = start.to<double>(), last = end.to<double>(), by = step.to<double>();
  const double scale = scale_for(first, last);
  detail::Sequence s{0, 0, 0, first / scale, by / scale, false, 0, scale};
  if (integers) {
    s.integer_start = start.to<std::int64_t>();
    s.integer_step = step.to<std::int64_t>();
    const auto before = end.to<std::int64_t>();
    check(leads_to(s.integer_start, before, s.integer_step), leading);
    const std::uint64_t count = steps_between(s.integer_start, before, s.integer_step);
    check(count <= static_cast<std::uint64_t>(INT64_MAX), "less than 2^63 numbers");
    s.count = static_cast<std::int64_t>(count);
    const auto furthest =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(s.integer_start) +
                                  (count - 1) * static_cast<std::uint64_t>(s.integer_step));
    check(count == 0 || (holds(dtype, s.integer_start) && holds(dtype, furthest)),
          "numbers that the scalar type can hold");
  } else {
    check(std::isfinite(first) && std::isfinite(last) && std::isfinite(by), "finite numbers");
    check(leads_to(first, last, by), leading);
    const double count = std::ceil((last / scale - s.start) / s.step);
    check(count <= 1e18, "less than 1e18 numbers");
    s.count = static_cast<std::int64_t>(count);
  }
  checked_element_count("arange", {s.count});
  return s;
}

detail::Sequence linspace_sequence(double start, double end, std::int64_t steps, DType dtype) {
  if (steps < 0) throw ValueError("linspace", fmt::format("{} numbers", steps), "0 or more");
  checked_element_count("linspace", {steps});
  if (!std::isfinite(start) || !std::isfinite(end)) {
    throw ValueError("linspace", fmt::format("from {} to {}", start, end), "finite numbers");
  }
  if (!is_floating(dtype)) {
    throw TypeError("linspace", to_string(dtype), "a floating-point type");
  }
  const double scale = scale_for(start, end), first = start / scale, last = end / scale;
  const double step = steps > 1 ? (last - first) / static_cast<double>(steps - 1) : 0;
  return {steps, 0, 0, first, step, steps > 1, last, scale};
}

Tensor local_sequence(const detail::Sequence& s, DType dtype, DeviceKind device) {
  Tensor t = Tensor::empty({s.count}, dtype, device);
  detail::fill_sequence(t, s, 0);
  fence(device, "dtensor::sequence");
  return t;
}

DTensor sequence(const char* function, const detail::Sequence& s, const DeviceMesh& mesh,
                 const Placements& placements, DType dtype) {
  DTensor result = made(function, {s.count}, mesh, placements, dtype);
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
  const Shape shape{rows, columns == -1 ? rows : columns};
  checked_element_count("eye", shape);
  return shape;
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
  const Shape shape = matrix(rows, columns);
  DTensor result = made("eye", shape, mesh, placements, dtype);
  result.to_local().fill(0);
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
