// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rank_file.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace dtensor::checkpoint {

namespace {

// The most that is staged at once where HDF5 cannot work on the local tensor itself.
constexpr std::int64_t staging_bytes = std::int64_t{64} << 20;

// Whether HDF5 can work on the memory of a tensor: selections in it are of a dense array.
bool is_direct(const Tensor& local) {
  return (device_is_host || local.device() == DeviceKind::host) && local.is_contiguous();
}

Tensor box_of(const Tensor& local, const Extents& first, const Extents& extents) {
  Tensor box = local;
  for (int d = 0; d < extents.size(); ++d) box = box.narrow(d, first[d], extents[d]);
  return box;
}

// Calls `move(file space, memory space, memory)` for every box, with host memory. Without a
// direct way, `before(staging, box)` and `after(staging, box)` connect it to the local tensor.
template <class Before, class Move, class After>
void for_each_piece(const FileContext& file, const Chunk& chunk, const Transfer& transfer,
                    const Tensor& local, Before&& before, Move&& move, After&& after) {
  fence(local.device(), "dtensor::checkpoint");
  if (is_direct(local)) {
    for_each_box(transfer,
                 [&](const Extents& in_chunk, const Extents& in_local, const Extents& extents) {
                   move(make_space(file, chunk.shape, {in_chunk, extents}),
                        make_space(file, local.shape(), {in_local, extents}), local.data());
                 });
    return;
  }
  for (const Transfer& part : slice(transfer, staging_bytes / size_of(local.dtype()))) {
    for_each_box(part,
                 [&](const Extents& in_chunk, const Extents& in_local, const Extents& extents) {
                   const Tensor staging = Tensor::empty(extents, local.dtype(), DeviceKind::host);
                   const Tensor box = box_of(local, in_local, extents);
                   before(staging, box);
                   move(make_space(file, chunk.shape, {in_chunk, extents}),
                        make_space(file, extents), staging.data());
                   after(staging, box);
                 });
  }
}

constexpr auto nothing = [](const Tensor&, const Tensor&) {};

}  // namespace

std::vector<IndexSet> held_indices(const Layout& layout, const Extents& coordinate) {
  std::vector<IndexSet> held;
  for (int d = 0; d < layout.shape().size(); ++d) held.push_back(layout.index_set(coordinate, d));
  return held;
}

Transfer overlap(const Chunk& chunk, const std::vector<IndexSet>& held) {
  Transfer transfer;
  for (int d = 0; d < chunk.shape.size(); ++d) {
    const std::int64_t begin = chunk.offset[d];
    transfer.runs.push_back(
        intersect(IndexSet(begin, begin + chunk.shape[d]), held[static_cast<std::size_t>(d)]));
  }
  transfer.count();
  return transfer;
}

void write_chunk(const FileContext& file, hid_t h5, const std::string& dataset, const Chunk& chunk,
                 const Transfer& transfer, const Tensor& local) {
  const Handle creation = own(file, "H5Pcreate", H5Pcreate(H5P_DATASET_CREATE));
  // All elements are written below.
  check(file, "H5Pset_fill_time", H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER));
  const Handle stored = own(
      file, "H5Dcreate2",
      H5Dcreate2(h5, dataset.c_str(), file_type(file, local.dtype()), make_space(file, chunk.shape),
                 make_parent_groups(file), creation, H5P_DEFAULT));
  const Handle type = memory_type(file, local.dtype());
  for_each_piece(
      file, chunk, transfer, local,
      [](const Tensor& staging, const Tensor& box) { staging.copy_from(box); },
      [&](const Handle& in_file, const Handle& in_memory, const void* data) {
        check(file, "H5Dwrite", H5Dwrite(stored, type, in_memory, in_file, H5P_DEFAULT, data));
      },
      nothing);
}

void read_chunk(const FileContext& file, hid_t h5, const std::string& dataset, const Chunk& chunk,
                const Transfer& transfer, const Tensor& local) {
  const Handle stored = own(file, "H5Dopen2", H5Dopen2(h5, dataset.c_str(), H5P_DEFAULT));
  const Handle stored_type = own(file, "H5Dget_type", H5Dget_type(stored));
  const auto extents = extents_of(file, stored);
  const bool same_type =
      check(file, "H5Tequal", H5Tequal(stored_type, file_type(file, local.dtype()))) > 0;
  if (!same_type || Extents(extents) != chunk.shape) {
    file.fail(fmt::format("dataset '{}' is not the {} {} that the index says", dataset,
                          to_string(local.dtype()), to_string(chunk.shape)));
  }
  const Handle type = memory_type(file, local.dtype());
  for_each_piece(
      file, chunk, transfer, local, nothing,
      [&](const Handle& in_file, const Handle& in_memory, void* data) {
        check(file, "H5Dread", H5Dread(stored, type, in_memory, in_file, H5P_DEFAULT, data));
      },
      [](const Tensor& staging, const Tensor& box) { box.copy_from(staging); });
}

}  // namespace dtensor::checkpoint
