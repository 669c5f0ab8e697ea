// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Softmax, normalization, embedding and attention.
#include "dtensor/ops/learning.hpp"

#include <fmt/format.h>

#include <cmath>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/local/reduction.hpp"
#include "dtensor/ops/promotion.hpp"
#include "learning_checks.hpp"
#include "local/learning.hpp"
#include "reduction_checks.hpp"
#include "reduction_rule.hpp"
#include "states.hpp"

namespace dtensor::detail {

namespace {

constexpr std::string_view letters = "abcdefgh";

std::string first_letters(int count) {
  return std::string(letters.substr(0, static_cast<std::size_t>(count)));
}

DimSet one_dim(int dim) { return DimSet().set(static_cast<std::size_t>(dim)); }

}  // namespace

// ---- softmax

Tensor softmax(const char* function, const Tensor& a, std::int64_t dim, bool log) {
  check_ordered(function, a.dtype());
  const int d = normalize_dim(function, dim, a.dim());
  return local_softmax(a.to(fractional_dtype(a.dtype())), d, log, Tensor());
}

DTensor softmax(const char* function, const DTensor& a, std::int64_t dim, bool log) {
  check_ordered(function, a.dtype());
  const int d = normalize_dim(function, dim, a.dim());
  const DType type = fractional_dtype(a.dtype());
  const Operation operation{function, reduction_rule(a.dim(), {}, false, ReduceOp::sum, 0), type};
  const Prepared ready = prepare(operation, {a});
  const DeviceMesh& mesh = a.device_mesh();
  return wrap(operation, mesh, ready.output, [&] {
    const Tensor x = ready.inputs[0].to_local().to(type);
    const Layout lines = reduced_layout(ready.inputs[0].layout(), one_dim(d));
    if (reducing_mesh_dims(lines).empty()) return local_softmax(x, d, log, Tensor());
    const Tensor whole =
        merged_states(function, mesh, ready.inputs[0].layout(), lines, max_and_sum(x, one_dim(d)),
                      [](const Tensor& parts) { return merge_max_and_sum(parts); });
    return local_softmax(x, d, log, whole.contiguous());
  });
}

// ---- normalization

Tensor normalize(const char* function, const Tensor& a, const Shape& shape,
                 const std::optional<Tensor>& weight, const std::optional<Tensor>& bias, double eps,
                 bool centered) {
  const DType dtype = check_normalize(function, a.shape(), a.dtype(), shape);
  for (const auto* t : {&weight, &bias}) {
    if (!*t) continue;
    check_parameter(function, (*t)->shape(), (*t)->dtype(), shape, dtype);
    check_same_memory(function, a, **t);
  }
  return local_normalize(a, shape.product(), weight, bias, eps, centered, Tensor(),
                         shape.product());
}

DTensor normalize(const char* function, const DTensor& a, const Shape& shape,
                  const std::optional<DTensor>& weight, const std::optional<DTensor>& bias,
                  double eps, bool centered) {
  const DType dtype = check_normalize(function, a.shape(), a.dtype(), shape);
  const std::string input = first_letters(a.dim());
  const std::string last = input.substr(static_cast<std::size_t>(a.dim() - shape.size()));
  std::string equation = input;
  std::vector<DTensor> inputs{a};
  for (const auto* t : {&weight, &bias}) {
    if (!*t) continue;
    check_parameter(function, (*t)->shape(), (*t)->dtype(), shape, dtype);
    equation += "," + last;
    inputs.push_back(**t);
  }
  const Operation operation{function, cached_rule(equation + "->" + input), dtype};
  const Prepared ready = prepare(operation, inputs);
  const DeviceMesh& mesh = a.device_mesh();
  return wrap(operation, mesh, ready.output, [&] {
    const Tensor x = ready.inputs[0].to_local();
    std::optional<Tensor> w, b;
    if (weight) w = ready.inputs[1].to_local();
    if (bias) b = ready.inputs.back().to_local();
    DimSet dims;
    std::int64_t length = 1;
    for (int d = a.dim() - shape.size(); d < a.dim(); ++d) {
      dims |= one_dim(d);
      length *= x.shape()[d];
    }
    const Layout& layout = ready.inputs[0].layout();
    const Layout groups = reduced_layout(layout, dims);
    const std::vector<int> reducing = reducing_mesh_dims(groups);
    Tensor stats;
    if (!reducing.empty() && centered) {
      std::vector<std::int64_t> counts;
      for (const Extents& c : peers(*mesh.grid(), reducing, *mesh.coordinate())) {
        counts.push_back(reduced_count(layout.local_shape(c), dims));
      }
      stats = merged_states(function, mesh, layout, groups, moments(x, dims),
                            [&](const Tensor& parts) { return merge_moments(parts, counts); });
    } else if (!reducing.empty()) {
      // Squares: like moments about 0.
      const Tensor sums = power_sum(x, dims, false, 2, false).to(DType::float64);
      Shape row{1};
      for (std::int64_t extent : sums.shape()) row.push_back(extent);
      const Tensor squares =
          merged_states(function, mesh, layout, groups, sums.reshape(row), [](const Tensor& parts) {
            return scaled_sum(parts, one_dim(0), true, DType::float64, 1);
          });
      row[0] = 2;
      stats = Tensor::zeros(row, DType::float64, x.device());
      stats.narrow(0, 1, 1).copy_from(squares);
    }
    if (stats.defined()) stats = stats.contiguous();
    return local_normalize(x, length, w, b, eps, centered, stats, shape.product());
  });
}

// ---- embedding

Tensor embedding(const Tensor& indices, const Tensor& weight) {
  check_embedding(indices.dtype(), weight.shape(), weight.dtype());
  check_same_memory("embedding", indices, weight);
  const std::int64_t rows = weight.shape()[0];
  if (indices.numel() > 0) {
    const DimSet all = Dims(all_dims).of("embedding", indices.dim());
    for (const bool largest : {false, true}) {
      const auto index =
          extreme(indices, all, false, largest).to(DType::int64).item<std::int64_t>();
      if (index >= 0 && index < rows) continue;
      throw IndexError("embedding", fmt::format("index {}", index),
                       fmt::format("indices of {} rows", rows));
    }
  }
  return local_embedding(indices, weight, IndexSet(0, rows), rows);
}

DTensor embedding(const DTensor& indices, const DTensor& weight) {
  check_embedding(indices.dtype(), weight.shape(), weight.dtype());
  const std::string index = first_letters(indices.dim());
  const Operation operation{"embedding", cached_rule(index + ",vw->" + index + "w", 2),
                            weight.dtype()};
  const Prepared ready = prepare(operation, {indices, weight});
  const DeviceMesh& mesh = weight.device_mesh();
  return wrap(operation, mesh, ready.output, [&] {
    return local_embedding(ready.inputs[0].to_local(), ready.inputs[1].to_local(),
                           ready.inputs[1].layout().index_set(*mesh.coordinate(), 0),
                           weight.shape()[0]);
  });
}

// ---- attention

Tensor attention(const Tensor& query, const Tensor& key, const Tensor& value,
                 const AttentionOptions& options) {
  check_attention(query.shape(), query.dtype(), key.shape(), key.dtype(), value.shape(),
                  value.dtype());
  check_same_memory("scaled_dot_product_attention", query, key);
  check_same_memory("scaled_dot_product_attention", query, value);
  return local_attention(query, key, value, attention_scale(query.shape(), options), options.causal,
                         IndexSet(0, query.shape()[query.dim() - 2]));
}

DTensor attention(const DTensor& query, const DTensor& key, const DTensor& value,
                  const AttentionOptions& options) {
  check_attention(query.shape(), query.dtype(), key.shape(), key.dtype(), value.shape(),
                  value.dtype());
  const std::string lead = first_letters(query.dim() - 2);
  const Rule& rule =
      cached_rule(lead + "lw!," + lead + "s!w," + lead + "sv->" + lead + "lv", 1u << 2);
  const Operation operation{"scaled_dot_product_attention", rule, query.dtype()};
  const Prepared ready = prepare(operation, {query, key, value});
  const DeviceMesh& mesh = query.device_mesh();
  return wrap(operation, mesh, ready.output, [&] {
    return local_attention(ready.inputs[0].to_local(), ready.inputs[1].to_local(),
                           ready.inputs[2].to_local(), attention_scale(query.shape(), options),
                           options.causal,
                           ready.inputs[0].layout().index_set(*mesh.coordinate(), query.dim() - 2));
  });
}

}  // namespace dtensor::detail
