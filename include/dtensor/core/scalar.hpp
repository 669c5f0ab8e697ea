// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// One number of any scalar type, as an argument of functions that take a tensor of dynamic type.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <type_traits>

#include "dtensor/core/dtype.hpp"
#include "dtensor/core/scalar_types.hpp"

namespace dtensor {

/// A boolean, 64-bit integer, double or complex number. Implicit from every arithmetic type; an
/// unsigned number beyond the range of int64 becomes a double.
class Scalar {
 public:
  enum class Kind { boolean, integer, floating, complex };

  Scalar(bool value) : kind_(Kind::boolean), integer_(value) {}
  template <class T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool>, int> = 0>
  Scalar(T value) : kind_(Kind::integer), integer_(static_cast<std::int64_t>(value)) {
    // Above the range of int64 only a double can hold it.
    if (std::is_unsigned_v<T> && integer_ < 0) {
      kind_ = Kind::floating;
      real_ = static_cast<double>(value);
    }
  }
  template <class T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0>
  Scalar(T value) : kind_(Kind::floating), real_(static_cast<double>(value)) {}
  Scalar(float16 value) : Scalar(static_cast<float>(value)) {}
  Scalar(bfloat16 value) : Scalar(static_cast<float>(value)) {}
  template <class R>
  Scalar(std::complex<R> value) : kind_(Kind::complex), real_(value.real()), imag_(value.imag()) {}
  template <class R>
  Scalar(Kokkos::complex<R> value)
      : kind_(Kind::complex), real_(value.real()), imag_(value.imag()) {}

  Kind kind() const noexcept { return kind_; }

  /// The value as `T`, converted as C++ converts; complex to real keeps the real part.
  template <class T>
  T to() const {
    switch (kind_) {
      case Kind::boolean:
        return scalar_cast<T>(integer_ != 0);
      case Kind::integer:
        return scalar_cast<T>(integer_);
      case Kind::floating:
        return scalar_cast<T>(real_);
      case Kind::complex:
        break;
    }
    return scalar_cast<T>(Kokkos::complex<double>(real_, imag_));
  }

 private:
  Kind kind_;
  std::int64_t integer_ = 0;
  double real_ = 0, imag_ = 0;
};

std::string to_string(const Scalar& scalar);

/// Whether elements of the type can be the number, but for a fraction and rounding: an integer in
/// its range, nothing but real numbers for real types, no infinity or NaN for integers. Bool takes
/// all.
bool holds(DType dtype, const Scalar& number) noexcept;
/// Throws `ValueError` naming `function` unless it holds the number.
void check_holds(const char* function, DType dtype, const Scalar& number);

}  // namespace dtensor
