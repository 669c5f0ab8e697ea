// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The arithmetic of Partial in every scalar type, against formulas written out here.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "dtensor/core/error.hpp"
#include "dtensor/core/scalar_types.hpp"
#include "dtensor/redistribute/combine.hpp"

namespace dtensor {
namespace {

constexpr ReduceOp all_ops[] = {ReduceOp::sum,     ReduceOp::avg,  ReduceOp::min, ReduceOp::max,
                                ReduceOp::product, ReduceOp::band, ReduceOp::bor, ReduceOp::bxor};

bool is_legal(ReduceOp op, DType dtype) {
  try {
    check_reduce_op("test", op, dtype);
    return true;
  } catch (const TypeError&) {
    return false;
  }
}

// Values as wide as needed to reduce without rounding or overflow, then narrowed once.
template <class T>
T expected(ReduceOp op, const std::vector<T>& values, std::int64_t divisor) {
  if constexpr (std::is_same_v<T, bool>) {
    int ones = 0;
    for (bool v : values) ones += v;
    const int n = static_cast<int>(values.size());
    if (op == ReduceOp::bxor) return ones % 2 == 1;
    if (op == ReduceOp::min || op == ReduceOp::product || op == ReduceOp::band) return ones == n;
    return ones > 0;
  } else if constexpr (std::is_same_v<T, Kokkos::complex<double>> ||
                       std::is_same_v<T, Kokkos::complex<float>>) {
    using Real = typename T::value_type;
    Real re = values[0].real(), im = values[0].imag();
    for (std::size_t i = 1; i < values.size(); ++i) {
      const Real a = values[i].real(), b = values[i].imag();
      if (op == ReduceOp::product) {
        const Real next = re * a - im * b;
        im = re * b + im * a;
        re = next;
      } else {
        re += a;
        im += b;
      }
    }
    return T(re / static_cast<Real>(divisor), im / static_cast<Real>(divisor));
  } else if constexpr (std::is_integral_v<T>) {
    // Modulo 2^64, of which the narrower types keep the lower bits.
    auto acc = static_cast<std::uint64_t>(static_cast<std::int64_t>(values[0]));
    for (std::size_t i = 1; i < values.size(); ++i) {
      const auto wide = static_cast<std::int64_t>(values[i]);
      const auto v = static_cast<std::uint64_t>(wide);
      const auto so_far = static_cast<std::int64_t>(acc);
      switch (op) {
        case ReduceOp::sum:
          acc += v;
          break;
        case ReduceOp::product:
          acc *= v;
          break;
        case ReduceOp::min:
          acc = wide < so_far ? v : acc;
          break;
        case ReduceOp::max:
          acc = wide > so_far ? v : acc;
          break;
        case ReduceOp::band:
          acc &= v;
          break;
        case ReduceOp::bor:
          acc |= v;
          break;
        default:
          acc ^= v;
          break;
      }
    }
    return static_cast<T>(acc);
  } else {
    using Acc = accumulate_t<T>;
    Acc acc = static_cast<Acc>(values[0]);
    for (std::size_t i = 1; i < values.size(); ++i) {
      const Acc v = static_cast<Acc>(values[i]);
      if (op == ReduceOp::product) acc *= v;
      if (op == ReduceOp::sum || op == ReduceOp::avg) acc += v;
      if (op == ReduceOp::min) acc = std::min(acc, v);
      if (op == ReduceOp::max) acc = std::max(acc, v);
    }
    return T(acc / static_cast<Acc>(divisor));
  }
}

template <class T>
T random_value(std::mt19937& random) {
  if constexpr (std::is_same_v<T, bool>) {
    return random() % 2 == 0;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random());
  } else if constexpr (std::is_same_v<T, Kokkos::complex<double>> ||
                       std::is_same_v<T, Kokkos::complex<float>>) {
    using Real = typename T::value_type;
    return T(static_cast<Real>(static_cast<int>(random() % 19) - 9),
             static_cast<Real>(static_cast<int>(random() % 19) - 9));
  } else {
    return T(static_cast<float>(std::uniform_real_distribution<double>(-3, 3)(random)));
  }
}

TEST(Combine, EveryTypeOperationAndNumberOfContributions) {
  std::mt19937 random(7);
  int checked = 0;
  for (int t = 0; t < dtype_count; ++t) {
    const auto dtype = static_cast<DType>(t);
    dispatch_dtype(dtype, [&]<class T>() {
      for (ReduceOp op : all_ops) {
        if (!is_legal(op, dtype)) continue;
        for (std::size_t n : {1, 2, 3, 8}) {
          for (std::size_t count : {1, 5, 1024, 2500}) {
            const std::int64_t divisor = op == ReduceOp::avg ? 3 : 1;
            std::vector<std::unique_ptr<T[]>> contributions;
            std::vector<const void*> pointers;
            for (std::size_t k = 0; k < n; ++k) {
              contributions.push_back(std::make_unique<T[]>(count));
              for (std::size_t i = 0; i < count; ++i) {
                contributions.back()[i] = random_value<T>(random);
              }
              pointers.push_back(contributions.back().get());
            }
            auto out = std::make_unique<T[]>(count);
            combine(out.get(), pointers, static_cast<std::int64_t>(count), dtype, op, divisor,
                    DeviceKind::host);
            for (std::size_t i = 0; i < count; ++i) {
              std::vector<T> values;
              for (std::size_t k = 0; k < n; ++k) values.push_back(contributions[k][i]);
              const T want = expected(op, values, divisor);
              ASSERT_TRUE(out[i] == want)
                  << to_string(dtype) << " " << to_string(op) << " of " << n << " at " << i;
              ++checked;
            }
          }
        }
      }
    });
  }
  EXPECT_GT(checked, 100000);
}

TEST(Combine, IdentityChangesNothing) {
  std::mt19937 random(11);
  for (int t = 0; t < dtype_count; ++t) {
    const auto dtype = static_cast<DType>(t);
    dispatch_dtype(dtype, [&]<class T>() {
      for (ReduceOp op : all_ops) {
        if (!is_legal(op, dtype)) continue;
        const T identity = identity_of(op, dtype).to<T>();
        for (int i = 0; i < 50; ++i) {
          const T value = random_value<T>(random);
          T out;
          combine(&out, {&value, &identity}, 1, dtype, op, 1, DeviceKind::host);
          ASSERT_TRUE(out == value) << to_string(dtype) << " " << to_string(op);
        }
      }
    });
  }
}

TEST(Combine, MinAndMaxKeepNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), one = 1;
  for (ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
    double out = 0;
    combine(&out, {&nan, &one}, 1, DType::float64, op, 1, DeviceKind::host);
    EXPECT_TRUE(std::isnan(out));
    combine(&out, {&one, &nan}, 1, DType::float64, op, 1, DeviceKind::host);
    EXPECT_TRUE(std::isnan(out));
  }
}

TEST(Combine, OperationsWithoutMeaningAreRefused) {
  EXPECT_FALSE(is_legal(ReduceOp::avg, DType::int32));
  EXPECT_FALSE(is_legal(ReduceOp::avg, DType::boolean));
  EXPECT_FALSE(is_legal(ReduceOp::min, DType::complex64));
  EXPECT_FALSE(is_legal(ReduceOp::band, DType::float32));
  EXPECT_FALSE(is_legal(ReduceOp::bxor, DType::complex128));
  EXPECT_TRUE(is_legal(ReduceOp::bxor, DType::uint8));
  EXPECT_TRUE(is_legal(ReduceOp::sum, DType::boolean));
}

}  // namespace
}  // namespace dtensor
