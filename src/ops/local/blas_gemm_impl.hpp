// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The body of `blas_gemm`, for the sources that instantiate it.
#pragma once

#include <KokkosBlas3_gemm.hpp>

#include "blas_gemm.hpp"

namespace dtensor {

template <class Execution, class T>
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

template <class T>
void call_blas_gemm(const BlasGemm<T>& call, DeviceKind kind) {
  dispatch_space(kind, [&]<class Execution>() {
    KokkosBlas::gemm(call.a_shape.transposed ? "T" : "N", call.b_shape.transposed ? "T" : "N",
                     call.alpha, blas_view<Execution>(call.a, call.a_shape),
                     blas_view<Execution>(call.b, call.b_shape), call.beta,
                     blas_view<Execution>(call.c, call.c_shape));
  });
}

}  // namespace dtensor
