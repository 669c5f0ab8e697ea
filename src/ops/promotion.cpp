// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/promotion.hpp"

#include <fmt/format.h>

#include "dtensor/core/error.hpp"

namespace dtensor {

namespace {

Scalar::Kind kind_of(DType dtype) noexcept {
  if (is_complex(dtype)) return Scalar::Kind::complex;
  if (is_floating(dtype)) return Scalar::Kind::floating;
  return is_integral(dtype) ? Scalar::Kind::integer : Scalar::Kind::boolean;
}

}  // namespace

DType promoted_dtype(DType a, DType b) noexcept {
  if (a == b) return a;
  if (kind_of(a) < kind_of(b)) std::swap(a, b);
  if (kind_of(a) > kind_of(b)) {
    // Complex numbers take the precision of the parts.
    return a == DType::complex64 && b == DType::float64 ? DType::complex128 : a;
  }
  if (size_of(a) != size_of(b)) return size_of(a) > size_of(b) ? a : b;
  // Two types of one size hold different values.
  return is_floating(a) ? DType::float32 : DType::int16;
}

DType dtype_of_number(const Scalar& number) noexcept {
  switch (number.kind()) {
    case Scalar::Kind::boolean:
      return DType::boolean;
    case Scalar::Kind::integer:
      return DType::int64;
    case Scalar::Kind::floating:
      return DType::float64;
    case Scalar::Kind::complex:
      break;
  }
  return DType::complex128;
}

void check_same_dtype(const char* function, DType a, DType b) {
  if (a == b) return;
  throw TypeError(function, fmt::format("tensors of {} and {}", to_string(a), to_string(b)),
                  "tensors of one scalar type; convert one of them first");
}

DType common_dtype(const char* function, DType a, DType b) {
  check_same_dtype(function, a, b);
  return a;
}

DType common_dtype(const char* function, DType tensor, const Scalar& number) {
  if (number.kind() > kind_of(tensor)) {
    if (number.kind() != Scalar::Kind::complex) return dtype_of_number(number);
    return is_floating(tensor) && tensor != DType::float64 ? DType::complex64 : DType::complex128;
  }
  if (is_integral(tensor) && number.kind() == Scalar::Kind::integer) {
    check_holds(function, tensor, number);
  }
  return tensor;
}

PartialPasses unless_converted(DType from, DType to, PartialPasses passes) {
  const bool exact = from == to || is_floating(from) || is_complex(from);
  return exact ? std::move(passes) : not_linear();
}

void refuse_bool(const char* function, DType dtype) {
  if (dtype == DType::boolean) {
    throw TypeError(function, "a tensor of bool", "numbers; convert the tensor first");
  }
}

void check_same_memory(const char* function, const Tensor& a, const Tensor& b) {
  if (a.device() == b.device()) return;
  throw TypeError(
      function,
      fmt::format("tensors in {} and {} memory", to_string(a.device()), to_string(b.device())),
      "tensors in the same memory; to(device) moves one");
}

}  // namespace dtensor
