// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fmt/format.h>

#include "draw.hpp"
#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/random/random.hpp"
#include "dtensor/redistribute/program.hpp"

namespace dtensor {

namespace detail {

namespace {

IndexSet scaled(const IndexSet& set, std::int64_t factor) {
  IndexSet result;
  for (const Interval& i : set.intervals()) result.append({i.begin * factor, i.end * factor});
  return result;
}

bool is_whole(const IndexSet& set, std::int64_t extent) { return set.size() == extent; }

// Makes the runs of the last dimension as long as they are: a dimension that is held wholly is
// part of the one before it.
Part merged(Tensor local, const Shape& shape, const std::vector<IndexSet>& sets) {
  Part part{std::move(local), {}, {}, {}, {}};
  int last = shape.size() - 1;
  std::int64_t inner = 1;
  while (last >= 0 && is_whole(sets[static_cast<std::size_t>(last)], shape[last])) {
    inner *= shape[last--];
  }
  for (int d = 0; d < last; ++d) {
    part.shape.push_back(shape[d]);
    part.sets.push_back(sets[static_cast<std::size_t>(d)]);
  }
  part.shape.push_back(last < 0 ? inner : shape[last] * inner);
  part.sets.push_back(last < 0 ? IndexSet(0, inner)
                               : scaled(sets[static_cast<std::size_t>(last)], inner));
  return part;
}

}  // namespace

std::vector<IndexSet> index_sets(const DTensor& tensor) {
  std::vector<IndexSet> sets;
  for (int d = 0; d < tensor.dim(); ++d) {
    sets.push_back(tensor.layout().index_set(*tensor.device_mesh().coordinate(), d));
  }
  return sets;
}

Part part_of(const char*, const Tensor& tensor) {
  const std::int64_t count = tensor.numel();
  return {tensor, {count}, {IndexSet(0, count)}, tensor.shape(), tensor.strides()};
}

Part part_of(const char* function, const DTensor& tensor) {
  if (tensor.layout().has_partial()) {
    throw LayoutError(function, to_string(tensor.placements()),
                      "Shard or Replicate: random contributions make up no number of the "
                      "distribution; redistribute reduces a Partial tensor");
  }
  Part part = tensor.device_mesh().is_member()
                  ? merged(tensor.to_local(), tensor.shape(), index_sets(tensor))
                  : Part{tensor.to_local(), {0}, {IndexSet()}};
  part.whole = tensor.shape();
  part.strides = tensor.stride();
  return part;
}

Tensor empty_like(const Tensor& like, DType dtype) {
  return Tensor::empty(like.shape(), dtype, like.device());
}

DTensor empty_like(const DTensor& like, DType dtype) {
  const DeviceMesh& mesh = like.device_mesh();
  return DTensor(
      mesh, like.layout(),
      Tensor::empty(local_shape_on(like.layout(), Runtime::rank()), dtype, mesh.device()));
}

}  // namespace detail

}  // namespace dtensor
