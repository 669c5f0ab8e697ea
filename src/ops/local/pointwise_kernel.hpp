// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Pointwise kernels without their operator. On the host an operator is compiled to one plain loop
/// over dense blocks for each type that it computes in, which compilers turn into vector code; what
/// surrounds it (strides, broadcasting, conversion) is compiled once for all. On a device it is
/// compiled to a functor of one element.
#pragma once

#include "dtensor/core/scalar.hpp"
#include "dtensor/core/scalar_types.hpp"
#include "dtensor/ops/pointwise_table.hpp"
#include "pointwise_functors.hpp"
#include "strided_loop.hpp"

// Iterations are independent, also where the result overwrites an operand.
#if defined(__clang__)
#define DTENSOR_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__) && !defined(__NVCOMPILER)
#define DTENSOR_INDEPENDENT _Pragma("GCC ivdep")
#else
#define DTENSOR_INDEPENDENT
#endif

namespace dtensor::detail {

/// A result and at most four operands.
inline constexpr int max_operands = 5;

/// The type in which elements of a scalar type are computed.
constexpr DType compute_dtype(DType dtype) noexcept {
  switch (dtype) {
    case DType::float16:
    case DType::bfloat16:
      return DType::float32;
    case DType::int16:
    case DType::int8:
    case DType::uint8:
    case DType::boolean:
      return DType::int32;
    default:
      return dtype;
  }
}

struct PointwiseCall;

/// An operator for one type that it computes in.
struct PointwiseKernel {
  /// Dense blocks of `count` elements. `out` may be one of the inputs. Of two inputs one may be a
  /// single element, as `step` says with 0 in place of 1.
  void (*host)(void* out, const void* const* in, const std::int64_t* step,
               std::int64_t count) = nullptr;
  /// Null in a host build.
  void (*device)(const PointwiseCall& call) = nullptr;
  /// Scalar types of the result (first) and the operands, as the kernel takes them.
  DType dtype[max_operands] = {};
};

/// A tensor's elements, or a number in the kernel's own type.
struct PointwiseOperand {
  void* data = nullptr;  ///< null for a number
  DType dtype = DType::float64;
  alignas(16) unsigned char number[16] = {};

  KOKKOS_INLINE_FUNCTION const void* elements() const { return data ? data : number; }
};

/// The result is operand 0.
struct PointwiseCall {
  PointwiseKernel kernel;
  int operands = 0;
  PointwiseOperand operand[max_operands];
  StridedLoop<max_operands> loop;
};

/// Runs a call on host memory.
void run_on_host(const PointwiseCall& call);

// The kernels, by groups; one without functions when the operator is of another group or is not
// compiled for the type.
PointwiseKernel arithmetic_kernel(PointwiseOp op, DType compute);
PointwiseKernel comparison_kernel(PointwiseOp op, DType compute);
PointwiseKernel math_kernel(PointwiseOp op, DType compute);
PointwiseKernel complex_kernel(PointwiseOp op, DType compute);

// ---------------------------------------------------------------------------------------------

template <class... T>
struct Types {};
using Floats = Types<double, float>;
using Integers = Types<std::int64_t, std::int32_t>;
using Complexes = Types<Kokkos::complex<double>, Kokkos::complex<float>>;
using Reals = Types<double, float, std::int64_t, std::int32_t>;
using FloatsAndComplexes = Types<double, float, Kokkos::complex<double>, Kokkos::complex<float>>;
using AllTypes = Types<double, float, Kokkos::complex<double>, Kokkos::complex<float>, std::int64_t,
                       std::int32_t>;

/// The type of operand `K`: the first one of a choice is its condition.
template <class Op, class C, int K>
using operand_t = std::conditional_t<K == 0 && std::is_same_v<Op, functors::Where>, bool, C>;

template <class Op, class A0, class C>
KOKKOS_INLINE_FUNCTION auto apply(const Op& op, const A0& a, [[maybe_unused]] const C& b,
                                  [[maybe_unused]] const C& c, [[maybe_unused]] const C& d) {
  if constexpr (Op::arity == 1) {
    return op(a);
  } else if constexpr (Op::arity == 2) {
    return op(a, b);
  } else if constexpr (Op::arity == 3) {
    return op(a, b, c);
  } else {
    return op(a, b, c, d);
  }
}

template <class Op, class C>
void dense_loop(void* out, const void* const* in, [[maybe_unused]] const std::int64_t* step,
                std::int64_t count) {
  using A0 = operand_t<Op, C, 0>;
  using R = decltype(apply(Op(), A0(), C(), C(), C()));
  auto* const o = static_cast<R*>(out);
  const auto* const a = static_cast<const A0*>(in[0]);
  // Operands that there are not alias the first one and are not read.
  const auto at = [&](int k) { return static_cast<const C*>(in[k < Op::arity ? k : 0]); };
  [[maybe_unused]] const C* const b = at(1);
  [[maybe_unused]] const C* const c = at(2);
  [[maybe_unused]] const C* const d = at(3);
  const Op op;
  if constexpr (Op::arity == 1) {
    DTENSOR_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) o[i] = op(a[i]);
  } else if constexpr (Op::arity == 2) {
    if (step[1] == 0) {
      const C value = b[0];
      DTENSOR_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) o[i] = op(a[i], value);
    } else if (step[0] == 0) {
      const C value = a[0];
      DTENSOR_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) o[i] = op(value, b[i]);
    } else {
      DTENSOR_INDEPENDENT
      for (std::int64_t i = 0; i < count; ++i) o[i] = op(a[i], b[i]);
    }
  } else if constexpr (Op::arity == 3) {
    DTENSOR_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) o[i] = op(a[i], b[i], c[i]);
  } else {
    DTENSOR_INDEPENDENT
    for (std::int64_t i = 0; i < count; ++i) o[i] = op(a[i], b[i], c[i], d[i]);
  }
}

/// An element of a dynamic scalar type. Real types are not made of complex ones.
template <class To>
KOKKOS_INLINE_FUNCTION To load_element(const void* data, DType dtype, std::int64_t i) {
  switch (dtype) {
#define DTENSOR_LOAD(name) \
  case DType::name:        \
    return scalar_cast<To>(static_cast<const scalar_t<DType::name>*>(data)[i]);
    DTENSOR_LOAD(float64)
    DTENSOR_LOAD(float32)
    DTENSOR_LOAD(float16)
    DTENSOR_LOAD(bfloat16)
    DTENSOR_LOAD(complex128)
    DTENSOR_LOAD(complex64)
    DTENSOR_LOAD(int64)
    DTENSOR_LOAD(int32)
    DTENSOR_LOAD(int16)
    DTENSOR_LOAD(int8)
    DTENSOR_LOAD(uint8)
    DTENSOR_LOAD(boolean)
#undef DTENSOR_LOAD
  }
  return To();
}

template <class From>
KOKKOS_INLINE_FUNCTION void store_element(void* data, DType dtype, std::int64_t i,
                                          const From& value) {
  switch (dtype) {
#define DTENSOR_STORE(name)                                                                   \
  case DType::name:                                                                           \
    static_cast<scalar_t<DType::name>*>(data)[i] = scalar_cast<scalar_t<DType::name>>(value); \
    return;
    DTENSOR_STORE(float64)
    DTENSOR_STORE(float32)
    DTENSOR_STORE(float16)
    DTENSOR_STORE(bfloat16)
    DTENSOR_STORE(complex128)
    DTENSOR_STORE(complex64)
    DTENSOR_STORE(int64)
    DTENSOR_STORE(int32)
    DTENSOR_STORE(int16)
    DTENSOR_STORE(int8)
    DTENSOR_STORE(uint8)
    DTENSOR_STORE(boolean)
#undef DTENSOR_STORE
  }
}

template <class Op, class C>
struct ElementKernel {
  PointwiseCall call;

  template <int K>
  KOKKOS_INLINE_FUNCTION operand_t<Op, C, K> load(const PerOperand<max_operands>& offset) const {
    if constexpr (K < Op::arity) {
      const PointwiseOperand& operand = call.operand[K + 1];
      return load_element<operand_t<Op, C, K>>(operand.elements(), operand.dtype, offset[K + 1]);
    } else {
      return operand_t<Op, C, K>();
    }
  }
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    const PerOperand<max_operands> offset = call.loop.locate(call.loop.rank, i);
    store_element(call.operand[0].data, call.operand[0].dtype, offset[0],
                  apply(Op(), load<0>(offset), load<1>(offset), load<2>(offset), load<3>(offset)));
  }
};

template <class Op, class C, class Execution>
void run_by_element(const PointwiseCall& call) {
  Kokkos::parallel_for(
      "dtensor::pointwise",
      Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>(0, call.loop.count),
      ElementKernel<Op, C>{call});
}

template <class Op, class C>
PointwiseKernel make_kernel() {
  PointwiseKernel kernel;
  kernel.host = dense_loop<Op, C>;
  if constexpr (!device_is_host) kernel.device = run_by_element<Op, C, DeviceExecution>;
  using A0 = operand_t<Op, C, 0>;
  kernel.dtype[0] = dtype_of<decltype(apply(Op(), A0(), C(), C(), C()))>;
  for (int k = 1; k < max_operands; ++k) kernel.dtype[k] = dtype_of<C>;
  kernel.dtype[1] = dtype_of<A0>;
  return kernel;
}

/// The kernel of one operator for the type in which it is asked to compute.
template <class Op, class... C>
PointwiseKernel kernel_for(DType compute, Types<C...>) {
  PointwiseKernel kernel;
  (void)((dtype_of<C> == compute ? (kernel = make_kernel<Op, C>(), true) : false) || ...);
  return kernel;
}

}  // namespace dtensor::detail
