// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// New random tensors.
#include <fmt/format.h>

#include "draw.hpp"
#include "dtensor/core/error.hpp"

namespace dtensor {

namespace {

// Scalar types are checked before any memory is asked for.
DTensor made(const char* function, const Shape& shape, const DeviceMesh& mesh,
             const Placements& placements, DType dtype) {
  for (const Placement& p : placements) {
    if (!p.is_partial()) continue;
    throw LayoutError(function, to_string(placements),
                      "Shard or Replicate; a Partial tensor comes from from_local");
  }
  return empty(shape, mesh, placements, dtype);
}

template <class T>
T uniform(const T& out, Generator& generator) {
  detail::uniform("rand", detail::part_of("rand", out), 0, 1, generator);
  return out;
}
template <class T>
T normal(const T& out, Generator& generator) {
  detail::normal("randn", detail::part_of("randn", out), 0, 1, generator);
  return out;
}
template <class T>
T integers(const T& out, std::int64_t low, std::int64_t high, Generator& generator) {
  detail::randint(detail::part_of("randint", out), low, high, generator);
  return out;
}
template <class T>
T permutation(const T& out, std::int64_t n, Generator& generator) {
  detail::randperm(detail::part_of("randperm", out), n, generator);
  return out;
}

void check_range(std::int64_t low, std::int64_t high, DType dtype) {
  if (low >= high) {
    throw ValueError("randint", fmt::format("a range from {} to {}", low, high),
                     "a lower bound below the upper one");
  }
  require_holds("randint", dtype, low, high - 1);
}

void check_length(std::int64_t n, DType dtype) {
  if (n < 0) throw ValueError("randperm", fmt::format("{} elements", n), "a length of 0 or more");
  require_holds("randperm", dtype, 0, n == 0 ? 0 : n - 1);
}

Placements placements_of(const FactoryOptions& options, const DeviceMesh& mesh) {
  return options.placements.value_or(Placements(static_cast<std::size_t>(mesh.dim()), Replicate()));
}

}  // namespace

Tensor rand(const Shape& shape, DType dtype, DeviceKind device, Generator& generator) {
  require_fractional("rand", dtype, true);
  return uniform(Tensor::empty(shape, dtype, device), generator);
}
DTensor rand(const Shape& shape, const DeviceMesh& mesh, const Placements& placements, DType dtype,
             Generator& generator) {
  require_fractional("rand", dtype, true);
  return uniform(made("rand", shape, mesh, placements, dtype), generator);
}
DTensor rand(const Shape& shape, const FactoryOptions& options, Generator& generator) {
  const DeviceMesh& mesh = DeviceMesh::current();
  return rand(shape, mesh, placements_of(options, mesh), options.dtype, generator);
}

Tensor randn(const Shape& shape, DType dtype, DeviceKind device, Generator& generator) {
  require_fractional("randn", dtype, true);
  return normal(Tensor::empty(shape, dtype, device), generator);
}
DTensor randn(const Shape& shape, const DeviceMesh& mesh, const Placements& placements, DType dtype,
              Generator& generator) {
  require_fractional("randn", dtype, true);
  return normal(made("randn", shape, mesh, placements, dtype), generator);
}
DTensor randn(const Shape& shape, const FactoryOptions& options, Generator& generator) {
  const DeviceMesh& mesh = DeviceMesh::current();
  return randn(shape, mesh, placements_of(options, mesh), options.dtype, generator);
}

Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, DType dtype,
               DeviceKind device, Generator& generator) {
  check_range(low, high, dtype);
  return integers(Tensor::empty(shape, dtype, device), low, high, generator);
}
DTensor randint(std::int64_t low, std::int64_t high, const Shape& shape, const DeviceMesh& mesh,
                const Placements& placements, DType dtype, Generator& generator) {
  check_range(low, high, dtype);
  return integers(made("randint", shape, mesh, placements, dtype), low, high, generator);
}

Tensor randperm(std::int64_t n, DType dtype, DeviceKind device, Generator& generator) {
  check_length(n, dtype);
  return permutation(Tensor::empty({n}, dtype, device), n, generator);
}
DTensor randperm(std::int64_t n, const DeviceMesh& mesh, const Placements& placements, DType dtype,
                 Generator& generator) {
  check_length(n, dtype);
  return permutation(made("randperm", {n}, mesh, placements, dtype), n, generator);
}

}  // namespace dtensor
