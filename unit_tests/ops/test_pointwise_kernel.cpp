// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernels that work by element, as on a device, give what those of the host give in blocks.
#include <gtest/gtest.h>

#include <cstring>

#include "dtensor/core/tensor.hpp"
#include "ops/local/pointwise_kernel.hpp"

namespace dtensor::detail {
namespace {

// Runs an operator on tensors of one shape, or a number, both ways.
template <class Op, class C>
void expect_equal(const std::vector<Tensor>& tensors, const Scalar& number, DType result) {
  PointwiseCall call;
  call.kernel = make_kernel<Op, C>();
  call.operands = Op::arity + 1;
  const Shape shape = tensors[0].shape();
  std::array<Extents, max_operands> strides;
  strides.fill(Extents::filled(shape.size(), 0));
  for (int k = 1; k < call.operands; ++k) {
    const auto i = static_cast<std::size_t>(k - 1);
    if (i < tensors.size()) {
      call.operand[k].data = tensors[i].data();
      call.operand[k].dtype = tensors[i].dtype();
      strides[i + 1] = tensors[i].strides();
    } else {
      const C value = number.to<C>();
      std::memcpy(call.operand[k].number, &value, sizeof(C));
      call.operand[k].dtype = dtype_of<C>;
    }
  }
  const Tensor by_block = Tensor::zeros(shape, result, DeviceKind::host);
  const Tensor by_element = Tensor::zeros(shape, result, DeviceKind::host);
  strides[0] = by_block.strides();
  call.loop = make_loop<max_operands>(shape, strides);
  call.operand[0].dtype = result;
  call.operand[0].data = by_block.data();
  run_on_host(call);
  call.operand[0].data = by_element.data();
  run_by_element<Op, C, HostExecution>(call);
  const auto bytes = static_cast<std::size_t>(by_block.numel() * size_of(result));
  EXPECT_EQ(std::memcmp(by_block.data(), by_element.data(), bytes), 0);
  // And not because both did nothing.
  EXPECT_NE(
      std::memcmp(by_block.data(), Tensor::zeros(shape, result, DeviceKind::host).data(), bytes),
      0);
}

TEST(PointwiseKernel, ByElementAndByBlock) {
  std::vector<double> values(60 * 70), others(60 * 70);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(i % 101) - 50;
    others[i] = static_cast<double>(i % 37) - 11;
  }
  const Tensor x = Tensor::from_vector(values, {60, 70}, DeviceKind::host);
  const Tensor y = Tensor::from_vector(others, {70, 60}, DeviceKind::host).transpose(0, 1);
  const auto as = [&](DType dtype) { return std::vector<Tensor>{x.to(dtype), y}; };
  using namespace functors;
  expect_equal<Add, double>(as(DType::float64), 0, DType::float64);
  expect_equal<Add, double>(as(DType::int8), 0, DType::float64);
  expect_equal<Add, float>({x.to(DType::bfloat16), y.to(DType::float16)}, 0, DType::bfloat16);
  expect_equal<Mul, float>({x.to(DType::float32)}, 2.5, DType::float32);
  expect_equal<Lt, double>(as(DType::float32), 0, DType::boolean);
  expect_equal<Neg, std::int32_t>({x.to(DType::uint8)}, 0, DType::uint8);
  expect_equal<Abs, Kokkos::complex<double>>({x.to(DType::complex64)}, 0, DType::float64);
  expect_equal<Where, std::int64_t>({(x.to(DType::boolean)), y.to(DType::int64)}, 7, DType::int64);
  expect_equal<Addcmul, std::int32_t>({x.to(DType::int16), y.to(DType::int32), x.to(DType::int8)},
                                      3, DType::int16);
}

}  // namespace
}  // namespace dtensor::detail
