// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sequences.hpp"

#include "strided_loop.hpp"

namespace dtensor::detail {

namespace {

template <class T>
struct Element {
  Sequence s;
  KOKKOS_INLINE_FUNCTION T operator()(std::int64_t i) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(s.integer_start) +
                            static_cast<std::uint64_t>(i) *
                                static_cast<std::uint64_t>(s.integer_step));
    } else if (s.ends_exactly && i >= s.count / 2) {
      return scalar_cast<T>(s.last - static_cast<double>(s.count - 1 - i) * s.step);
    } else {
      return scalar_cast<T>(s.start + static_cast<double>(i) * s.step);
    }
  }
};

}  // namespace

void fill_sequence(const Tensor& to, const Sequence& sequence, std::int64_t first) {
  const std::int64_t count = to.numel();
  if (count == 0) return;
  const std::int64_t stride = to.strides()[0];
  dispatch_dtype(to.dtype(), [&]<class T>() {
    if constexpr (!is_complex_scalar<T> && !std::is_same_v<T, bool>) {
      const Element<T> element{sequence};
      T* const out = static_cast<T*>(to.data());
      dispatch_space(to.device(), [&]<class Execution>() {
        Kokkos::parallel_for(
            "dtensor::sequence",
            Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>(0, count),
            KOKKOS_LAMBDA(const std::int64_t i) { out[i * stride] = element(first + i); });
      });
    }
  });
}

}  // namespace dtensor::detail
