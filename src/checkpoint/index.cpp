// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "write_driver.hpp"

namespace dtensor::checkpoint {

namespace {

constexpr const char* format_name = "dtensor.checkpoint";
constexpr std::int64_t format_version = 1;

std::string chunks_group() { return std::string("/") + reserved_name + "/chunks"; }

// Columns of a chunk table: rank, number, offset per dimension, extent per dimension.
std::int64_t column_count(int rank) { return 2 + 2 * std::int64_t{rank}; }

Handle make_group(const FileContext& file, hid_t parent, const std::string& path) {
  return own(file, "H5Gcreate2",
             H5Gcreate2(parent, path.c_str(), make_parent_groups(file), H5P_DEFAULT, H5P_DEFAULT));
}

// The whole tensor, as a view of the chunks in the rank files.
void write_virtual_dataset(const FileContext& file, hid_t h5, const TensorInfo& tensor) {
  const Handle properties = own(file, "H5Pcreate", H5Pcreate(H5P_DATASET_CREATE));
  for (const StoredChunk& chunk : tensor.chunks) {
    // HDF5 replaces what follows a '%' in the name of a source.
    std::string source;
    for (const char c : chunk_dataset(tensor.name, chunk.number)) {
      source += c == '%' ? std::string("%%") : std::string(1, c);
    }
    check(file, "H5Pset_virtual",
          H5Pset_virtual(properties, make_space(file, tensor.shape, chunk.box),
                         rank_file_name(chunk.rank).c_str(), source.c_str(),
                         make_space(file, chunk.box.shape)));
  }
  const Handle dataset = own(file, "H5Dcreate2",
                             H5Dcreate2(h5, tensor.name.c_str(), file_type(file, tensor.dtype),
                                        make_space(file, tensor.shape), make_parent_groups(file),
                                        properties, H5P_DEFAULT));
  write_attribute(file, dataset, "dtype", std::string(to_string(tensor.dtype)));
}

void write_chunk_table(const FileContext& file, hid_t group, const TensorInfo& tensor) {
  std::vector<std::int64_t> table;
  for (const StoredChunk& chunk : tensor.chunks) {
    table.insert(table.end(), {chunk.rank, chunk.number});
    table.insert(table.end(), chunk.box.offset.begin(), chunk.box.offset.end());
    table.insert(table.end(), chunk.box.shape.begin(), chunk.box.shape.end());
  }
  const Shape shape{static_cast<std::int64_t>(tensor.chunks.size()),
                    column_count(tensor.shape.size())};
  const Handle dataset =
      own(file, "H5Dcreate2",
          H5Dcreate2(group, tensor.name.c_str(), H5T_STD_I64LE, make_space(file, shape),
                     make_parent_groups(file), H5P_DEFAULT, H5P_DEFAULT));
  if (!table.empty()) {
    check(file, "H5Dwrite",
          H5Dwrite(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, table.data()));
  }
  write_attribute(file, dataset, "columns",
                  std::string("rank, number, offset per dimension, extent per dimension"));
  write_attribute(file, dataset, "dtype", std::string(to_string(tensor.dtype)));
  write_attribute(file, dataset, "shape",
                  std::vector<std::int64_t>(tensor.shape.begin(), tensor.shape.end()));
  write_attribute(file, dataset, "placements", tensor.placements);
}

// That the chunks are boxes of the tensor with as many elements.
void check_chunks(const FileContext& file, const TensorInfo& tensor) {
  std::int64_t elements = 0;
  for (const StoredChunk& chunk : tensor.chunks) {
    bool inside = chunk.rank >= 0 && chunk.number >= 0;
    for (int d = 0; d < tensor.shape.size(); ++d) {
      const std::int64_t offset = chunk.box.offset[d], extent = chunk.box.shape[d];
      inside = inside && offset >= 0 && extent > 0 && extent <= tensor.shape[d] &&
               offset <= tensor.shape[d] - extent;
    }
    if (!inside) file.fail(fmt::format("tensor '{}' has a chunk outside of it", tensor.name));
    elements += chunk.box.shape.product();
  }
  if (elements != tensor.shape.product()) {
    file.fail(fmt::format("the chunks of tensor '{}' have {} of its {} elements", tensor.name,
                          elements, tensor.shape.product()));
  }
}

}  // namespace

std::string chunk_dataset(const std::string& tensor, std::int64_t number) {
  return fmt::format("/{}/{}", tensor, number);
}

void write_index(FileContext context, const std::vector<TensorInfo>& tensors,
                 const Attributes& attributes) {
  NewFile h5(std::move(context));
  const FileContext& file = h5.context();
  {
    const Handle chunks = make_group(file, h5.id(), chunks_group());
    const Handle group = own(file, "H5Gopen2", H5Gopen2(h5.id(), reserved_name, H5P_DEFAULT));
    write_attribute(file, group, "format", std::string(format_name));
    write_attribute(file, group, "version", format_version);
    for (const TensorInfo& tensor : tensors) {
      write_virtual_dataset(file, h5.id(), tensor);
      write_chunk_table(file, chunks, tensor);
    }
    for (const auto& [name, value] : attributes) write_attribute(file, h5.id(), name, value);
  }
  h5.close();
}

IndexReader::IndexReader(const char* function, const std::string& directory)
    : context_(reading(function, directory, index_file_name)) {
  std::error_code status;
  if (!std::filesystem::is_directory(directory, status)) {
    const bool exists = std::filesystem::exists(directory, status);
    reading(function, directory, "").fail(exists ? "not a directory" : "no such directory");
  }
  if (!std::filesystem::exists(context_.path, status)) context_.fail("no such file");
  file_ = open_file(context_);
  if (check(context_, "H5Lexists", H5Lexists(file_, reserved_name, H5P_DEFAULT)) == 0) {
    context_.fail(fmt::format("no group '{}'", reserved_name));
  }
  const Handle group = own(context_, "H5Gopen2", H5Gopen2(file_, reserved_name, H5P_DEFAULT));
  const auto format = read_attribute_as<std::string>(context_, group, "format");
  const auto version = read_attribute_as<std::int64_t>(context_, group, "version");
  if (format != format_name || version != format_version) {
    throw IoError(function,
                  fmt::format("'{}' with format '{}' version {}", context_.path, format, version),
                  fmt::format("format '{}' version {}", format_name, format_version));
  }
  chunks_ = own(context_, "H5Gopen2", H5Gopen2(group, "chunks", H5P_DEFAULT));
  names_ = dataset_names(context_, chunks_);
  std::sort(names_.begin(), names_.end());
}

TensorInfo IndexReader::tensor(const std::string& name) const {
  if (!std::binary_search(names_.begin(), names_.end(), name)) {
    throw ValueError(context_.function, fmt::format("tensor '{}' of '{}'", name, context_.path),
                     names_.empty() ? std::string("another checkpoint: this one has no tensors")
                                    : fmt::format("one of '{}'", fmt::join(names_, "', '")));
  }
  const Handle dataset = own(context_, "H5Dopen2", H5Dopen2(chunks_, name.c_str(), H5P_DEFAULT));
  TensorInfo info;
  info.name = name;
  info.placements = read_attribute_as<std::string>(context_, dataset, "placements");
  const auto dtype = read_attribute_as<std::string>(context_, dataset, "dtype");
  try {
    info.dtype = dtype_from_string(dtype);
    info.shape = read_attribute_list(context_, dataset, "shape");
    checked_element_count(context_.function, info.shape);
  } catch (const ValueError& e) {
    context_.fail(fmt::format("tensor '{}' has {}", name, e.given()));
  }
  const int rank = info.shape.size();
  const auto extents = extents_of(context_, dataset);
  if (extents.size() != 2 || extents[1] != column_count(rank)) {
    context_.fail(fmt::format("tensor '{}' has a chunk table of another shape", name));
  }
  std::vector<std::int64_t> table(static_cast<std::size_t>(extents[0] * extents[1]));
  if (!table.empty()) {
    check(context_, "H5Dread",
          H5Dread(dataset, H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, table.data()));
  }
  for (auto row = table.begin(); row != table.end(); row += column_count(rank)) {
    StoredChunk chunk;
    chunk.rank = row[0];
    chunk.number = row[1];
    for (int d = 0; d < rank; ++d) {
      chunk.box.offset.push_back(row[2 + d]);
      chunk.box.shape.push_back(row[2 + rank + d]);
    }
    info.chunks.push_back(chunk);
  }
  check_chunks(context_, info);
  return info;
}

Attributes IndexReader::attributes() const {
  Attributes result;
  for (const std::string& name : attribute_names(context_, file_)) {
    if (auto value = read_attribute(context_, file_, name)) result.emplace(name, *value);
  }
  return result;
}

}  // namespace dtensor::checkpoint
