// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `DTensor`: a global tensor whose parts live on the ranks of a mesh, after
/// `torch.distributed.tensor.DTensor`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dtensor/comm/device_mesh.hpp"
#include "dtensor/core/tensor.hpp"
#include "dtensor/layout/layout.hpp"

namespace dtensor {

/// How `DTensor::redistribute` works.
struct RedistributeOptions {
  /// Return at once; the data is waited for at its first use. Nothing may write to the source until
  /// the result is ready: its elements are sent from where they lie.
  bool async_op = false;
  /// The result's scalar type. The values are converted before they travel, or after when that
  /// sends fewer bytes and gives the same result.
  std::optional<DType> forward_dtype = std::nullopt;
  /// The order in which mesh dimensions split a tensor dimension of the result.
  ShardOrder shard_order = {};
};

/// How `from_local` interprets a local tensor.
struct FromLocalOptions {
  /// Also make replicas equal: along Replicate mesh dimensions the data of coordinate 0 wins.
  bool run_check = false;
  /// Global shape; inferred as the extents times the ranks that split them when absent. Given
  /// together with `stride`, or neither.
  std::optional<Shape> shape = std::nullopt;
  /// Global strides in elements, as information only.
  std::optional<Extents> stride = std::nullopt;
};

namespace detail {
/// Says that a local tensor has the shape that a layout gives this rank.
struct FitsLayout {};
}  // namespace detail

/// A cheap handle to shared state: copying a `DTensor` aliases it. Every rank of the mesh holds one
/// and makes the same calls in the same order. A rank outside of the mesh may make them too: it
/// holds an empty local tensor and takes no part.
class DTensor {
 public:
  /// Undefined: everything but `defined` throws `StateError`.
  DTensor() = default;
  /// From parts that fit together; checks nothing but the local shape (`LayoutError`). Local.
  /// \param strides  global strides, row-major when absent; in that case a local tensor of which
  ///                 elements share memory is copied: what is written in place has to be apart,
  ///                 on all ranks alike
  DTensor(DeviceMesh mesh, Layout layout, Tensor local,
          std::optional<Extents> strides = std::nullopt);

  /// The same without a check, for the library itself.
  DTensor(detail::FitsLayout, const DeviceMesh& mesh, const Layout& layout, Tensor local,
          const Extents& strides);

  bool defined() const noexcept { return state_ != nullptr; }
  const Shape& shape() const { return layout().shape(); }
  int dim() const { return shape().size(); }
  std::int64_t numel() const { return shape().product(); }
  DType dtype() const;
  /// Global strides in elements: the dimensions in memory order of the local tensors.
  const Extents& stride() const;
  const DeviceMesh& device_mesh() const;
  const Placements& placements() const { return layout().placements(); }
  const Layout& layout() const;
  /// The boxes of the global tensor that this rank holds. Under Partial, a contribution to them.
  std::vector<Chunk> chunks() const;

  /// This rank's part, sharing memory. Waits for an asynchronous redistribution. Local otherwise.
  const Tensor& to_local() const;
  /// This rank's part as a typed `Kokkos::View` without a copy; see `Tensor::view`.
  template <class DataType, class Layout = Kokkos::LayoutStride, class MemorySpace = DeviceMemory>
  auto local_view() const {
    return to_local().view<DataType, Layout, MemorySpace>();
  }
  /// The whole tensor on every rank of the mesh. Shares memory with this tensor when it is
  /// replicated already. Collective.
  Tensor full_tensor() const;

  /// The same values under other placements, on the same or another mesh. Returns this tensor when
  /// nothing changes. Throws `LayoutError` for placements that do not fit and for a move to Partial
  /// from anything but the same Partial, `MismatchError` when ranks differ in what they ask.
  /// Collective over the ranks of both meshes, unless the move needs no communication.
  DTensor redistribute(const Placements& placements, const RedistributeOptions& options = {}) const;
  DTensor redistribute(const DeviceMesh& mesh, const Placements& placements,
                       const RedistributeOptions& options = {}) const;

  /// Whether an asynchronous redistribution into this tensor has ended. Never blocks.
  bool is_ready() const;
  /// Blocks until it has. Throws what it failed with, on every rank.
  void wait() const { to_local(); }

 private:
  struct State;
  explicit DTensor(std::shared_ptr<State> state) : state_(std::move(state)) {}
  State& state() const;
  friend class RedistributeCall;

  std::shared_ptr<State> state_;
};

/// Makes a DTensor of a whole tensor. Each rank receives just what it holds afterwards.
/// \param tensor      the global tensor on the source rank; elsewhere one of the same shape and
/// type
///                    whose values are ignored, or an undefined one
/// \param src_data_rank  the `MPI_COMM_WORLD` rank whose values count, one of the mesh; without
/// one,
///                    every rank takes its part of its own `tensor`, with no communication
/// Throws `LayoutError` for Partial placements, `MismatchError` when shapes, types or placements
/// differ between ranks. Collective over the mesh.
DTensor distribute_tensor(const Tensor& tensor, const DeviceMesh& mesh,
                          const Placements& placements, std::optional<int> src_data_rank = 0);
DTensor distribute_tensor(const Tensor& tensor, const Placements& placements,
                          std::optional<int> src_data_rank = 0);

/// Makes a DTensor whose local part on each rank is `local`, without a copy unless its elements
/// share memory with one another. Uneven shards need `options.shape` or placements with given
/// extents. Throws `MismatchError` when the ranks do not describe one tensor, `LayoutError` when a
/// local shape does not fit, `ValueError` when only one of shape and stride is given. Collective
/// over the mesh (one small all-reduce).
DTensor from_local(const Tensor& local, const DeviceMesh& mesh, const Placements& placements,
                   const FromLocalOptions& options = {});
DTensor from_local(const Tensor& local, const Placements& placements,
                   const FromLocalOptions& options = {});

/// "DTensor(float64, (8, 8), [S(0), R], DeviceMesh(2, 2) of ranks [0, 1, 2, 3], device)".
std::string to_string(const DTensor& tensor);

namespace detail {
/// Which input of an operator is moved or worked on, for errors.
struct OperatorInput {
  int number;            ///< counted from 0, -1 where it is none
  const Layout* layout;  ///< its own layout, where what moves is made from it; else null
  OperatorInput(int n = -1, const Layout* l = nullptr) : number(n), layout(l) {}
};

/// Redistribution on behalf of an operation, for the library itself: may also enter Partial.
/// \param operation, reason  for the event stream; with a reason, scopes may forbid it
DTensor redistribute(const DTensor& tensor, const DeviceMesh& mesh, const Layout& destination,
                     bool async_op, const char* operation, const char* reason,
                     OperatorInput input = {});
}  // namespace detail

}  // namespace dtensor
