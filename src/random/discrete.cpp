// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bernoulli numbers, dropout and integers of a range.
#include <fmt/format.h>

#include "draw.hpp"
#include "dtensor/core/error.hpp"
#include "wide_product.hpp"

namespace dtensor {

namespace {

/// Whether an event of probability `p` happens for a word.
KOKKOS_INLINE_FUNCTION bool happens(std::uint32_t word, double p) {
  return static_cast<double>(word) < p * 4294967296.0;
}

template <class T>
struct Flip {
  T* out;
  double p;
  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::uint32_t word) const {
    out[i] = happens(word, p) ? scalar_cast<T>(1) : scalar_cast<T>(0);
  }
};

template <class T>
struct FlipEach {
  T* out;
  const T* p;
  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::uint32_t word) const {
    out[i] = scalar_cast<T>(happens(word, scalar_cast<double>(p[i])) ? 1 : 0);
  }
};

template <class T>
struct RealOf {
  using type = T;
};
template <class R>
struct RealOf<Kokkos::complex<R>> {
  using type = R;
};
template <class T>
using real_t = typename RealOf<T>::type;

template <class T>
struct Drop {
  T* out;
  const T* in;
  double p;
  real_t<accumulate_t<T>> scale;
  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::uint32_t word) const {
    if (happens(word, p)) {
      out[i] = scalar_cast<T>(0);
    } else if constexpr (is_complex_scalar<T>) {
      // A product of complex numbers would make a NaN of an infinite part.
      out[i] = T(in[i].real() * scale, in[i].imag() * scale);
    } else {
      out[i] = scalar_cast<T>(scalar_cast<accumulate_t<T>>(in[i]) * scale);
    }
  }
};

/// A word of 64 bits for ranges of up to 32: no number is likelier than another by more than one
/// part in 2^32. For wider ranges all 128 bits, and one part in 2^64.
struct Narrow {
  using Value = std::uint64_t;
  static constexpr int per_block = 2;
  std::uint64_t range;
  KOKKOS_INLINE_FUNCTION void operator()(const PhiloxBlock& b, Value* values) const {
    for (int i = 0; i < 2; ++i) {
      // The upper half of a 96-bit product.
      const std::uint64_t low = b.word[2 * i] * range;
      values[i] = (b.word[2 * i + 1] * range + (low >> 32)) >> 32;
    }
  }
};
struct Wide {
  using Value = std::uint64_t;
  static constexpr int per_block = 1;
  std::uint64_t range;
  KOKKOS_INLINE_FUNCTION void operator()(const PhiloxBlock& b, Value* values) const {
    const auto join = [](std::uint32_t low, std::uint32_t high) {
      return low | static_cast<std::uint64_t>(high) << 32;
    };
    const std::uint64_t low = upper_product(join(b.word[0], b.word[1]), range);
    const std::uint64_t high = join(b.word[2], b.word[3]);
    // high * range + low, of which the upper half is wanted
    const std::uint64_t middle = high * range;
    values[0] = upper_product(high, range) + (middle + low < middle ? 1 : 0);
  }
};

template <class T>
struct StoreFrom {
  T* out;
  std::uint64_t first;
  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, std::uint64_t value) const {
    out[i] = static_cast<T>(static_cast<std::int64_t>(first + value));
  }
};

template <class T>
bool holds(std::int64_t value) {
  return static_cast<std::int64_t>(static_cast<T>(value)) == value;
}

template <class F>
void for_integral(DType dtype, const F& f) {
  dispatch_dtype(dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) f.template operator()<T>();
  });
}

}  // namespace

void require_probability(const char* function, double p) {
  if (p >= 0 && p <= 1) return;
  throw ValueError(function, fmt::format("a probability of {}", p), "one from 0 to 1");
}

void require_holds(const char* function, DType dtype, std::int64_t lowest, std::int64_t highest) {
  if (!is_integral(dtype)) throw TypeError(function, to_string(dtype), "an integer scalar type");
  for_integral(dtype, [&]<class T>() {
    if (holds<T>(lowest) && holds<T>(highest)) return;
    throw ValueError(function,
                     fmt::format("integers from {} to {} as {}", lowest, highest, to_string(dtype)),
                     "a scalar type that holds them");
  });
}

namespace detail {

void bernoulli(const Part& out, double p, Generator& generator) {
  require_probability("bernoulli_", p);
  const RandomBlocks blocks = generator.take("bernoulli_");
  write_contiguous("bernoulli_", out, [&](const Part& part) {
    dispatch_dtype(part.local.dtype(), [&]<class T>() {
      draw("dtensor::bernoulli", part, blocks, Words{},
           Flip<T>{static_cast<T*>(part.local.data()), p});
    });
  });
}

void bernoulli(const Part& out, const Part& probabilities, Generator& generator) {
  require_fractional("bernoulli", out.local.dtype(), false);
  const RandomBlocks blocks = generator.take("bernoulli");
  const Tensor p = probabilities.local.contiguous();
  dispatch_dtype(out.local.dtype(), [&]<class T>() {
    if constexpr (!std::is_integral_v<T> && !is_complex_scalar<T>) {
      draw("dtensor::bernoulli", out, blocks, Words{},
           FlipEach<T>{static_cast<T*>(out.local.data()), static_cast<const T*>(p.data())});
    }
  });
}

void require_dropout(const Part& in, double p) {
  require_fractional("dropout", in.local.dtype(), true);
  require_probability("dropout", p);
}

void dropout(const Part& out, const Part& in, double p, Generator& generator) {
  const RandomBlocks blocks = generator.take("dropout");
  const Tensor x = in.local.contiguous();
  dispatch_dtype(out.local.dtype(), [&]<class T>() {
    if constexpr (!std::is_integral_v<T>) {
      const auto scale = static_cast<real_t<accumulate_t<T>>>(p < 1 ? 1 / (1 - p) : 0.0);
      draw("dtensor::dropout", out, blocks, Words{},
           Drop<T>{static_cast<T*>(out.local.data()), static_cast<const T*>(x.data()), p, scale});
    }
  });
}

void randint(const Part& out, std::int64_t low, std::int64_t high, Generator& generator) {
  const RandomBlocks blocks = generator.take("randint");
  const std::uint64_t range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  for_integral(out.local.dtype(), [&]<class T>() {
    const StoreFrom<T> sink{static_cast<T*>(out.local.data()), static_cast<std::uint64_t>(low)};
    if (range <= std::uint64_t{1} << 32) {
      draw("dtensor::randint", out, blocks, Narrow{range}, sink);
    } else {
      draw("dtensor::randint", out, blocks, Wide{range}, sink);
    }
  });
}

}  // namespace detail

}  // namespace dtensor
