// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/decision.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <tuple>

#include "dtensor/core/error.hpp"
#include "dtensor/redistribute/cost_model.hpp"

namespace dtensor {

namespace {

// Of more combinations than this, those are tried that change the fewest placements.
constexpr std::size_t max_combinations = 4096;

// Mesh dimensions, coarsest first.
using Split = std::vector<int>;

// A layout in the making.
struct Target {
  Placements placements;
  std::vector<Split> split_by;  // per tensor dimension
};

std::int64_t ranks_of(const ProcessGrid& grid, const Split& mesh_dims) {
  std::int64_t ranks = 1;
  for (int m : mesh_dims) ranks *= grid.size(m);
  return ranks;
}

// Bytes of the largest part of a tensor that is split evenly.
double local_bytes(const Shape& shape, const std::vector<Split>& split_by, const ProcessGrid& grid,
                   DType dtype) {
  auto bytes = static_cast<double>(size_of(dtype));
  for (int d = 0; d < shape.size(); ++d) {
    const std::int64_t parts = ranks_of(grid, split_by[static_cast<std::size_t>(d)]);
    bytes *= static_cast<double>((shape[d] + parts - 1) / parts);
  }
  return bytes;
}

// Seconds to bring a tensor from one layout to another: an estimate in closed form that needs no
// plan. A rank that needs `need` bytes under the target holds one in `spread` of them.
double redistribute_seconds(const Layout& from, const Target& to, DType dtype) {
  const ProcessGrid& grid = *from.grid();
  const CostModel model;
  std::vector<Split> held;
  std::int64_t spread = 1;
  for (int d = 0; d < from.shape().size(); ++d) {
    Split a = from.split_by(d);
    // A shard becomes a contribution where it is.
    std::erase_if(a,
                  [&](int m) { return to.placements[static_cast<std::size_t>(m)].is_partial(); });
    const Split& b = to.split_by[static_cast<std::size_t>(d)];
    std::size_t common = 0;
    while (common < a.size() && common < b.size() && a[common] == b[common] &&
           from.placement(a[common]) == to.placements[static_cast<std::size_t>(b[common])]) {
      ++common;
    }
    spread *= ranks_of(grid, Split(a.begin() + static_cast<std::ptrdiff_t>(common), a.end()));
    held.push_back(from.split_by(d));
  }
  std::int64_t group = 1;  // contributions to each element
  for (int m = 0; m < grid.dim(); ++m) {
    const bool reduced = from.placement(m).is_partial() &&
                         !(to.placements[static_cast<std::size_t>(m)] == from.placement(m));
    if (reduced) group *= grid.size(m);
  }
  const double need = local_bytes(from.shape(), to.split_by, grid, dtype);
  const auto seconds = [&](std::int64_t messages, double bytes) {
    return messages == 0 ? 0.0 : model.seconds(messages, static_cast<std::int64_t>(bytes));
  };
  const auto s = static_cast<double>(spread);
  const auto g = static_cast<double>(group);
  const double direct = seconds(group * spread - 1, need * (g - 1 / s));
  if (group == 1) return direct;
  const double reduced_first =
      seconds(2 * (group - 1), 2 * local_bytes(from.shape(), held, grid, dtype) * (g - 1) / g) +
      seconds(spread - 1, need * (1 - 1 / s));
  return std::min(direct, reduced_first);
}

// What candidates are compared by, the most important first.
struct Cost {
  bool communicates = false;
  double seconds = 0;  // now, and to reduce the result later
  int changes = 0;     // of placements of inputs
  double result_bytes = 0;

  friend bool operator<(const Cost& a, const Cost& b) noexcept {
    return std::tie(a.communicates, a.seconds, a.changes, a.result_bytes) <
           std::tie(b.communicates, b.seconds, b.changes, b.result_bytes);
  }
};

std::optional<Layout> make_layout(const Shape& shape,
                                  const std::shared_ptr<const ProcessGrid>& grid,
                                  const Target& target) {
  ShardOrder order;
  for (int d = 0; d < shape.size(); ++d) {
    const Split& split = target.split_by[static_cast<std::size_t>(d)];
    if (split.size() > 1) order.emplace_back(d, split);
  }
  try {
    return Layout(shape, grid, target.placements, order);
  } catch (const LayoutError&) {
    return std::nullopt;  // extents that a user gave do not fit what the other splits leave
  }
}

class Search {
 public:
  Search(const Choices& choices, const std::vector<Layout>& inputs,
         const std::vector<DType>& dtypes)
      : operator_(choices), inputs_(inputs), dtypes_(dtypes), grid_(inputs.front().grid()) {}

  Decision run() {
    collect_choices();
    chosen_.assign(choices_.size(), 0);
    while (true) {
      try_combination();
      std::size_t m = chosen_.size();
      while (m > 0 && ++chosen_[m - 1] == choices_[m - 1].size()) chosen_[--m] = 0;
      if (m == 0) return *best_;
    }
  }

 private:
  // No choice is offered that would make contributions out of whole values: the result would have
  // to be reduced for no gain. What is added to contributions to a sum has to become one of them.
  bool reachable(const Choice& s, int mesh_dim) const {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const Placement& has = inputs_[i].placement(mesh_dim);
      if (!s.inputs[i].is_partial() || s.inputs[i] == has) continue;
      const bool added = (operator_.added >> i & 1) != 0;
      if (!added || has.is_partial() || !s.inputs[i].is_partial(ReduceOp::sum)) return false;
    }
    return true;
  }

  int changes(const Choice& s, int mesh_dim) const {
    int count = 0;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      count += !(s.inputs[i] == inputs_[i].placement(mesh_dim));
    }
    return count;
  }

  void collect_choices() {
    std::size_t combinations = 1;
    for (int m = 0; m < grid_->dim(); ++m) {
      Placements current;
      for (const Layout& layout : inputs_) current.push_back(layout.placement(m));
      choices_.push_back(operator_.of_mesh_dim(current));
      std::erase_if(choices_.back(), [&](const Choice& s) { return !reachable(s, m); });
      combinations *= std::min(choices_.back().size(), max_combinations);
      combinations = std::min(combinations, max_combinations + 1);
    }
    if (combinations <= max_combinations) return;
    const auto each = static_cast<std::size_t>(
        std::pow(static_cast<double>(max_combinations), 1.0 / grid_->dim()));
    for (int m = 0; m < grid_->dim(); ++m) {
      auto& list = choices_[static_cast<std::size_t>(m)];
      // The first one replicates everything, which is always possible.
      std::stable_sort(list.begin() + 1, list.end(), [&](const Choice& a, const Choice& b) {
        return changes(a, m) < changes(b, m);
      });
      list.resize(std::min(std::max<std::size_t>(each, 2), list.size()), list.front());
    }
  }

  const Choice& choice(int mesh_dim) const {
    const auto m = static_cast<std::size_t>(mesh_dim);
    return choices_[m][chosen_[m]];
  }

  // The orders in which the mesh dimensions may split the operator's dimensions: increasing, and
  // for each input the order that it has, followed by the mesh dimensions that are new to it.
  void try_combination() {
    std::vector<Split> split(static_cast<std::size_t>(operator_.axes));
    bool ordered = false;
    for (int m = 0; m < grid_->dim(); ++m) {
      if (choice(m).axis == -1) continue;
      Split& s = split[static_cast<std::size_t>(choice(m).axis)];
      s.push_back(m);
      ordered |= s.size() > 1;
    }
    for (int m = 0; m < grid_->dim(); ++m) {
      const std::int64_t extent = choice(m).divided_extent;
      if (extent == 0) continue;
      if (extent % ranks_of(*grid_, split[static_cast<std::size_t>(choice(m).axis)]) != 0) return;
    }
    try_order(split);
    if (!ordered) return;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      std::vector<Split> as_input = split;
      for (int d = 0; d < inputs_[i].shape().size(); ++d) {
        const Split& has = inputs_[i].split_by(d);
        const auto position = [&](int m) { return std::find(has.begin(), has.end(), m); };
        const int axis = operator_.input_axes[i][static_cast<std::size_t>(d)];
        if (axis == -1) continue;
        Split& s = as_input[static_cast<std::size_t>(axis)];
        std::stable_sort(s.begin(), s.end(),
                         [&](int a, int b) { return position(a) < position(b); });
      }
      if (as_input != split) try_order(as_input);
    }
  }

  Target target(const Placements Choice::*placements, std::size_t i, const std::vector<int>& axes,
                const std::vector<Split>& split) const {
    Target t;
    for (int m = 0; m < grid_->dim(); ++m) t.placements.push_back((choice(m).*placements)[i]);
    for (std::size_t d = 0; d < axes.size(); ++d) {
      t.split_by.emplace_back();
      if (axes[d] == -1) continue;
      for (int m : split[static_cast<std::size_t>(axes[d])]) {
        // Not where the tensor's extent of 1 stands for all indices.
        if (t.placements[static_cast<std::size_t>(m)].is_shard(static_cast<int>(d))) {
          t.split_by.back().push_back(m);
        }
      }
    }
    return t;
  }

  void try_order(const std::vector<Split>& split) {
    Cost cost;
    std::vector<Target> targets, results;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      targets.push_back(target(&Choice::inputs, i, operator_.input_axes[i], split));
      cost.seconds += redistribute_seconds(inputs_[i], targets.back(), dtypes_[i]);
    }
    cost.communicates = cost.seconds > 0;
    for (int m = 0; m < grid_->dim(); ++m) cost.changes += changes(choice(m), m);
    for (std::size_t i = 0; i < operator_.output_shapes.size(); ++i) {
      results.push_back(target(&Choice::outputs, i, operator_.output_axes[i], split));
      const double bytes = local_bytes(operator_.output_shapes[i], results[i].split_by, *grid_,
                                       operator_.results[i]);
      cost.result_bytes += bytes;
      std::int64_t group = 1;
      for (int m = 0; m < grid_->dim(); ++m) {
        if (results[i].placements[static_cast<std::size_t>(m)].is_partial()) {
          group *= grid_->size(m);
        }
      }
      if (cost.communicates && group > 1) {
        const auto g = static_cast<double>(group);
        cost.seconds +=
            CostModel().seconds(group - 1, static_cast<std::int64_t>(bytes * (g - 1) / g));
      }
    }
    if (best_ && !(cost < best_cost_)) return;

    std::vector<Layout> outputs;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const auto layout = make_layout(operator_.output_shapes[i], grid_, results[i]);
      if (!layout) return;
      outputs.push_back(*layout);
    }
    Decision decision{{}, outputs.front(), false, {outputs.begin() + 1, outputs.end()}};
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const auto layout = make_layout(inputs_[i].shape(), grid_, targets[i]);
      if (!layout) return;
      const bool stays = *layout == inputs_[i];
      decision.moves |= !stays;
      decision.inputs.push_back(stays ? inputs_[i] : *layout);
    }
    best_ = std::move(decision);
    best_cost_ = cost;
  }

  const Choices& operator_;
  const std::vector<Layout>& inputs_;
  const std::vector<DType>& dtypes_;
  std::shared_ptr<const ProcessGrid> grid_;
  std::vector<std::vector<Choice>> choices_;  // per mesh dimension
  std::vector<std::size_t> chosen_;
  std::optional<Decision> best_;
  Cost best_cost_;
};

// What a rule offers.
Choices choices_of(const char* function, const Rule& rule, std::vector<Shape> shapes,
                   DType result) {
  const std::string letters = rule.letters();
  const auto axis_of = [letters](char c) {
    const auto position = letters.find(c);
    return position == std::string::npos ? -1 : static_cast<int>(position);
  };
  const auto axes_of = [&](const std::string& dims) {
    std::vector<int> axes;
    for (char c : dims) axes.push_back(axis_of(c));
    return axes;
  };
  Choices choices;
  for (const std::string& input : rule.inputs()) choices.input_axes.push_back(axes_of(input));
  choices.output_axes.push_back(axes_of(rule.output()));
  choices.axes = static_cast<int>(letters.size());
  for (std::size_t i = 0; i < rule.inputs().size(); ++i) {
    choices.added |= static_cast<std::uint32_t>(rule.is_added(i)) << i;
  }
  choices.output_shapes.push_back(rule.output_shape(function, shapes));
  choices.results.push_back(result);
  choices.of_mesh_dim = [&rule, axis_of, shapes = std::move(shapes)](const Placements& current) {
    std::vector<Choice> list;
    for (Strategy& s : strategies(rule, shapes, current)) {
      list.push_back({std::move(s.inputs), {s.output}, s.letter == 0 ? -1 : axis_of(s.letter)});
    }
    return list;
  };
  return choices;
}

}  // namespace

double estimated_seconds(const Layout& from, const Layout& to, DType dtype) {
  Target target{to.placements(), {}};
  for (int d = 0; d < to.shape().size(); ++d) target.split_by.push_back(to.split_by(d));
  return redistribute_seconds(from, target, dtype);
}

Decision decide(const Choices& choices, const std::vector<Layout>& inputs,
                const std::vector<DType>& dtypes) {
  return Search(choices, inputs, dtypes).run();
}

Decision decide(const char* function, const Rule& rule, const std::vector<Layout>& inputs,
                const std::vector<DType>& dtypes, DType result) {
  std::vector<Shape> shapes;
  for (const Layout& layout : inputs) shapes.push_back(layout.shape());
  return decide(choices_of(function, rule, std::move(shapes), result), inputs, dtypes);
}

}  // namespace dtensor
