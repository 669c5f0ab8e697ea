// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/redistribute/plan.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtensor/core/error.hpp"
#include "dtensor/redistribute/geometry.hpp"

namespace dtensor {

namespace {

std::int64_t group_size(const Layout& layout, const std::vector<int>& mesh_dims) {
  std::int64_t size = 1;
  for (int m : mesh_dims) size *= layout.grid()->size(m);
  return size;
}

// What the slowest rank of a step receives.
struct Estimate {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
};

Estimate estimate(const Step& step, DType dtype) {
  Estimate worst;
  // A sample of a large mesh is enough to compare candidates.
  const auto& ranks = step.to.grid()->ranks();
  const std::size_t stride = (ranks.size() + 63) / 64;
  for (std::size_t i = 0; i < ranks.size(); i += stride) {
    const Received r = received(step, ranks[i]);
    worst.messages = std::max(worst.messages, r.messages);
    worst.bytes = std::max(worst.bytes, r.elements * size_of(dtype));
  }
  return worst;
}

double seconds(const std::vector<Step>& steps, DType dtype, const CostModel& model) {
  double sum = 0;
  for (const Step& step : steps) {
    const Estimate e = estimate(step, dtype);
    sum += model.seconds(e.messages, e.bytes);
  }
  return sum;
}

Collective classify(const Step& step) {
  const auto& ranks = step.to.grid()->ranks();
  bool communicates = false, keeps = true;
  for (int rank : ranks) {
    communicates |= received(step, rank).elements > 0;
    keeps &= keeps_all(step, rank);
  }
  if (!communicates) return Collective::none;
  if (!step.reduced.empty()) {
    const bool replicated = std::any_of(step.reduced.begin(), step.reduced.end(), [&](int m) {
      return same_grid(step.from, step.to) && step.to.placement(m).is_replicate() &&
             step.to.grid()->size(m) > 1;
    });
    return replicated ? Collective::all_reduce : Collective::reduce_scatter;
  }
  if (!same_grid(step.from, step.to)) return Collective::point_to_point;
  return keeps ? Collective::all_gather : Collective::all_to_all;
}

// Whether the mesh dimension shards a tensor dimension that no other one shards.
bool is_alone_in_sharding(const Layout& layout, int mesh_dim) {
  const Placement& p = layout.placement(mesh_dim);
  return p.is_shard() && layout.split_by(p.dim()).size() == 1;
}

// How the mesh dimensions of the destination that become Partial get their values.
void set_partial_entry(Step& step, DType dtype) {
  for (int m = 0; m < step.to.grid()->dim(); ++m) {
    const Placement& to = step.to.placement(m);
    if (!to.is_partial() || keeps_partial(step.from, step.to, m)) continue;
    if (same_grid(step.from, step.to) && is_alone_in_sharding(step.from, m) &&
        !to.is_partial(ReduceOp::avg)) {
      step.shards.push_back(m);
      continue;
    }
    const std::int64_t size = step.to.grid()->size(m);
    switch (to.reduce_op()) {
      case ReduceOp::sum: {
        // Dividing by a power of two is exact, and no rank differs from the others.
        const bool exact = (is_floating(dtype) || is_complex(dtype)) && (size & (size - 1)) == 0;
        if (exact) {
          step.scale *= size;
        } else {
          step.masked.push_back(m);
        }
        break;
      }
      case ReduceOp::product:
      case ReduceOp::bxor:
        step.masked.push_back(m);
        break;
      case ReduceOp::avg:
      case ReduceOp::min:
      case ReduceOp::max:
      case ReduceOp::band:
      case ReduceOp::bor:
        break;  // the reduction of equal values is that value
    }
  }
}

Step make_step(Step::Kind kind, const Layout& from, const Layout& to, std::vector<int> reduced,
               DType dtype) {
  Step step{kind, from, to, Collective::none, std::move(reduced), ReduceOp::sum, 1, {}, {}, 1};
  for (int m : step.reduced) {
    const ReduceOp op = from.placement(m).reduce_op();
    if (op == ReduceOp::avg) {
      step.divisor *= from.grid()->size(m);
    } else {
      step.op = op;
    }
  }
  set_partial_entry(step, dtype);
  step.collective =
      kind == Step::Kind::all_reduce
          ? (group_size(from, step.reduced) > 1 ? Collective::all_reduce : Collective::none)
          : classify(step);
  return step;
}

// The layout with the reduced mesh dimensions replaced. Shards are added finest, so that what a
// rank holds afterwards is part of what it held before.
Layout with_reduced(const Layout& layout, const std::vector<int>& reduced, const Placement& by) {
  Placements placements = layout.placements();
  for (int m : reduced) placements[static_cast<std::size_t>(m)] = by;
  ShardOrder order;
  for (int d = 0; d < layout.shape().size(); ++d) {
    std::vector<int> split = layout.split_by(d);
    if (by.is_shard(d)) split.insert(split.end(), reduced.begin(), reduced.end());
    order.emplace_back(d, std::move(split));
  }
  return layout.with_placements(std::move(placements), order);
}

}  // namespace

Plan::Plan(const Layout& source, const Layout& destination, DType dtype, const CostModel& model)
    : source_(source), destination_(destination), dtype_(dtype) {
  if (source.shape() != destination.shape()) {
    throw LayoutError("Plan", fmt::format("{} to {}", to_string(source), to_string(destination)),
                      "equal global shapes");
  }
  std::vector<int> reduced;
  for (int m = 0; m < source.grid()->dim(); ++m) {
    if (source.placement(m).is_partial() && !keeps_partial(source, destination, m)) {
      reduced.push_back(m);
    }
  }
  const auto exchange = [&](const Layout& from, const Layout& to, std::vector<int> dims) {
    return make_step(Step::Kind::exchange, from, to, std::move(dims), dtype);
  };
  if (reduced.empty()) {
    if (!(source == destination)) steps_ = {exchange(source, destination, {})};
  } else {
    std::vector<std::vector<Step>> candidates;
    // Reduce where the result is needed.
    candidates.push_back({exchange(source, destination, reduced)});
    // Reduce on all ranks of the group, then move.
    const Layout everywhere = with_reduced(source, reduced, Replicate());
    candidates.push_back({make_step(Step::Kind::all_reduce, source, everywhere, reduced, dtype)});
    if (!(everywhere == destination)) {
      candidates.back().push_back(exchange(everywhere, destination, {}));
    }
    // Reduce each element on one rank of the group, then move.
    for (int d = 0; d < source.shape().size(); ++d) {
      const Layout once = with_reduced(source, reduced, Shard(d));
      if (once == destination) continue;
      candidates.push_back({exchange(source, once, reduced), exchange(once, destination, {})});
    }
    double best = 0;
    for (auto& candidate : candidates) {
      const double s = seconds(candidate, dtype, model);
      if (steps_.empty() || s < best) {
        best = s;
        steps_ = std::move(candidate);
      }
    }
  }
  for (const Step& step : steps_) {
    if (step.collective == Collective::none) continue;
    rounds_ += step.kind == Step::Kind::all_reduce ? 2 : 1;
  }
}

std::int64_t Plan::bytes_received(int rank) const {
  std::int64_t elements = 0;
  for (const Step& step : steps_) elements += received(step, rank).elements;
  return elements * size_of(dtype_);
}

std::int64_t Plan::total_bytes() const {
  std::int64_t bytes = 0;
  for (const Step& step : steps_) {
    for (int rank : step.to.grid()->ranks()) {
      bytes += received(step, rank).elements * size_of(dtype_);
    }
  }
  return bytes;
}

std::int64_t Plan::lower_bound_bytes(int rank) const {
  if (steps_.empty()) return 0;
  const bool reduces = !steps_.front().reduced.empty();
  const bool alone = group_size(source_, steps_.front().reduced) == 1;
  const Step direct =
      make_step(Step::Kind::exchange, source_, destination_, steps_.front().reduced, dtype_);
  const std::int64_t elements =
      reduces && !alone ? needed_elements(direct, rank) : received(direct, rank).elements;
  return elements * size_of(dtype_);
}

std::int64_t Plan::total_lower_bound_bytes() const {
  std::int64_t bytes = 0;
  for (int rank : destination_.grid()->ranks()) bytes += lower_bound_bytes(rank);
  return bytes;
}

std::string to_string(const Plan& plan) {
  std::string text = fmt::format("{} to {}: {} rounds, {} bytes", to_string(plan.source()),
                                 to_string(plan.destination()), plan.rounds(), plan.total_bytes());
  for (const Step& step : plan.steps()) {
    text += fmt::format("\n  {}: {} to {}", to_string(step.collective),
                        to_string(step.from.placements()), to_string(step.to.placements()));
  }
  return text;
}

}  // namespace dtensor
