// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The local kernels behind `ops/learning.hpp`.
#pragma once

#include <optional>
#include <vector>

#include "dtensor/core/tensor.hpp"
#include "dtensor/layout/index_set.hpp"

namespace dtensor::detail {

/// Floating-point types. \param max_and_sum  of whole lines, float64 (2, ...) without `dim`, where
///                                          `a` has a part of them; else undefined
Tensor local_softmax(const Tensor& a, int dim, bool log, const Tensor& max_and_sum);

/// Rows of `length` elements at the end of `a`. \param stats  of whole rows where `a` has a part of
/// them: float64 (2, rows) of the mean and the sum of squared distances from it; else undefined
/// \param count  elements of a whole row \param centered  subtract the mean
Tensor local_normalize(const Tensor& a, std::int64_t length, const std::optional<Tensor>& weight,
                       const std::optional<Tensor>& bias, double eps, bool centered,
                       const Tensor& stats, std::int64_t count);

/// \param held  the rows of the whole that `weight` has
Tensor local_embedding(const Tensor& indices, const Tensor& weight, const IndexSet& held,
                       std::int64_t rows);

/// The losses and, where asked for, the weights of targets (float64), both of the shape of
/// `target`. What other ranks add is 0.
struct ClassLosses {
  Tensor losses, weights;
};
/// \param class_dim    the dimension of `a` that target lacks
/// \param max_and_sum  as of `local_softmax` for `cross_entropy`; undefined for logarithms of
///                     probabilities
/// \param weight       of all classes that `a` has
/// \param held         the classes that `a` has, of `classes` in all
ClassLosses local_class_loss(const Tensor& a, int class_dim, const Tensor& target,
                             const Tensor& max_and_sum, const std::optional<Tensor>& weight,
                             std::optional<std::int64_t> ignore_index, const IndexSet& held,
                             std::int64_t classes, bool with_weights);

/// \param rows  the queries of the whole that `query` has
Tensor local_attention(const Tensor& query, const Tensor& key, const Tensor& value, double scale,
                       bool causal, const IndexSet& rows);

/// Calls `f` with the scalar type of a floating-point tensor.
template <class F>
void with_floating_dtype(DType dtype, const F& f) {
  switch (dtype) {
    case DType::float64:
      return f.template operator()<double>();
    case DType::float32:
      return f.template operator()<float>();
    case DType::float16:
      return f.template operator()<float16>();
    default:
      return f.template operator()<bfloat16>();
  }
}

}  // namespace dtensor::detail
