// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The twelve scalar types a tensor can hold.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace dtensor {

/// Scalar type of a tensor. Values are stable: they are written to checkpoints.
enum class DType : std::uint8_t {
  float64 = 0,
  float32 = 1,
  float16 = 2,
  bfloat16 = 3,
  complex128 = 4,
  complex64 = 5,
  int64 = 6,
  int32 = 7,
  int16 = 8,
  int8 = 9,
  uint8 = 10,
  boolean = 11,
};

inline constexpr int dtype_count = 12;

/// Size of one element in bytes.
constexpr std::int64_t size_of(DType dtype) noexcept {
  constexpr std::int64_t sizes[dtype_count] = {8, 4, 2, 2, 16, 8, 8, 4, 2, 1, 1, 1};
  return sizes[static_cast<int>(dtype)];
}

constexpr bool is_floating(DType dtype) noexcept { return dtype <= DType::bfloat16; }
constexpr bool is_complex(DType dtype) noexcept {
  return dtype == DType::complex128 || dtype == DType::complex64;
}
/// Signed and unsigned integers; not boolean.
constexpr bool is_integral(DType dtype) noexcept {
  return dtype >= DType::int64 && dtype <= DType::uint8;
}

/// "float64", "bool", ...
const char* to_string(DType dtype) noexcept;

/// The type with the given name. Throws `ValueError` for any other name.
DType dtype_from_string(const std::string& name);

}  // namespace dtensor
