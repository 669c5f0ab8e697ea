// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of matrices, and what neural networks are made of.
#include <fmt/format.h>

#include <algorithm>

#include "ops/programs/operators.hpp"

namespace dtensor::testing {

namespace {

std::int64_t some_extent(Maker& m) { return m.chance(5) ? 0 : 1 + m.below(6); }

// Small numbers only, so that sums of products stay moderate.
constexpr Need factors = Need::small;

std::optional<Call> make_matmul(Maker& m) {
  if (m.dim() == 0 && !m.chance(3)) return std::nullopt;
  const std::int64_t k = m.dim() == 0 ? 1 : m.shape()[m.dim() - 1];
  Shape other;
  if (m.chance(80)) {
    const bool batch = m.dim() > 2 && m.chance(60);
    for (int d = 0; batch && d < m.dim() - 2; ++d) {
      other.push_back(m.chance(20) ? 1 : m.shape()[d]);
    }
    other.push_back(k);
    other.push_back(some_extent(m));
  } else {
    other.push_back(k);
  }
  if (m.chance(3)) other[0] += 1;
  m.add(other, m.chance(2) ? m.any_dtype() : m.dtype());
  return m.call(factors, Precision::exact, "matmul(%0, %1)",
                [](const auto& x) { return matmul(x[0], x[1]); });
}

std::optional<Call> make_product(Maker& m) {
  if (m.dim() == 1) {
    const bool dots = m.chance(50);
    m.add(dots ? m.shape() : Shape{some_extent(m)}, m.dtype());
    return m.call(factors, Precision::exact, dots ? "dot(%0, %1)" : "outer(%0, %1)",
                  [=](const auto& x) { return dots ? dot(x[0], x[1]) : outer(x[0], x[1]); });
  }
  if (m.dim() == 2) {
    if (m.chance(25)) {
      return m.call(Need::moderate, Precision::exact, "trace(%0)",
                    [](const auto& x) { return trace(x[0]); });
    }
    const std::int64_t n = some_extent(m);
    m.add({m.shape()[1], n}, m.dtype());
    if (m.chance(40)) {
      return m.call(factors, Precision::exact, "mm(%0, %1)",
                    [](const auto& x) { return mm(x[0], x[1]); });
    }
    m.add(m.chance(50) ? Shape{n} : Shape{m.chance(30) ? 1 : m.shape()[0], n}, m.dtype());
    const int beta = m.below(4) - 1, alpha = m.below(3);
    return m.call(factors, Precision::exact, fmt::format("addmm(%2, %0, %1, {}, {})", beta, alpha),
                  [=](const auto& x) { return addmm(x[2], x[0], x[1], beta, alpha); });
  }
  if (m.dim() != 3) return std::nullopt;
  m.add({m.shape()[0], m.shape()[2], some_extent(m)}, m.dtype());
  return m.call(factors, Precision::exact, "bmm(%0, %1)",
                [](const auto& x) { return bmm(x[0], x[1]); });
}

std::optional<Call> make_einsum(Maker& m) {
  const std::string letters = std::string("abcd").substr(0, static_cast<std::size_t>(m.dim()));
  if (m.dim() > 4) return std::nullopt;
  std::string inputs = letters, all = letters;
  std::vector<std::int64_t> extents(m.shape().begin(), m.shape().end());
  if (m.dim() > 1 && m.shape()[0] == m.shape()[1] && m.chance(20)) {
    inputs[1] = 'a';
    all.erase(1, 1);
    extents.erase(extents.begin() + 1);
  }
  for (int operand = m.below(3); operand > 0; --operand) {
    std::string own;
    Shape shape;
    for (int rank = m.below(4); rank > 0; --rank) {
      const int pick = m.below(static_cast<int>(all.size()) + 1);
      if (static_cast<std::size_t>(pick) == all.size()) {
        if (all.size() > 5) continue;
        all += static_cast<char>('p' + all.size());
        extents.push_back(1 + m.below(4));
      }
      const char letter = all[static_cast<std::size_t>(pick)];
      if (own.find(letter) != std::string::npos) continue;
      own += letter;
      shape.push_back(extents[static_cast<std::size_t>(pick)]);
    }
    inputs += "," + own;
    m.add(shape, m.dtype());
  }
  std::string output;
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!m.chance(60) || output.size() == 4 || elements * extents[i] > 400) continue;
    elements *= std::max<std::int64_t>(extents[i], 1);
    output.insert(output.begin() + m.below(static_cast<int>(output.size()) + 1), all[i]);
  }
  const std::string equation = inputs + "->" + output;
  std::string text = "einsum(\"" + equation + "\", {";
  for (std::size_t i = 0; i < m.arguments.size(); ++i) text += fmt::format("%{} ", i);
  return m.call(factors, m.arguments.size() > 2 ? Precision::rounds : Precision::exact, text + "})",
                [=](const auto& x) { return einsum(equation, x); });
}

bool is_real_fraction(DType dtype) { return is_floating(dtype); }

std::optional<Call> make_softmax(Maker& m) {
  if (m.dim() == 0 || (is_complex(m.dtype()) && !m.chance(3))) return std::nullopt;
  const std::int64_t d = m.any_dim();
  const bool log = m.chance(40);
  return m.call(Need::moderate, Precision::rounds,
                fmt::format("{}(%0, {})", log ? "log_softmax" : "softmax", d),
                [=](const auto& x) { return log ? log_softmax(x[0], d) : softmax(x[0], d); });
}

std::optional<Call> make_norm(Maker& m) {
  if (m.dim() == 0 || !is_real_fraction(m.dtype())) return std::nullopt;
  Shape shape;
  for (int d = m.below(m.dim()); d < m.dim(); ++d) shape.push_back(m.shape()[d]);
  const bool centered = m.chance(50), weight = m.chance(60), bias = centered && m.chance(50);
  if (m.chance(2)) shape[0] += 1;
  if (weight) m.add(shape, m.dtype());
  if (bias) m.add(shape, m.dtype());
  return m.call(Need::exact, Precision::rounds,
                fmt::format("{}(%0, {}{}{})", centered ? "layer_norm" : "rms_norm", text_of(shape),
                            weight ? ", %1" : "", bias ? weight ? ", %2" : ", {}, %1" : ""),
                [=](const auto& x) {
                  using T = std::remove_cvref_t<decltype(x[0])>;
                  std::optional<T> w, b;
                  if (weight) w = x[1];
                  if (bias) b = x.back();
                  return centered ? layer_norm(x[0], shape, w, b) : rms_norm(x[0], shape, w);
                });
}

std::optional<Call> make_loss(Maker& m) {
  const auto reduction = static_cast<LossReduction>(m.below(3));
  if (!is_real_fraction(m.dtype())) return std::nullopt;
  if (m.dim() == 0 || m.chance(30)) {
    m.add(m.shape(), m.dtype());
    return m.call(factors, Precision::rounds,
                  fmt::format("mse_loss(%0, %1, {})", static_cast<int>(reduction)),
                  [=](const auto& x) { return mse_loss(x[0], x[1], reduction); });
  }
  Shape target;
  const int class_dim = m.dim() == 1 ? 0 : 1;
  const std::int64_t classes = m.shape()[class_dim];
  if (classes == 0) return std::nullopt;
  for (int d = 0; d < m.dim(); ++d) {
    if (d != class_dim) target.push_back(m.shape()[d]);
  }
  m.arguments.push_back({-1, {target, DType::int64, classes, m.numbers.next()}});
  const bool weighted = m.chance(40), ignores = m.chance(30), logits = m.chance(60);
  // Weights that add up to zero would divide by it.
  if (weighted && reduction == LossReduction::mean) return std::nullopt;
  if (weighted) m.add({classes}, m.dtype());
  return m.call(
      Need::moderate, Precision::rounds,
      fmt::format("{}(%0, %1, weight {}, ignore {}, {})", logits ? "cross_entropy" : "nll_loss",
                  weighted ? "%2" : "none", ignores ? "0" : "none", static_cast<int>(reduction)),
      [=](const auto& x) {
        ClassLossOptions<std::remove_cvref_t<decltype(x[0])>> o;
        if (weighted) o.weight = x[2];
        if (ignores) o.ignore_index = 0;
        o.reduction = reduction;
        return logits ? cross_entropy(x[0], x[1], o) : nll_loss(x[0], x[1], o);
      });
}

std::optional<Call> make_attention(Maker& m) {
  if (m.dim() < 2 || m.dim() > 4 || !is_real_fraction(m.dtype())) return std::nullopt;
  const std::int64_t keys = 1 + m.below(6), width = 1 + m.below(5);
  Shape key = m.shape(), value = m.shape();
  key[m.dim() - 2] = keys;
  value[m.dim() - 2] = keys;
  value[m.dim() - 1] = width;
  m.add(key, m.dtype());
  m.add(value, m.dtype());
  const bool causal = m.chance(40);
  return m.call(factors, Precision::rounds,
                fmt::format("scaled_dot_product_attention(%0, %1, %2, causal {})", causal),
                [=](const auto& x) {
                  return scaled_dot_product_attention(x[0], x[1], x[2], {.causal = causal});
                });
}

std::optional<Call> make_embedding(Maker& m) {
  if (m.dim() != 2 || m.shape()[0] == 0) return std::nullopt;
  if (!is_floating(m.dtype()) && !is_complex(m.dtype()) && !m.chance(3)) return std::nullopt;
  m.add_indices(random_shape(m.numbers, 2), m.shape()[0]);
  return m.call(Need::moderate, Precision::moves, "embedding(%1, %0)",
                [](const auto& x) { return embedding(x[1], x[0]); });
}

}  // namespace

std::vector<ProgramOperator> matrix_operators() {
  return {{"matmul", 7, make_matmul},
          {"mm, bmm, addmm, dot, outer, trace", 7, make_product},
          {"einsum", 7, make_einsum},
          {"softmax", 4, make_softmax},
          {"layer_norm and rms_norm", 4, make_norm},
          {"losses", 4, make_loss},
          {"attention", 3, make_attention},
          {"embedding", 3, make_embedding}};
}

}  // namespace dtensor::testing
