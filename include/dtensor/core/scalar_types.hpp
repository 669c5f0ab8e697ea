// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Which C++ type stands for which `DType`, and calling typed code for a dynamic one.
#pragma once

#include <Kokkos_Complex.hpp>
#include <Kokkos_Core.hpp>
#include <complex>
#include <type_traits>

#include "dtensor/core/dtype.hpp"
#include "dtensor/core/half.hpp"

namespace dtensor {

namespace detail {
template <DType Type>
struct TypeOf;
template <class T>
struct DTypeOf;
#define DTENSOR_SCALAR(cpp_type, name)          \
  template <>                                   \
  struct TypeOf<DType::name> {                  \
    using type = cpp_type;                      \
  };                                            \
  template <>                                   \
  struct DTypeOf<cpp_type> {                    \
    static constexpr DType value = DType::name; \
  };
DTENSOR_SCALAR(double, float64)
DTENSOR_SCALAR(float, float32)
DTENSOR_SCALAR(::dtensor::float16, float16)
DTENSOR_SCALAR(::dtensor::bfloat16, bfloat16)
DTENSOR_SCALAR(Kokkos::complex<double>, complex128)
DTENSOR_SCALAR(Kokkos::complex<float>, complex64)
DTENSOR_SCALAR(std::int64_t, int64)
DTENSOR_SCALAR(std::int32_t, int32)
DTENSOR_SCALAR(std::int16_t, int16)
DTENSOR_SCALAR(std::int8_t, int8)
DTENSOR_SCALAR(std::uint8_t, uint8)
DTENSOR_SCALAR(bool, boolean)
#undef DTENSOR_SCALAR
// Other names for the same representation.
template <>
struct DTypeOf<long long> : DTypeOf<std::int64_t> {
  static_assert(sizeof(long long) == 8);
};
template <>
struct DTypeOf<std::complex<double>> : DTypeOf<Kokkos::complex<double>> {};
template <>
struct DTypeOf<std::complex<float>> : DTypeOf<Kokkos::complex<float>> {};
}  // namespace detail

/// The C++ type of a `DType`.
template <DType Type>
using scalar_t = typename detail::TypeOf<Type>::type;

/// The `DType` of a C++ type; const does not matter.
template <class T>
inline constexpr DType dtype_of = detail::DTypeOf<std::remove_cv_t<T>>::value;

/// Whether `T` is one of the two complex types.
template <class T>
inline constexpr bool is_complex_scalar =
    std::is_same_v<T, Kokkos::complex<double>> || std::is_same_v<T, Kokkos::complex<float>>;

/// The type to accumulate in: float for the 16-bit types, the type itself otherwise.
template <class T>
using accumulate_t =
    std::conditional_t<std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>, float, T>;

/// Calls `f.template operator()<T>()` with the C++ type of `dtype` and returns its result.
template <class F>
decltype(auto) dispatch_dtype(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float64:
      return f.template operator()<double>();
    case DType::float32:
      return f.template operator()<float>();
    case DType::float16:
      return f.template operator()<float16>();
    case DType::bfloat16:
      return f.template operator()<bfloat16>();
    case DType::complex128:
      return f.template operator()<Kokkos::complex<double>>();
    case DType::complex64:
      return f.template operator()<Kokkos::complex<float>>();
    case DType::int64:
      return f.template operator()<std::int64_t>();
    case DType::int32:
      return f.template operator()<std::int32_t>();
    case DType::int16:
      return f.template operator()<std::int16_t>();
    case DType::int8:
      return f.template operator()<std::int8_t>();
    case DType::uint8:
      return f.template operator()<std::uint8_t>();
    case DType::boolean:
      break;
  }
  return f.template operator()<bool>();
}

/// Value conversion between any two scalar types. Complex to real keeps the real part; anything
/// to bool is "not zero".
template <class To, class From>
KOKKOS_INLINE_FUNCTION To scalar_cast(const From& from) {
  constexpr bool from_complex = is_complex_scalar<From>;
  constexpr bool to_complex = is_complex_scalar<To>;
  constexpr bool from_half = std::is_same_v<From, float16> || std::is_same_v<From, bfloat16>;
  constexpr bool to_half = std::is_same_v<To, float16> || std::is_same_v<To, bfloat16>;
  if constexpr (std::is_same_v<To, From>) {
    return from;
  } else if constexpr (from_complex && to_complex) {
    using Real = typename To::value_type;
    return To(static_cast<Real>(from.real()), static_cast<Real>(from.imag()));
  } else if constexpr (from_complex && std::is_same_v<To, bool>) {
    return from.real() != 0 || from.imag() != 0;
  } else if constexpr (from_complex) {
    return scalar_cast<To>(from.real());
  } else if constexpr (from_half) {
    return scalar_cast<To>(static_cast<float>(from));
  } else if constexpr (to_complex) {
    return To(static_cast<typename To::value_type>(from));
  } else if constexpr (to_half && std::is_same_v<From, double>) {
    return To(detail::round_to_odd(from));
  } else if constexpr (to_half) {
    return To(static_cast<float>(from));
  } else if constexpr (std::is_same_v<To, bool>) {
    return from != From(0);
  } else {
    return static_cast<To>(from);
  }
}

}  // namespace dtensor
