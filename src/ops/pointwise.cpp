// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/pointwise.hpp"

#include <cmath>
#include <unordered_map>

#include "dtensor/ops/dispatch.hpp"
#include "dtensor/redistribute/combine.hpp"
#include "pointwise_types.hpp"

namespace dtensor::detail {

namespace {

// What the table asks to know of numbers, in the precision that they are used in.
PointwiseNumbers properties(const PointwiseRow& row, const Operands<DTensor>& operands,
                            DType common) {
  PointwiseNumbers result;
  for (int i = 0; i < operands.size(); ++i) {
    const Operand<DTensor>& operand = operands[i];
    if (operand.tensor) continue;
    auto z = operand.number.to<Kokkos::complex<double>>();
    if (size_of(real_dtype(common)) < 8 && !is_integral(common)) {
      z = Kokkos::complex<double>(static_cast<float>(z.real()), static_cast<float>(z.imag()));
    }
    const bool zero = z.real() == 0 && z.imag() == 0;
    const bool divides = i == (row.op == PointwiseOp::div ? 1 : -1);
    if (!std::isfinite(z.real()) || !std::isfinite(z.imag()) || (divides && zero)) {
      result.regular = false;
    }
    result.positive = result.regular && z.real() > 0 && z.imag() == 0;
    result.zero = zero;
  }
  return result;
}

// The rule of an operator for these operands. Rules are made once for each of the few combinations
// of what decides on them, and live as long as the program.
const Rule& rule_for(const PointwiseRow& row, const Operands<DTensor>& operands, DType common) {
  unsigned tensors = 0;
  bool converted = false;
  std::uint64_t key = static_cast<std::uint64_t>(row.op);
  for (int i = 0; i < operands.size(); ++i) {
    const DTensor* const tensor = operands[i].tensor;
    const int rank = tensor ? tensor->dim() : max_rank + 1;
    key = key << 4 | static_cast<std::uint64_t>(rank);
    if (!tensor) continue;
    tensors |= 1u << i;
    const DType own = tensor->dtype();
    const bool is_condition = row.op == PointwiseOp::where && i == 0;
    converted |= !is_condition && own != common && (is_integral(own) || own == DType::boolean);
  }
  const PointwiseNumbers numbers = properties(row, operands, common);
  for (bool flag : {converted, numbers.regular, numbers.positive, numbers.zero}) {
    key = key << 1 | static_cast<std::uint64_t>(flag);
  }
  key = key << 4 | kinds::of(common);
  thread_local std::unordered_map<std::uint64_t, Rule> rules;
  const auto known = rules.find(key);
  if (known != rules.end()) return known->second;
  std::vector<int> ranks;
  for (const Operand<DTensor>& operand : operands) {
    if (operand.tensor) ranks.push_back(operand.tensor->dim());
  }
  return rules
      .emplace(key,
               Rule::pointwise(ranks, pointwise_passes(row, tensors, converted, common, numbers)))
      .first->second;
}

// The operator on local tensors, in place of the global ones.
Operands<Tensor> localized(const Operands<DTensor>& operands, Locals locals) {
  Operands<Tensor> result;
  std::size_t next = 0;
  for (const Operand<DTensor>& operand : operands) {
    if (operand.tensor) {
      result.push_back(locals[next++]);
    } else {
      result.push_back(operand.number);
    }
  }
  return result;
}

// The layout in which an input of `shape` fits a result of layout `target` that it is broadcast to.
// \param contributes  per mesh dimension, whether the input stays Partial as the result is
Layout fitting_layout(const Layout& target, const Shape& shape,
                      const std::vector<bool>& contributes) {
  const int shift = target.shape().size() - shape.size();
  const auto stretched = [&](int d) { return d < shift || shape[d - shift] != target.shape()[d]; };
  Placements placements;
  for (int m = 0; m < target.grid()->dim(); ++m) {
    const Placement& p = target.placement(m);
    if (p.is_shard() && !stretched(p.dim())) {
      placements.push_back(p.with_dim(p.dim() - shift));
    } else if (p.is_partial() && contributes[static_cast<std::size_t>(m)]) {
      placements.push_back(p);
    } else {
      placements.push_back(Replicate());
    }
  }
  ShardOrder order;
  for (const auto& [d, mesh_dims] : target.shard_order()) {
    if (!stretched(d)) order.emplace_back(d - shift, mesh_dims);
  }
  return Layout(shape, target.grid(), placements, order);
}

// Which inputs stay Partial along a mesh dimension where the first one is and has to stay so.
std::uint32_t contributing(const char* function, const Rule& rule,
                           const std::vector<DTensor>& inputs, int mesh_dim) {
  const Placement& own = inputs.front().layout().placement(mesh_dim);
  for (const PartialPass& pass : rule.passes()) {
    bool fits = pass.takes(0) && pass.takes(own.reduce_op());
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      fits = fits &&
             (!pass.takes(static_cast<int>(i)) || inputs[i].layout().placement(mesh_dim) == own);
    }
    if (fits) return pass.inputs;
  }
  throw LayoutError(
      function,
      fmt::format("a tensor of placement {} on mesh dimension {}", to_string(own), mesh_dim),
      "a placement that the operator keeps: in place, it cannot reduce its first "
      "operand; redistribute it first");
}

}  // namespace

DTensor pointwise(PointwiseOp op, const Operands<DTensor>& operands, const char* name) {
  const PointwiseRow& row = pointwise_row(op);
  const char* const function = name ? name : row.name;
  const PointwiseTypes types = pointwise_types(row, function, operands);
  const Operation operation{function, rule_for(row, operands, types.common), types.result};
  const auto kernel = [&](Locals x) { return pointwise(op, localized(operands, x), function); };
  const DTensor* inputs[4] = {};
  int count = 0;
  for (const Operand<DTensor>& operand : operands) {
    if (operand.tensor) inputs[count++] = operand.tensor;
  }
  if (count == 1) return dispatch(operation, {*inputs[0]}, kernel);
  if (count == 2) return dispatch(operation, {*inputs[0], *inputs[1]}, kernel);
  return dispatch(operation, {*inputs[0], *inputs[1], *inputs[2]}, kernel);
}

void pointwise_in_place(PointwiseOp op, const Operands<DTensor>& operands, const char* name) {
  const PointwiseRow& row = pointwise_row(op);
  const char* const function = name ? name : row.in_place_name;
  const DTensor& target = *operands[0].tensor;
  const PointwiseTypes types = pointwise_types(row, function, operands);
  check_in_place_dtype(function, target.dtype(), types.result);
  check_injective(function, target.shape(), target.stride());
  std::vector<DTensor> inputs;
  std::vector<Shape> shapes;
  for (const Operand<DTensor>& operand : operands) {
    if (!operand.tensor) continue;
    check_mesh(function, target, *operand.tensor);
    inputs.push_back(*operand.tensor);
    shapes.push_back(operand.tensor->shape());
  }
  const Rule& rule = rule_for(row, operands, types.common);
  const Shape shape = rule.output_shape(function, shapes);
  if (!(shape == target.shape())) {
    throw ValueError(function,
                     fmt::format("a tensor of shape {} for a result of shape {}",
                                 to_string(target.shape()), to_string(shape)),
                     "a tensor of the result's shape");
  }
  const Layout& layout = target.layout();
  std::vector<std::uint32_t> contributes(static_cast<std::size_t>(layout.grid()->dim()), 0);
  for (int m = 0; m < layout.grid()->dim(); ++m) {
    if (!layout.placement(m).is_partial()) continue;
    contributes[static_cast<std::size_t>(m)] = contributing(function, rule, inputs, m);
  }
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].layout() == layout && !layout.has_partial()) continue;
    std::vector<bool> stays;
    for (std::uint32_t mask : contributes) stays.push_back((mask >> i & 1) != 0);
    const Layout needed = fitting_layout(layout, inputs[i].shape(), stays);
    if (needed == inputs[i].layout()) continue;
    inputs[i] = redistribute(inputs[i], target.device_mesh(), needed, true, function,
                             "an operator in place needs its inputs as its first one lies",
                             static_cast<int>(i));
  }
  if (!target.device_mesh().is_member()) return;
  std::vector<Tensor> locals;
  for (const DTensor& input : inputs) locals.push_back(input.to_local());
  pointwise_in_place(op, localized(operands, locals), function);
}

Tensor to(const char*, const Tensor& a, DType dtype) { return a.to(dtype); }

DTensor to(const char* function, const DTensor& a, DType dtype) {
  if (dtype == a.dtype()) return a;
  const DType own = a.dtype();
  const bool from_integer = is_integral(own) || own == DType::boolean;
  const bool to_integer = is_integral(dtype);
  // Integers wrap around, which cutting off bits does not change. Contributions of floating types
  // may be out of a narrower type's range where their sum is not.
  const bool narrows = is_integral(own) && to_integer && size_of(dtype) <= size_of(own);
  const bool keeps_range = !from_integer && (is_floating(dtype) || is_complex(dtype)) &&
                           promoted_dtype(real_dtype(own), real_dtype(dtype)) == real_dtype(dtype);
  const bool linear = narrows || keeps_range;
  const bool widens = from_integer && to_integer && promoted_dtype(own, dtype) == dtype;
  const bool monotone = !is_complex(own) && (widens || is_floating(dtype));
  const int key = a.dim() << 2 | int{linear} << 1 | int{monotone};
  thread_local std::unordered_map<int, Rule> rules;
  auto known = rules.find(key);
  if (known == rules.end()) {
    PartialPasses passes;
    if (linear) passes.push_back(linear_in({0}));
    if (monotone) {
      passes.push_back({1, PartialPass::bit(ReduceOp::max) | PartialPass::bit(ReduceOp::min)});
    }
    known = rules.emplace(key, Rule::pointwise({a.dim()}, passes)).first;
  }
  const Rule& rule = known->second;
  return dispatch({function, rule, dtype}, {a}, [&](Locals x) { return x[0].to(dtype); });
}

void fill(const Tensor& a, const Scalar& value) { a.fill(value); }

void fill(const DTensor& a, const Scalar& value) {
  check_holds("fill", a.dtype(), value);
  if (!a.device_mesh().is_member()) return;
  // Along sums and products the first rank contributes the value, the others what changes nothing.
  Scalar contribution = value;
  for (int m = 0; m < a.device_mesh().dim(); ++m) {
    const Placement& p = a.placements()[static_cast<std::size_t>(m)];
    const bool accumulates = p.is_partial(ReduceOp::sum) || p.is_partial(ReduceOp::product) ||
                             p.is_partial(ReduceOp::bxor);
    if (accumulates && (*a.device_mesh().coordinate())[m] != 0) {
      contribution = identity_of(p.reduce_op(), a.dtype());
    }
  }
  a.to_local().fill(contribution);
}

namespace {
// Strides with which `from` is read as a tensor of `shape`.
Extents strides_for_copy(const Shape& shape, const Shape& from, const Extents& from_strides) {
  const int shift = shape.size() - from.size();
  Extents strides = Extents::filled(shape.size(), 0);
  for (int d = 0; d < from.size(); ++d) {
    if (shift < 0 || (from[d] != 1 && from[d] != shape[d + shift])) {
      throw ValueError("copy_",
                       fmt::format("a source of shape {} for a tensor of shape {}", to_string(from),
                                   to_string(shape)),
                       "a source that can be broadcast to the tensor's shape");
    }
    if (from[d] != 1) strides[d + shift] = from_strides[d];
  }
  return strides;
}
}  // namespace

void copy(const Tensor& to, const Tensor& from) {
  const Extents strides = strides_for_copy(to.shape(), from.shape(), from.strides());
  check_injective("copy_", to.shape(), to.strides());
  if (to.numel() == 0) return;
  to.copy_from(from.as_strided(to.shape(), strides, from.storage_offset()));
}

void copy(const DTensor& to, const DTensor& from) {
  check_mesh("copy_", to, from);
  strides_for_copy(to.shape(), from.shape(), from.stride());
  check_injective("copy_", to.shape(), to.stride());
  const DTensor converted = detail::to("copy_", from, to.dtype());
  const Layout needed =
      fitting_layout(to.layout(), from.shape(), std::vector<bool>(to.placements().size(), true));
  const DTensor moved =
      needed == converted.layout()
          ? converted
          : redistribute(converted, to.device_mesh(), needed, false, "copy_",
                         "the source takes the placements of the tensor it is copied to", 1);
  if (to.device_mesh().is_member()) copy(to.to_local(), moved.to_local());
}

}  // namespace dtensor::detail
