// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/debug/visualize_sharding.hpp"

#include <fmt/format.h>

namespace dtensor {

std::string visualize_sharding(const Layout& layout) {
  const ProcessGrid& grid = *layout.grid();
  std::string text = to_string(layout) + "\n";
  for (std::int64_t position = 0; position < grid.size(); ++position) {
    const Extents coordinate = grid.coordinate_at(position);
    std::string held;
    for (const Chunk& chunk : layout.chunks(coordinate)) {
      if (!held.empty()) held += " ";
      held += "[";
      for (int d = 0; d < chunk.shape.size(); ++d) {
        held += fmt::format("{}{}:{}", d ? ", " : "", chunk.offset[d],
                            chunk.offset[d] + chunk.shape[d]);
      }
      held += "]";
    }
    text += fmt::format("  rank {} at {}: {}\n", grid.rank_at(position), to_string(coordinate),
                        held.empty() ? "nothing" : held);
  }
  return text;
}

std::string visualize_sharding(const DTensor& tensor) {
  return visualize_sharding(tensor.layout());
}

}  // namespace dtensor
