// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "conjugate.hpp"

#include "strided_loop.hpp"

namespace dtensor {

namespace {

template <class R>
struct ConjugateRow {
  Kokkos::complex<R>* data;

  KOKKOS_INLINE_FUNCTION void operator()(const PerOperand<1>& offset, std::int64_t count,
                                         const PerOperand<1>& stride) const {
    for (std::int64_t i = 0; i < count; ++i) {
      Kokkos::complex<R>& z = data[offset[0] + i * stride[0]];
      z = Kokkos::complex<R>(z.real(), -z.imag());
    }
  }
};

template <class R>
void run(const Tensor& a) {
  dispatch_space(a.device(), [&]<class Execution>() {
    for_each_row<Execution>("dtensor::conjugate", make_loop<1>(a.shape(), {a.strides()}),
                            ConjugateRow<R>{static_cast<Kokkos::complex<R>*>(a.data())});
  });
  fence(a.device(), "dtensor::conjugate");
}

}  // namespace

void conjugate(const Tensor& a) {
  if (a.dtype() == DType::complex128) run<double>(a);
  if (a.dtype() == DType::complex64) run<float>(a);
}

}  // namespace dtensor
