// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Saving named DTensors to HDF5 files and loading them into any layout on any number of ranks.
///
/// A checkpoint is a directory. Each rank that holds data writes one file, `rank_00000.h5` and so
/// on, with one dataset per box of a tensor that it holds: `/<tensor>/0`, `/<tensor>/1`, ...
/// `index.h5` has
/// - each tensor as a virtual dataset `/<tensor>` over those, which any HDF5 program reads as one
///   array: `h5py.File("checkpoint/index.h5")["weight"][...]`;
/// - the program's own attributes, on the root group;
/// - a group `/__dtensor__` with the attributes `format` and `version`, and for each tensor a table
///   `/__dtensor__/chunks/<tensor>` with one row per box: rank, number, first index per dimension,
///   extent per dimension. Its attributes are the `dtype`, the `shape` and the `placements` at
///   saving.
///
/// Files are little-endian. float16 is IEEE half, bfloat16 a custom float, complex numbers are
/// compounds of `r` and `i`, bool is an enumeration of `FALSE` and `TRUE`: as h5py has them.
///
/// Each rank reports the bytes that it writes or reads of each tensor to the event stream.
#pragma once

#include "dtensor/config.hpp"

#if DTENSOR_ENABLE_HDF5

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "dtensor/distributed/dtensor.hpp"

namespace dtensor::checkpoint {

/// Tensors by name. A name may have '/' in it, which makes HDF5 groups.
using Tensors = std::map<std::string, DTensor>;

/// A small value beside the tensors, such as an iteration number.
using Attribute = std::variant<std::int64_t, double, std::string>;
using Attributes = std::map<std::string, Attribute>;

/// A box of a stored tensor and where its elements are: in dataset `/<tensor>/<number>` of the file
/// of `rank`, which counts the mesh that saved.
struct StoredChunk {
  Chunk box;
  std::int64_t rank = 0;
  std::int64_t number = 0;
};

/// A tensor in a checkpoint.
struct TensorInfo {
  std::string name;
  DType dtype = DType::float64;
  Shape shape;
  std::string placements;  ///< at saving, as text; loading does not depend on it
  std::vector<StoredChunk> chunks;
};

/// Writes a checkpoint. Every element is written once, by one of the ranks that hold it; a Partial
/// tensor is reduced first, as its logical value is what is stored. An asynchronous redistribution
/// into a tensor is waited for.
///
/// The checkpoint is made beside `directory` and takes its place by a rename once all of it is on
/// the disk. Whatever fails before that leaves an older checkpoint there as it was. Missing parent
/// directories are made.
/// \param tensors     one or more, all on one mesh
/// \param attributes  names and texts without the character NUL
/// Throws on every rank `ValueError` for names that HDF5 cannot hold, `__dtensor__` among them, and
/// tensors on several meshes; `MismatchError` when ranks differ in any argument; `IoError` when a
/// rank cannot write, or `directory` holds anything else than a checkpoint.
/// Collective over the mesh; a rank outside of it returns at once.
void save(const std::string& directory, const Tensors& tensors, const Attributes& attributes = {});

/// Loads one tensor. Each rank reads what it holds under the new layout, and nothing else.
/// Throws on every rank `IoError` when the checkpoint is missing, damaged or of another version,
/// `ValueError` with the names that exist for an unknown name, `LayoutError` for placements that do
/// not fit or are Partial, `MismatchError` when ranks differ in any argument or in what they see.
/// Collective over the mesh. A rank outside of it reads the index by itself and gets an empty part.
DTensor load(const std::string& directory, const std::string& name, const DeviceMesh& mesh,
             const Placements& placements);

/// Loads the named tensors, each into its own placements. Otherwise as above.
Tensors load(const std::string& directory, const DeviceMesh& mesh,
             const std::map<std::string, Placements>& placements);

/// Loads all tensors. `placements` is asked for each tensor, on every rank. Otherwise as above.
Tensors load(const std::string& directory, const DeviceMesh& mesh,
             const std::function<Placements(const TensorInfo&)>& placements);

/// Overwrites the elements of existing tensors, all on one mesh, with the stored ones of the same
/// names. Throws as `load` does, and on every rank `ValueError` when a shape differs, `TypeError`
/// when a scalar type differs. After an `IoError` the elements may be partly overwritten.
/// Collective over the mesh; a rank outside of it returns at once.
void load_into(const std::string& directory, const Tensors& tensors);

/// What tensors a checkpoint has, sorted by name. Throws `IoError` when it is missing, damaged or
/// of another version. Local.
std::vector<TensorInfo> inspect(const std::string& directory);

/// The attributes given to `save`, and scalar integers, floats and texts that other programs added
/// to the root group since. Throws as `inspect`. Local.
Attributes attributes(const std::string& directory);

}  // namespace dtensor::checkpoint

#endif
