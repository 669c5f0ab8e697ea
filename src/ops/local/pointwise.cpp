// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/local/pointwise.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/promotion.hpp"
#include "strided_loop.hpp"

namespace dtensor {

namespace {

// Integers are computed unsigned, where overflow is defined, and no narrower than 32 bits.
template <class T>
using wrapping_t = std::conditional_t<(sizeof(T) <= 4), std::uint32_t, std::uint64_t>;

template <class T>
inline constexpr bool is_integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;

// The operators work on the type that is computed in: float for the 16-bit types.
struct Add {
  template <class T>
  KOKKOS_INLINE_FUNCTION T operator()(const T& x, const T& y) const {
    if constexpr (std::is_same_v<T, bool>) {
      return x || y;
    } else if constexpr (is_integer<T>) {
      return static_cast<T>(static_cast<wrapping_t<T>>(x) + static_cast<wrapping_t<T>>(y));
    } else {
      return x + y;
    }
  }
};

struct Sub {
  template <class T>
  KOKKOS_INLINE_FUNCTION T operator()(const T& x, const T& y) const {
    if constexpr (is_integer<T>) {
      return static_cast<T>(static_cast<wrapping_t<T>>(x) - static_cast<wrapping_t<T>>(y));
    } else {
      return x - y;
    }
  }
};

struct Mul {
  template <class T>
  KOKKOS_INLINE_FUNCTION T operator()(const T& x, const T& y) const {
    if constexpr (std::is_same_v<T, bool>) {
      return x && y;
    } else if constexpr (is_integer<T>) {
      return static_cast<T>(static_cast<wrapping_t<T>>(x) * static_cast<wrapping_t<T>>(y));
    } else {
      return x * y;
    }
  }
};

struct Div {
  template <class T>
  KOKKOS_INLINE_FUNCTION T operator()(const T& x, const T& y) const {
    return x / y;
  }
};

struct Neg {
  template <class T>
  KOKKOS_INLINE_FUNCTION T operator()(const T& x) const {
    if constexpr (is_integer<T>) {
      return static_cast<T>(wrapping_t<T>{0} - static_cast<wrapping_t<T>>(x));
    } else {
      return -x;
    }
  }
};

struct Sqrt {
  KOKKOS_INLINE_FUNCTION double operator()(const double& x) const { return ::sqrt(x); }
  KOKKOS_INLINE_FUNCTION float operator()(const float& x) const { return ::sqrtf(x); }
  template <class R>
  KOKKOS_INLINE_FUNCTION Kokkos::complex<R> operator()(const Kokkos::complex<R>& x) const {
    return Kokkos::sqrt(x);
  }
};

// A tensor's elements, or one number for all.
template <class T>
struct Source {
  const T* data;  // null for a number
  accumulate_t<T> number;

  KOKKOS_INLINE_FUNCTION accumulate_t<T> operator()(std::int64_t i) const {
    return data ? scalar_cast<accumulate_t<T>>(data[i]) : number;
  }
};

template <class T, class Op>
struct BinaryRow {
  T* out;
  Source<T> a, b;
  Op op;

  KOKKOS_INLINE_FUNCTION void operator()(const PerOperand<3>& offset, std::int64_t count,
                                         const PerOperand<3>& stride) const {
    using A = accumulate_t<T>;
    T* KOKKOS_RESTRICT o = out + offset[0];
    const T* x = a.data + offset[1];
    const T* y = b.data + offset[2];
    const bool dense = stride[0] == 1;
    // The plain loops are what compilers turn into vector code.
    if (dense && stride[1] == 1 && stride[2] == 1) {
      for (std::int64_t i = 0; i < count; ++i) {
        o[i] = scalar_cast<T>(op(scalar_cast<A>(x[i]), scalar_cast<A>(y[i])));
      }
    } else if (dense && stride[1] == 1 && stride[2] == 0) {
      const A value = b(offset[2]);
      for (std::int64_t i = 0; i < count; ++i) {
        o[i] = scalar_cast<T>(op(scalar_cast<A>(x[i]), value));
      }
    } else if (dense && stride[1] == 0 && stride[2] == 1) {
      const A value = a(offset[1]);
      for (std::int64_t i = 0; i < count; ++i) {
        o[i] = scalar_cast<T>(op(value, scalar_cast<A>(y[i])));
      }
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        o[i * stride[0]] =
            scalar_cast<T>(op(a(offset[1] + i * stride[1]), b(offset[2] + i * stride[2])));
      }
    }
  }
};

template <class T, class Op>
struct UnaryRow {
  T* out;
  const T* a;
  Op op;

  KOKKOS_INLINE_FUNCTION void operator()(const PerOperand<2>& offset, std::int64_t count,
                                         const PerOperand<2>& stride) const {
    using A = accumulate_t<T>;
    T* KOKKOS_RESTRICT o = out + offset[0];
    const T* x = a + offset[1];
    if (stride[0] == 1 && stride[1] == 1) {
      for (std::int64_t i = 0; i < count; ++i) o[i] = scalar_cast<T>(op(scalar_cast<A>(x[i])));
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        o[i * stride[0]] = scalar_cast<T>(op(scalar_cast<A>(x[i * stride[1]])));
      }
    }
  }
};

// The two sides of an operator: tensors, or one tensor and a number.
struct Operand {
  std::optional<Tensor> tensor;
  Scalar number = 0;

  Operand(const Tensor& t) : tensor(t) {}
  Operand(const Scalar& s) : number(s) {}
};

Shape broadcast_shape(const char* function, const Operand& a, const Operand& b) {
  if (!a.tensor) return b.tensor->shape();
  if (!b.tensor) return a.tensor->shape();
  const Shape& x = a.tensor->shape();
  const Shape& y = b.tensor->shape();
  Shape shape = x.size() > y.size() ? x : y;
  const Shape& shorter = x.size() > y.size() ? y : x;
  const int shift = shape.size() - shorter.size();
  for (int d = 0; d < shorter.size(); ++d) {
    std::int64_t& extent = shape[d + shift];
    if (extent == 1) {
      extent = shorter[d];
    } else if (extent != shorter[d] && shorter[d] != 1) {
      throw ValueError(function, fmt::format("shapes {} and {}", to_string(x), to_string(y)),
                       "equal extents, or 1, aligned from the last dimension");
    }
  }
  return shape;
}

// Strides with which an operand is read for a result of `shape`; 0 where it is broadcast.
Extents broadcast_strides(const Operand& operand, const Shape& shape) {
  Extents strides = Extents::filled(shape.size(), 0);
  if (!operand.tensor) return strides;
  const int shift = shape.size() - operand.tensor->dim();
  for (int d = shift; d < shape.size(); ++d) {
    if (operand.tensor->shape()[d - shift] != 1) strides[d] = operand.tensor->strides()[d - shift];
  }
  return strides;
}

// The type to compute in, from the type of each tensor after `convert`.
DType operand_dtype(
    const char* function, const Operand& a, const Operand& b,
    DType (*convert)(DType) = [](DType dtype) { return dtype; }) {
  if (!a.tensor) return common_dtype(function, convert(b.tensor->dtype()), a.number);
  if (!b.tensor) return common_dtype(function, convert(a.tensor->dtype()), b.number);
  check_same_memory(function, *a.tensor, *b.tensor);
  return convert(common_dtype(function, a.tensor->dtype(), b.tensor->dtype()));
}

template <class T>
Source<T> source(const Operand& operand) {
  if (operand.tensor) return {static_cast<const T*>(operand.tensor->data()), accumulate_t<T>()};
  return {nullptr, operand.number.to<accumulate_t<T>>()};
}

// Which scalar types an operator is compiled for.
template <class Op, class T>
inline constexpr bool takes = std::is_same_v<Op, Add> || std::is_same_v<Op, Mul> ||
                              ((std::is_same_v<Op, Sub> ||
                                std::is_same_v<Op, Neg>)&&!std::is_same_v<T, bool>) ||
                              !std::is_integral_v<T>;

template <class Op>
Tensor binary(const char* function, Operand a, Operand b, DType dtype) {
  const Shape shape = broadcast_shape(function, a, b);
  for (Operand* operand : {&a, &b}) {
    if (operand->tensor) operand->tensor = operand->tensor->to(dtype);
  }
  const DeviceKind device = (a.tensor ? a : b).tensor->device();
  Tensor out = Tensor::empty(shape, dtype, device);
  const auto loop = make_loop<3>(
      shape, {out.strides(), broadcast_strides(a, shape), broadcast_strides(b, shape)});
  dispatch_dtype(dtype, [&]<class T>() {
    if constexpr (takes<Op, T>) {
      const BinaryRow<T, Op> row{static_cast<T*>(out.data()), source<T>(a), source<T>(b), Op{}};
      dispatch_space(device, [&]<class Execution>() {
        for_each_row<Execution>("dtensor::binary", loop, row);
      });
    }
  });
  return out;
}

template <class Op>
Tensor unary(const Tensor& a, DType dtype) {
  const Tensor in = a.to(dtype);
  Tensor out = Tensor::empty(in.shape(), dtype, in.device());
  const auto loop = make_loop<2>(in.shape(), {out.strides(), in.strides()});
  dispatch_dtype(dtype, [&]<class T>() {
    if constexpr (takes<Op, T>) {
      const UnaryRow<T, Op> row{static_cast<T*>(out.data()), static_cast<const T*>(in.data()),
                                Op{}};
      dispatch_space(in.device(), [&]<class Execution>() {
        for_each_row<Execution>("dtensor::unary", loop, row);
      });
    }
  });
  return out;
}

Tensor subtract(const Operand& a, const Operand& b) {
  const DType dtype = operand_dtype("sub", a, b);
  refuse_bool("sub", dtype);
  return binary<Sub>("sub", a, b, dtype);
}

Tensor divide(const Operand& a, const Operand& b) {
  return binary<Div>("div", a, b, operand_dtype("div", a, b, fractional_dtype));
}

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) {
  return binary<Add>("add", a, b, operand_dtype("add", a, b));
}
Tensor add(const Tensor& a, const Scalar& b) {
  return binary<Add>("add", a, b, operand_dtype("add", a, b));
}
Tensor sub(const Tensor& a, const Tensor& b) { return subtract(a, b); }
Tensor sub(const Tensor& a, const Scalar& b) { return subtract(a, b); }
Tensor sub(const Scalar& a, const Tensor& b) { return subtract(a, b); }
Tensor mul(const Tensor& a, const Tensor& b) {
  return binary<Mul>("mul", a, b, operand_dtype("mul", a, b));
}
Tensor mul(const Tensor& a, const Scalar& b) {
  return binary<Mul>("mul", a, b, operand_dtype("mul", a, b));
}
Tensor div(const Tensor& a, const Tensor& b) { return divide(a, b); }
Tensor div(const Tensor& a, const Scalar& b) { return divide(a, b); }
Tensor div(const Scalar& a, const Tensor& b) { return divide(a, b); }

Tensor sqrt(const Tensor& a) { return unary<Sqrt>(a, fractional_dtype(a.dtype())); }
Tensor neg(const Tensor& a) {
  refuse_bool("neg", a.dtype());
  return unary<Neg>(a, a.dtype());
}

}  // namespace dtensor
