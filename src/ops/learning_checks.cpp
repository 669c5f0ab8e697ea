// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "learning_checks.hpp"

#include <fmt/format.h>

#include <cmath>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/promotion.hpp"

namespace dtensor::detail {

namespace {

void check_floating(const char* function, DType dtype) {
  if (is_floating(dtype)) return;
  throw TypeError(function, fmt::format("a tensor of {}", to_string(dtype)),
                  "floating-point numbers");
}

void check_integers(const char* function, const char* what, DType dtype) {
  if (dtype == DType::int64 || dtype == DType::int32) return;
  throw TypeError(function, fmt::format("{} of {}", what, to_string(dtype)), "int64 or int32");
}

}  // namespace

DType check_normalize(const char* function, const Shape& a, DType dtype, const Shape& shape) {
  check_floating(function, dtype);
  const int skip = a.size() - shape.size();
  bool fits = skip >= 0 && shape.size() > 0;
  for (int d = 0; fits && d < shape.size(); ++d) fits = a[skip + d] == shape[d];
  if (!fits) {
    throw ValueError(
        function,
        fmt::format("a tensor of shape {} to normalize over {}", to_string(a), to_string(shape)),
        "the extents of its last dimensions, at least one");
  }
  return dtype;
}

void check_parameter(const char* function, const Shape& parameter, DType parameter_dtype,
                     const Shape& shape, DType dtype) {
  check_same_dtype(function, dtype, parameter_dtype);
  if (parameter == shape) return;
  throw ValueError(function, fmt::format("a weight or bias of shape {}", to_string(parameter)),
                   fmt::format("shape {}", to_string(shape)));
}

void check_embedding(DType indices, const Shape& weight, DType dtype) {
  check_integers("embedding", "indices", indices);
  if (!is_floating(dtype) && !is_complex(dtype)) {
    throw TypeError("embedding", fmt::format("a weight of {}", to_string(dtype)),
                    "floating-point or complex numbers");
  }
  if (weight.size() != 2) {
    throw ValueError("embedding", fmt::format("a weight of shape {}", to_string(weight)),
                     "rows and columns");
  }
}

void check_attention(const Shape& query, DType query_dtype, const Shape& key, DType key_dtype,
                     const Shape& value, DType value_dtype) {
  constexpr const char* function = "scaled_dot_product_attention";
  check_floating(function, query_dtype);
  check_same_dtype(function, query_dtype, key_dtype);
  check_same_dtype(function, query_dtype, value_dtype);
  const int n = query.size();
  bool fits = n >= 2 && key.size() == n && value.size() == n;
  for (int d = 0; fits && d < n - 2; ++d) fits = query[d] == key[d] && query[d] == value[d];
  fits = fits && query[n - 1] == key[n - 1] && key[n - 2] == value[n - 2];
  if (fits) return;
  throw ValueError(function,
                   fmt::format("query {}, key {} and value {}", to_string(query), to_string(key),
                               to_string(value)),
                   "shapes (..., l, e), (..., s, e) and (..., s, v)");
}

double attention_scale(const Shape& query, const AttentionOptions& options) {
  return options.scale.value_or(1 / std::sqrt(static_cast<double>(query[query.size() - 1])));
}

void check_class_loss(const char* function, const Shape& a, DType dtype, const Shape& target,
                      DType target_dtype, const Shape* weight, DType weight_dtype) {
  check_floating(function, dtype);
  check_integers(function, "targets", target_dtype);
  const int class_dim = a.size() == 1 ? 0 : 1;
  Shape expected = a;
  if (a.size() > 0) expected.erase(class_dim);
  if (a.size() == 0 || expected != target) {
    throw ValueError(function, fmt::format("shapes {} and {}", to_string(a), to_string(target)),
                     "(n, classes, ...) and (n, ...), or (classes) and ()");
  }
  if (!weight) return;
  check_same_dtype(function, dtype, weight_dtype);
  if (weight->size() != 1 || (*weight)[0] != a[class_dim]) {
    throw ValueError(function, fmt::format("a weight of shape {}", to_string(*weight)),
                     fmt::format("one factor for each of {} classes", a[class_dim]));
  }
}

}  // namespace dtensor::detail
