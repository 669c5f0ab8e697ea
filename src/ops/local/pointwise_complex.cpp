// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions that call the mathematical library, of complex numbers.
#include "pointwise_kernel.hpp"

namespace dtensor::detail {

PointwiseKernel complex_kernel(PointwiseOp op, DType compute) {
  using namespace functors;
  switch (op) {
    case PointwiseOp::exp:
      return kernel_for<Exp>(compute, Complexes());
    case PointwiseOp::log:
      return kernel_for<Log>(compute, Complexes());
    case PointwiseOp::log2:
      return kernel_for<Log2>(compute, Complexes());
    case PointwiseOp::sin:
      return kernel_for<Sin>(compute, Complexes());
    case PointwiseOp::cos:
      return kernel_for<Cos>(compute, Complexes());
    case PointwiseOp::tan:
      return kernel_for<Tan>(compute, Complexes());
    case PointwiseOp::sinh:
      return kernel_for<Sinh>(compute, Complexes());
    case PointwiseOp::cosh:
      return kernel_for<Cosh>(compute, Complexes());
    case PointwiseOp::tanh:
      return kernel_for<Tanh>(compute, Complexes());
    case PointwiseOp::angle:
      return kernel_for<Angle>(compute, Complexes());
    case PointwiseOp::pow:
      return kernel_for<Pow>(compute, Complexes());
    default:
      return {};
  }
}

}  // namespace dtensor::detail
