// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/core/scalar.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "dtensor/core/error.hpp"

namespace dtensor {

std::string to_string(const Scalar& scalar) {
  switch (scalar.kind()) {
    case Scalar::Kind::boolean:
      return scalar.to<bool>() ? "true" : "false";
    case Scalar::Kind::integer:
      return fmt::format("{}", scalar.to<std::int64_t>());
    case Scalar::Kind::floating:
      return fmt::format("{}", scalar.to<double>());
    case Scalar::Kind::complex:
      break;
  }
  const auto z = scalar.to<Kokkos::complex<double>>();
  return fmt::format("({}{:+}i)", z.real(), z.imag());
}

bool holds(DType dtype, const Scalar& number) noexcept {
  if (is_complex(dtype) || dtype == DType::boolean) return true;
  if (number.kind() == Scalar::Kind::complex) {
    const auto z = number.to<Kokkos::complex<double>>();
    return z.imag() == 0 && holds(dtype, z.real());
  }
  if (is_floating(dtype)) return true;
  return dispatch_dtype(dtype, [&]<class T>() {
    if constexpr (!std::is_integral_v<T>) {
      return true;
    } else if (number.kind() == Scalar::Kind::floating) {
      // 2^(digits), which a double holds, is the first number beyond the range.
      const double value = std::trunc(number.to<double>());
      const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
      return value < end && value >= (std::is_signed_v<T> ? -end : 0.0);
    } else {
      const auto value = number.to<std::int64_t>();
      return static_cast<std::int64_t>(static_cast<T>(value)) == value;
    }
  });
}

void check_holds(const char* function, DType dtype, const Scalar& number) {
  if (holds(dtype, number)) return;
  throw ValueError(function,
                   fmt::format("{} with a tensor of {}", to_string(number), to_string(dtype)),
                   "a number that the tensor's scalar type can hold");
}

}  // namespace dtensor
