// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <optional>

#include "arguments.hpp"
#include "dtensor/comm/agreement.hpp"
#include "dtensor/comm/events.hpp"
#include "index.hpp"
#include "rank_file.hpp"
#include "write_driver.hpp"

namespace dtensor::checkpoint {

namespace {

constexpr const char* function = "checkpoint::save";

bool has_nul(const std::string& text) { return text.find('\0') != std::string::npos; }

// HDF5 splits names at '/', and a part that is "." means the group itself.
void check_name(const std::string& name) {
  bool valid = !has_nul(name) && name.substr(0, name.find('/')) != reserved_name;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    valid = valid && !part.empty() && part != ".";
    begin = end + 1;
  }
  if (!valid) {
    // NUL would end the text of the error.
    std::string text;
    for (const char c : name) text += c == '\0' ? std::string("\\0") : std::string(1, c);
    throw ValueError(function, fmt::format("a tensor named '{}'", text),
                     fmt::format("non-empty parts between '/', none of them '.', without the "
                                 "character NUL, the first one not '{}'",
                                 reserved_name));
  }
}

void check_names(const Tensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    check_name(name);
    for (std::size_t i = name.find('/'); i != std::string::npos; i = name.find('/', i + 1)) {
      if (!tensors.contains(name.substr(0, i))) continue;
      throw ValueError(function,
                       fmt::format("tensors named '{}' and '{}'", name.substr(0, i), name),
                       "no tensor in the place of a group of others");
    }
  }
}

void check_attributes(const Attributes& attributes) {
  for (const auto& [name, value] : attributes) {
    const auto* text = std::get_if<std::string>(&value);
    if (!name.empty() && !has_nul(name) && !(text && has_nul(*text))) continue;
    throw ValueError(function, fmt::format("an attribute named '{}'", name),
                     "a non-empty name, name and text without the character NUL");
  }
}

void add_attributes(Hash& hash, const Attributes& attributes) {
  for (const auto& [name, value] : attributes) {
    add_text(hash, name);
    hash.add(value.index());
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      hash.add(static_cast<std::uint64_t>(*integer));
    } else if (const auto* real = std::get_if<double>(&value)) {
      hash.add(std::bit_cast<std::uint64_t>(*real));
    } else {
      add_text(hash, std::get<std::string>(value));
    }
  }
}

std::string describe(const Attributes& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes) {
    text += fmt::format(", {}={}", name,
                        std::visit([](const auto& v) { return fmt::format("{}", v); }, value));
  }
  return text;
}

// The tensor with its Partial mesh dimensions reduced, by a reduce-scatter along its longest
// dimension: no rank then holds or writes more than its part.
DTensor reduced(const DTensor& tensor) {
  const Layout& layout = tensor.layout();
  if (!layout.has_partial()) return tensor;
  const Shape& shape = layout.shape();
  const int longest =
      static_cast<int>(std::max_element(shape.begin(), shape.end()) - shape.begin());
  Placements placements = layout.placements();
  ShardOrder order;
  for (int d = 0; d < shape.size(); ++d) order.emplace_back(d, layout.split_by(d));
  for (int m = 0; m < static_cast<int>(placements.size()); ++m) {
    Placement& p = placements[static_cast<std::size_t>(m)];
    if (!p.is_partial()) continue;
    if (shape.empty()) {
      p = Replicate();
    } else {
      // The finest split, so that what a rank keeps is part of what it has.
      p = Shard(longest);
      order[static_cast<std::size_t>(longest)].second.push_back(m);
    }
  }
  return detail::redistribute(tensor, tensor.device_mesh(),
                              layout.with_placements(std::move(placements), order), false, function,
                              "a Partial tensor is stored as its logical value");
}

// Whether a coordinate is the one of its replicas that writes. Successive tensors take turns.
bool writes(const Layout& layout, const Extents& coordinate, std::int64_t ordinal) {
  for (int m = 0; m < layout.grid()->dim(); ++m) {
    if (!layout.placement(m).is_replicate()) continue;
    if (coordinate[m] != ordinal % layout.grid()->size(m)) return false;
    ordinal /= layout.grid()->size(m);
  }
  return true;
}

void write_rank_file(const std::string& directory, std::int64_t rank, const Tensors& tensors) {
  std::optional<NewFile> file;
  std::int64_t ordinal = 0;
  for (const auto& [name, tensor] : tensors) {
    const Layout& layout = tensor.layout();
    const Extents coordinate = layout.grid()->coordinate_at(rank);
    if (!writes(layout, coordinate, ordinal++)) continue;
    const std::vector<IndexSet> held = held_indices(layout, coordinate);
    Event event;
    event.operation = function;
    event.source = &layout;
    std::int64_t number = 0;
    for (const Chunk& chunk : layout.chunks(coordinate)) {
      if (!file) file.emplace(writing(function, directory, rank_file_name(rank)));
      write_chunk(file->context(), file->id(), chunk_dataset(name, number++), chunk,
                  overlap(chunk, held), tensor.to_local());
      file->check_written();
      event.bytes_of_files += chunk.shape.product() * size_of(tensor.dtype());
    }
    if (number > 0) detail::emit(event);
  }
  if (file) file->close();
}

// \param before_reduction  the tensors as the program had them, for their placements
void write_index_file(const std::string& directory, const Tensors& tensors,
                      const Tensors& before_reduction, const Attributes& attributes) {
  std::vector<TensorInfo> infos;
  for (const auto& [name, tensor] : tensors) {
    const auto ordinal = static_cast<std::int64_t>(infos.size());
    const Layout& layout = tensor.layout();
    TensorInfo info{name,
                    tensor.dtype(),
                    tensor.shape(),
                    to_string(before_reduction.at(name).placements()),
                    {}};
    for (std::int64_t rank = 0; rank < layout.grid()->size(); ++rank) {
      const Extents coordinate = layout.grid()->coordinate_at(rank);
      if (!writes(layout, coordinate, ordinal)) continue;
      std::int64_t number = 0;
      for (const Chunk& chunk : layout.chunks(coordinate)) {
        info.chunks.push_back({chunk, rank, number++});
      }
    }
    infos.push_back(std::move(info));
  }
  write_index(writing(function, directory, index_file_name), infos, attributes);
}

}  // namespace

void save(const std::string& directory, const Tensors& tensors, const Attributes& attributes) {
  const DeviceMesh mesh = mesh_of(function, tensors);
  if (!mesh.is_member()) return;
  Communicator& communicator = *mesh.communicator();
  agree(
      communicator, function,
      [&] {
        check_one_mesh(function, mesh, tensors);
        check_names(tensors);
        check_attributes(attributes);
        Hash hash;
        add_text(hash, directory);
        add_tensors(hash, tensors);
        add_attributes(hash, attributes);
        return hash.value();
      },
      [&] {
        return fmt::format("'{}' with {}{}", directory, describe(tensors), describe(attributes));
      });

  Tensors stored;
  for (const auto& [name, tensor] : tensors) {
    tensor.wait();
    stored.emplace(name, reduced(tensor));
  }

  const std::int64_t rank = communicator.rank();
  std::unique_ptr<DirectoryReplacement> replacement;
  all_or_none(communicator, function, [&] {
    if (rank == 0) replacement = std::make_unique<DirectoryReplacement>(function, directory);
  });
  const std::string staging =
      communicator.all_gather_text(replacement ? replacement->staging() : "")[0];
  all_or_none(communicator, function, [&] {
    write_rank_file(staging, rank, stored);
    if (rank == 0) write_index_file(staging, stored, tensors, attributes);
  });
  all_or_none(communicator, function, [&] {
    if (replacement) replacement->commit();
  });
}

}  // namespace dtensor::checkpoint
