// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/local/pointwise.hpp"

#include <algorithm>
#include <cstring>

#include "../pointwise_types.hpp"
#include "pointwise_kernel.hpp"

namespace dtensor::detail {

namespace {

// The same operator where it is simpler to compute.
PointwiseOp simplified(PointwiseOp op, const Operands<Tensor>& x) {
  const bool squares = op == PointwiseOp::pow && x[0].tensor && !x[1].tensor &&
                       x[1].number.kind() != Scalar::Kind::complex && x[1].number.to<double>() == 2;
  return squares ? PointwiseOp::square : op;
}

PointwiseKernel find_kernel(PointwiseOp op, DType common) {
  // Bits of bool are computed as an integer's, where the complement of 1 is not 0.
  if (op == PointwiseOp::bitwise_not && common == DType::boolean) op = PointwiseOp::logical_not;
  const DType compute = compute_dtype(common);
  PointwiseKernel kernel = arithmetic_kernel(op, compute);
  if (!kernel.host) kernel = comparison_kernel(op, compute);
  if (!kernel.host) kernel = math_kernel(op, compute);
  if (!kernel.host) kernel = complex_kernel(op, compute);
  return kernel;
}

Shape broadcast_shape(const char* function, const Operands<Tensor>& operands) {
  Shape shape;
  const Tensor* first = nullptr;
  for (const Operand<Tensor>& operand : operands) {
    if (!operand.tensor) continue;
    const Shape& other = operand.tensor->shape();
    if (!first || shape == other) {
      if (!first) shape = other;
      first = operand.tensor;
      continue;
    }
    const Shape before = shape;
    const Shape& shorter = before.size() > other.size() ? other : before;
    if (&shorter == &before) shape = other;
    const int shift = shape.size() - shorter.size();
    for (int d = 0; d < shorter.size(); ++d) {
      std::int64_t& extent = shape[d + shift];
      if (extent == 1) {
        extent = shorter[d];
      } else if (extent != shorter[d] && shorter[d] != 1) {
        throw ValueError(function,
                         fmt::format("shapes {} and {}", to_string(before), to_string(other)),
                         "equal extents, or 1, aligned from the last dimension");
      }
    }
  }
  return shape;
}

// Strides with which a tensor is read for a result of `shape`; 0 where it is broadcast.
Extents broadcast_strides(const Tensor& tensor, const Shape& shape) {
  Extents strides = Extents::filled(shape.size(), 0);
  const int shift = shape.size() - tensor.dim();
  for (int d = shift; d < shape.size(); ++d) {
    if (tensor.shape()[d - shift] != 1) strides[d] = tensor.strides()[d - shift];
  }
  return strides;
}

DeviceKind common_device(const char* function, const Operands<Tensor>& operands) {
  const Tensor* first = nullptr;
  for (const Operand<Tensor>& operand : operands) {
    if (!operand.tensor) continue;
    if (!first) first = operand.tensor;
    check_same_memory(function, *first, *operand.tensor);
  }
  return first->device();
}

// A number that is compared has the precision of the elements it is compared with.
Scalar rounded(const Scalar& number, DType common) {
  if (common == DType::float16) return number.to<float16>();
  if (common == DType::bfloat16) return number.to<bfloat16>();
  return number;
}

void set_number(PointwiseOperand& operand, const Scalar& number, DType dtype) {
  operand.dtype = dtype;
  dispatch_dtype(dtype, [&]<class C>() {
    const C value = number.to<C>();
    std::memcpy(operand.number, &value, sizeof(C));
  });
}

// A dense tensor of the result's shape takes no strides to describe.
bool all_dense(const Tensor& out, const Operands<Tensor>& operands) {
  if (!out.is_contiguous()) return false;
  for (const Operand<Tensor>& operand : operands) {
    if (!operand.tensor || operand.tensor == &out) continue;
    if (!(operand.tensor->shape() == out.shape()) || !operand.tensor->is_contiguous()) return false;
  }
  return true;
}

void run(PointwiseOp op, const Tensor& out, const Operands<Tensor>& operands, DType common) {
  if (out.numel() == 0) return;
  PointwiseCall call;
  call.kernel = find_kernel(op, common);
  call.operands = op == PointwiseOp::square ? 2 : operands.size() + 1;
  call.operand[0].data = out.data();
  call.operand[0].dtype = out.dtype();
  for (int i = 1; i < call.operands; ++i) {
    const Operand<Tensor>& operand = operands[i - 1];
    if (operand.tensor) {
      call.operand[i].data = operand.tensor->data();
      call.operand[i].dtype = operand.tensor->dtype();
    } else {
      const bool compares = out.dtype() == DType::boolean;
      set_number(call.operand[i], compares ? rounded(operand.number, common) : operand.number,
                 call.kernel.dtype[i]);
    }
  }
  if (all_dense(out, operands)) {
    call.loop.rank = 1;
    call.loop.count = call.loop.extent[0] = out.numel();
    for (int i = 0; i < call.operands; ++i) {
      call.loop.stride[0].at[i] = i == 0 || operands[i - 1].tensor ? 1 : 0;
    }
  } else {
    std::array<Extents, max_operands> strides;
    strides.fill(Extents::filled(out.dim(), 0));
    strides[0] = out.strides();
    for (int i = 1; i < call.operands; ++i) {
      const Tensor* const tensor = operands[i - 1].tensor;
      if (tensor) strides[static_cast<std::size_t>(i)] = broadcast_strides(*tensor, out.shape());
    }
    call.loop = make_loop<max_operands>(out.shape(), strides);
  }
  if (call.kernel.device && out.device() == DeviceKind::device) {
    call.kernel.device(call);
  } else {
    run_on_host(call);
  }
}

}  // namespace

Tensor pointwise(PointwiseOp op, const Operands<Tensor>& operands, const char* name) {
  const PointwiseRow& row = pointwise_row(op);
  const char* const function = name ? name : row.name;
  const PointwiseTypes types = pointwise_types(row, function, operands);
  const DeviceKind device = common_device(function, operands);
  Tensor out = Tensor::empty(broadcast_shape(function, operands), types.result, device);
  run(simplified(op, operands), out, operands, types.common);
  return out;
}

void pointwise_in_place(PointwiseOp op, const Operands<Tensor>& operands, const char* name) {
  const PointwiseRow& row = pointwise_row(op);
  const char* const function = name ? name : row.in_place_name;
  const Tensor& out = *operands[0].tensor;
  const PointwiseTypes types = pointwise_types(row, function, operands);
  check_in_place_dtype(function, out.dtype(), types.result);
  common_device(function, operands);
  const Shape shape = broadcast_shape(function, operands);
  if (!(shape == out.shape())) {
    throw ValueError(function,
                     fmt::format("a tensor of shape {} for a result of shape {}",
                                 to_string(out.shape()), to_string(shape)),
                     "a tensor of the result's shape");
  }
  check_injective(function, out.shape(), out.strides());
  std::array<Tensor, 4> copies;
  Operands<Tensor> apart;
  for (const Operand<Tensor>& operand : operands) {
    if (operand.tensor && operand.tensor != &out && out.overlaps(*operand.tensor)) {
      Tensor& copy = copies[static_cast<std::size_t>(apart.size())];
      copy = operand.tensor->clone();
      apart.push_back(copy);
    } else {
      apart.push_back(operand);
    }
  }
  run(simplified(op, operands), out, apart, types.common);
}

}  // namespace dtensor::detail
