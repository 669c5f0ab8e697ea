// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fmt/format.h>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/learning.hpp"
#include "dtensor/ops/local/reduction.hpp"
#include "dtensor/ops/ops.hpp"
#include "dtensor/ops/promotion.hpp"
#include "learning_checks.hpp"
#include "local/learning.hpp"
#include "reduction_checks.hpp"
#include "reduction_rule.hpp"
#include "states.hpp"

namespace dtensor::detail {

namespace {

DimSet all_of(const Tensor& a) { return Dims(all_dims).of("", a.dim()); }

Tensor total(const Tensor& a, std::int64_t divisor = 1) {
  return scaled_sum(a, all_of(a), false, a.dtype(), divisor);
}

// Whether the divisor of a mean depends on the targets.
template <class T>
bool counts_targets(const ClassLossOptions<T>& o) {
  return o.reduction == LossReduction::mean && (o.weight || o.ignore_index);
}

template <class T>
void check(const char* function, const T& a, const T& target, const ClassLossOptions<T>& o) {
  const Shape weight = o.weight ? o.weight->shape() : Shape();
  check_class_loss(function, a.shape(), a.dtype(), target.shape(), target.dtype(),
                   o.weight ? &weight : nullptr, o.weight ? o.weight->dtype() : a.dtype());
}

// Sum over sum of weights, in the type of the sum.
Tensor quotient(const Tensor& sum, const Tensor& weights) {
  return div(sum.to(DType::float64), weights).to(sum.dtype());
}

}  // namespace

Tensor class_loss(const char* function, const Tensor& a, const Tensor& target,
                  const ClassLossOptions<Tensor>& o, bool logits) {
  check(function, a, target, o);
  check_same_memory(function, a, target);
  if (o.weight) check_same_memory(function, a, *o.weight);
  const int class_dim = a.dim() == 1 ? 0 : 1;
  const std::int64_t classes = a.shape()[class_dim];
  const Tensor stats =
      logits ? max_and_sum(a, DimSet().set(static_cast<std::size_t>(class_dim))) : Tensor();
  const ClassLosses r = local_class_loss(a, class_dim, target, stats, o.weight, o.ignore_index,
                                         IndexSet(0, classes), classes, counts_targets(o));
  if (o.reduction == LossReduction::none) return r.losses;
  if (o.reduction == LossReduction::sum) return total(r.losses);
  return counts_targets(o) ? quotient(total(r.losses), total(r.weights))
                           : total(r.losses, target.numel());
}

DTensor class_loss(const char* function, const DTensor& a, const DTensor& target,
                   const ClassLossOptions<DTensor>& o, bool logits) {
  check(function, a, target, o);
  const int class_dim = a.dim() == 1 ? 0 : 1;
  const std::int64_t classes = a.shape()[class_dim];
  std::string input = std::string("abcdefgh").substr(0, static_cast<std::size_t>(a.dim()));
  const std::string class_letter(1, input[static_cast<std::size_t>(class_dim)]);
  std::string targets = input;
  targets.erase(static_cast<std::size_t>(class_dim), 1);
  const bool none = o.reduction == LossReduction::none;
  const std::string equation =
      input + "," + targets + (o.weight ? "," + class_letter : "") + "->" + (none ? targets : "");
  std::vector<DTensor> inputs{a, target};
  if (o.weight) inputs.push_back(*o.weight);
  const Operation operation{function, cached_rule(equation), a.dtype()};
  const Prepared ready = prepare(operation, inputs);
  const DeviceMesh& mesh = a.device_mesh();
  const Layout& layout = ready.inputs[0].layout();
  Tensor weights;
  const DTensor result = wrap(operation, mesh, ready.output, [&] {
    const Tensor x = ready.inputs[0].to_local();
    const DimSet over_classes = DimSet().set(static_cast<std::size_t>(class_dim));
    Tensor stats;
    if (logits) {
      stats = merged_states(function, mesh, layout, reduced_layout(layout, over_classes),
                            max_and_sum(x, over_classes),
                            [](const Tensor& parts) { return merge_max_and_sum(parts); })
                  .contiguous();
    }
    const std::optional<Tensor> factors =
        o.weight ? std::optional(ready.inputs[2].to_local()) : std::nullopt;
    const ClassLosses r = local_class_loss(
        x, class_dim, ready.inputs[1].to_local(), stats, factors, o.ignore_index,
        layout.index_set(*mesh.coordinate(), class_dim), classes, counts_targets(o));
    if (none) return r.losses;
    if (counts_targets(o)) weights = total(r.weights);
    const bool mean = o.reduction == LossReduction::mean && !counts_targets(o);
    return total(r.losses, mean ? target.numel() : 1);
  });
  if (!counts_targets(o) || !mesh.is_member()) return result;
  const DTensor divisor = redistribute(
      DTensor(mesh, ready.output, weights), mesh, ready.output.without_partial(), false, function,
      "a mean needs the number of all targets that count", {1, &target.layout()});
  return wrap(operation, mesh, ready.output,
              [&] { return quotient(result.to_local(), divisor.to_local()); });
}

namespace {
void check_one_place(const Tensor& a, const Tensor& b) { check_same_memory("mse_loss", a, b); }
void check_one_place(const DTensor& a, const DTensor& b) { check_mesh("mse_loss", a, b); }

template <class T>
T mean_square(const T& a, const T& target, LossReduction reduction) {
  for (DType dtype : {a.dtype(), target.dtype()}) check_ordered("mse_loss", dtype);
  if (a.shape() != target.shape()) {
    throw ValueError(
        "mse_loss",
        fmt::format("shapes {} and {}", to_string(a.shape()), to_string(target.shape())),
        "tensors of one shape");
  }
  check_one_place(a, target);
  constexpr const char* name = "mse_loss";
  const DType type = fractional_dtype(promoted_dtype(a.dtype(), target.dtype()));
  const T difference = dtensor::sub(to(name, a, type), to(name, target, type));
  const T square = dtensor::mul(difference, difference);
  if (reduction == LossReduction::none) return square;
  return reduction == LossReduction::sum ? dtensor::sum(square) : dtensor::mean(square);
}
}  // namespace

Tensor mse_loss(const Tensor& a, const Tensor& target, LossReduction reduction) {
  return mean_square(a, target, reduction);
}
DTensor mse_loss(const DTensor& a, const DTensor& target, LossReduction reduction) {
  return mean_square(a, target, reduction);
}

}  // namespace dtensor::detail
