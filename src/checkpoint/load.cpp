// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "arguments.hpp"
#include "dtensor/comm/agreement.hpp"
#include "dtensor/comm/events.hpp"
#include "dtensor/comm/runtime.hpp"
#include "dtensor/redistribute/program.hpp"
#include "index.hpp"
#include "rank_file.hpp"

namespace dtensor::checkpoint {

namespace {

// A stored tensor and where it goes.
struct Load {
  TensorInfo info;
  Placements placements;
};
using Loads = std::vector<Load>;

// Ranks may see different files at the same path.
std::uint64_t hash_of(const std::vector<TensorInfo>& infos) {
  Hash hash;
  for (const TensorInfo& info : infos) {
    add_text(hash, info.name);
    hash.add(static_cast<std::uint64_t>(info.dtype));
    hash.add_range(info.shape);
    for (const StoredChunk& chunk : info.chunks) {
      hash.add(static_cast<std::uint64_t>(chunk.rank));
      hash.add(static_cast<std::uint64_t>(chunk.number));
      hash.add_range(chunk.box.offset);
      hash.add_range(chunk.box.shape);
    }
  }
  return hash.value();
}

std::uint64_t fingerprint(const std::string& directory, const std::vector<TensorInfo>& infos,
                          const Tensors& tensors) {
  Hash hash;
  add_text(hash, directory);
  hash.add(hash_of(infos));
  add_tensors(hash, tensors);
  return hash.value();
}

std::string describe_load(const std::string& directory, const std::vector<TensorInfo>& infos,
                          const Tensors& tensors) {
  return fmt::format("'{}' (contents {:016x}) into {}", directory, hash_of(infos),
                     describe(tensors));
}

// Part of a stored chunk that this rank holds.
struct Piece {
  const StoredChunk* chunk;
  const std::string* name;
  Tensor local;
  Transfer transfer;
};

// Reads this rank's parts. Local.
void read(const char* function, const std::string& directory, const std::vector<TensorInfo>& infos,
          const Tensors& tensors) {
  const QuietErrors quiet;
  std::vector<Piece> pieces;
  for (const TensorInfo& info : infos) {
    const DTensor& tensor = tensors.at(info.name);
    const auto held = held_indices(tensor.layout(), *tensor.device_mesh().coordinate());
    Event event;
    event.operation = function;
    event.destination = &tensor.layout();
    for (const StoredChunk& chunk : info.chunks) {
      Transfer transfer = overlap(chunk.box, held);
      if (!transfer.empty()) {
        event.bytes_of_files += transfer.elements * size_of(info.dtype);
        pieces.push_back({&chunk, &info.name, tensor.to_local(), std::move(transfer)});
      }
    }
    if (event.bytes_of_files > 0) detail::emit(event);
  }
  // One file open at a time.
  std::stable_sort(pieces.begin(), pieces.end(),
                   [](const Piece& a, const Piece& b) { return a.chunk->rank < b.chunk->rank; });
  Handle h5;
  FileContext file{};
  std::int64_t rank = -1;
  for (const Piece& piece : pieces) {
    if (piece.chunk->rank != rank) {
      rank = piece.chunk->rank;
      file = reading(function, directory, rank_file_name(rank));
      h5 = Handle();
      h5 = open_file(file);
    }
    read_chunk(file, h5, chunk_dataset(*piece.name, piece.chunk->number), piece.chunk->box,
               piece.transfer, piece.local);
  }
}

DTensor make_tensor(const char* function, const DeviceMesh& mesh, const Load& load) {
  const Layout layout(load.info.shape, mesh.grid(), load.placements);
  if (layout.has_partial()) {
    throw LayoutError(function,
                      fmt::format("{} for '{}'", to_string(load.placements), load.info.name),
                      "Shard or Replicate");
  }
  return DTensor(
      mesh, layout,
      Tensor::empty(local_shape_on(layout, Runtime::rank()), load.info.dtype, mesh.device()));
}

// \param choose  what is to be loaded; may throw
Tensors load_chosen(const std::string& directory, const DeviceMesh& mesh,
                    const std::function<Loads(const IndexReader&)>& choose) {
  const char* const function = "checkpoint::load";
  Tensors tensors;
  std::vector<TensorInfo> infos;
  const auto prepare = [&] {
    const IndexReader index(function, directory);
    for (Load& load : choose(index)) {
      tensors.emplace(load.info.name, make_tensor(function, mesh, load));
      infos.push_back(std::move(load.info));
    }
    return fingerprint(directory, infos, tensors);
  };
  if (!mesh.is_member()) {
    prepare();
    return tensors;
  }
  agree(*mesh.communicator(), function, prepare,
        [&] { return describe_load(directory, infos, tensors); });
  all_or_none(*mesh.communicator(), function, [&] { read(function, directory, infos, tensors); });
  return tensors;
}

}  // namespace

DTensor load(const std::string& directory, const std::string& name, const DeviceMesh& mesh,
             const Placements& placements) {
  return load(directory, mesh, std::map<std::string, Placements>{{name, placements}}).at(name);
}

Tensors load(const std::string& directory, const DeviceMesh& mesh,
             const std::map<std::string, Placements>& placements) {
  return load_chosen(directory, mesh, [&](const IndexReader& index) {
    Loads loads;
    for (const auto& [name, p] : placements) loads.push_back({index.tensor(name), p});
    return loads;
  });
}

Tensors load(const std::string& directory, const DeviceMesh& mesh,
             const std::function<Placements(const TensorInfo&)>& placements) {
  return load_chosen(directory, mesh, [&](const IndexReader& index) {
    Loads loads;
    for (const std::string& name : index.names()) {
      TensorInfo info = index.tensor(name);
      Placements p = placements(info);
      loads.push_back({std::move(info), std::move(p)});
    }
    return loads;
  });
}

void load_into(const std::string& directory, const Tensors& tensors) {
  const char* const function = "checkpoint::load_into";
  const DeviceMesh mesh = mesh_of(function, tensors);
  if (!mesh.is_member()) return;
  std::vector<TensorInfo> infos;
  agree(
      *mesh.communicator(), function,
      [&] {
        check_one_mesh(function, mesh, tensors);
        const IndexReader index(function, directory);
        for (const auto& [name, tensor] : tensors) {
          infos.push_back(index.tensor(name));
          const TensorInfo& info = infos.back();
          if (info.dtype != tensor.dtype()) {
            throw TypeError(function,
                            fmt::format("tensor '{}' of {}", name, to_string(tensor.dtype())),
                            fmt::format("{}, as stored", to_string(info.dtype)));
          }
          if (info.shape != tensor.shape()) {
            throw ValueError(
                function, fmt::format("tensor '{}' of shape {}", name, to_string(tensor.shape())),
                fmt::format("{}, as stored", to_string(info.shape)));
          }
          if (tensor.layout().has_partial()) {
            throw LayoutError(function,
                              fmt::format("{} for '{}'", to_string(tensor.placements()), name),
                              "Shard or Replicate");
          }
        }
        return fingerprint(directory, infos, tensors);
      },
      [&] { return describe_load(directory, infos, tensors); });
  for (const auto& [name, tensor] : tensors) tensor.wait();
  all_or_none(*mesh.communicator(), function, [&] { read(function, directory, infos, tensors); });
}

std::vector<TensorInfo> inspect(const std::string& directory) {
  const IndexReader index("checkpoint::inspect", directory);
  std::vector<TensorInfo> infos;
  for (const std::string& name : index.names()) infos.push_back(index.tensor(name));
  return infos;
}

Attributes attributes(const std::string& directory) {
  return IndexReader("checkpoint::attributes", directory).attributes();
}

}  // namespace dtensor::checkpoint
