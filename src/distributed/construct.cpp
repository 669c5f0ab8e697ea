// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Making DTensors of plain tensors: distribute_tensor and from_local.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <sstream>

#include "dtensor/comm/agreement.hpp"
#include "dtensor/comm/runtime.hpp"
#include "dtensor/distributed/dtensor.hpp"
#include "dtensor/layout/hash.hpp"
#include "redistribute.hpp"

namespace dtensor {

namespace {

std::string shape_and_type(const Tensor& t) {
  return t.defined() ? fmt::format("{} {}", to_string(t.dtype()), to_string(t.shape())) : "";
}

// What the tensors of all ranks have in common, learnt by ranks that have none.
struct Description {
  DType dtype = DType::float64;
  Shape shape;
};

std::string pack(const Tensor& tensor) {
  if (!tensor.defined()) return "";
  return fmt::format("{} {}", static_cast<int>(tensor.dtype()),
                     fmt::join(tensor.shape().begin(), tensor.shape().end(), " "));
}

Description unpack(const std::string& text) {
  Description d;
  std::istringstream stream(text);
  int dtype = 0;
  stream >> dtype;
  d.dtype = static_cast<DType>(dtype);
  for (std::int64_t extent; stream >> extent;) d.shape.push_back(extent);
  return d;
}

std::string describe(const std::string& packed) {
  if (packed.empty()) return "no tensor";
  const Description d = unpack(packed);
  return fmt::format("{} {}", to_string(d.dtype), to_string(d.shape));
}

Description exchange_description(Communicator& communicator, const Tensor& tensor, int source) {
  const auto texts = communicator.all_gather_text(pack(tensor));
  const std::string& reference = texts[static_cast<std::size_t>(source)];
  for (std::size_t r = 0; r < texts.size(); ++r) {
    if (reference.empty() || (!texts[r].empty() && texts[r] != reference)) {
      throw MismatchError("distribute_tensor",
                          fmt::format("{} on rank {}; {} on the source rank {}", describe(texts[r]),
                                      r, describe(reference), source),
                          "a tensor on the source rank, and one like it or none elsewhere");
    }
  }
  return unpack(reference);
}

void check_no_partial(const char* function, const Placements& placements) {
  for (const Placement& p : placements) {
    if (p.is_partial()) {
      throw LayoutError(function, to_string(placements),
                        "Shard or Replicate; a Partial tensor comes from from_local");
    }
  }
}

// A part of its own, not a view of the caller's tensor.
Tensor apart_from(const Tensor& tensor, const Tensor& local) {
  return tensor.defined() && local.storage() == tensor.storage() ? local.clone() : local;
}

// Global strides whose dimensions lie in memory in the order of the local tensor's.
Extents strides_like(const Tensor& local, const Shape& shape) {
  std::vector<int> order(static_cast<std::size_t>(shape.size()));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return local.strides()[a] > local.strides()[b]; });
  Extents strides = shape;
  std::int64_t stride = 1;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    strides[*it] = stride;
    stride *= std::max<std::int64_t>(shape[*it], 1);
  }
  return strides;
}

// Overwrites replicas with the data of coordinate 0 of the Replicate mesh dimensions. What a
// Partial mesh dimension holds is different on purpose, so each of its coordinates goes by itself.
Tensor with_equal_replicas(const Tensor& local, const DeviceMesh& mesh, const Layout& layout) {
  std::vector<int> kept, split;
  Placements kept_placements, split_placements;
  Extents origin = *mesh.coordinate();
  for (int m = 0; m < mesh.dim(); ++m) {
    const Placement& p = layout.placement(m);
    if (p.is_partial()) continue;
    kept.push_back(m);
    kept_placements.push_back(p);
    if (p.is_replicate()) {
      origin[m] = 0;
    } else {
      split.push_back(m);
      split_placements.push_back(p);
    }
  }
  if (kept.size() == split.size()) return local;
  if (split.empty()) {
    split.push_back(kept.front());  // a dimension of its own ranks: only the first one holds data
    split_placements.push_back(Replicate());
  }
  const auto whole = std::make_shared<const ProcessGrid>(mesh.grid()->slice(kept, origin));
  ProcessGrid holders = mesh.grid()->slice(split, origin);
  if (split_placements.front().is_replicate()) {
    holders = ProcessGrid(Shape{1}, {mesh.grid()->rank_at(mesh.grid()->position_at(origin))});
  }
  const auto renumbered = [&](const std::vector<int>& dims) {
    ShardOrder order;
    for (const auto& [dim, mesh_dims] : layout.shard_order()) {
      std::vector<int> numbers;
      for (int m : mesh_dims) {
        numbers.push_back(static_cast<int>(std::find(dims.begin(), dims.end(), m) - dims.begin()));
      }
      order.emplace_back(dim, std::move(numbers));
    }
    return order;
  };
  const Layout from(layout.shape(), std::make_shared<const ProcessGrid>(std::move(holders)),
                    split_placements, renumbered(split));
  const Layout to(layout.shape(), whole, kept_placements, renumbered(kept));
  const auto program = detail::compiled(from, to, local.dtype(), mesh.communicator(), mesh.ranks());
  const bool holds = from.grid()->position_of(Runtime::rank()).has_value();
  const Tensor source =
      holds ? local
            : Tensor::empty(local_shape_on(from, Runtime::rank()), local.dtype(), local.device());
  std::vector<Tensor> results;
  all_or_none(*mesh.communicator(), "from_local",
              [&] { results = detail::memory_for(*program.program, local.device()); });
  const Tensor agreed =
      detail::start(program, source, nullptr, "from_local", "run_check", std::move(results))
          ->wait();
  return holds ? local : agreed;
}

}  // namespace

DTensor distribute_tensor(const Tensor& tensor, const DeviceMesh& mesh,
                          const Placements& placements, std::optional<int> src_data_rank) {
  const char* const function = "distribute_tensor";
  if (!mesh.is_member()) {
    check_no_partial(function, placements);
    if (!tensor.defined()) {
      throw ValueError(
          function,
          fmt::format("no tensor on rank {}, which is outside of the mesh", Runtime::rank()),
          "a tensor of the global shape and type there");
    }
    const Layout layout(tensor.shape(), mesh.grid(), placements);
    return DTensor(
        mesh, layout,
        Tensor::empty(local_shape_on(layout, Runtime::rank()), tensor.dtype(), mesh.device()));
  }
  const auto& communicator = mesh.communicator();
  std::optional<int> source;  // position in the mesh
  agree(
      *communicator, function,
      [&] {
        check_no_partial(function, placements);
        Hash h;
        for (const Placement& p : placements) {
          h.add(static_cast<std::uint64_t>(p.kind()));
          h.add(static_cast<std::uint64_t>(p.dim()));
          h.add(static_cast<std::uint64_t>(p.split_factor()));
          h.add_range(p.extents());
        }
        if (src_data_rank) {
          const auto position = mesh.grid()->position_of(*src_data_rank);
          if (!position) {
            throw ValueError(function, fmt::format("source rank {}", *src_data_rank),
                             fmt::format("a rank of {}", to_string(mesh)));
          }
          source = static_cast<int>(*position);
          h.add(static_cast<std::uint64_t>(*src_data_rank));
        } else {
          if (!tensor.defined()) {
            throw ValueError(function, "no tensor and no source rank",
                             "a tensor on every rank, or a source rank");
          }
          const Layout layout(tensor.shape(), mesh.grid(), placements);
          h.add(layout.hash());
          h.add(static_cast<std::uint64_t>(tensor.dtype()));
        }
        return h.value();
      },
      [&] {
        return fmt::format("{} with placements {} from {}", shape_and_type(tensor),
                           to_string(placements),
                           src_data_rank ? fmt::format("rank {}", *src_data_rank) : "every rank");
      });
  if (!source) {
    const Layout layout(tensor.shape(), mesh.grid(), placements);
    const Layout whole =
        layout.with_placements(Placements(static_cast<std::size_t>(mesh.dim()), Replicate()));
    const auto program =
        detail::compiled(whole, layout, tensor.dtype(), mesh.communicator(), mesh.ranks());
    const Tensor local =
        detail::start(program, tensor.to(mesh.device()), nullptr, function, "")->wait();
    return DTensor(mesh, layout, apart_from(tensor, local));
  }
  const Description d = exchange_description(*communicator, tensor, *source);
  // The source rank alone is a mesh too; scattering is a move from there.
  const auto alone = std::make_shared<const ProcessGrid>(
      Shape{1}, std::vector<int>{mesh.grid()->rank_at(*source)});
  std::optional<Layout> layout;
  detail::Compiled program;
  Tensor data;
  std::vector<Tensor> results;
  all_or_none(*communicator, function, [&] {
    layout.emplace(d.shape, mesh.grid(), placements);
    const Layout from(d.shape, alone, {Replicate()});
    program = detail::compiled(from, *layout, d.dtype, communicator, mesh.ranks());
    data = communicator->rank() == *source
               ? tensor.to(mesh.device())
               : Tensor::empty(local_shape_on(from, Runtime::rank()), d.dtype, mesh.device());
    results = detail::memory_for(*program.program, mesh.device());
  });
  const Tensor local =
      detail::start(program, data, nullptr, function, "", std::move(results))->wait();
  return DTensor(mesh, *layout, apart_from(tensor, local));
}

DTensor distribute_tensor(const Tensor& tensor, const Placements& placements,
                          std::optional<int> src_data_rank) {
  return distribute_tensor(tensor, DeviceMesh::current(), placements, src_data_rank);
}

DTensor from_local(const Tensor& local, const DeviceMesh& mesh, const Placements& placements,
                   const FromLocalOptions& options) {
  const char* const function = "from_local";
  std::optional<Layout> layout;
  Extents strides;
  const auto check = [&] {
    if (options.shape.has_value() != options.stride.has_value()) {
      throw ValueError(function,
                       options.shape
                           ? fmt::format("shape {} without a stride", to_string(*options.shape))
                           : fmt::format("stride {} without a shape", to_string(*options.stride)),
                       "both shape and stride, or neither");
    }
    if (options.shape && options.shape->size() != options.stride->size()) {
      throw ValueError(function,
                       fmt::format("shape {} and stride {}", to_string(*options.shape),
                                   to_string(*options.stride)),
                       "one stride per dimension");
    }
    for (const Placement& p : placements) {
      if (p.is_partial()) check_reduce_op(function, p.reduce_op(), local.dtype());
    }
    layout.emplace(options.shape
                       ? *options.shape
                       : Layout::infer_global_shape(local.shape(), *mesh.grid(), placements),
                   mesh.grid(), placements);
    strides = options.stride ? *options.stride : strides_like(local, layout->shape());
    Hash h;
    h.add(layout->hash());
    h.add(static_cast<std::uint64_t>(local.dtype()));
    h.add(options.run_check);
    if (options.stride) h.add_range(*options.stride);
    return h.value();
  };
  if (!mesh.is_member()) {
    check();
    return DTensor(
        mesh, *layout,
        Tensor::empty(local_shape_on(*layout, Runtime::rank()), local.dtype(), mesh.device()),
        strides);
  }
  agree(*mesh.communicator(), function, check, [&] {
    return fmt::format("a local {} {} of a global {} as {}", to_string(local.dtype()),
                       to_string(local.shape()), to_string(layout->shape()), to_string(placements));
  });
  std::optional<DTensor> result;
  all_or_none(*mesh.communicator(), function, [&] {
    // In place all ranks have to find alike whether elements share memory: none do.
    const bool apart = is_injective(local.shape(), local.strides());
    result.emplace(mesh, *layout, (apart ? local : local.clone()).to(mesh.device()), strides);
  });
  if (!options.run_check) return *result;
  return DTensor(mesh, *layout, with_equal_replicas(result->to_local(), mesh, *layout), strides);
}

DTensor from_local(const Tensor& local, const Placements& placements,
                   const FromLocalOptions& options) {
  return from_local(local, DeviceMesh::current(), placements, options);
}

}  // namespace dtensor
