// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every rule, as operators use it: whatever placements it calls legal, the operator's kernel on the
// parts that ranks have then gives the parts of the whole result. Ranks are simulated in turn.
//
// DTENSOR_TEST_REPORT=1 prints which placements that rules refuse would have been right.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/pointwise_table.hpp"
#include "ops/programs/program.hpp"

namespace dtensor {
namespace {

using namespace testing;

std::string text_of(const Placements& inputs, const Placement& output) {
  std::string text;
  for (const Placement& p : inputs) text += (text.empty() ? "" : ", ") + to_string(p);
  return text + " -> " + to_string(output);
}

// How often a placement that is no strategy was tried, and was right.
struct Trial {
  int tried = 0, right = 0;
};

struct Findings {
  std::map<std::string, int> strategies;  // run, by operator
  std::map<std::string, Trial> refused;
  int failures = 0;
};
Findings findings;

// One use of a rule: inputs as a whole, and the kernel.
class Use {
 public:
  Use(const Operation& operation, Inputs inputs, LocalKernel kernel)
      : operation_(operation), kernel_(kernel), whole_(Tensor(), 0) {
    std::vector<Tensor> locals;
    for (const DTensor& input : inputs) {
      locals.push_back(input.to_local());
      inputs_.emplace_back(locals.back(), true, 0);
      shapes_.push_back(input.shape());
    }
    whole_ = Result(kernel(locals), 1);
    for (const Variable& v : inputs_) {
      rounding_ = std::max(rounding_, tolerance(v.tensor.dtype()));
      if (v.finite) scale_ = std::max(scale_, v.largest);
      // Contributions to what is not finite, or is so large that they cancel, tell nothing.
      const bool narrow = is_floating(v.tensor.dtype()) && size_of(v.tensor.dtype()) == 2;
      usable_ = usable_ && v.finite && v.largest <= (narrow ? 16 : 1e4);
    }
    scale_ = std::max({scale_, whole_.largest, 8.0});
    rounding_ = std::max(rounding_, tolerance(whole_.plain.dtype));
  }

  void check() {
    if (!usable_) return;
    std::set<std::string> legal;
    for (std::int64_t ranks : {2, 3, 4}) {
      for (const Placements& current : current_placements(ranks)) {
        for (const Strategy& s : strategies(operation_.rule, shapes_, current)) {
          legal.insert(text_of(s.inputs, Replicate()));
          if (!exists(s.inputs) || !exists_in(s.output, operation_.result)) continue;
          ++findings.strategies[operation_.name];
          const std::string wrong = run(s.inputs, s.output, ranks);
          if (wrong.empty() || ++findings.failures > 10) continue;
          ADD_FAILURE() << operation_.name << " of " << describe() << " as "
                        << text_of(s.inputs, s.output) << " on " << ranks << " ranks: " << wrong;
        }
      }
    }
    if (inputs_.size() <= 2 && std::string(operation_.name) != "index_select" &&
        std::string(operation_.name) != "gather") {
      try_what_is_refused(legal);
    }
  }

 private:
  struct Result {
    Plain plain;
    bool finite = true;
    double largest = 0;
    Result(const Tensor& t, int) : plain(t.defined() ? Plain(t) : Plain({}, DType::boolean)) {
      if (!t.defined()) return;
      const Variable v(t, true, 0);
      finite = v.finite;
      largest = v.finite ? v.largest : 0;
    }
  };

  std::string describe() const {
    std::string text;
    for (const Variable& v : inputs_) text += (text.empty() ? "" : " and ") + to_string(v.tensor);
    return text;
  }

  static bool exists_in(const Placement& p, DType dtype) {
    if (!p.is_partial()) return true;
    const auto list = reductions_of(dtype);
    return std::find(list.begin(), list.end(), p.reduce_op()) != list.end();
  }
  bool exists(const Placements& placements) const {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!exists_in(placements[i], inputs_[i].tensor.dtype())) return false;
    }
    return true;
  }

  // Replicated, and sharded unevenly or in stripes along each dimension.
  std::vector<Placements> current_placements(std::int64_t ranks) const {
    std::vector<Placements> result{Placements(inputs_.size(), Replicate())};
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      for (int d = 0; d < shapes_[i].size(); ++d) {
        std::vector<std::int64_t> extents(static_cast<std::size_t>(ranks), 0);
        // The last rank but one has nothing.
        extents[0] = shapes_[i][d] / 3;
        extents[static_cast<std::size_t>(ranks - 1)] = shapes_[i][d] - extents[0];
        for (const Placement& p : {Placement(Shard(d, extents)), Placement(StridedShard(d, 2))}) {
          result.emplace_back(inputs_.size(), Replicate());
          result.back()[i] = p;
        }
      }
    }
    return result;
  }

  static std::shared_ptr<const ProcessGrid> grid_of(std::int64_t ranks) {
    static std::map<std::int64_t, std::shared_ptr<const ProcessGrid>> grids;
    auto& grid = grids[ranks];
    if (!grid) {
      std::vector<int> list;
      for (int r = 0; r < ranks; ++r) list.push_back(r);
      grid = std::make_shared<const ProcessGrid>(Shape{ranks}, list);
    }
    return grid;
  }

  // What is wrong with the results when inputs are placed like that, empty for nothing.
  std::string run(const Placements& inputs, const Placement& output, std::int64_t ranks) const {
    std::vector<Layout> layouts;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      layouts.emplace_back(shapes_[i], grid_of(ranks), Placements{inputs[i]});
    }
    std::vector<Plain> parts;
    for (std::int64_t r = 0; r < ranks; ++r) {
      std::vector<Tensor> locals;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        locals.push_back(part_of(inputs_[i].plain, layouts[i], Extents{r}, 17 + i).tensor());
      }
      try {
        parts.emplace_back(kernel_(locals));
      } catch (const Error& e) {
        return e.what();
      }
    }
    const double allowed = rounding_ * scale_ * 4;
    if (output.is_partial()) {
      for (const Plain& p : parts) {
        if (!(p.shape == whole_.plain.shape)) return "a part of shape " + to_string(p.shape);
      }
      const double error = difference(combined(parts, output.reduce_op()), whole_.plain);
      return error <= allowed ? "" : "differs by " + std::to_string(error);
    }
    const Layout layout(whole_.plain.shape, grid_of(ranks), {output});
    for (std::int64_t r = 0; r < ranks; ++r) {
      const double error = difference(parts[static_cast<std::size_t>(r)],
                                      part_of(whole_.plain, layout, Extents{r}, 0));
      if (!(error <= allowed))
        return "rank " + std::to_string(r) + " differs by " + std::to_string(error);
    }
    return "";
  }

  static Placements choices(const Shape& shape, DType dtype) {
    Placements result{Replicate()};
    for (int d = 0; d < shape.size(); ++d) result.push_back(Shard(d));
    for (ReduceOp op : reductions_of(dtype)) result.push_back(Partial(op));
    return result;
  }

  // Whether the parts of all ranks fit together, which kernels rely on.
  bool fit(const Placements& inputs) const {
    for (std::int64_t r = 0; r < refused_ranks; ++r) {
      std::vector<Shape> shapes;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const Layout layout(shapes_[i], grid_of(refused_ranks), {inputs[i]});
        shapes.push_back(layout.local_shape(Extents{r}));
        // Indices count whole dimensions.
        const std::string& letters = operation_.rule.inputs()[i];
        if (inputs[i].is_shard() &&
            operation_.rule.is_whole(letters[static_cast<std::size_t>(inputs[i].dim())])) {
          return false;
        }
      }
      try {
        operation_.rule.output_shape(operation_.name, shapes);
      } catch (const ValueError&) {
        return false;
      }
    }
    return true;
  }

  void try_what_is_refused(const std::set<std::string>& legal) const {
    if (whole_.plain.values.size() < 4 || whole_.plain.dtype == DType::boolean) return;
    std::vector<Placements> combinations{{}};
    for (const Variable& v : inputs_) {
      std::vector<Placements> longer;
      for (const Placements& c : combinations) {
        for (const Placement& p : choices(v.tensor.shape(), v.tensor.dtype())) {
          longer.push_back(c);
          longer.back().push_back(p);
        }
      }
      combinations = std::move(longer);
    }
    const Placements outputs = choices(whole_.plain.shape, operation_.result);
    for (const Placements& inputs : combinations) {
      if (legal.contains(text_of(inputs, Replicate())) || !fit(inputs)) continue;
      for (const Placement& output : outputs) {
        Trial& trial =
            findings.refused[std::string(operation_.name) + " \"" + to_string(operation_.rule) +
                             "\": " + text_of(inputs, output)];
        if (trial.tried > 0 && trial.right < trial.tried) continue;  // known to be wrong
        ++trial.tried;
        trial.right += run(inputs, output, refused_ranks).empty();
      }
    }
  }

  static constexpr std::int64_t refused_ranks = 3;

  const Operation& operation_;
  LocalKernel kernel_;
  std::vector<Variable> inputs_;
  std::vector<Shape> shapes_;
  Result whole_;
  double scale_ = 1, rounding_ = 0;
  bool usable_ = true;
};

void check_use(const Operation& operation, Inputs inputs, LocalKernel kernel) {
  Use(operation, inputs, kernel).check();
}

// Random calls of every operator of the table, on tensors that are whole.
TEST(RuleValidator, EveryStrategyOfEveryOperatorIsRight) {
  const DeviceMesh mesh(Shape{1});
  const auto& operators = program_operators();
  int calls = 0;
  for (std::size_t op = 0; op < operators.size(); ++op) {
    const int repeats = 20 + 20 * operators[op].weight;
    for (int i = 0; i < repeats; ++i) {
      Numbers numbers(op * 1000 + static_cast<std::uint64_t>(i) + 5);
      for (int n = 0; n < 4; ++n) numbers.next();
      Program program;
      program.shape = random_shape(numbers, 3);
      program.dtype =
          static_cast<DType>(numbers.below(3) ? numbers.below(2) * 6 : numbers.below(dtype_count));
      program.seed = numbers.next();
      program.steps = {{static_cast<int>(op), numbers.next(), 0}};
      for (std::size_t leaf = 0; leaf < 8; ++leaf) program.replicated.insert(leaf);
      const Trace trace = run_on_one_device(program);
      if (trace.results.empty()) continue;
      ++calls;
      detail::watch_dispatch(check_use);
      const std::string wrong = run_distributed(program, trace, mesh);
      detail::watch_dispatch(nullptr);
      ASSERT_EQ(wrong, "") << to_string(program, trace, mesh);
    }
  }
  int total = 0;
  for (const auto& [name, count] : findings.strategies) total += count;
  std::printf("%d calls, %d strategies of %zu operators\n", calls, total,
              findings.strategies.size());
  for (const PointwiseRow& row : pointwise_table()) {
    EXPECT_GT(findings.strategies[row.name], 0) << row.name;
  }
  for (const char* name : {"sum", "mean", "prod", "amax", "amin", "any", "all", "count_nonzero",
                           "matmul", "einsum", "index_select", "masked_fill", "gather", "to"}) {
    EXPECT_GT(findings.strategies[name], 0) << name;
  }
  if (std::getenv("DTENSOR_TEST_REPORT") == nullptr) return;
  for (const auto& [what, trial] : findings.refused) {
    if (trial.right == trial.tried) std::printf("right %d times: %s\n", trial.right, what.c_str());
  }
}

}  // namespace
}  // namespace dtensor
