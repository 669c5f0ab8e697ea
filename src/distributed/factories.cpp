// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/distributed/factories.hpp"

#include <algorithm>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/redistribute/program.hpp"

namespace dtensor {

namespace {

Placements placements_of(const FactoryOptions& options, const DeviceMesh& mesh) {
  return options.placements.value_or(Placements(static_cast<std::size_t>(mesh.dim()), Replicate()));
}

DTensor make(const char* function, const Shape& shape, const DeviceMesh& mesh,
             const Placements& placements, DType dtype, const Scalar* value) {
  const auto partial = std::find_if(placements.begin(), placements.end(),
                                    [](const Placement& p) { return p.is_partial(); });
  if (partial != placements.end()) {
    throw LayoutError(function, to_string(placements),
                      "Shard or Replicate; a Partial tensor comes from from_local");
  }
  Layout layout(shape, mesh.grid(), placements);
  Tensor local = Tensor::empty(local_shape_on(layout, Runtime::rank()), dtype, mesh.device());
  if (value) local.fill(*value);
  return DTensor(mesh, std::move(layout), std::move(local));
}

}  // namespace

DTensor empty(const Shape& shape, const DeviceMesh& mesh, const Placements& placements,
              DType dtype) {
  return make("empty", shape, mesh, placements, dtype, nullptr);
}
DTensor empty(const Shape& shape, const FactoryOptions& options) {
  const DeviceMesh& mesh = DeviceMesh::current();
  return empty(shape, mesh, placements_of(options, mesh), options.dtype);
}

DTensor full(const Shape& shape, const Scalar& value, const DeviceMesh& mesh,
             const Placements& placements, DType dtype) {
  return make("full", shape, mesh, placements, dtype, &value);
}
DTensor full(const Shape& shape, const Scalar& value, const FactoryOptions& options) {
  const DeviceMesh& mesh = DeviceMesh::current();
  return full(shape, value, mesh, placements_of(options, mesh), options.dtype);
}

DTensor zeros(const Shape& shape, const DeviceMesh& mesh, const Placements& placements,
              DType dtype) {
  return full(shape, 0, mesh, placements, dtype);
}
DTensor zeros(const Shape& shape, const FactoryOptions& options) { return full(shape, 0, options); }

DTensor ones(const Shape& shape, const DeviceMesh& mesh, const Placements& placements,
             DType dtype) {
  return full(shape, 1, mesh, placements, dtype);
}
DTensor ones(const Shape& shape, const FactoryOptions& options) { return full(shape, 1, options); }

}  // namespace dtensor
