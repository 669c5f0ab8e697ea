// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions that call the mathematical library, of real numbers.
#include "pointwise_kernel.hpp"

namespace dtensor::detail {

PointwiseKernel math_kernel(PointwiseOp op, DType compute) {
  using namespace functors;
  switch (op) {
    case PointwiseOp::exp:
      return kernel_for<Exp>(compute, Floats());
    case PointwiseOp::log:
      return kernel_for<Log>(compute, Floats());
    case PointwiseOp::log2:
      return kernel_for<Log2>(compute, Floats());
    case PointwiseOp::sin:
      return kernel_for<Sin>(compute, Floats());
    case PointwiseOp::cos:
      return kernel_for<Cos>(compute, Floats());
    case PointwiseOp::tan:
      return kernel_for<Tan>(compute, Floats());
    case PointwiseOp::sinh:
      return kernel_for<Sinh>(compute, Floats());
    case PointwiseOp::cosh:
      return kernel_for<Cosh>(compute, Floats());
    case PointwiseOp::tanh:
      return kernel_for<Tanh>(compute, Floats());
    case PointwiseOp::expm1:
      return kernel_for<Expm1>(compute, Floats());
    case PointwiseOp::log1p:
      return kernel_for<Log1p>(compute, Floats());
    case PointwiseOp::asin:
      return kernel_for<Asin>(compute, Floats());
    case PointwiseOp::acos:
      return kernel_for<Acos>(compute, Floats());
    case PointwiseOp::atan:
      return kernel_for<Atan>(compute, Floats());
    case PointwiseOp::sigmoid:
      return kernel_for<Sigmoid>(compute, Floats());
    case PointwiseOp::erf:
      return kernel_for<Erf>(compute, Floats());
    case PointwiseOp::gelu:
      return kernel_for<Gelu>(compute, Floats());
    case PointwiseOp::gelu_tanh:
      return kernel_for<GeluTanh>(compute, Floats());
    case PointwiseOp::silu:
      return kernel_for<Silu>(compute, Floats());
    case PointwiseOp::softplus:
      return kernel_for<Softplus>(compute, Floats());
    case PointwiseOp::angle:
      return kernel_for<Angle>(compute, Floats());
    case PointwiseOp::floor_div:
      return kernel_for<FloorDiv>(compute, Reals());
    case PointwiseOp::remainder:
      return kernel_for<Remainder>(compute, Reals());
    case PointwiseOp::fmod:
      return kernel_for<Fmod>(compute, Reals());
    case PointwiseOp::pow:
      return kernel_for<Pow>(compute, Reals());
    case PointwiseOp::atan2:
      return kernel_for<Atan2>(compute, Floats());
    case PointwiseOp::hypot:
      return kernel_for<Hypot>(compute, Floats());
    default:
      return {};
  }
}

}  // namespace dtensor::detail
