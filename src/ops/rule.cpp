// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "dtensor/core/error.hpp"
#include "dtensor/layout/hash.hpp"

namespace dtensor {

namespace {

[[noreturn]] void throw_equation(std::string_view equation) {
  throw ValueError("Rule", fmt::format("\"{}\"", equation),
                   "letters a to z, each at most once per tensor, in the form \"mk,kn->mn\"");
}

bool is_letter(char c) noexcept { return c >= 'a' && c <= 'z'; }

bool has_duplicates(std::string letters) {
  std::erase(letters, '1');
  std::sort(letters.begin(), letters.end());
  return std::adjacent_find(letters.begin(), letters.end()) != letters.end();
}

std::string all_letters(const std::vector<std::string>& inputs) {
  std::string all;
  for (const std::string& input : inputs) {
    for (char c : input) {
      if (all.find(c) == std::string::npos) all += c;
    }
  }
  return all;
}

std::string shapes_text(const std::vector<Shape>& shapes) {
  std::string text = shapes.size() == 1 ? "shape " : "shapes ";
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    text += (i == 0 ? "" : " and ") + to_string(shapes[i]);
  }
  return text;
}

}  // namespace

Rule::Rule(std::string_view equation, PartialPasses passes, ReduceOp reduction)
    : Rule(
          [&] {
            Impl impl;
            impl.passes = std::move(passes);
            impl.reduction = reduction;
            const auto arrow = equation.find("->");
            if (arrow == std::string_view::npos) throw_equation(equation);
            const auto add_letter = [&](std::string& letters, char c) {
              if (c == '!' && !letters.empty() && is_letter(letters.back())) {
                if (impl.whole.find(letters.back()) == std::string::npos) {
                  impl.whole += letters.back();
                }
              } else {
                letters += c;
              }
            };
            impl.inputs.emplace_back();
            for (char c : equation.substr(0, arrow)) {
              if (c == ',') {
                impl.inputs.emplace_back();
              } else if (const auto bit = std::uint32_t{1} << (impl.inputs.size() - 1);
                         c == '+' && impl.inputs.back().empty() && (impl.added & bit) == 0) {
                impl.added |= bit;
              } else {
                add_letter(impl.inputs.back(), c);
              }
            }
            for (char c : equation.substr(arrow + 2)) add_letter(impl.output, c);
            return impl;
          }(),
          equation) {}

Rule Rule::pointwise(const std::vector<int>& ranks, PartialPasses passes) {
  static constexpr std::string_view letters = "abcdefgh";
  static_assert(letters.size() == max_rank);
  Impl impl;
  impl.broadcasts = true;
  impl.passes = std::move(passes);
  const int rank = ranks.empty() ? 0 : *std::max_element(ranks.begin(), ranks.end());
  impl.output = letters.substr(0, static_cast<std::size_t>(rank));
  for (int r : ranks) impl.inputs.push_back(impl.output.substr(static_cast<std::size_t>(rank - r)));
  const std::string output = impl.output;
  return Rule(std::move(impl), output);
}

Rule::Rule(Impl impl, std::string_view equation) {
  const std::string known = all_letters(impl.inputs);
  for (const std::string& input : impl.inputs) {
    if (!std::all_of(input.begin(), input.end(), is_letter) || has_duplicates(input)) {
      throw_equation(equation);
    }
  }
  for (char c : impl.output) {
    if (c != '1' && known.find(c) == std::string::npos) throw_equation(equation);
  }
  if (has_duplicates(impl.output)) throw_equation(equation);
  for (std::size_t i = 0; i < impl.inputs.size(); ++i) {
    if ((impl.added >> i & 1) == 0) continue;
    const bool fits = std::all_of(impl.inputs[i].begin(), impl.inputs[i].end(),
                                  [&](char c) { return impl.output.find(c) != std::string::npos; });
    if (!fits || impl.reduction != ReduceOp::sum) throw_equation(equation);
  }
  Hash h;
  for (const std::string& input : impl.inputs) h.add_range(input);
  h.add_range(impl.output);
  h.add_range(impl.whole);
  h.add(impl.added);
  for (const PartialPass& p : impl.passes) {
    h.add(p.inputs);
    h.add(p.ops);
  }
  h.add(static_cast<std::uint64_t>(impl.reduction));
  h.add(impl.broadcasts);
  impl.hash = h.value();
  impl_ = std::make_shared<const Impl>(std::move(impl));
}

std::string Rule::letters() const { return all_letters(inputs()); }

std::vector<std::int64_t> Rule::extents(const char* function,
                                        const std::vector<Shape>& shapes) const {
  const std::string all = letters();
  const auto fail = [&](const std::string& expected) {
    throw ValueError(function, shapes_text(shapes), expected);
  };
  bool ranks_fit = shapes.size() == inputs().size();
  for (std::size_t i = 0; ranks_fit && i < shapes.size(); ++i) {
    ranks_fit = shapes[i].size() == static_cast<int>(inputs()[i].size());
  }
  if (!ranks_fit) fail(fmt::format("tensors with the dimensions \"{}\"", to_string(*this)));
  std::vector<std::int64_t> extents(all.size(), -1);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    for (int d = 0; d < shapes[i].size(); ++d) {
      std::int64_t& known = extents[all.find(inputs()[i][static_cast<std::size_t>(d)])];
      const std::int64_t extent = shapes[i][d];
      if (known == -1 || (broadcasts() && known == 1)) {
        known = extent;
      } else if (known != extent && !(broadcasts() && extent == 1)) {
        fail(broadcasts()
                 ? std::string("equal extents, or 1, aligned from the last dimension")
                 : fmt::format("equal extents {} and {} where dimensions meet as in \"{}\"", known,
                               extent, to_string(*this)));
      }
    }
  }
  return extents;
}

Shape Rule::output_shape(const char* function, const std::vector<Shape>& shapes) const {
  const auto all = extents(function, shapes);
  const std::string known = letters();
  Shape shape;
  for (char c : output()) {
    shape.push_back(c == '1' ? 1 : all[known.find(c)]);
  }
  return shape;
}

std::string to_string(const Rule& rule) {
  std::string text;
  for (std::size_t i = 0; i < rule.inputs().size(); ++i) {
    text += (i == 0 ? "" : ",") + std::string(rule.is_added(i) ? "+" : "") + rule.inputs()[i];
  }
  return text + "->" + rule.output();
}

std::vector<Strategy> strategies(const Rule& rule, const std::vector<Shape>& shapes,
                                 const Placements& current) {
  const std::size_t count = rule.inputs().size();
  const Placements whole(count, Replicate());
  std::vector<Strategy> result{{whole, Replicate()}};

  const std::string letters = rule.letters();
  const auto extents = rule.extents("strategies", shapes);
  const auto dim_of = [&](std::size_t input, char letter) -> std::optional<int> {
    const auto position = rule.inputs()[input].find(letter);
    if (position == std::string::npos) return std::nullopt;
    const int dim = static_cast<int>(position);
    // An extent of 1 that stands for all indices is needed by every rank.
    const bool stretched = shapes[input][dim] != extents[letters.find(letter)];
    return stretched ? std::nullopt : std::optional(dim);
  };
  for (char letter : letters) {
    if (rule.is_whole(letter)) continue;
    Placements forms{Shard(0)};
    for (std::size_t i = 0; i < count; ++i) {
      const auto dim = dim_of(i, letter);
      if (!dim || !current[i].is_shard(*dim)) continue;
      const Placement form = current[i].with_dim(0);
      if (std::find(forms.begin(), forms.end(), form) == forms.end()) forms.push_back(form);
    }
    const auto out = rule.output().find(letter);
    for (const Placement& form : forms) {
      Strategy s{whole, Partial(rule.reduction()), letter};
      if (out != std::string::npos) s.output = form.with_dim(static_cast<int>(out));
      for (std::size_t i = 0; i < count; ++i) {
        if (const auto dim = dim_of(i, letter)) {
          s.inputs[i] = form.with_dim(*dim);
        } else if (out == std::string::npos && rule.is_added(i)) {
          s.inputs[i] = s.output;
        }
      }
      result.push_back(std::move(s));
    }
  }
  for (const PartialPass& pass : rule.passes()) {
    for (int op = 0; op < reduce_op_count; ++op) {
      const Partial contribution(static_cast<ReduceOp>(op));
      if (!pass.takes(contribution.reduce_op())) continue;
      Strategy s{whole, contribution};
      for (std::size_t i = 0; i < count; ++i) {
        if (pass.takes(static_cast<int>(i))) s.inputs[i] = contribution;
      }
      result.push_back(std::move(s));
    }
  }
  return result;
}

}  // namespace dtensor
