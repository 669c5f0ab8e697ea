// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "arguments.hpp"

#include <fmt/format.h>

#include "dtensor/core/error.hpp"

namespace dtensor::checkpoint {

DeviceMesh mesh_of(const char* function, const Tensors& tensors) {
  // All ranks have to find the same mesh here, as they cannot talk before: so the first tensor
  // that has one counts, and what is wrong with others is found when they can.
  for (const auto& [name, tensor] : tensors) {
    if (tensor.defined()) return tensor.device_mesh();
  }
  throw ValueError(function, tensors.empty() ? "no tensors" : "undefined tensors only",
                   "at least one tensor");
}

void check_one_mesh(const char* function, const DeviceMesh& mesh, const Tensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) {
      throw StateError(function, fmt::format("an undefined tensor '{}'", name),
                       "tensors made by a factory function");
    }
    if (tensor.device_mesh() == mesh) continue;
    throw ValueError(function,
                     fmt::format("tensor '{}' on {} beside one on {}", name,
                                 to_string(tensor.device_mesh()), to_string(mesh)),
                     "all tensors on one mesh");
  }
}

void add_text(Hash& hash, const std::string& text) {
  hash.add(text.size());
  for (const char c : text) hash.add(static_cast<unsigned char>(c));
}

void add_tensors(Hash& hash, const Tensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    add_text(hash, name);
    hash.add(static_cast<std::uint64_t>(tensor.dtype()));
    hash.add(tensor.layout().hash());
  }
}

std::string describe(const Tensors& tensors) {
  std::string text;
  for (const auto& [name, tensor] : tensors) {
    text += fmt::format("{}'{}': {}", text.empty() ? "" : ", ", name,
                        tensor.defined() ? fmt::format("{} {}", to_string(tensor.dtype()),
                                                       to_string(tensor.layout()))
                                         : "undefined");
  }
  return text;
}

}  // namespace dtensor::checkpoint
