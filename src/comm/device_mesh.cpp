// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/comm/device_mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "dtensor/comm/agreement.hpp"
#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/layout/hash.hpp"

namespace dtensor {

struct DeviceMesh::Impl {
  std::shared_ptr<const ProcessGrid> grid;
  DeviceKind device = DeviceKind::device;
  std::optional<Extents> coordinate;
  std::shared_ptr<MpiCommunicator> whole;
  std::vector<std::shared_ptr<MpiCommunicator>> per_dim;
  std::map<std::vector<int>, std::shared_ptr<MpiCommunicator>> joint;
};

namespace {

std::vector<const DeviceMesh*>& scopes() {
  thread_local std::vector<const DeviceMesh*> stack;
  return stack;
}

std::vector<int> world_ranks_of(MPI_Comm comm) {
  int size = 0;
  detail::check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  std::vector<int> local(static_cast<std::size_t>(size)), world(local.size());
  std::iota(local.begin(), local.end(), 0);
  MPI_Group group, world_group;
  detail::check_mpi(MPI_Comm_group(comm, &group), "MPI_Comm_group");
  detail::check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &world_group), "MPI_Comm_group");
  const int code = MPI_Group_translate_ranks(group, size, local.data(), world_group, world.data());
  MPI_Group_free(&group);
  MPI_Group_free(&world_group);
  detail::check_mpi(code, "MPI_Group_translate_ranks");
  if (std::find(world.begin(), world.end(), MPI_UNDEFINED) != world.end()) {
    throw ValueError("DeviceMesh", "a communicator with ranks outside of MPI_COMM_WORLD",
                     "a communicator of ranks of MPI_COMM_WORLD");
  }
  return world;
}

// The grid that `make_grid` gives, once all ranks of the communicator have been found to agree on
// it.
ProcessGrid agree_on_grid(MpiCommunicator& communicator, DeviceKind device,
                          const std::function<ProcessGrid()>& make_grid) {
  std::optional<ProcessGrid> grid;
  agree(
      communicator, "DeviceMesh",
      [&] {
        grid.emplace(make_grid());
        Hash h;
        h.add(grid->hash());
        h.add(static_cast<std::uint64_t>(device));
        return h.value();
      },
      [&] { return fmt::format("{}, {}", to_string(*grid), to_string(device)); });
  return *grid;
}

std::vector<int> all_world_ranks() {
  std::vector<int> ranks(static_cast<std::size_t>(Runtime::size()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

void check_size(const Shape& shape, std::size_t ranks) {
  const std::int64_t places = checked_element_count("DeviceMesh", shape);
  if (places != static_cast<std::int64_t>(ranks)) {
    throw ValueError("DeviceMesh",
                     fmt::format("mesh shape {} with {} places for {} ranks", to_string(shape),
                                 places, ranks),
                     "as many places as ranks");
  }
}

}  // namespace

DeviceMesh DeviceMesh::make(ProcessGrid grid, DeviceKind device) {
  auto impl = std::make_shared<Impl>();
  impl->grid = std::make_shared<const ProcessGrid>(std::move(grid));
  impl->device = device;
  impl->coordinate = impl->grid->coordinate_of(Runtime::rank());
  if (impl->coordinate) {
    impl->whole = MpiCommunicator::of_ranks(impl->grid->ranks());
    for (int d = 0; d < impl->grid->dim(); ++d) {
      impl->per_dim.push_back(
          MpiCommunicator::of_ranks(impl->grid->slice({d}, *impl->coordinate).ranks()));
    }
  }
  return DeviceMesh(std::move(impl));
}

DeviceMesh::DeviceMesh(const Shape& shape, std::vector<std::string> names, DeviceKind device) {
  detail::require_mpi("DeviceMesh");
  const auto ranks = all_world_ranks();
  const auto communicator = MpiCommunicator::of_ranks(ranks);
  *this = make(agree_on_grid(*communicator, device,
                             [&] {
                               check_size(shape, ranks.size());
                               return ProcessGrid(shape, ranks, std::move(names));
                             }),
               device);
}

DeviceMesh::DeviceMesh(MPI_Comm comm, const Shape& shape, std::vector<std::string> names,
                       DeviceKind device) {
  detail::require_mpi("DeviceMesh");
  if (comm == MPI_COMM_NULL) {
    throw ValueError("DeviceMesh", "MPI_COMM_NULL", "a communicator that contains this process");
  }
  const auto ranks = world_ranks_of(comm);
  const auto communicator = MpiCommunicator::of_ranks(ranks);
  *this = make(agree_on_grid(*communicator, device,
                             [&] {
                               check_size(shape, ranks.size());
                               return ProcessGrid(shape, ranks, std::move(names));
                             }),
               device);
}

DeviceMesh DeviceMesh::from_ranks(const std::vector<int>& ranks, const Shape& shape,
                                  std::vector<std::string> names, DeviceKind device) {
  detail::require_mpi("DeviceMesh");
  const auto communicator = MpiCommunicator::of_ranks(all_world_ranks());
  return make(agree_on_grid(*communicator, device,
                            [&] {
                              const int world = Runtime::size();
                              for (int r : ranks) {
                                if (r >= world) {
                                  throw ValueError("DeviceMesh", fmt::format("rank {}", r),
                                                   fmt::format("ranks from 0 to {}", world - 1));
                                }
                              }
                              return ProcessGrid(shape, ranks, std::move(names));
                            }),
              device);
}

namespace {
int mesh_dimension(const char* function, int mesh_dim, int dims) {
  const int d = mesh_dim < 0 ? mesh_dim + dims : mesh_dim;
  if (d < 0 || d >= dims) {
    throw IndexError(function,
                     fmt::format("mesh dimension {} of a mesh with {} dimensions", mesh_dim, dims),
                     fmt::format("a mesh dimension from {} to {}", -dims, dims - 1));
  }
  return d;
}
}  // namespace

const Shape& DeviceMesh::shape() const noexcept { return impl_->grid->shape(); }
int DeviceMesh::dim() const noexcept { return impl_->grid->dim(); }
std::int64_t DeviceMesh::size() const noexcept { return impl_->grid->size(); }
std::int64_t DeviceMesh::size(int mesh_dim) const {
  return shape()[mesh_dimension("DeviceMesh::size", mesh_dim, dim())];
}
std::int64_t DeviceMesh::size(const std::string& name) const {
  return shape()[impl_->grid->dim_of(name)];
}
const std::vector<std::string>& DeviceMesh::names() const noexcept { return impl_->grid->names(); }
const std::vector<int>& DeviceMesh::ranks() const noexcept { return impl_->grid->ranks(); }
DeviceKind DeviceMesh::device() const noexcept { return impl_->device; }
const std::shared_ptr<const ProcessGrid>& DeviceMesh::grid() const noexcept { return impl_->grid; }
const std::optional<Extents>& DeviceMesh::coordinate() const noexcept { return impl_->coordinate; }

namespace {
void require_member(const DeviceMesh& mesh, const char* function) {
  if (!mesh.is_member()) {
    throw StateError(function, fmt::format("rank {} and {}", Runtime::rank(), to_string(mesh)),
                     "a rank that is part of the mesh");
  }
}
}  // namespace

std::int64_t DeviceMesh::local_rank(int mesh_dim) const {
  require_member(*this, "DeviceMesh::local_rank");
  return (*impl_->coordinate)[mesh_dimension("DeviceMesh::local_rank", mesh_dim, dim())];
}
std::int64_t DeviceMesh::local_rank(const std::string& name) const {
  return local_rank(impl_->grid->dim_of(name));
}

DeviceMesh DeviceMesh::slice(const std::vector<std::string>& names) const {
  require_member(*this, "DeviceMesh::slice");
  std::optional<ProcessGrid> sub;
  agree(
      *impl_->whole, "DeviceMesh::slice",
      [&] {
        std::vector<int> dims;
        for (const auto& name : names) dims.push_back(impl_->grid->dim_of(name));
        sub.emplace(impl_->grid->slice(dims, *impl_->coordinate));
        Hash h;
        h.add_range(dims);
        return h.value();
      },
      [&] { return fmt::format("({})", fmt::join(names, ", ")); });
  return make(std::move(*sub), impl_->device);
}

DeviceMesh DeviceMesh::flatten(const std::string& name) const {
  return make(impl_->grid->flatten(name), impl_->device);
}

const std::shared_ptr<MpiCommunicator>& DeviceMesh::communicator() const {
  require_member(*this, "DeviceMesh::communicator");
  return impl_->whole;
}
const std::shared_ptr<MpiCommunicator>& DeviceMesh::communicator(int mesh_dim) const {
  require_member(*this, "DeviceMesh::communicator");
  return impl_->per_dim[static_cast<std::size_t>(
      mesh_dimension("DeviceMesh::communicator", mesh_dim, dim()))];
}
const std::shared_ptr<MpiCommunicator>& DeviceMesh::communicator(const std::string& name) const {
  return communicator(impl_->grid->dim_of(name));
}

std::vector<int> DeviceMesh::joint_ranks(const DeviceMesh& other) const {
  if (ranks() == other.ranks()) return ranks();
  std::vector<int> own = ranks(), theirs = other.ranks(), joint;
  std::sort(own.begin(), own.end());
  std::sort(theirs.begin(), theirs.end());
  // A mesh that contains the other one already has the communicator.
  if (std::includes(own.begin(), own.end(), theirs.begin(), theirs.end())) return ranks();
  if (std::includes(theirs.begin(), theirs.end(), own.begin(), own.end())) return other.ranks();
  std::set_union(own.begin(), own.end(), theirs.begin(), theirs.end(), std::back_inserter(joint));
  return joint;
}

std::shared_ptr<MpiCommunicator> DeviceMesh::joint_communicator(const DeviceMesh& other) const {
  if (impl_ == other.impl_ || ranks() == other.ranks()) return impl_->whole;
  std::vector<int> joint = joint_ranks(other);
  if (joint == ranks()) return impl_->whole;
  if (joint == other.ranks()) return other.impl_->whole;
  if (!std::binary_search(joint.begin(), joint.end(), Runtime::rank())) return nullptr;
  auto& kept = impl_->joint[joint];
  if (!kept) kept = MpiCommunicator::of_ranks(joint);
  other.impl_->joint[joint] = kept;
  return kept;
}

bool operator==(const DeviceMesh& a, const DeviceMesh& b) noexcept {
  return a.impl_ == b.impl_ || (a.device() == b.device() && *a.grid() == *b.grid());
}

const DeviceMesh& DeviceMesh::current() {
  if (scopes().empty()) {
    throw StateError("DeviceMesh::current", "no mesh argument and no MeshScope",
                     "a mesh argument, or a MeshScope that makes a mesh the default");
  }
  return *scopes().back();
}

MeshScope::MeshScope(const DeviceMesh& mesh) { scopes().push_back(new DeviceMesh(mesh)); }
MeshScope::~MeshScope() {
  delete scopes().back();
  scopes().pop_back();
}

std::string to_string(const DeviceMesh& mesh) {
  return fmt::format("DeviceMesh{}, {}", to_string(*mesh.grid()), to_string(mesh.device()));
}

}  // namespace dtensor
