// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Redistribution of a global array on simulated ranks, checked against the plain model.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "dtensor/comm/simulated_network.hpp"
#include "dtensor/redistribute/execution.hpp"
#include "redistribute/reference.hpp"

namespace dtensor::testing {

struct Case {
  Shape shape;
  std::shared_ptr<const ProcessGrid> from_grid, to_grid;
  Placements from, to;
  ShardOrder from_order = {}, to_order = {};
  MessageLimits limits = {};
  bool transposed_locals = false;  ///< source locals in column-major storage
};

inline std::shared_ptr<const ProcessGrid> grid_of(const Shape& shape, std::vector<int> ranks = {}) {
  if (ranks.empty()) {
    ranks.resize(static_cast<std::size_t>(shape.product()));
    std::iota(ranks.begin(), ranks.end(), 0);
  }
  return std::make_shared<const ProcessGrid>(shape, std::move(ranks));
}

inline std::vector<int> split_order(const ShardOrder& order, int mesh_dims) {
  std::vector<int> result;
  for (const auto& entry : order)
    result.insert(result.end(), entry.second.begin(), entry.second.end());
  for (int m = 0; m < mesh_dims; ++m) {
    if (std::find(result.begin(), result.end(), m) == result.end()) result.push_back(m);
  }
  return result;
}

/// The op of the Partial placements of a layout, and what its averages divide by.
inline ReduceOp partial_op(const Placements& placements) {
  ReduceOp op = ReduceOp::sum;
  for (const Placement& p : placements) {
    if (p.is_partial() && p.reduce_op() != ReduceOp::avg) op = p.reduce_op();
  }
  return op;
}

/// Runs the case with elements of type T (double or int64) and checks every rank's result, the
/// bytes, the rounds and the scratch. Returns false on the first difference, with a gtest failure.
template <class T>
class Simulation {
 public:
  explicit Simulation(const Case& c, unsigned seed) : case_(c), random_(seed) {
    std::set<int> all(c.from_grid->ranks().begin(), c.from_grid->ranks().end());
    all.insert(c.to_grid->ranks().begin(), c.to_grid->ranks().end());
    participants_.assign(all.begin(), all.end());
  }

  void run() {
    const Layout from(case_.shape, case_.from_grid, case_.from, case_.from_order);
    const Layout to(case_.shape, case_.to_grid, case_.to, case_.to_order);
    SCOPED_TRACE(to_string(from) + " to " + to_string(to));
    const auto plan = std::make_shared<const Plan>(from, to, dtype_of<T>);
    make_source();

    const int n = static_cast<int>(participants_.size());
    SimulatedNetwork network(n);
    std::vector<std::unique_ptr<Execution>> executions;
    std::vector<std::shared_ptr<const Program>> programs;
    for (int i = 0; i < n; ++i) {
      const int rank = participants_[static_cast<std::size_t>(i)];
      programs.push_back(
          std::make_shared<const Program>(compile(plan, participants_, rank, case_.limits)));
    }
    for (int i = 0; i < n; ++i) {
      executions.push_back(std::make_unique<Execution>(programs[static_cast<std::size_t>(i)],
                                                       network.communicator(i), source_tensor(i),
                                                       nullptr));
    }
    bool all = false;
    for (int turn = 0; turn < 100000 && !all; ++turn) {
      all = true;
      for (auto& e : executions) all &= e->test();
    }
    ASSERT_TRUE(all) << "the ranks wait for one another";
    EXPECT_TRUE(network.quiet()) << "messages left over";
    for (int i = 0; i < n; ++i) {
      results_.push_back(executions[static_cast<std::size_t>(i)]->wait().template to_vector<T>());
    }
    check_values();
    check_costs(*plan, programs, network);
  }

  /// The logical value of every element.
  const std::vector<T>& expected() const { return expected_; }
  const std::vector<std::vector<T>>& results() const { return results_; }

 private:
  Extents coordinate(const ProcessGrid& grid, std::int64_t position) const {
    Extents c = grid.shape();
    for (int d = grid.dim() - 1; d >= 0; --d) {
      c[d] = position % grid.shape()[d];
      position /= grid.shape()[d];
    }
    return c;
  }

  Indices held(const ProcessGrid& grid, const Placements& placements, const ShardOrder& order,
               std::int64_t position) const {
    return naive_elements(
        case_.shape, naive_indices(case_.shape, placements, grid.shape(),
                                   coordinate(grid, position), split_order(order, grid.dim())));
  }

  // Contributions of each coordinate of the Partial mesh dimensions to each element; the expected
  // value is their reduction, with sums that divide exactly where they are averaged.
  void make_source() {
    const ProcessGrid& grid = *case_.from_grid;
    const auto elements = static_cast<std::size_t>(case_.shape.product());
    const ReduceOp op = partial_op(case_.from);
    std::int64_t divisor = 1, group = 1;
    for (int m = 0; m < grid.dim(); ++m) {
      const Placement& p = case_.from[static_cast<std::size_t>(m)];
      if (!p.is_partial()) continue;
      group *= grid.size(m);
      if (p.reduce_op() == ReduceOp::avg) divisor *= grid.size(m);
    }
    std::map<std::int64_t, std::vector<T>> contributions;
    for (std::int64_t position = 0; position < grid.size(); ++position) {
      auto& values = contributions[partial_index(position)];
      if (!values.empty() || elements == 0) continue;
      for (std::size_t e = 0; e < elements; ++e) {
        const bool small = op == ReduceOp::product;
        const auto v = std::uniform_int_distribution<int>(small ? 1 : -50, small ? 3 : 50)(random_);
        values.push_back(static_cast<T>(v * divisor));
      }
    }
    for (std::size_t e = 0; e < elements; ++e) {
      bool first = true;
      T value{};
      for (const auto& [index, values] : contributions) {
        value = first ? values[e] : naive_reduce(op, value, values[e]);
        first = false;
      }
      expected_.push_back(value / static_cast<T>(divisor));
    }
    for (int rank : participants_) {
      sources_.emplace_back();
      const auto position = std::find(grid.ranks().begin(), grid.ranks().end(), rank);
      if (position == grid.ranks().end()) continue;
      const std::int64_t p = position - grid.ranks().begin();
      for (std::int64_t e : held(grid, case_.from, case_.from_order, p)) {
        sources_.back().push_back(contributions[partial_index(p)][static_cast<std::size_t>(e)]);
      }
    }
  }

  std::int64_t partial_index(std::int64_t position) const {
    const ProcessGrid& grid = *case_.from_grid;
    const Extents c = coordinate(grid, position);
    std::int64_t index = 0;
    for (int m = 0; m < grid.dim(); ++m) {
      if (case_.from[static_cast<std::size_t>(m)].is_partial()) index = index * grid.size(m) + c[m];
    }
    return index;
  }

  Tensor source_tensor(int i) const {
    const int rank = participants_[static_cast<std::size_t>(i)];
    const Layout layout(case_.shape, case_.from_grid, case_.from, case_.from_order);
    const Shape local = local_shape_on(layout, rank);
    const Tensor dense = Tensor::from_vector(sources_[static_cast<std::size_t>(i)], local);
    if (!case_.transposed_locals || local.size() < 2) return dense;
    Extents reversed;
    for (int d = local.size() - 1; d >= 0; --d) reversed.push_back(local[d]);
    std::vector<std::int64_t> dims(static_cast<std::size_t>(local.size()));
    std::iota(dims.rbegin(), dims.rend(), 0);
    const Tensor columns = Tensor::empty(reversed, dtype_of<T>).permute(dims);
    columns.copy_from(dense);
    return columns;
  }

  void check_values() {
    const ProcessGrid& grid = *case_.to_grid;
    const bool partial = std::any_of(case_.to.begin(), case_.to.end(),
                                     [](const Placement& p) { return p.is_partial(); });
    const ReduceOp op = partial_op(case_.to);
    // For each rank-independent choice of the other mesh dimensions, reduce over the Partial ones.
    std::map<std::vector<std::int64_t>, std::vector<T>> reduced;
    std::map<std::vector<std::int64_t>, Indices> elements;
    std::int64_t divisor = 1;
    for (int m = 0; m < grid.dim(); ++m) {
      const Placement& p = case_.to[static_cast<std::size_t>(m)];
      if (p.is_partial(ReduceOp::avg)) divisor *= grid.size(m);
    }
    for (std::int64_t position = 0; position < grid.size(); ++position) {
      const Extents c = coordinate(grid, position);
      std::vector<std::int64_t> key;
      for (int m = 0; m < grid.dim(); ++m) {
        key.push_back(case_.to[static_cast<std::size_t>(m)].is_partial() ? -1 : c[m]);
      }
      const int rank = grid.ranks()[static_cast<std::size_t>(position)];
      const auto i =
          std::find(participants_.begin(), participants_.end(), rank) - participants_.begin();
      const auto& result = results_[static_cast<std::size_t>(i)];
      const Indices own = held(grid, case_.to, case_.to_order, position);
      ASSERT_EQ(result.size(), own.size()) << "on rank " << rank;
      auto& values = reduced[key];
      if (elements.count(key) == 0) {
        values = result;
      } else {
        for (std::size_t e = 0; e < own.size(); ++e) {
          values[e] = naive_reduce(op, values[e], result[e]);
        }
      }
      elements[key] = own;
    }
    for (auto& [key, values] : reduced) {
      const Indices& own = elements[key];
      for (std::size_t e = 0; e < own.size(); ++e) {
        const T value = partial ? values[e] / static_cast<T>(divisor) : values[e];
        ASSERT_EQ(value, expected_[static_cast<std::size_t>(own[e])]) << "element " << own[e];
      }
    }
  }

  void check_costs(const Plan& plan, const std::vector<std::shared_ptr<const Program>>& programs,
                   const SimulatedNetwork& network) {
    std::int64_t sent = 0;
    bool reduces = false;
    for (const Step& s : plan.steps()) reduces |= !s.reduced.empty();
    for (std::size_t i = 0; i < participants_.size(); ++i) {
      const auto& counters = network.counters(static_cast<int>(i));
      ASSERT_EQ(programs[i]->bytes_sent, counters.bytes_sent);
      ASSERT_EQ(plan.bytes_received(participants_[i]), counters.bytes_received);
      sent += counters.bytes_sent;
      if (reduces) continue;
      ASSERT_EQ(counters.bytes_received, plan.lower_bound_bytes(participants_[i]));
      ASSERT_EQ(counters.bytes_received, naive_missing_bytes(participants_[i]));
    }
    ASSERT_EQ(plan.total_bytes(), sent);
    ASSERT_EQ(plan.communicates(), sent > 0);
    ASSERT_LE(plan.rounds(), reduces ? 3 : 1);
  }

  // What a rank needs and does not hold, element by element.
  std::int64_t naive_missing_bytes(int rank) const {
    const auto& to_ranks = case_.to_grid->ranks();
    const auto& from_ranks = case_.from_grid->ranks();
    const auto to = std::find(to_ranks.begin(), to_ranks.end(), rank);
    if (to == to_ranks.end()) return 0;
    const Extents c = coordinate(*case_.to_grid, to - to_ranks.begin());
    std::vector<int> own_shards;  // tensor dimensions of which only the own shard is needed
    const bool same = case_.from_grid->shape() == case_.to_grid->shape() && from_ranks == to_ranks;
    for (int m = 0; m < case_.to_grid->dim(); ++m) {
      const Placement& p = case_.to[static_cast<std::size_t>(m)];
      if (!p.is_partial() || (same && case_.from[static_cast<std::size_t>(m)] == p)) continue;
      // A shard becomes a contribution where it is, unless another mesh dimension shards the same
      // tensor dimension; averages would have to be multiplied.
      const Placement& had = case_.from[static_cast<std::size_t>(m)];
      if (same && had.is_shard() && !p.is_partial(ReduceOp::avg) &&
          std::count_if(case_.from.begin(), case_.from.end(),
                        [&](const Placement& q) { return q.is_shard(had.dim()); }) == 1) {
        own_shards.push_back(had.dim());
        continue;
      }
      // The library may put the whole value on coordinate 0.
      const bool exact = std::is_floating_point_v<T> &&
                         (case_.to_grid->size(m) & (case_.to_grid->size(m) - 1)) == 0;
      const bool first_only = p.is_partial(ReduceOp::product) || p.is_partial(ReduceOp::bxor) ||
                              (p.is_partial(ReduceOp::sum) && !exact);
      if (first_only && c[m] != 0) return 0;
    }
    Indices needed = held(*case_.to_grid, case_.to, case_.to_order, to - to_ranks.begin());
    for (int d : own_shards) {
      const auto lists = naive_indices(case_.shape, case_.from, case_.from_grid->shape(), c,
                                       split_order(case_.from_order, case_.from_grid->dim()));
      const auto& own = lists[static_cast<std::size_t>(d)];
      std::int64_t stride = 1;
      for (int e = d + 1; e < case_.shape.size(); ++e) stride *= case_.shape[e];
      std::erase_if(needed, [&](std::int64_t e) {
        return std::find(own.begin(), own.end(), e / stride % case_.shape[d]) == own.end();
      });
    }
    std::set<std::int64_t> has;
    const auto from = std::find(from_ranks.begin(), from_ranks.end(), rank);
    if (from != from_ranks.end()) {
      const Indices list =
          held(*case_.from_grid, case_.from, case_.from_order, from - from_ranks.begin());
      has.insert(list.begin(), list.end());
    }
    std::int64_t missing = 0;
    for (std::int64_t e : needed) missing += has.count(e) == 0;
    return missing * static_cast<std::int64_t>(sizeof(T));
  }

  Case case_;
  std::mt19937 random_;
  std::vector<int> participants_;
  std::vector<T> expected_;
  std::vector<std::vector<T>> sources_, results_;
};

}  // namespace dtensor::testing
