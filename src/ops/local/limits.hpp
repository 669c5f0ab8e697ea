// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Limits of scalar types as constants. Kernels take these: device code cannot call the functions
/// of `std::numeric_limits`.
#pragma once

#include <limits>

namespace dtensor::limits {

template <class T>
inline constexpr T infinity = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr T not_a_number = std::numeric_limits<T>::quiet_NaN();
template <class T>
inline constexpr T highest = std::numeric_limits<T>::max();
template <class T>
inline constexpr T lowest = std::numeric_limits<T>::lowest();
/// The smallest positive number that is not subnormal.
template <class T>
inline constexpr T smallest_normal = std::numeric_limits<T>::min();

}  // namespace dtensor::limits
