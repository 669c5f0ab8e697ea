// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "dtensor/core/error.hpp"
#include "dtensor/core/scalar.hpp"
#include "dtensor/core/scalar_types.hpp"

using namespace dtensor;

namespace {

struct Row {
  DType dtype;
  int value;  // written to files, so that it may never change
  const char* name;
  std::int64_t size;
  bool floating, complex, integral;
};

constexpr Row rows[] = {
    {DType::float64, 0, "float64", 8, true, false, false},
    {DType::float32, 1, "float32", 4, true, false, false},
    {DType::float16, 2, "float16", 2, true, false, false},
    {DType::bfloat16, 3, "bfloat16", 2, true, false, false},
    {DType::complex128, 4, "complex128", 16, false, true, false},
    {DType::complex64, 5, "complex64", 8, false, true, false},
    {DType::int64, 6, "int64", 8, false, false, true},
    {DType::int32, 7, "int32", 4, false, false, true},
    {DType::int16, 8, "int16", 2, false, false, true},
    {DType::int8, 9, "int8", 1, false, false, true},
    {DType::uint8, 10, "uint8", 1, false, false, true},
    {DType::boolean, 11, "bool", 1, false, false, false},
};

template <class T>
constexpr bool is_complex_type =
    std::is_same_v<T, Kokkos::complex<double>> || std::is_same_v<T, Kokkos::complex<float>>;

/// Whether `T` holds `v` exactly (`v` has few digits).
template <class T>
bool holds(double v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v == 0 || v == 1;
  } else if constexpr (std::is_integral_v<T>) {
    return v == std::trunc(v) && v >= static_cast<double>(std::numeric_limits<T>::min()) &&
           v <= static_cast<double>(std::numeric_limits<T>::max());
  } else {
    return true;
  }
}

template <class T>
T make(double v) {
  if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
    return T(static_cast<float>(v));
  } else if constexpr (is_complex_type<T>) {
    using Real = typename T::value_type;
    return T(static_cast<Real>(v), static_cast<Real>(5));  // conversion to real drops the 5
  } else {
    return static_cast<T>(v);
  }
}

template <class T>
double real_part(T v) {
  if constexpr (is_complex_type<T>) {
    return static_cast<double>(v.real());
  } else if constexpr (std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>) {
    return static_cast<double>(static_cast<float>(v));
  } else {
    return static_cast<double>(v);
  }
}

}  // namespace

TEST(DTypes, HaveTheirNamesSizesAndClasses) {
  ASSERT_EQ(std::size(rows), static_cast<std::size_t>(dtype_count));
  for (const Row& r : rows) {
    SCOPED_TRACE(r.name);
    EXPECT_EQ(static_cast<int>(r.dtype), r.value);
    EXPECT_STREQ(to_string(r.dtype), r.name);
    EXPECT_EQ(dtype_from_string(r.name), r.dtype);
    EXPECT_EQ(size_of(r.dtype), r.size);
    EXPECT_EQ(is_floating(r.dtype), r.floating);
    EXPECT_EQ(is_complex(r.dtype), r.complex);
    EXPECT_EQ(is_integral(r.dtype), r.integral);
    dispatch_dtype(r.dtype, [&]<class T>() {
      EXPECT_EQ(dtype_of<T>, r.dtype);
      EXPECT_EQ(dtype_of<const T>, r.dtype);
      EXPECT_EQ(static_cast<std::int64_t>(sizeof(T)), r.size);
    });
  }
}

TEST(DTypes, OfOtherNamesForTheSameRepresentation) {
  EXPECT_EQ(dtype_of<long long>, DType::int64);
  EXPECT_EQ(dtype_of<long>, DType::int64);
  EXPECT_EQ(dtype_of<std::complex<double>>, DType::complex128);
  EXPECT_EQ(dtype_of<std::complex<float>>, DType::complex64);
  static_assert(std::is_same_v<scalar_t<DType::complex64>, Kokkos::complex<float>>);
  static_assert(std::is_same_v<accumulate_t<float16>, float>);
  static_assert(std::is_same_v<accumulate_t<bfloat16>, float>);
  static_assert(std::is_same_v<accumulate_t<std::int8_t>, std::int8_t>);
}

TEST(DTypes, UnknownNameIsAnErrorThatShowsIt) {
  try {
    dtype_from_string("float8");
    FAIL();
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("float8"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("bfloat16"), std::string::npos);
  }
}

TEST(ScalarCast, BetweenAllTypes) {
  int checked = 0;
  for (const Row& from : rows) {
    for (const Row& to : rows) {
      SCOPED_TRACE(std::string(from.name) + " to " + to.name);
      dispatch_dtype(from.dtype, [&]<class From>() {
        dispatch_dtype(to.dtype, [&]<class To>() {
          for (double v : {0.0, 1.0, -3.0, 0.5, -2.75, 100.0, 127.0}) {
            if (!holds<From>(v)) continue;
            const To result = scalar_cast<To>(make<From>(v));
            ++checked;
            if constexpr (std::is_same_v<To, bool>) {
              EXPECT_EQ(result, is_complex_type<From> || v != 0) << v;
            } else if constexpr (is_complex_type<To>) {
              EXPECT_EQ(real_part(result), v);
              EXPECT_EQ(static_cast<double>(result.imag()), is_complex_type<From> ? 5.0 : 0.0);
            } else if constexpr (std::is_integral_v<To>) {
              const double whole = std::trunc(v);
              if (holds<To>(whole)) {
                EXPECT_EQ(real_part(result), whole);
              } else if constexpr (std::is_integral_v<From>) {
                EXPECT_EQ(real_part(result), whole + 256);  // a negative number to uint8
              }
            } else {
              EXPECT_EQ(real_part(result), v);
            }
          }
        });
      });
    }
  }
  EXPECT_GT(checked, 144 * 2);
}

TEST(ScalarCast, KeepsSixtyFourBits) {
  const std::int64_t big = (std::int64_t{1} << 62) + 1;
  EXPECT_EQ(scalar_cast<std::int64_t>(big), big);
  EXPECT_EQ(scalar_cast<double>(std::int64_t{1} << 53), 9007199254740992.0);
  EXPECT_TRUE(scalar_cast<bool>(1e-300));
  EXPECT_TRUE(scalar_cast<bool>(std::int64_t{1} << 40));
  EXPECT_TRUE(scalar_cast<bool>(Kokkos::complex<double>(0, 1)));
  EXPECT_TRUE(scalar_cast<bool>(std::nan("")));
}

TEST(Scalar, KeepsItsKindAndValue) {
  EXPECT_EQ(Scalar(true).kind(), Scalar::Kind::boolean);
  EXPECT_EQ(Scalar(3).kind(), Scalar::Kind::integer);
  EXPECT_EQ(Scalar(std::uint8_t{3}).kind(), Scalar::Kind::integer);
  EXPECT_EQ(Scalar(3.5f).kind(), Scalar::Kind::floating);
  EXPECT_EQ(Scalar(float16(3.5f)).kind(), Scalar::Kind::floating);
  EXPECT_EQ(Scalar(bfloat16(3.5f)).kind(), Scalar::Kind::floating);
  EXPECT_EQ(Scalar(std::complex<float>(1, 2)).kind(), Scalar::Kind::complex);
  EXPECT_EQ(Scalar(Kokkos::complex<double>(1, 2)).kind(), Scalar::Kind::complex);

  const std::int64_t big = (std::int64_t{1} << 62) + 1;  // not a double
  EXPECT_EQ(Scalar(big).to<std::int64_t>(), big);
  EXPECT_EQ(Scalar(0.1).to<double>(), 0.1);
  EXPECT_EQ(Scalar(-2.75).to<int>(), -2);
  EXPECT_EQ(Scalar(true).to<double>(), 1.0);
  EXPECT_EQ(Scalar(false).to<bool>(), false);
  EXPECT_EQ(Scalar(float16(-1.5f)).to<float>(), -1.5f);
  EXPECT_EQ(Scalar(std::complex<double>(1, 2)).to<double>(), 1.0);
  EXPECT_EQ(Scalar(std::complex<double>(1, 2)).to<Kokkos::complex<double>>(),
            Kokkos::complex<double>(1, 2));
}

TEST(Scalar, Prints) {
  EXPECT_EQ(to_string(Scalar(true)), "true");
  EXPECT_EQ(to_string(Scalar(-7)), "-7");
  EXPECT_EQ(to_string(Scalar(0.5)), "0.5");
  EXPECT_EQ(to_string(Scalar(std::complex<double>(1.5, -2))), "(1.5-2i)");
}

TEST(Scalar, UnsignedNumbersBeyondInt64BecomeDoubles) {
  const dtensor::Scalar large(~std::uint64_t{0});
  EXPECT_EQ(large.kind(), dtensor::Scalar::Kind::floating);
  EXPECT_EQ(large.to<double>(), 0x1p64);
  EXPECT_EQ(dtensor::Scalar(std::uint64_t{7}).kind(), dtensor::Scalar::Kind::integer);
}
