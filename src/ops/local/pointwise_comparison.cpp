// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Comparisons, logic and bits.
#include "pointwise_kernel.hpp"

namespace dtensor::detail {

PointwiseKernel comparison_kernel(PointwiseOp op, DType compute) {
  using namespace functors;
  switch (op) {
    case PointwiseOp::isnan:
      return kernel_for<IsNan>(compute, AllTypes());
    case PointwiseOp::isinf:
      return kernel_for<IsInf>(compute, AllTypes());
    case PointwiseOp::isfinite:
      return kernel_for<IsFinite>(compute, AllTypes());
    case PointwiseOp::logical_not:
      return kernel_for<LogicalNot>(compute, AllTypes());
    case PointwiseOp::eq:
      return kernel_for<Eq>(compute, AllTypes());
    case PointwiseOp::ne:
      return kernel_for<Ne>(compute, AllTypes());
    case PointwiseOp::lt:
      return kernel_for<Lt>(compute, Reals());
    case PointwiseOp::le:
      return kernel_for<Le>(compute, Reals());
    case PointwiseOp::gt:
      return kernel_for<Gt>(compute, Reals());
    case PointwiseOp::ge:
      return kernel_for<Ge>(compute, Reals());
    case PointwiseOp::logical_and:
      return kernel_for<LogicalAnd>(compute, AllTypes());
    case PointwiseOp::logical_or:
      return kernel_for<LogicalOr>(compute, AllTypes());
    case PointwiseOp::logical_xor:
      return kernel_for<LogicalXor>(compute, AllTypes());
    case PointwiseOp::bitwise_not:
      return kernel_for<BitwiseNot>(compute, Integers());
    case PointwiseOp::bitwise_and:
      return kernel_for<BitwiseAnd>(compute, Integers());
    case PointwiseOp::bitwise_or:
      return kernel_for<BitwiseOr>(compute, Integers());
    case PointwiseOp::bitwise_xor:
      return kernel_for<BitwiseXor>(compute, Integers());
    case PointwiseOp::bitwise_left_shift:
      return kernel_for<LeftShift>(compute, Integers());
    case PointwiseOp::bitwise_right_shift:
      return kernel_for<RightShift>(compute, Integers());
    default:
      return {};
  }
}

}  // namespace dtensor::detail
