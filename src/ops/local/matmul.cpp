// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/local/matmul.hpp"

#include <algorithm>

#include "blas_gemm.hpp"
#include "plain_gemm.hpp"

namespace dtensor {

namespace {

// Multiplications up to which a product in a batch is too small for a call of BLAS.
constexpr std::int64_t small_product = 2048;

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

// c = alpha a b + beta c for matrices that BLAS can count. c is row-major.
void multiply_block(const Scalar& alpha, const Tensor& a, const Tensor& b, const Scalar& beta,
                    const Tensor& c, std::int64_t max_extent) {
  Tensor x = a, y = b;
  if (as_column_major(x, max_extent).leading == 0) x = x.clone();
  if (as_column_major(y, max_extent).leading == 0) y = y.clone();
  // BLAS sees the transpose of c, which is the product of the transposes, the other way round.
  const auto transpose = [](ColumnMajor matrix) {
    matrix.transposed = !matrix.transposed;
    return matrix;
  };
  const ColumnMajor left = transpose(as_column_major(y, max_extent));
  const ColumnMajor right = transpose(as_column_major(x, max_extent));
  const ColumnMajor product = as_column_major(c, max_extent);
  dispatch_dtype(c.dtype(), [&]<class T>() {
    if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float> || is_complex_scalar<T>) {
      blas_gemm(BlasGemm<T>{alpha.to<T>(), static_cast<const T*>(y.data()), left,
                            static_cast<const T*>(x.data()), right, beta.to<T>(),
                            static_cast<T*>(c.data()), product},
                c.device());
    }
  });
}

// Calls `f(begin, length)` for blocks of at most `max_extent` that make up `extent`.
template <class F>
void for_each_block(std::int64_t extent, std::int64_t max_extent, const F& f) {
  for (std::int64_t begin = 0; begin < extent; begin += max_extent) {
    f(begin, std::min(max_extent, extent - begin));
  }
}

// One product, cut into blocks that BLAS can count.
void multiply(const Scalar& alpha, const Tensor& a, const Tensor& b, const Scalar& beta,
              const Tensor& c, std::int64_t max_extent) {
  const std::int64_t m = a.shape()[0], k = a.shape()[1], n = b.shape()[1];
  if (std::max({m, k, n, c.strides()[0]}) <= max_extent) {
    return multiply_block(alpha, a, b, beta, c, max_extent);
  }
  for_each_block(m, max_extent, [&](std::int64_t i, std::int64_t rows) {
    for_each_block(n, max_extent, [&](std::int64_t j, std::int64_t columns) {
      const Tensor target = c.narrow(0, i, rows).narrow(1, j, columns);
      // A row of c may be longer than BLAS can count.
      const bool direct = c.strides()[0] <= max_extent;
      const Tensor block = direct ? target : target.clone();
      for_each_block(k, max_extent, [&](std::int64_t l, std::int64_t depth) {
        multiply_block(alpha, a.narrow(0, i, rows).narrow(1, l, depth),
                       b.narrow(0, l, depth).narrow(1, j, columns), l > 0 ? Scalar(1) : beta, block,
                       max_extent);
      });
      if (!direct) target.copy_from(block);
    });
  });
}

Tensor matrix(const Tensor& batch, std::int64_t i) {
  const Shape& shape = batch.shape();
  const Extents& strides = batch.strides();
  return batch.as_strided({shape[1], shape[2]}, {strides[1], strides[2]},
                          batch.storage_offset() + i * strides[0]);
}

Tensor as_batch(const Tensor& t) {
  if (t.dim() == 3) return t;
  return t.as_strided({1, t.shape()[0], t.shape()[1]}, {0, t.strides()[0], t.strides()[1]},
                      t.storage_offset());
}

}  // namespace

namespace detail {

void gemm(const Scalar& alpha, const Tensor& a, const Tensor& b, const Scalar& beta,
          const Tensor& c, std::int64_t max_extent) {
  if (c.numel() == 0) return;
  if (c.dtype() == DType::float16 || c.dtype() == DType::bfloat16) {
    const Tensor sum = c.to(DType::float32);
    gemm(alpha, a.to(DType::float32), b.to(DType::float32), beta, sum, max_extent);
    return c.copy_from(sum);
  }
  const int d = c.dim() - 2;
  const std::int64_t batch = d > 0 ? c.shape()[0] : 1, depth = a.shape()[d + 1];
  const std::int64_t products = c.shape()[d] * c.shape()[d + 1] * depth;
  const bool blas_knows = is_complex(c.dtype()) || is_floating(c.dtype());
  if (!blas_knows || depth == 0 || (batch > 1 && products <= small_product)) {
    // Rows of b that are not dense would be read with strides once per row of a.
    const bool packs = b.strides()[d + 1] != 1 && c.shape()[d] > 4;
    plain_gemm(alpha, as_batch(a), as_batch(packs ? b.contiguous() : b), beta, as_batch(c));
    return fence(c.device(), "dtensor::gemm");
  }
  if (d == 0) return multiply(alpha, a, b, beta, c, max_extent);
  for (std::int64_t i = 0; i < batch; ++i) {
    multiply(alpha, matrix(a, i), matrix(b, i), beta, matrix(c, i), max_extent);
  }
}

}  // namespace detail
}  // namespace dtensor
