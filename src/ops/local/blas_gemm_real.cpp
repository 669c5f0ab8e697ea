// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "blas_gemm_impl.hpp"

namespace dtensor {

void blas_gemm(const BlasGemm<double>& call, DeviceKind kind) { call_blas_gemm(call, kind); }
void blas_gemm(const BlasGemm<float>& call, DeviceKind kind) { call_blas_gemm(call, kind); }

}  // namespace dtensor
