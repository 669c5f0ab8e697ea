// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "multinomial.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "draw.hpp"
#include "dtensor/comm/agreement.hpp"
#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/layout/hash.hpp"
#include "dtensor/redistribute/program.hpp"

namespace dtensor {

namespace {

constexpr const char* name = "multinomial";

// Everything that does not depend on the weights' values.
void check(const Shape& shape, DType dtype, std::int64_t samples, bool replacement) {
  require_fractional(name, dtype, false);
  if (shape.size() < 1 || shape.size() > 2 || shape[shape.size() - 1] < 1) {
    throw ValueError(name, fmt::format("weights of shape {}", to_string(shape)),
                     "(categories) or (rows, categories), with one category or more");
  }
  const std::int64_t categories = shape[shape.size() - 1];
  if (samples < 1 || (!replacement && samples > categories)) {
    throw ValueError(name, fmt::format("{} samples of {} categories", samples, categories),
                     "one sample or more, without replacement no more than categories");
  }
}

void check(WeightProblem problem, bool replacement) {
  if (problem == WeightProblem::invalid) {
    throw ValueError(name, "a weight that is negative, infinite or not a number",
                     "finite weights that are not negative");
  }
  if (problem == WeightProblem::too_few) {
    throw ValueError(name,
                     replacement ? "a row without a positive weight"
                                 : "a row with fewer positive weights than samples",
                     replacement ? "one positive weight or more in every row"
                                 : "as many positive weights as samples in every row");
  }
}

Tensor draw_categories(const Categories& categories, std::int64_t samples, bool replacement,
                       const RandomBlocks& blocks, const Sharers& sharers, WeightProblem& problem) {
  return (replacement ? draw_with_replacement : draw_without_replacement)(categories, samples,
                                                                          blocks, sharers, problem);
}

class Nobody : public Sharers {
 public:
  Tensor reduce(const Tensor& tensor, ReduceOp) const override { return tensor; }
  Tensor gather(const Tensor& tensor) const override { return tensor; }
};

Shape result_shape(const Shape& weights, std::int64_t samples) {
  Shape shape = weights;
  shape[shape.size() - 1] = samples;
  return shape;
}

Tensor as_rows(const Tensor& weights) {
  const int last = weights.dim() - 1;
  return weights.to(DType::float64)
      .reshape({last == 0 ? 1 : weights.shape()[0], weights.shape()[last]});
}

bool is_sharded(const Layout& layout) {
  const Placements& placements = layout.placements();
  return std::any_of(placements.begin(), placements.end(),
                     [](const Placement& p) { return p.is_shard(); });
}

class RanksOfMesh : public Sharers {
 public:
  explicit RanksOfMesh(const DTensor& weights)
      : mesh_(weights.device_mesh()), layout_(weights.layout()), last_(weights.dim() - 1) {}

  Categories categories(const DTensor& weights) const {
    const Extents own = *mesh_.coordinate();
    Categories result;
    result.weights = as_rows(weights.to_local());
    result.all_categories = layout_.shape()[last_];
    result.rows = last_ == 0 ? IndexSet(0, 1) : layout_.index_set(own, 0);
    result.held = layout_.index_set(own, last_);

    // The coordinates that differ from this one where the categories are split, in the order in
    // which `gather` puts their columns.
    std::vector<Extents> coordinates{own};
    for (int m : layout_.split_by(last_)) {
      std::vector<Extents> more;
      for (const Extents& start : coordinates) {
        for (std::int64_t i = 0; i < mesh_.size(m); ++i) {
          more.push_back(start);
          more.back()[m] = i;
        }
      }
      coordinates = std::move(more);
    }
    std::vector<IndexSet> sets;
    for (const Extents& coordinate : coordinates) {
      sets.push_back(layout_.index_set(coordinate, last_));
      result.slots_per_rank = std::max(result.slots_per_rank,
                                       static_cast<std::int64_t>(sets.back().intervals().size()));
    }
    std::vector<std::pair<std::int64_t, std::int64_t>> slots;  // first category, slot
    for (std::size_t c = 0; c < coordinates.size(); ++c) {
      std::int64_t slot = static_cast<std::int64_t>(c) * result.slots_per_rank;
      if (coordinates[c] == own) result.own_first_slot = slot;
      for (const Interval& i : sets[c].intervals()) slots.emplace_back(i.begin, slot++);
    }
    std::sort(slots.begin(), slots.end());
    result.slots.clear();
    for (const auto& entry : slots) result.slots.push_back(entry.second);
    return result;
  }

  /// Of (rows, width): with the rows, and whole, partial or in equal columns over the ranks that
  /// share them.
  Layout layout(std::int64_t width, const Placement& over_sharers) const {
    Placements placements = layout_.placements();
    for (Placement& p : placements) {
      if (p.is_shard(last_)) p = over_sharers;
    }
    ShardOrder order = layout_.shard_order();
    if (!over_sharers.is_shard()) {
      std::erase_if(order, [&](const auto& entry) { return entry.first == last_; });
    }
    return Layout(result_shape(layout_.shape(), width), mesh_.grid(), placements, order);
  }

  Tensor reduce(const Tensor& local, ReduceOp op) const override {
    return moved(local, local.shape()[1], Partial(op));
  }
  Tensor gather(const Tensor& local) const override {
    std::int64_t ranks = 1;
    for (int m : layout_.split_by(last_)) ranks *= mesh_.size(m);
    return moved(local, ranks * local.shape()[1], Shard(last_));
  }

  /// The worst problem of all rows. The ranks that share rows know of the same.
  WeightProblem worst(WeightProblem own) const {
    if (last_ == 0 || layout_.split_by(0).empty()) return own;
    Placements placements(static_cast<std::size_t>(mesh_.dim()), Replicate());
    for (int m : layout_.split_by(0)) {
      placements[static_cast<std::size_t>(m)] = Partial(ReduceOp::max);
    }
    const DTensor flag(
        mesh_, Layout({1}, mesh_.grid(), placements),
        Tensor::full({1}, static_cast<std::int64_t>(own), DType::int64, mesh_.device()));
    const Layout whole = flag.layout().with_placements(
        Placements(static_cast<std::size_t>(mesh_.dim()), Replicate()));
    return static_cast<WeightProblem>(
        detail::redistribute(flag, mesh_, whole, false, name, "every rank learns of a bad weight")
            .to_local()
            .item<std::int64_t>());
  }

 private:
  // To all ranks that share the rows.
  Tensor moved(const Tensor& local, std::int64_t width, const Placement& from) const {
    if (layout_.split_by(last_).empty()) return local;
    const Extents& own = *mesh_.coordinate();
    const Layout source = layout(width, from);
    const DTensor shared(mesh_, source, local.reshape(source.local_shape(own)));
    return detail::redistribute(shared, mesh_, layout(width, Replicate()), false, name,
                                "categories are sharded")
        .to_local()
        .reshape({local.shape()[0], width});
  }

  DeviceMesh mesh_;
  Layout layout_;
  int last_;
};

}  // namespace

Tensor multinomial(const Tensor& weights, std::int64_t num_samples, bool replacement,
                   Generator& generator) {
  const RandomBlocks blocks = generator.take(name);
  check(weights.shape(), weights.dtype(), num_samples, replacement);
  const Tensor rows = as_rows(weights);
  Categories categories;
  categories.weights = rows;
  categories.all_categories = rows.shape()[1];
  categories.rows = IndexSet(0, rows.shape()[0]);
  categories.held = IndexSet(0, rows.shape()[1]);
  WeightProblem problem = WeightProblem::none;
  const Tensor result =
      draw_categories(categories, num_samples, replacement, blocks, Nobody(), problem);
  check(problem, replacement);
  return result.reshape(result_shape(weights.shape(), num_samples));
}

DTensor multinomial(const DTensor& weights, std::int64_t num_samples, bool replacement,
                    Generator& generator) {
  const DeviceMesh& mesh = weights.device_mesh();
  const Generator before = generator;
  RandomBlocks blocks{};
  const auto prepare = [&] {
    // Ranks outside of the mesh do not learn of an error inside: the offset is taken in any case.
    blocks = generator.take(name);
    detail::part_of(name, weights);  // refuses Partial
    check(weights.shape(), weights.dtype(), num_samples, replacement);
    Hash h;
    h.add(before.seed());
    h.add(before.stream());
    h.add(before.offset());
    h.add(weights.layout().hash());
    h.add(static_cast<std::uint64_t>(weights.dtype()));
    h.add(static_cast<std::uint64_t>(num_samples));
    h.add(replacement);
    return h.value();
  };
  if (mesh.is_member() && is_sharded(weights.layout())) {
    agree(*mesh.communicator(), name, prepare, [&] {
      return fmt::format("{} samples {} replacement from {} {} as {}, {}", num_samples,
                         replacement ? "with" : "without", to_string(weights.dtype()),
                         to_string(weights.shape()), to_string(weights.placements()),
                         before.state());
    });
  } else {
    prepare();
  }
  const RanksOfMesh ranks(weights);
  const Layout layout = ranks.layout(num_samples, Replicate());
  if (!mesh.is_member()) {
    return DTensor(
        mesh, layout,
        Tensor::empty(local_shape_on(layout, Runtime::rank()), DType::int64, mesh.device()));
  }
  WeightProblem problem = WeightProblem::none;
  const Tensor result =
      draw_categories(ranks.categories(weights), num_samples, replacement, blocks, ranks, problem);
  check(ranks.worst(problem), replacement);
  return DTensor(mesh, layout, result.reshape(layout.local_shape(*mesh.coordinate())));
}

}  // namespace dtensor
