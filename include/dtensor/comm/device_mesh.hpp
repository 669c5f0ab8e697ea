// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `DeviceMesh`: an n-dimensional array of processes with communicators, after
/// `torch.distributed.device_mesh`.
#pragma once

#include <mpi.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dtensor/comm/mpi_communicator.hpp"
#include "dtensor/core/kokkos_compat.hpp"
#include "dtensor/layout/process_grid.hpp"

namespace dtensor {

/// A cheap handle to shared state. One communicator is made per mesh dimension and one for the
/// whole mesh, shared between meshes of the same ranks and freed with the last of them.
class DeviceMesh {
 public:
  /// Over all ranks of `MPI_COMM_WORLD`, in row-major order. Collective over `MPI_COMM_WORLD`.
  /// \param shape   extent of each mesh dimension; their product is the number of ranks
  /// \param names   one per mesh dimension, or none
  /// \param device  the memory space that tensors on this mesh live in
  /// Throws `ValueError` naming the value that does not fit, `MismatchError` when ranks differ,
  /// `StateError` when MPI is not up or its thread level is below `MPI_THREAD_FUNNELED`.
  explicit DeviceMesh(const Shape& shape, std::vector<std::string> names = {},
                      DeviceKind device = DeviceKind::device);

  /// Over all ranks of a communicator, in its order. Collective over it; it is not kept.
  DeviceMesh(MPI_Comm comm, const Shape& shape, std::vector<std::string> names = {},
             DeviceKind device = DeviceKind::device);

  /// From an explicit array of `MPI_COMM_WORLD` ranks, row-major: a subset, in any order. Ranks
  /// that are not listed get a mesh without a coordinate. Collective over `MPI_COMM_WORLD`.
  static DeviceMesh from_ranks(const std::vector<int>& ranks, const Shape& shape,
                               std::vector<std::string> names = {},
                               DeviceKind device = DeviceKind::device);

  const Shape& shape() const noexcept;
  /// Number of mesh dimensions.
  int dim() const noexcept;
  /// Number of ranks, in all or along one dimension.
  std::int64_t size() const noexcept;
  std::int64_t size(int mesh_dim) const;
  std::int64_t size(const std::string& name) const;
  const std::vector<std::string>& names() const noexcept;
  const std::vector<int>& ranks() const noexcept;
  DeviceKind device() const noexcept;
  const std::shared_ptr<const ProcessGrid>& grid() const noexcept;

  /// Coordinate of this process; empty when it is not part of the mesh.
  const std::optional<Extents>& coordinate() const noexcept;
  bool is_member() const noexcept { return coordinate().has_value(); }
  /// Coordinate of this process along one dimension. Throws `StateError` when not part of the mesh.
  std::int64_t local_rank(int mesh_dim) const;
  std::int64_t local_rank(const std::string& name) const;

  /// The sub-mesh along the named dimensions that contains this process. Collective over this mesh.
  /// Throws `ValueError` for an unknown name, `MismatchError` when ranks differ in the names,
  /// `StateError` when this process is not in the mesh.
  DeviceMesh operator[](const std::string& name) const { return slice({name}); }
  DeviceMesh slice(const std::vector<std::string>& names) const;
  /// The same ranks in one dimension. Collective over the mesh.
  DeviceMesh flatten(const std::string& name = "") const;

  /// Communicator of the whole mesh, of one dimension (the ranks that differ from this one only
  /// there). Throws `StateError` when this process is not part of the mesh.
  const std::shared_ptr<MpiCommunicator>& communicator() const;
  const std::shared_ptr<MpiCommunicator>& communicator(int mesh_dim) const;
  const std::shared_ptr<MpiCommunicator>& communicator(const std::string& name) const;

  /// The communicator of all ranks of this mesh and another one, made on first use and then kept.
  /// Null on a process that is in neither. Collective over those ranks on first use.
  std::shared_ptr<MpiCommunicator> joint_communicator(const DeviceMesh& other) const;
  /// The ranks of that communicator, in its order. Local.
  std::vector<int> joint_ranks(const DeviceMesh& other) const;

  /// Equal ranks, shape, names and device.
  friend bool operator==(const DeviceMesh& a, const DeviceMesh& b) noexcept;

  /// The mesh of the innermost `MeshScope` of this thread. Throws `StateError` outside of any.
  static const DeviceMesh& current();

 private:
  struct Impl;
  explicit DeviceMesh(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  static DeviceMesh make(ProcessGrid grid, DeviceKind device);

  std::shared_ptr<Impl> impl_;
};

/// Makes a mesh the default of this thread for as long as the object lives.
class MeshScope {
 public:
  explicit MeshScope(const DeviceMesh& mesh);
  ~MeshScope();
  MeshScope(const MeshScope&) = delete;
  MeshScope& operator=(const MeshScope&) = delete;
};

/// "DeviceMesh(dp=2, tp=2) of ranks [0, 1, 2, 3], device".
std::string to_string(const DeviceMesh& mesh);

}  // namespace dtensor
