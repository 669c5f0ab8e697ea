// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "plain_gemm.hpp"

#include "strided_loop.hpp"

namespace dtensor {

namespace {

// Integers are computed unsigned, where overflow is defined, and no narrower than 32 bits.
template <class T>
struct Sum {
  using type = T;
};
template <>
struct Sum<std::uint8_t> {
  using type = std::uint32_t;
};
template <>
struct Sum<std::uint16_t> {
  using type = std::uint32_t;
};

template <class T>
struct Element {
  using Total = typename Sum<T>::type;
  static KOKKOS_INLINE_FUNCTION Total load(const T& x) { return static_cast<Total>(x); }
  static KOKKOS_INLINE_FUNCTION Total add(const Total& x, const Total& y) { return x + y; }
  static KOKKOS_INLINE_FUNCTION Total mul(const Total& x, const Total& y) { return x * y; }
  static KOKKOS_INLINE_FUNCTION T store(const Total& x) { return static_cast<T>(x); }
};
template <>
struct Element<bool> {
  using Total = std::uint8_t;
  static KOKKOS_INLINE_FUNCTION Total load(const bool& x) { return x; }
  static KOKKOS_INLINE_FUNCTION Total add(Total x, Total y) { return static_cast<Total>(x | y); }
  static KOKKOS_INLINE_FUNCTION Total mul(Total x, Total y) { return static_cast<Total>(x & y); }
  static KOKKOS_INLINE_FUNCTION bool store(Total x) { return x != 0; }
};

struct Strides {
  std::int64_t batch, row, column;
};

Strides strides_of(const Tensor& t) { return {t.strides()[0], t.strides()[1], t.strides()[2]}; }

// Each work item computes a tile of one product: on the host one whose sums stay in registers and
// cache while a row of b is read for several rows of a, on a device one element.
template <class T, int TileRows, int TileColumns>
struct Tiles {
  using E = Element<T>;
  using Total = typename E::Total;

  T* c;
  const T* a;
  const T* b;
  Strides c_stride, a_stride, b_stride;
  std::int64_t rows, columns, depth;
  Total alpha, beta;
  bool reads_c;

  KOKKOS_INLINE_FUNCTION std::int64_t down() const { return (rows + TileRows - 1) / TileRows; }
  KOKKOS_INLINE_FUNCTION std::int64_t across() const {
    return (columns + TileColumns - 1) / TileColumns;
  }

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t item) const {
    const std::int64_t batch = item / (down() * across());
    const std::int64_t row = item / across() % down() * TileRows;
    const std::int64_t column = item % across() * TileColumns;
    const auto height = static_cast<int>(rows - row < TileRows ? rows - row : TileRows);
    const auto width =
        static_cast<int>(columns - column < TileColumns ? columns - column : TileColumns);
    const T* x = a + batch * a_stride.batch + row * a_stride.row;
    const T* y = b + batch * b_stride.batch + column * b_stride.column;
    Total sum[TileRows][TileColumns] = {};
    for (std::int64_t l = 0; l < depth; ++l, x += a_stride.column, y += b_stride.row) {
      for (int i = 0; i < height; ++i) {
        const Total factor = E::load(x[i * a_stride.row]);
        // The plain loop is what compilers turn into vector code.
        if (b_stride.column == 1) {
          for (int j = 0; j < width; ++j) {
            sum[i][j] = E::add(sum[i][j], E::mul(factor, E::load(y[j])));
          }
        } else {
          for (int j = 0; j < width; ++j) {
            sum[i][j] = E::add(sum[i][j], E::mul(factor, E::load(y[j * b_stride.column])));
          }
        }
      }
    }
    T* const z = c + batch * c_stride.batch + row * c_stride.row + column * c_stride.column;
    for (int i = 0; i < height; ++i) {
      for (int j = 0; j < width; ++j) {
        T& out = z[i * c_stride.row + j * c_stride.column];
        const Total product = E::mul(alpha, sum[i][j]);
        out = E::store(reads_c ? E::add(product, E::mul(beta, E::load(out))) : product);
      }
    }
  }
};

template <class T, int TileRows, int TileColumns, class Execution>
void run_tiles(T alpha, const Tensor& a, const Tensor& b, T beta, const Tensor& c) {
  using E = Element<T>;
  const Tiles<T, TileRows, TileColumns> tiles{static_cast<T*>(c.data()),
                                              static_cast<const T*>(a.data()),
                                              static_cast<const T*>(b.data()),
                                              strides_of(c),
                                              strides_of(a),
                                              strides_of(b),
                                              c.shape()[1],
                                              c.shape()[2],
                                              a.shape()[2],
                                              E::load(alpha),
                                              E::load(beta),
                                              !(beta == T(0))};
  using Policy = Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for("dtensor::plain_gemm",
                       Policy(0, c.shape()[0] * tiles.down() * tiles.across()), tiles);
}

template <class T, class Number>
void run(const Scalar& alpha, const Tensor& a, const Tensor& b, const Scalar& beta,
         const Tensor& c) {
  const T x = static_cast<T>(alpha.to<Number>()), y = static_cast<T>(beta.to<Number>());
  dispatch_space(c.device(), [&]<class Execution>() {
    if constexpr (!works_by_row<Execution>) {
      run_tiles<T, 1, 1, Execution>(x, a, b, y, c);
    } else if (c.shape()[2] > 8) {
      run_tiles<T, 4, 64, Execution>(x, a, b, y, c);
    } else {
      run_tiles<T, 4, 8, Execution>(x, a, b, y, c);
    }
  });
}

}  // namespace

void plain_gemm(const Scalar& alpha, const Tensor& a, const Tensor& b, const Scalar& beta,
                const Tensor& c) {
  switch (c.dtype()) {
    case DType::float64:
      return run<double, double>(alpha, a, b, beta, c);
    case DType::float32:
      return run<float, float>(alpha, a, b, beta, c);
    case DType::complex128:
      return run<Kokkos::complex<double>, Kokkos::complex<double>>(alpha, a, b, beta, c);
    case DType::complex64:
      return run<Kokkos::complex<float>, Kokkos::complex<float>>(alpha, a, b, beta, c);
    case DType::int64:
      return run<std::uint64_t, std::int64_t>(alpha, a, b, beta, c);
    case DType::int32:
      return run<std::uint32_t, std::int32_t>(alpha, a, b, beta, c);
    case DType::int16:
      return run<std::uint16_t, std::int16_t>(alpha, a, b, beta, c);
    case DType::int8:
    case DType::uint8:
      return run<std::uint8_t, std::int64_t>(alpha, a, b, beta, c);
    case DType::boolean:
      return run<bool, bool>(alpha, a, b, beta, c);
    case DType::float16:
    case DType::bfloat16:
      break;  // the caller converts
  }
}

}  // namespace dtensor
