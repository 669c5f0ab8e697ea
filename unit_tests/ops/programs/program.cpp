// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ops/programs/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/redistribute/program.hpp"

namespace dtensor::testing {

namespace {

constexpr std::int64_t most_elements = 2000;

// Some operator, by weight.
int any_operator(Numbers& numbers) {
  static const int total = [] {
    int sum = 0;
    for (const ProgramOperator& o : program_operators()) sum += o.weight;
    return sum;
  }();
  int rest = numbers.below(total);
  int op = 0;
  while (rest >= program_operators()[static_cast<std::size_t>(op)].weight) {
    rest -= program_operators()[static_cast<std::size_t>(op++)].weight;
  }
  return op;
}

// Applies a step, if it can be.
bool apply(Trace& trace, const Program::Step& step) {
  Numbers numbers(step.seed);
  for (int i = 0; i < 4; ++i) numbers.next();
  const auto first = static_cast<int>(step.variable % trace.variables.size());
  Maker maker(numbers, trace.variables, first);
  const auto call = program_operators()[static_cast<std::size_t>(step.op)].make(maker);
  if (!call) return false;
  Trace::Result result{*call, {}, {}};
  for (Argument& a : result.call.arguments) {
    if (a.variable >= 0) continue;
    a.variable = static_cast<int>(trace.variables.size());
    trace.variables.emplace_back(a.leaf.values().tensor(), true, 0);
    trace.leaves.emplace_back(a.leaf);
  }
  std::vector<Tensor> operands;
  bool exact = result.call.precision != Precision::rounds;
  int depth = 0;
  for (const Argument& a : result.call.arguments) {
    const Variable& v = trace.variables[static_cast<std::size_t>(a.variable)];
    operands.push_back(v.tensor);
    exact = exact && v.exact;
    depth = std::max(depth, v.depth);
  }
  if (result.call.precision == Precision::exact) ++depth;
  try {
    for (const Tensor& t : result.call.on_tensors(operands)) {
      if (t.numel() > most_elements) return false;
      result.outputs.push_back(static_cast<int>(trace.variables.size()));
      trace.variables.emplace_back(t, exact, depth);
      trace.leaves.emplace_back();
    }
  } catch (const Error& e) {
    result.error = e.kind();
  }
  trace.results.push_back(std::move(result));
  return true;
}

Trace start(const Program& program) {
  Trace trace;
  const Leaf leaf{program.shape, program.dtype, 0, program.seed};
  trace.variables.emplace_back(leaf.values().tensor(), true, 0);
  trace.leaves.emplace_back(leaf);
  return trace;
}

Layout layout_of(const Program& program, const Trace& trace, std::size_t variable,
                 const DeviceMesh& mesh) {
  const Leaf& leaf = *trace.leaves[variable];
  std::size_t number = 0;
  for (std::size_t i = 0; i < variable; ++i) number += trace.leaves[i].has_value();
  if (program.replicated.contains(number)) {
    return Layout(leaf.shape, mesh.grid(),
                  Placements(static_cast<std::size_t>(mesh.dim()), Replicate()));
  }
  Numbers numbers(leaf.seed * 7 + 3);
  for (int i = 0; i < 3; ++i) numbers.next();
  return random_layout(leaf.shape, leaf.dtype, mesh.grid(), numbers);
}

DTensor placed(const Trace& trace, std::size_t variable, const Layout& layout,
               const DeviceMesh& mesh) {
  const Variable& v = trace.variables[variable];
  const Tensor local =
      mesh.is_member()
          ? part_of(v.plain, layout, *mesh.coordinate(), trace.leaves[variable]->seed).tensor()
          : Tensor::empty(local_shape_on(layout, Runtime::rank()), v.tensor.dtype());
  return DTensor(mesh, layout, local);
}

std::string values_text(const Plain& p) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(p.values.size(), 40); ++i) {
    const Number v = p.values[i];
    text += is_complex(p.dtype) ? fmt::format(" {}{:+}i", v.real(), v.imag())
                                : fmt::format(" {}", v.real());
  }
  return fmt::format("{} {}{}", to_string(p.dtype), to_string(p.shape), text);
}

}  // namespace

Program random_program(std::uint64_t seed) {
  Numbers numbers(seed);
  for (int i = 0; i < 4; ++i) numbers.next();
  Program program;
  program.seed = numbers.next();
  program.shape = random_shape(numbers);
  static constexpr DType common[] = {DType::float64, DType::float32, DType::int64};
  program.dtype =
      numbers.below(2) ? common[numbers.below(3)] : static_cast<DType>(numbers.below(dtype_count));
  Trace trace = start(program);
  const auto count = static_cast<std::size_t>(2 + numbers.below(5));
  for (int attempt = 0; attempt < 200 && program.steps.size() < count; ++attempt) {
    const auto last = static_cast<std::uint64_t>(trace.variables.size() - 1);
    // Mostly what the last operator gave.
    const Program::Step step{any_operator(numbers), numbers.next(),
                             numbers.below(4) ? last : numbers.next() % (last + 1)};
    if (apply(trace, step)) program.steps.push_back(step);
  }
  return program;
}

Trace run_on_one_device(const Program& program) {
  Trace trace = start(program);
  for (const Program::Step& step : program.steps) apply(trace, step);
  return trace;
}

std::string run_distributed(const Program& program, const Trace& trace, const DeviceMesh& mesh) {
  std::vector<DTensor> variables(trace.variables.size());
  double scale = 1, rounding = 0;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const Variable& v = trace.variables[i];
    rounding = std::max(rounding, tolerance(v.tensor.dtype()));
    scale = std::max(scale, v.largest);
    if (trace.leaves[i]) {
      variables[i] = placed(trace, i, layout_of(program, trace, i, mesh), mesh);
    }
  }
  std::vector<bool> used(variables.size(), false);
  std::string text = "the placement of an operand";
  try {
    for (const Trace::Result& result : trace.results) {
      text = result.call.text;
      std::vector<DTensor> operands;
      for (const Argument& a : result.call.arguments) {
        operands.push_back(variables[static_cast<std::size_t>(a.variable)]);
        used[static_cast<std::size_t>(a.variable)] = true;
      }
      std::optional<ErrorKind> error;
      std::string what;
      std::vector<DTensor> outputs;
      try {
        outputs = result.call.on_dtensors(operands);
      } catch (const Error& e) {
        error = e.kind();
        what = e.what();
      }
      // A rank outside of the mesh does not know the values that an error is about.
      if (!error && result.error && !mesh.is_member()) continue;
      if (error != result.error) {
        return fmt::format(
            "{}: {}, but {} on one device", text, error ? "throws " + what : "no error",
            result.error ? fmt::format("an error of kind {}", static_cast<int>(*result.error))
                         : "none");
      }
      if (error) continue;
      if (outputs.size() != result.outputs.size()) return text + ": another number of results";
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        variables[static_cast<std::size_t>(result.outputs[i])] = outputs[i];
      }
    }
    // What is used later is compared by its results.
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (trace.leaves[i] || used[i]) continue;
      const Variable& expected = trace.variables[i];
      const DTensor& actual = variables[i];
      text = fmt::format("the value of x{}", i);
      if (!(actual.shape() == expected.tensor.shape()) ||
          actual.dtype() != expected.tensor.dtype()) {
        return fmt::format("{}: {} instead of {}", text, to_string(actual),
                           to_string(expected.tensor));
      }
      if (!mesh.is_member()) continue;
      const Plain full(actual.full_tensor());
      const double allowed = expected.exact ? 0 : rounding * scale;
      if (!(difference(full, expected.plain) <= allowed)) {
        return fmt::format("{} placed {}:\n  {}\ninstead of\n  {}\n(allowed {})", text,
                           to_string(actual.placements()), values_text(full),
                           values_text(expected.plain), allowed);
      }
    }
  } catch (const std::exception& e) {
    return fmt::format("{}: throws {}", text, e.what());
  }
  return "";
}

std::string to_string(const Program& program, const Trace& trace, const DeviceMesh& mesh) {
  std::string text = fmt::format("mesh {}\n", to_string(mesh.shape()));
  const auto leaf = [&](std::size_t i) {
    const Layout layout = layout_of(program, trace, i, mesh);
    std::string order;
    for (const auto& [d, dims] : layout.shard_order()) {
      order += fmt::format(", dimension {} split by {}", d, fmt::join(dims, ", then "));
    }
    text += fmt::format("x{} = {} as {}{}\n", i, values_text(trace.variables[i].plain),
                        to_string(layout.placements()), order);
  };
  leaf(0);
  for (const Trace::Result& result : trace.results) {
    std::string call = result.call.text;
    for (std::size_t i = result.call.arguments.size(); i-- > 0;) {
      const auto variable = static_cast<std::size_t>(result.call.arguments[i].variable);
      const std::string mark = fmt::format("%{}", i);
      for (auto at = call.find(mark); at != std::string::npos; at = call.find(mark)) {
        call.replace(at, mark.size(), fmt::format("x{}", variable));
      }
    }
    for (const Argument& a : result.call.arguments) {
      if (a.variable > 0 && trace.leaves[static_cast<std::size_t>(a.variable)]) {
        leaf(static_cast<std::size_t>(a.variable));
      }
    }
    std::string outputs;
    for (int o : result.outputs) outputs += fmt::format("{}x{}", outputs.empty() ? "" : ", ", o);
    text += fmt::format("{} = {};{}\n", outputs.empty() ? "()" : outputs, call,
                        result.error ? "  // throws on one device" : "");
  }
  return text;
}

Program shrunk(const Program& program, const std::function<bool(const Program&)>& fails) {
  Program best = program;
  int runs = 0;
  const auto take = [&](const Program& candidate) {
    if (++runs > 400 || !fails(candidate)) return false;
    best = candidate;
    return true;
  };
  for (bool progress = true; progress && runs < 400;) {
    progress = false;
    for (std::size_t i = best.steps.size(); i-- > 0;) {
      Program candidate = best;
      candidate.steps.erase(candidate.steps.begin() + static_cast<std::ptrdiff_t>(i));
      progress |= take(candidate);
    }
    const auto leaves = run_on_one_device(best).leaves;
    const auto count = static_cast<std::size_t>(
        std::count_if(leaves.begin(), leaves.end(), [](const auto& l) { return l.has_value(); }));
    for (std::size_t i = 0; i < count; ++i) {
      Program candidate = best;
      if (candidate.replicated.insert(i).second) progress |= take(candidate);
    }
    for (int d = 0; d < best.shape.size(); ++d) {
      const std::int64_t extent = best.shape[d];
      for (std::int64_t smaller : {std::int64_t{1}, extent / 2, extent - 1}) {
        if (smaller < 1 || smaller >= best.shape[d]) continue;
        Program candidate = best;
        candidate.shape[d] = smaller;
        progress |= take(candidate);
      }
    }
    for (int d = best.shape.size(); d-- > 0;) {
      Program candidate = best;
      candidate.shape.erase(d);
      progress |= take(candidate);
    }
  }
  return best;
}

}  // namespace dtensor::testing
