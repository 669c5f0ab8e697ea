// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "einsum_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>

#include "dtensor/core/error.hpp"

namespace dtensor::detail {

namespace {

// A dimension that "..." stands for has the number from the last one, from 1, as its letter.
constexpr std::string_view ellipsis = "...";

bool is_label(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool has(const std::string& letters, char c) noexcept {
  return letters.find(c) != std::string::npos;
}

std::string ellipsis_letters(int dims) {
  std::string letters;
  for (int d = dims; d > 0; --d) letters += static_cast<char>(d);
  return letters;
}

// Letters per operand and of the output, with "..." written out, and the extent of each letter.
class Subscripts {
 public:
  Subscripts(const char* name, std::string_view text, const std::vector<Shape>& shapes)
      : name_(name), text_(text), shapes_(shapes) {
    std::string compact(text);
    std::erase(compact, ' ');
    const auto arrow = compact.find("->");
    std::size_t begin = 0;
    const std::size_t end = std::min(arrow, compact.size());
    while (true) {
      const std::size_t comma = std::min(compact.find(',', begin), end);
      add_operand(compact.substr(begin, comma - begin));
      if (comma == end) break;
      begin = comma + 1;
    }
    if (operands.size() != shapes.size()) fail("as many lists of letters as operands");
    if (arrow == std::string::npos) {
      infer_output();
    } else {
      output = expanded(compact.substr(arrow + 2), broadcast_dims_);
      for (char c : output) {
        if (!extents.count(c)) fail("letters after \"->\" that an operand has");
        if (std::count(output.begin(), output.end(), c) > 1) fail("no letter twice after \"->\"");
      }
    }
    if (static_cast<int>(output.size()) > max_rank) fail("a result of at most 8 dimensions");
  }

  std::vector<std::string> operands;
  std::string output;
  std::map<char, std::int64_t> extents;

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    std::string shapes;
    for (const Shape& s : shapes_) shapes += (shapes.empty() ? "" : " and ") + to_string(s);
    throw ValueError(name_, fmt::format("\"{}\" for shapes {}", text_, shapes), expected);
  }

  // Letters with "..." replaced by those of `dims` dimensions.
  std::string expanded(std::string letters, int dims) const {
    const auto dots = letters.find(ellipsis);
    if (dots != std::string::npos) letters.erase(dots, ellipsis.size());
    if (!std::all_of(letters.begin(), letters.end(), is_label)) {
      fail("letters, \"...\" at most once per operand, \",\" and \"->\"");
    }
    if (dots != std::string::npos) letters.insert(dots, ellipsis_letters(dims));
    return letters;
  }

  void add_operand(const std::string& letters) {
    if (operands.size() == shapes_.size()) fail("as many lists of letters as operands");
    const Shape& shape = shapes_[operands.size()];
    const bool has_dots = letters.find(ellipsis) != std::string::npos;
    const int dims = shape.size() - static_cast<int>(letters.size()) +
                     (has_dots ? static_cast<int>(ellipsis.size()) : 0);
    if (dims < 0 || (dims > 0 && !has_dots)) fail("a letter for each dimension of each operand");
    broadcast_dims_ = std::max(broadcast_dims_, dims);
    operands.push_back(expanded(letters, dims));
    const std::string& own = operands.back();
    for (int d = 0; d < shape.size(); ++d) {
      const char c = own[static_cast<std::size_t>(d)];
      const int first = static_cast<int>(own.find(c));
      if (shape[first] != shape[d]) {
        fail(
            fmt::format("equal extents along the diagonal, not {} and {}", shape[first], shape[d]));
      }
      std::int64_t& known = extents.emplace(c, shape[d]).first->second;
      if (known == 1) known = shape[d];
      if (shape[d] != known && shape[d] != 1) {
        fail(fmt::format("equal extents where letters are, or 1, not {} and {}", known, shape[d]));
      }
    }
  }

  void infer_output() {
    output = ellipsis_letters(broadcast_dims_);
    for (const auto& [c, extent] : extents) {
      std::ptrdiff_t count = 0;
      for (const std::string& letters : operands) {
        count += std::count(letters.begin(), letters.end(), c);
      }
      if (is_label(c) && count == 1) output += c;
    }
    // A map has them in the order of their codes, capitals first, as NumPy sorts them.
  }

  const char* name_;
  std::string_view text_;
  const std::vector<Shape>& shapes_;
  int broadcast_dims_ = 0;
};

// The same names of dimensions in a to z.
class Renaming {
 public:
  std::string operator()(const std::string& letters) {
    std::string result;
    for (char c : letters) {
      result += renamed_.emplace(c, static_cast<char>('a' + renamed_.size())).first->second;
    }
    return result;
  }

 private:
  std::map<char, char> renamed_;
};

// In which order to multiply.
class Order {
 public:
  Order(const Subscripts& subscripts, const std::vector<std::string>& operands, EinsumPlan& plan)
      : extents_(subscripts.extents),
        output_(subscripts.output),
        operands_(operands),
        plan_(plan) {}

  /// False when every order has an intermediate result of too many dimensions.
  bool run() {
    if (operands_.size() <= max_exhaustive) return exhaustive();
    return greedy();
  }

 private:
  static constexpr std::size_t max_exhaustive = 8;
  static constexpr double impossible = std::numeric_limits<double>::infinity();

  // Multiplications, with the result's size to tell equal ones apart.
  double cost(const std::string& a, const std::string& b, const std::string& result) const {
    if (static_cast<int>(result.size()) > max_rank) return impossible;
    double operations = 1, size = 1;
    for (const auto& [c, extent] : extents_) {
      if (has(a, c) || has(b, c)) operations *= static_cast<double>(extent);
      if (has(result, c)) size *= static_cast<double>(extent);
    }
    return operations + 1e-3 * size;
  }

  // The letters of a product that are needed elsewhere, batch and left factor's before the right's.
  std::string product(const std::string& a, const std::string& b,
                      const std::vector<std::string>& others) const {
    const auto needed = [&](char c) {
      return has(output_, c) || std::any_of(others.begin(), others.end(),
                                            [&](const std::string& o) { return has(o, c); });
    };
    std::string batch, rest;
    for (char c : a) {
      if (needed(c)) (has(b, c) ? batch : rest) += c;
    }
    for (char c : b) {
      if (needed(c) && !has(a, c)) rest += c;
    }
    return batch + rest;
  }

  void add_step(std::size_t a, const std::string& a_letters, std::size_t b,
                const std::string& b_letters, const std::string& result) {
    Renaming rename;
    const std::string x = rename(a_letters), y = rename(b_letters), z = rename(result);
    plan_.steps.push_back({a, b, Contraction(x, y, z)});
  }

  struct Best {
    double cost = impossible;
    std::size_t a = 0, b = 0;  // sets of operands, as bits
    std::string letters;
  };

  bool exhaustive() {
    const std::size_t all = (std::size_t{1} << operands_.size()) - 1;
    std::vector<Best> best(all + 1);
    for (std::size_t i = 0; i < operands_.size(); ++i)
      best[std::size_t{1} << i] = {0, 0, 0, operands_[i]};
    for (std::size_t set = 1; set <= all; ++set) {
      if ((set & (set - 1)) == 0) continue;
      std::vector<std::string> others;
      for (std::size_t i = 0; i < operands_.size(); ++i) {
        if (!(set >> i & 1)) others.push_back(operands_[i]);
      }
      // Both halves of each split once: the first one has the lowest operand.
      for (std::size_t a = (set - 1) & set; a > 0; a = (a - 1) & set) {
        if (!(a & (set & ~(set - 1)))) continue;
        const Best &x = best[a], &y = best[set & ~a];
        const std::string letters = product(x.letters, y.letters, others);
        const double total = x.cost + y.cost + cost(x.letters, y.letters, letters);
        if (total < best[set].cost) best[set] = {total, a, set & ~a, letters};
      }
    }
    if (best[all].cost == impossible) return false;
    best[all].letters = output_;
    emit(best, all);
    return true;
  }

  // Adds the steps of a set of operands; returns where its product is.
  std::size_t emit(const std::vector<Best>& best, std::size_t set) {
    const Best& b = best[set];
    if (b.a == 0) {
      std::size_t i = 0;
      while (!(set >> i & 1)) ++i;
      return i;
    }
    const std::size_t x = emit(best, b.a), y = emit(best, b.b);
    add_step(x, best[b.a].letters, y, best[b.b].letters, b.letters);
    return operands_.size() + plan_.steps.size() - 1;
  }

  bool greedy() {
    struct Value {
      std::size_t number;
      std::string letters;
    };
    std::vector<Value> values;
    for (std::size_t i = 0; i < operands_.size(); ++i) values.push_back({i, operands_[i]});
    while (values.size() > 1) {
      double lowest = impossible;
      std::size_t x = 0, y = 0;
      std::string letters;
      for (std::size_t i = 0; i < values.size(); ++i) {
        for (std::size_t j = i + 1; j < values.size(); ++j) {
          std::vector<std::string> others;
          for (std::size_t k = 0; k < values.size(); ++k) {
            if (k != i && k != j) others.push_back(values[k].letters);
          }
          std::string result = product(values[i].letters, values[j].letters, others);
          const double c = cost(values[i].letters, values[j].letters, result);
          if (c >= lowest) continue;
          lowest = c;
          x = i;
          y = j;
          letters = std::move(result);
        }
      }
      if (lowest == impossible) return false;
      if (values.size() == 2) letters = output_;
      add_step(values[x].number, values[x].letters, values[y].number, values[y].letters, letters);
      values[x] = {operands_.size() + plan_.steps.size() - 1, letters};
      values.erase(values.begin() + static_cast<std::ptrdiff_t>(y));
    }
    return true;
  }

  const std::map<char, std::int64_t>& extents_;
  const std::string& output_;
  const std::vector<std::string>& operands_;
  EinsumPlan& plan_;
};

// Takes the diagonals of an operand: returns its letters, each once, with their extents.
std::string without_repeats(const std::string& letters, const Shape& shape,
                            EinsumPlan::Preparation& preparation, Shape& extents) {
  std::string result = letters;
  extents = shape;
  for (std::size_t d = 0; d < result.size();) {
    const std::size_t first = result.find(result[d]);
    if (first == d) {
      ++d;
      continue;
    }
    preparation.diagonals.push_back({static_cast<int>(first), static_cast<int>(d)});
    result.erase(d, 1);
    extents.erase(static_cast<int>(d));
  }
  return result;
}

}  // namespace

EinsumPlan make_einsum_plan(const char* name, std::string_view text,
                            const std::vector<Shape>& shapes) {
  const Subscripts subscripts(name, text, shapes);
  const std::size_t count = shapes.size();
  EinsumPlan plan;
  plan.operands.resize(count);
  // Letters without repeats; then without extents of 1 that stand for any; then without what is
  // summed over and nobody else has.
  std::vector<std::string> unique, needed;
  for (std::size_t i = 0; i < count; ++i) {
    Shape extents;
    unique.push_back(without_repeats(subscripts.operands[i], shapes[i], plan.operands[i], extents));
    needed.emplace_back();
    for (std::size_t d = 0; d < unique[i].size(); ++d) {
      const char c = unique[i][d];
      if (extents[static_cast<int>(d)] == subscripts.extents.at(c)) needed[i] += c;
    }
  }
  std::vector<std::string> left;
  for (std::size_t i = 0; i < count; ++i) {
    left.emplace_back();
    for (char c : needed[i]) {
      bool elsewhere = has(subscripts.output, c);
      for (std::size_t j = 0; j < count; ++j) elsewhere |= j != i && has(needed[j], c);
      if (elsewhere) left[i] += c;
    }
    const std::string& target = count == 1 ? subscripts.output : left[i];
    if (target == unique[i]) continue;
    Renaming rename;
    const std::string from = rename(unique[i]), to = rename(target);
    plan.operands[i].reordering.emplace(from, to);
  }
  if (count > 1 && !Order(subscripts, left, plan).run()) {
    throw ValueError(name, fmt::format("\"{}\"", text),
                     "a product whose intermediate results have at most 8 dimensions");
  }
  return plan;
}

}  // namespace dtensor::detail
