// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/any_tensor.hpp"

#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/redistribute/program.hpp"

namespace dtensor::detail {

namespace {
thread_local int implicit_replication_scopes = 0;
}  // namespace

void throw_mixed(const char* function) {
  throw TypeError(function, "a Tensor and a DTensor",
                  "two DTensors, or two Tensors: make a DTensor of the Tensor with "
                  "distribute_tensor (a whole tensor) or from_local (a part of one), or take "
                  "to_local() of the DTensor; inside of an "
                  "experimental::ImplicitReplicationScope a Tensor counts as replicated");
}

void add_implicit_replication(int scopes) noexcept { implicit_replication_scopes += scopes; }
bool implicit_replication() noexcept { return implicit_replication_scopes > 0; }

DTensor as_replicated(const char* function, const Tensor& tensor, const DeviceMesh& mesh) {
  // A copy in other memory would hide what an operator writes in place.
  if (!device_is_host && tensor.device() != mesh.device()) {
    throw TypeError(function, to_string(tensor) + " together with a DTensor on " + to_string(mesh),
                    "tensors in the mesh's memory; Tensor::to moves one there");
  }
  const Layout layout(tensor.shape(), mesh.grid(),
                      Placements(static_cast<std::size_t>(mesh.dim()), Replicate()));
  return DTensor(mesh, layout,
                 mesh.is_member() ? tensor
                                  : Tensor::empty(local_shape_on(layout, Runtime::rank()),
                                                  tensor.dtype(), mesh.device()),
                 tensor.strides());
}

}  // namespace dtensor::detail
