// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Uniform, normal and exponential numbers.
#include <fmt/format.h>

#include <cmath>

#include "draw.hpp"
#include "dtensor/core/error.hpp"

namespace dtensor {

namespace {

template <class T>
struct RealOf {
  using type = accumulate_t<T>;
};
template <class R>
struct RealOf<Kokkos::complex<R>> {
  using type = R;
};
/// What the parts of a number are computed in.
template <class T>
using real_t = typename RealOf<T>::type;

/// The type of the parts of a number.
template <class T>
using part_t = std::conditional_t<is_complex_scalar<T>, real_t<T>, T>;

template <class T>
inline constexpr int parts = is_complex_scalar<T> ? 2 : 1;
/// Numbers of the type that one block makes: a word for each part of up to 32 bits, else two.
template <class T>
inline constexpr int numbers_per_block = 4 / parts<T> / static_cast<int>(sizeof(real_t<T>) / 4);

/// Bounds of the parts of a uniform number; `last` is the highest below `high`.
template <class T>
struct Bounds {
  part_t<T> low, high, last;
  real_t<T> range;
};

template <class P, class R>
KOKKOS_INLINE_FUNCTION P between(const Bounds<P>& b, R unit) {
  const P value = P(static_cast<R>(b.low) + detail::product(unit, b.range));
  // Rounding may have led to the upper bound.
  return static_cast<R>(value) < static_cast<R>(b.high) ? value : b.last;
}

KOKKOS_INLINE_FUNCTION float unit(const PhiloxBlock& b, int i, float) {
  return detail::unit_float(b.word[i]);
}
KOKKOS_INLINE_FUNCTION double unit(const PhiloxBlock& b, int i, double) {
  return detail::unit_double(b.word[2 * i], b.word[2 * i + 1]);
}
KOKKOS_INLINE_FUNCTION float unit(const PhiloxBlock& b, int i, float16) {
  return detail::unit_float16(b.word[i]);
}
KOKKOS_INLINE_FUNCTION float unit(const PhiloxBlock& b, int i, bfloat16) {
  return detail::unit_bfloat16(b.word[i]);
}

template <class T>
struct Uniform {
  using Value = T;
  static constexpr int per_block = numbers_per_block<T>;
  Bounds<part_t<T>> first, second;  // of the real and the imaginary part

  KOKKOS_INLINE_FUNCTION void operator()(const PhiloxBlock& block, T* values) const {
    using P = part_t<T>;
    for (int i = 0; i < per_block; ++i) {
      if constexpr (is_complex_scalar<T>) {
        values[i] = T(between(first, unit(block, 2 * i, P())),
                      between(second, unit(block, 2 * i + 1, P())));
      } else {
        values[i] = between(first, unit(block, i, P()));
      }
    }
  }
};

template <class T>
struct Normal {
  using Value = T;
  static constexpr int per_block = numbers_per_block<T>;
  real_t<T> mean, imaginary_mean, std;

  KOKKOS_INLINE_FUNCTION void operator()(const PhiloxBlock& block, T* values) const {
    using R = real_t<T>;
    R parts_of_all[4];
    if constexpr (sizeof(R) == 4) {
      for (int i = 0; i < 2; ++i) {
        const auto pair = detail::normal_pair(block.word[2 * i], block.word[2 * i + 1]);
        parts_of_all[2 * i] = pair.first;
        parts_of_all[2 * i + 1] = pair.second;
      }
    } else {
      const auto pair =
          detail::normal_pair(block.word[0], block.word[1], block.word[2], block.word[3]);
      parts_of_all[0] = pair.first;
      parts_of_all[1] = pair.second;
    }
    for (int i = 0; i < per_block; ++i) {
      if constexpr (is_complex_scalar<T>) {
        values[i] = T(mean + detail::product(std, parts_of_all[2 * i]),
                      imaginary_mean + detail::product(std, parts_of_all[2 * i + 1]));
      } else {
        values[i] = scalar_cast<T>(mean + detail::product(std, parts_of_all[i]));
      }
    }
  }
};

template <class T>
struct Exponential {
  using Value = T;
  static constexpr int per_block = numbers_per_block<T>;
  real_t<T> rate;

  KOKKOS_INLINE_FUNCTION void operator()(const PhiloxBlock& block, T* values) const {
    for (int i = 0; i < per_block; ++i) {
      if constexpr (sizeof(real_t<T>) == 4) {
        values[i] = scalar_cast<T>(detail::quotient(detail::minus_log_unit(block.word[i]), rate));
      } else {
        values[i] = detail::quotient(
            detail::minus_log_unit(block.word[2 * i], block.word[2 * i + 1]), rate);
      }
    }
  }
};

/// The highest number of the type below a finite one.
template <class P>
P below(P value) {
  if constexpr (std::is_same_v<P, float> || std::is_same_v<P, double>) {
    return std::nextafter(value, -std::numeric_limits<P>::infinity());
  } else {
    P result = value;
    const bool zero = (value.bits & 0x7fffu) == 0, negative = (value.bits & 0x8000u) != 0;
    result.bits = static_cast<std::uint16_t>(zero       ? 0x8001u
                                             : negative ? value.bits + 1u
                                                        : value.bits - 1u);
    return result;
  }
}

template <class P>
Bounds<P> bounds(const char* function, double low, double high) {
  using R = real_t<P>;
  Bounds<P> b{scalar_cast<P>(low), scalar_cast<P>(high), {}, {}};
  b.range = static_cast<R>(b.high) - static_cast<R>(b.low);
  if (!(low <= high) || !std::isfinite(b.range)) {
    throw ValueError(function,
                     fmt::format("bounds {} and {} for {}", low, high, to_string(dtype_of<P>)),
                     "bounds whose difference is a finite number that is not negative");
  }
  b.last = static_cast<R>(b.low) < static_cast<R>(b.high) ? below(b.high) : b.low;
  return b;
}

template <class T>
inline constexpr bool fractional = !std::is_integral_v<T>;

template <class F>
void for_fractional(DType dtype, const F& f) {
  dispatch_dtype(dtype, [&]<class T>() {
    if constexpr (fractional<T>) f.template operator()<T>();
  });
}

// Throws unless the parts of the argument are finite numbers of the tensor's type, and it is real
// where that is.
void require_fits(const char* function, const char* argument, const Scalar& value, DType dtype) {
  const auto number = value.to<Kokkos::complex<double>>();
  for_fractional(dtype, [&]<class T>() {
    const auto is_finite = [](double part) {
      return std::isfinite(static_cast<double>(scalar_cast<part_t<T>>(part)));
    };
    const bool fits = is_complex_scalar<T> || value.kind() != Scalar::Kind::complex;
    if (fits && is_finite(number.real()) && is_finite(number.imag())) return;
    throw ValueError(function,
                     fmt::format("a {} of {} for {}", argument, to_string(value), to_string(dtype)),
                     fmt::format("a finite {} number that the type holds",
                                 is_complex_scalar<T> ? "real or complex" : "real"));
  });
}

}  // namespace

void require_fractional(const char* function, DType dtype, bool complex_too) {
  if (is_floating(dtype) || (complex_too && is_complex(dtype))) return;
  throw TypeError(
      function, to_string(dtype),
      complex_too ? "a floating-point or complex scalar type" : "a floating-point scalar type");
}

namespace detail {

void uniform(const char* function, const Part& out, const Scalar& low, const Scalar& high,
             Generator& generator) {
  const DType dtype = out.local.dtype();
  require_fractional(function, dtype, true);
  require_fits(function, "bound", low, dtype);
  require_fits(function, "bound", high, dtype);
  const auto from = low.to<Kokkos::complex<double>>(), to = high.to<Kokkos::complex<double>>();
  // Real bounds hold for both parts.
  const bool real = low.kind() != Scalar::Kind::complex && high.kind() != Scalar::Kind::complex;
  for_fractional(dtype, [&]<class T>() {
    using P = part_t<T>;
    const auto first = bounds<P>(function, from.real(), to.real());
    const Uniform<T> distribution{first,
                                  real ? first : bounds<P>(function, from.imag(), to.imag())};
    const RandomBlocks blocks = generator.take(function);
    write_contiguous(function, out, [&](const Part& part) {
      draw("dtensor::uniform", part, blocks, distribution,
           Store<T>{static_cast<T*>(part.local.data())});
    });
  });
}

void normal(const char* function, const Part& out, const Scalar& mean, double std,
            Generator& generator) {
  const DType dtype = out.local.dtype();
  require_fractional(function, dtype, true);
  require_fits(function, "mean", mean, dtype);
  require_fits(function, "standard deviation", std, dtype);
  if (std < 0) {
    throw ValueError(function, fmt::format("a standard deviation of {}", std),
                     "one that is not negative");
  }
  const RandomBlocks blocks = generator.take(function);
  const auto center = mean.to<Kokkos::complex<double>>();
  write_contiguous(function, out, [&](const Part& part) {
    for_fractional(dtype, [&]<class T>() {
      using R = real_t<T>;
      const double share = is_complex_scalar<T> ? 0.70710678118654752 : 1.0;
      const Normal<T> distribution{static_cast<R>(center.real()), static_cast<R>(center.imag()),
                                   static_cast<R>(std * share)};
      draw("dtensor::normal", part, blocks, distribution,
           Store<T>{static_cast<T*>(part.local.data())});
    });
  });
}

void exponential(const Part& out, double rate, Generator& generator) {
  const DType dtype = out.local.dtype();
  require_fractional("exponential_", dtype, false);
  require_fits("exponential_", "rate", rate, dtype);
  for_fractional(dtype, [&]<class T>() {
    // With a mean beyond the type's numbers most values would be infinite.
    if (rate > 0 && std::isfinite(static_cast<double>(scalar_cast<part_t<T>>(1 / rate)))) return;
    throw ValueError("exponential_", fmt::format("a rate of {} for {}", rate, to_string(dtype)),
                     "a positive rate whose inverse is a finite number of the type");
  });
  const RandomBlocks blocks = generator.take("exponential_");
  write_contiguous("exponential_", out, [&](const Part& part) {
    for_fractional(dtype, [&]<class T>() {
      if constexpr (!is_complex_scalar<T>) {
        draw("dtensor::exponential", part, blocks, Exponential<T>{static_cast<real_t<T>>(rate)},
             Store<T>{static_cast<T*>(part.local.data())});
      }
    });
  });
}

}  // namespace detail

}  // namespace dtensor
