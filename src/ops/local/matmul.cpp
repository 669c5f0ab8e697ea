// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The one source that instantiates KokkosBlas::gemm, which takes long to compile.
#include "dtensor/ops/local/matmul.hpp"

#include <fmt/format.h>

#include <KokkosBlas3_gemm.hpp>
#include <algorithm>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/promotion.hpp"

namespace dtensor {

namespace {

// A matrix the way BLAS reads it: columns of `rows` elements, `leading` elements apart.
struct ColumnMajor {
  std::int64_t rows, columns, leading;
  bool transposed;  // it holds the transpose of the matrix meant
};

// How the memory of a matrix looks to BLAS, which counts columns first, so that a row-major matrix
// is its own transpose. `leading` of 0: BLAS cannot read it.
ColumnMajor as_column_major(const Tensor& a, std::int64_t max_extent) {
  const std::int64_t m = a.shape()[0], n = a.shape()[1];
  const std::int64_t row = m == 1 ? std::max<std::int64_t>(n, 1) : a.strides()[0];
  const std::int64_t column = n == 1 ? std::max<std::int64_t>(m, 1) : a.strides()[1];
  if ((n == 1 || a.strides()[1] == 1) && row >= n && row <= max_extent) return {n, m, row, true};
  if ((m == 1 || a.strides()[0] == 1) && column >= m && column <= max_extent) {
    return {m, n, column, false};
  }
  return {m, n, 0, false};
}

template <class T, class Execution>
auto blas_view(T* data, const ColumnMajor& matrix) {
  using View = Kokkos::View<T**, Kokkos::LayoutLeft,
                            Kokkos::Device<Execution, typename Execution::memory_space>,
                            Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  const View whole(data, static_cast<std::size_t>(matrix.leading),
                   static_cast<std::size_t>(matrix.columns));
  const View part =
      Kokkos::subview(whole, std::make_pair(std::int64_t{0}, matrix.rows), Kokkos::ALL);
  return part;
}

// c = a b + beta c for matrices that BLAS can count. c is row-major.
void multiply_block(const Tensor& a, const Tensor& b, const Tensor& c, bool accumulates,
                    std::int64_t max_extent) {
  Tensor x = a, y = b;
  if (as_column_major(x, max_extent).leading == 0) x = x.clone();
  if (as_column_major(y, max_extent).leading == 0) y = y.clone();
  const ColumnMajor left = as_column_major(x, max_extent);
  const ColumnMajor right = as_column_major(y, max_extent);
  const ColumnMajor product = as_column_major(c, max_extent);
  const auto call = [&]<class T>() {
    dispatch_space(c.device(), [&]<class Execution>() {
      // BLAS sees the transpose of c, which is the product of the transposes, the other way round.
      KokkosBlas::gemm(right.transposed ? "N" : "T", left.transposed ? "N" : "T", T(1),
                       blas_view<const T, Execution>(static_cast<const T*>(y.data()), right),
                       blas_view<const T, Execution>(static_cast<const T*>(x.data()), left),
                       T(accumulates ? 1 : 0),
                       blas_view<T, Execution>(static_cast<T*>(c.data()), product));
    });
  };
  if (c.dtype() == DType::float64) {
    call.template operator()<double>();
  } else {
    call.template operator()<float>();
  }
}

// Calls `f(begin, length)` for blocks of at most `max_extent` that make up `extent`.
template <class F>
void for_each_block(std::int64_t extent, std::int64_t max_extent, const F& f) {
  for (std::int64_t begin = 0; begin < extent; begin += max_extent) {
    f(begin, std::min(max_extent, extent - begin));
  }
}

// (m, k) times (k, n).
Tensor multiply(const Tensor& a, const Tensor& b, std::int64_t max_extent) {
  const std::int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
  Tensor c = Tensor::empty(Shape{m, n}, a.dtype(), a.device());
  if (k == 0) c.fill(0);
  for_each_block(m, max_extent, [&](std::int64_t i, std::int64_t rows) {
    for_each_block(n, max_extent, [&](std::int64_t j, std::int64_t columns) {
      const Tensor target = c.narrow(0, i, rows).narrow(1, j, columns);
      // With several blocks of columns a row of c may be longer than BLAS can count.
      const bool direct = n <= max_extent;
      const Tensor block =
          direct ? target : Tensor::empty(Shape{rows, columns}, a.dtype(), a.device());
      for_each_block(k, max_extent, [&](std::int64_t l, std::int64_t depth) {
        multiply_block(a.narrow(0, i, rows).narrow(1, l, depth),
                       b.narrow(0, l, depth).narrow(1, j, columns), block, l > 0, max_extent);
      });
      if (!direct && k > 0) target.copy_from(block);
    });
  });
  return c;
}

}  // namespace

namespace detail {

void check_matmul(const Shape& a, DType a_dtype, const Shape& b, DType b_dtype) {
  const char* const function = "matmul";
  const DType dtype = common_dtype(function, a_dtype, b_dtype);
  if (dtype != DType::float64 && dtype != DType::float32) {
    throw TypeError(function, fmt::format("tensors of {}", to_string(dtype)), "float64 or float32");
  }
  const bool ranks_fit = a.size() >= 1 && a.size() <= 2 && b.size() >= 1 && b.size() <= 2;
  if (!ranks_fit || a[a.size() - 1] != b[0]) {
    throw ValueError(function, fmt::format("shapes {} and {}", to_string(a), to_string(b)),
                     "matrices or vectors, (m, k) and (k, n), with equal k");
  }
}

Tensor matmul_blocked(const Tensor& a, const Tensor& b, std::int64_t max_extent) {
  check_matmul(a.shape(), a.dtype(), b.shape(), b.dtype());
  check_same_memory("matmul", a, b);
  const Tensor x = a.dim() == 2 ? a
                                : a.as_strided(Shape{1, a.shape()[0]}, Extents{1, a.strides()[0]},
                                               a.storage_offset());
  const Tensor y = b.dim() == 2 ? b
                                : b.as_strided(Shape{b.shape()[0], 1}, Extents{b.strides()[0], 1},
                                               b.storage_offset());
  const Tensor c = multiply(x, y, max_extent);
  Shape shape;
  if (a.dim() == 2) shape.push_back(a.shape()[0]);
  if (b.dim() == 2) shape.push_back(b.shape()[1]);
  return c.reshape(shape);
}

}  // namespace detail

Tensor matmul(const Tensor& a, const Tensor& b) {
  return detail::matmul_blocked(a, b, std::numeric_limits<int>::max());
}

}  // namespace dtensor
