// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "lapack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "dtensor/core/error.hpp"

using Complex64 = Kokkos::complex<float>;
using Complex128 = Kokkos::complex<double>;

// The Fortran functions; `orglq` is `unglq` for complex numbers.
#define DTENSOR_LAPACK(T, p, orglq)                                                              \
  void p##potrf_(const char* uplo, const int* n, T* a, const int* lda, int* info);               \
  void p##gelqf_(const int* m, const int* n, T* a, const int* lda, T* tau, T* work,              \
                 const int* lwork, int* info);                                                   \
  void p##orglq##_(const int* m, const int* n, const int* k, T* a, const int* lda, const T* tau, \
                   T* work, const int* lwork, int* info);                                        \
  void p##getrf_(const int* m, const int* n, T* a, const int* lda, int* pivots, int* info);      \
  void p##getrs_(const char* trans, const int* n, const int* nrhs, const T* a, const int* lda,   \
                 const int* pivots, T* b, const int* ldb, int* info);                            \
  void p##trsm_(const char* side, const char* uplo, const char* trans, const char* diag,         \
                const int* m, const int* n, const T* alpha, const T* a, const int* lda, T* b,    \
                const int* ldb);
extern "C" {
DTENSOR_LAPACK(double, d, orglq)
DTENSOR_LAPACK(float, s, orglq)
DTENSOR_LAPACK(Complex128, z, unglq)
DTENSOR_LAPACK(Complex64, c, unglq)
}
#undef DTENSOR_LAPACK

namespace dtensor::lapack {

namespace {

template <class T>
struct Functions;
#define DTENSOR_LAPACK(T, p, unitary)            \
  template <>                                    \
  struct Functions<T> {                          \
    static constexpr auto potrf = p##potrf_;     \
    static constexpr auto gelqf = p##gelqf_;     \
    static constexpr auto orglq = p##unitary##_; \
    static constexpr auto getrf = p##getrf_;     \
    static constexpr auto getrs = p##getrs_;     \
    static constexpr auto trsm = p##trsm_;       \
  };
DTENSOR_LAPACK(double, d, orglq)
DTENSOR_LAPACK(float, s, orglq)
DTENSOR_LAPACK(Complex128, z, unglq)
DTENSOR_LAPACK(Complex64, c, unglq)
#undef DTENSOR_LAPACK

template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  switch (dtype) {
    case DType::float32:
      return f.template operator()<float>();
    case DType::complex128:
      return f.template operator()<Complex128>();
    case DType::complex64:
      return f.template operator()<Complex64>();
    default:
      return f.template operator()<double>();
  }
}

int count(std::int64_t extent) { return static_cast<int>(extent); }
// A leading dimension, which must not be zero.
int leading(std::int64_t extent) { return std::max(count(extent), 1); }

// A row-major copy on the host.
Tensor host_copy(const Tensor& a) {
  const Tensor host = a.to(DeviceKind::host);
  return host.storage() == a.storage() ? host.clone() : host.contiguous();
}

// Those arguments of a LAPACK function cannot be wrong, so the library is.
void check_info(int info, const char* call) {
  if (info >= 0) return;
  throw StateError(call, fmt::format("argument {} refused by LAPACK", -info),
                   "a LAPACK library with 32-bit integers");
}

template <class T>
double real_part(const T& x) {
  if constexpr (is_complex_scalar<T>) {
    return static_cast<double>(x.real());
  } else {
    return static_cast<double>(x);
  }
}

}  // namespace

void check(const char* function, DType dtype, const Shape& shape) {
  if (!is_complex(dtype) && dtype != DType::float64 && dtype != DType::float32) {
    throw TypeError(function, fmt::format("a tensor of {}", to_string(dtype)),
                    "float64, float32, complex128 or complex64");
  }
  for (std::int64_t extent : shape) {
    if (extent <= std::numeric_limits<int>::max()) continue;
    throw ValueError(function, fmt::format("shape {}", to_string(shape)),
                     "local extents below 2^31, as LAPACK counts");
  }
}

Cholesky cholesky(const Tensor& a) {
  const Tensor factor = host_copy(a);
  const std::int64_t n = a.shape()[0];
  std::int64_t failed = 0;
  dispatch(a.dtype(), [&]<class T>() {
    const int size = count(n), lead = leading(n);
    int info = 0;
    T* const data = static_cast<T*>(factor.data());
    Functions<T>::potrf("U", &size, data, &lead, &info);
    check_info(info, "potrf");
    failed = info;
    for (std::int64_t i = 0; i < n; ++i) {
      // NaN compares with nothing, so that some LAPACKs do not notice it.
      if (failed == 0 && !(real_part(data[i * n + i]) > 0)) failed = i + 1;
      std::fill(data + i * n + i + 1, data + (i + 1) * n, T(0));
    }
  });
  return {factor.to(a.device()), failed};
}

QR<Tensor> qr(const Tensor& a) {
  const std::int64_t m = a.shape()[0], n = a.shape()[1], k = std::min(m, n);
  const Tensor work = host_copy(a);
  const Tensor r = Tensor::zeros({k, n}, a.dtype(), DeviceKind::host);
  if (k > 0) {
    dispatch(a.dtype(), [&]<class T>() {
      // The transpose is n x m: its factors l q are those wanted, transposed.
      const int rows = count(n), columns = count(m), size = count(k);
      std::vector<T> tau(static_cast<std::size_t>(k)), scratch(1);
      int info = 0, length = -1;
      T* const data = static_cast<T*>(work.data());
      const auto with_scratch = [&](auto&& call, const char* name) {
        length = -1;
        call();  // asks for the length
        length = static_cast<int>(real_part(scratch[0]));
        scratch.resize(static_cast<std::size_t>(length));
        call();
        check_info(info, name);
      };
      with_scratch(
          [&] {
            Functions<T>::gelqf(&rows, &columns, data, &rows, tau.data(), scratch.data(), &length,
                                &info);
          },
          "gelqf");
      T* const upper = static_cast<T*>(r.data());
      for (std::int64_t i = 0; i < k; ++i) {
        std::copy(data + i * n + i, data + (i + 1) * n, upper + i * n + i);
      }
      with_scratch(
          [&] {
            Functions<T>::orglq(&size, &columns, &size, data, &rows, tau.data(), scratch.data(),
                                &length, &info);
          },
          "orglq");
    });
  }
  return {work.narrow(1, 0, k).contiguous().to(a.device()), r.to(a.device())};
}

Tensor solve_triangular(const Tensor& a, const Tensor& b, const TriangularOptions& options,
                        bool on_the_right) {
  const Tensor matrix = a.to(DeviceKind::host).contiguous();
  const Tensor x = host_copy(b);
  if (x.numel() > 0) {
    dispatch(a.dtype(), [&]<class T>() {
      // All is transposed, and the product the other way round.
      const int m = count(b.shape()[1]), n = count(b.shape()[0]), lead = leading(a.shape()[1]);
      const T one(1);
      const char* const trans[] = {"N", "T", "C"};
      Functions<T>::trsm(on_the_right ? "L" : "R", options.upper ? "L" : "U",
                         trans[static_cast<int>(options.op)], options.unit_diagonal ? "U" : "N", &m,
                         &n, &one, static_cast<const T*>(matrix.data()), &lead,
                         static_cast<T*>(x.data()), &m);
    });
  }
  return x.to(b.device());
}

Solution solve(const Tensor& a, const Tensor& b) {
  const Tensor factors = host_copy(a);
  const Tensor x = host_copy(b.transpose(0, 1));
  std::int64_t failed = 0;
  dispatch(a.dtype(), [&]<class T>() {
    const int n = count(a.shape()[0]), right_hand_sides = count(b.shape()[1]), lead = leading(n);
    std::vector<int> pivots(static_cast<std::size_t>(n));
    int info = 0;
    T* const data = static_cast<T*>(factors.data());
    Functions<T>::getrf(&n, &n, data, &lead, pivots.data(), &info);
    check_info(info, "getrf");
    failed = info;
    if (failed > 0 || x.numel() == 0) return;
    // LAPACK has the factors of the transpose.
    Functions<T>::getrs("T", &n, &right_hand_sides, data, &lead, pivots.data(),
                        static_cast<T*>(x.data()), &lead, &info);
    check_info(info, "getrs");
  });
  return {x.transpose(0, 1).contiguous().to(b.device()), failed};
}

std::int64_t zero_on_diagonal(const Tensor& a) {
  const std::int64_t n = a.shape()[0];
  if (n == 0) return 0;
  const Tensor diagonal = a.as_strided({n}, {a.strides()[0] + a.strides()[1]}, a.storage_offset())
                              .to(DeviceKind::host)
                              .contiguous();
  return dispatch(a.dtype(), [&]<class T>() -> std::int64_t {
    const T* const data = static_cast<const T*>(diagonal.data());
    const T* const zero = std::find(data, data + n, T(0));
    return zero == data + n ? 0 : zero - data + 1;
  });
}

}  // namespace dtensor::lapack
