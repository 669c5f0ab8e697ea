// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Functions that neural networks are made of, on `Tensor` and `DTensor`. After
/// `torch.nn.functional`.
///
/// All are local on a `Tensor`. On DTensors they are local where the layout allows, and say what
/// they send otherwise; nothing is ever gathered but what is smaller than the input by the
/// dimension that is worked over. Inputs that are Partial are reduced first, unless noted.
/// Floating-point numbers; 16-bit types are computed in float. Integers and bool give float64 in
/// `softmax`, `log_softmax` and `mse_loss` and are a `TypeError` elsewhere, as complex numbers are.
#pragma once

#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "dtensor/ops/any_tensor.hpp"

namespace dtensor {

/// What becomes of the losses of single elements.
enum class LossReduction : std::uint8_t { none, mean, sum };

/// For losses of classes.
template <AnyTensor T>
struct ClassLossOptions {
  /// One factor per class. The mean is then weighted as well.
  std::optional<T> weight = std::nullopt;
  /// Targets of this value count for nothing. Without one, the mean needs no communication.
  std::optional<std::int64_t> ignore_index = std::nullopt;
  LossReduction reduction = LossReduction::mean;
};

/// For `scaled_dot_product_attention`.
struct AttentionOptions {
  /// Query i sees keys 0 to i only.
  bool causal = false;
  /// What products are multiplied by; 1 / sqrt(last extent of the queries) when absent.
  std::optional<double> scale = std::nullopt;
};

namespace detail {
#define DTENSOR_LEARNING(T)                                                                     \
  T softmax(const char* function, const T& a, std::int64_t dim, bool log);                      \
  T normalize(const char* function, const T& a, const Shape& shape,                             \
              const std::optional<T>& weight, const std::optional<T>& bias, double eps,         \
              bool centered);                                                                   \
  T embedding(const T& indices, const T& weight);                                               \
  T class_loss(const char* function, const T& a, const T& target, const ClassLossOptions<T>& o, \
               bool logits);                                                                    \
  T mse_loss(const T& a, const T& target, LossReduction reduction);                             \
  T attention(const T& query, const T& key, const T& value, const AttentionOptions& options);
DTENSOR_LEARNING(Tensor)
DTENSOR_LEARNING(DTensor)
#undef DTENSOR_LEARNING
}  // namespace detail

/// exp(x) / sum(exp(x)) along a dimension, and its logarithm. Integers and bool give float64. The
/// placements are kept; where `dim` is sharded, the largest element and the sum travel, two numbers
/// per line. Throws `IndexError` for a dimension out of range.
template <AnyTensor T>
T softmax(const T& a, std::int64_t dim) {
  return detail::softmax("softmax", a, dim, false);
}
template <AnyTensor T>
T log_softmax(const T& a, std::int64_t dim) {
  return detail::softmax("log_softmax", a, dim, true);
}

/// (x - mean) / sqrt(variance + eps) * weight + bias over the last dimensions, whose extents are
/// `shape`, which weight and bias have too. Local where normalized dimensions are whole; where one
/// is sharded, mean and variance travel, two numbers per normalized group. Throws `ValueError` for
/// a shape that does not fit, `TypeError` for two scalar types.
template <AnyTensor T>
T layer_norm(const T& a, const Shape& shape,
             const std::type_identity_t<std::optional<T>>& weight = std::nullopt,
             const std::type_identity_t<std::optional<T>>& bias = std::nullopt, double eps = 1e-5) {
  return detail::normalize("layer_norm", a, shape, weight, bias, eps, true);
}
/// x / sqrt(mean(x^2) + eps) * weight, else as `layer_norm`; one number per group travels.
template <AnyTensor T>
T rms_norm(const T& a, const Shape& shape,
           const std::type_identity_t<std::optional<T>>& weight = std::nullopt, double eps = 1e-6) {
  return detail::normalize("rms_norm", a, shape, weight, std::optional<T>(), eps, false);
}

/// Rows of `weight` (rows, n), picked by integer `indices` of any shape: (..., n). On DTensors
/// there is no communication: columns of the weight may be sharded, and so may rows, where each
/// rank contributes the rows that it has and zeros for others, `Partial(sum)`. A Partial weight is
/// handed on. A `Tensor`'s index out of range is an `IndexError`; a DTensor's, which no rank can
/// tell the others of without communication, gives a row of NaN. `TypeError` for indices that are
/// not int64 or int32, and for weights that are not floating-point or complex.
template <AnyTensor T>
T embedding(const T& indices, const T& weight) {
  return detail::embedding(indices, weight);
}

/// The cross entropy of `a` (n, classes, ...), which has no upper bound ("logits"), or (classes),
/// and the integer classes `target` (n, ...): -log(softmax(a)[target]). No communication where the
/// classes are whole: the placements are kept, and sums and means are `Partial(sum)`. Where they
/// are sharded, the largest element and the sum travel, two numbers per target; the result is
/// Partial. A mean with `weight` or `ignore_index` all-reduces one number, the divisor. A target
/// that is no class gives NaN. Throws `ValueError` for shapes that do not fit.
template <AnyTensor T>
T cross_entropy(const T& a, const T& target, const ClassLossOptions<T>& options = {}) {
  return detail::class_loss("cross_entropy", a, target, options, true);
}
/// The same of logarithms of probabilities, -a[target].
template <AnyTensor T>
T nll_loss(const T& a, const T& target, const ClassLossOptions<T>& options = {}) {
  return detail::class_loss("nll_loss", a, target, options, false);
}
/// (a - target)^2. Throws `ValueError` for two shapes.
template <AnyTensor T>
T mse_loss(const T& a, const T& target, LossReduction reduction = LossReduction::mean) {
  return detail::mse_loss(a, target, reduction);
}

/// softmax(query key^T scale) value for query (..., l, e), key (..., s, e), value (..., s, v) with
/// the same leading extents: (..., l, v). Block by block with a running maximum, so that the matrix
/// of l x s products never exists. No communication where leading dimensions, the queries' l or the
/// values' v are sharded; keys and values are needed whole along s and e. A Partial value is handed
/// on. Throws `ValueError` for shapes that do not fit, `TypeError` for two scalar types.
template <AnyTensor T>
T scaled_dot_product_attention(const T& query, const T& key, const T& value,
                               const AttentionOptions& options = {}) {
  return detail::attention(query, key, value, options);
}

DTENSOR_MIXED_OPERATOR(embedding)
DTENSOR_MIXED_OPERATOR(cross_entropy)
DTENSOR_MIXED_OPERATOR(nll_loss)
DTENSOR_MIXED_OPERATOR(mse_loss)
DTENSOR_MIXED_OPERATOR(scaled_dot_product_attention)

}  // namespace dtensor
