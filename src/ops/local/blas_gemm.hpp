// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `KokkosBlas::gemm`, compiled once per scalar type: it takes long.
#pragma once

#include <cstdint>

#include "dtensor/core/kokkos_compat.hpp"
#include "dtensor/core/scalar_types.hpp"

namespace dtensor {

/// A matrix the way BLAS reads it: columns of `rows` elements, `leading` elements apart.
struct ColumnMajor {
  std::int64_t rows, columns, leading;
  bool transposed;  ///< it holds the transpose of the matrix meant
};

/// c = alpha op(a) op(b) + beta c, where op transposes what holds the transpose.
template <class T>
struct BlasGemm {
  T alpha;
  const T* a;
  ColumnMajor a_shape;
  const T* b;
  ColumnMajor b_shape;
  T beta;
  T* c;
  ColumnMajor c_shape;
};
void blas_gemm(const BlasGemm<double>& call, DeviceKind kind);
void blas_gemm(const BlasGemm<float>& call, DeviceKind kind);
void blas_gemm(const BlasGemm<Kokkos::complex<double>>& call, DeviceKind kind);
void blas_gemm(const BlasGemm<Kokkos::complex<float>>& call, DeviceKind kind);

}  // namespace dtensor
