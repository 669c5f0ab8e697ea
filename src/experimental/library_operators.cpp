// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which operators of the library can be given other acceptable shardings. A test compares this
// with what they do, and docs/extending.md with this.
#include "library_operators.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtensor/ops/pointwise_table.hpp"

namespace dtensor::experimental {

namespace {

// clang-format off
// Besides the operators element by element, which are in a table.
constexpr std::string_view with_rules[] = {
    "addmm", "all", "allclose", "amax", "amin", "any", "argmax", "argmin", "bmm", "count_nonzero",
    "cross_entropy", "cumprod", "cumsum", "dot", "einsum", "embedding", "equal", "layer_norm",
    "log_softmax", "logsumexp", "masked_fill", "matmul", "max", "mean", "min", "mm", "nll_loss",
    "norm", "outer", "prod", "qr", "rms_norm", "scaled_dot_product_attention", "softmax", "solve",
    "stddev", "sum", "to", "trace", "var",
};

// In place, besides the operators element by element: a result cannot move. Views and what permutes
// elements: they follow their input. The others: where data and indices lie decides how they work.
constexpr std::string_view by_themselves[] = {
    "argsort", "bernoulli", "bernoulli_", "cat", "cholesky", "chunk", "copy_", "diagonal",
    "dropout", "expand", "exponential_", "fill_", "flatten", "flip", "gather", "index_select",
    "movedim", "mse_loss", "multinomial", "narrow", "normal_", "one_hot", "pad", "permute",
    "rand_like", "randn_like", "repeat", "reshape", "roll", "scatter_add", "select", "slice",
    "solve_triangular", "sort", "split", "squeeze", "stack", "topk", "transpose", "tril", "triu",
    "unflatten", "uniform_", "unsqueeze", "view", "zero_",
};
// clang-format on

template <std::size_t N>
bool contains(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

DecidedBy decided_by(std::string_view operator_name) {
  for (const PointwiseRow& row : pointwise_table()) {
    if (operator_name == row.name) return DecidedBy::rule;
    if (operator_name == row.in_place_name) return DecidedBy::itself;
  }
  if (contains(with_rules, operator_name)) return DecidedBy::rule;
  return contains(by_themselves, operator_name) ? DecidedBy::itself : DecidedBy::no_operator;
}

std::string operators_with_rules() {
  return fmt::format(
      "operators element by element that are not in place (\"add\", \"exp\", ...), {}",
      fmt::join(with_rules, ", "));
}

}  // namespace dtensor::experimental
