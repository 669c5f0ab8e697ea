// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What processors do in a few instructions.
#include "pointwise_kernel.hpp"

namespace dtensor::detail {

PointwiseKernel arithmetic_kernel(PointwiseOp op, DType compute) {
  using namespace functors;
  switch (op) {
    case PointwiseOp::abs:
      return kernel_for<Abs>(compute, AllTypes());
    case PointwiseOp::neg:
      return kernel_for<Neg>(compute, AllTypes());
    case PointwiseOp::sign:
      return kernel_for<Sign>(compute, Reals());
    case PointwiseOp::square:
      return kernel_for<Square>(compute, AllTypes());
    case PointwiseOp::relu:
      return kernel_for<Relu>(compute, Reals());
    case PointwiseOp::reciprocal:
      return kernel_for<Reciprocal>(compute, FloatsAndComplexes());
    case PointwiseOp::floor:
      return kernel_for<Floor>(compute, Reals());
    case PointwiseOp::ceil:
      return kernel_for<Ceil>(compute, Reals());
    case PointwiseOp::round:
      return kernel_for<Round>(compute, Reals());
    case PointwiseOp::trunc:
      return kernel_for<Trunc>(compute, Reals());
    case PointwiseOp::sqrt:
      return kernel_for<Sqrt>(compute, FloatsAndComplexes());
    case PointwiseOp::rsqrt:
      return kernel_for<Rsqrt>(compute, FloatsAndComplexes());
    case PointwiseOp::conj:
      return kernel_for<Conj>(compute, AllTypes());
    case PointwiseOp::real:
      return kernel_for<Real>(compute, AllTypes());
    case PointwiseOp::imag:
      return kernel_for<Imag>(compute, AllTypes());
    case PointwiseOp::add:
      return kernel_for<Add>(compute, AllTypes());
    case PointwiseOp::sub:
      return kernel_for<Sub>(compute, AllTypes());
    case PointwiseOp::mul:
      return kernel_for<Mul>(compute, AllTypes());
    case PointwiseOp::div:
      return kernel_for<Div>(compute, FloatsAndComplexes());
    case PointwiseOp::maximum:
      return kernel_for<Maximum>(compute, Reals());
    case PointwiseOp::minimum:
      return kernel_for<Minimum>(compute, Reals());
    case PointwiseOp::where:
      return kernel_for<Where>(compute, AllTypes());
    case PointwiseOp::clamp:
      return kernel_for<Clamp>(compute, Reals());
    case PointwiseOp::lerp:
      return kernel_for<Lerp>(compute, FloatsAndComplexes());
    case PointwiseOp::addcmul:
      return kernel_for<Addcmul>(compute, AllTypes());
    case PointwiseOp::addcdiv:
      return kernel_for<Addcdiv>(compute, FloatsAndComplexes());
    default:
      return {};
  }
}

}  // namespace dtensor::detail
