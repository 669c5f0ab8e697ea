// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "sequences.hpp"

#include "dtensor/core/scalar_types.hpp"
#include "items.hpp"

namespace dtensor::detail {

namespace {

template <class T>
struct Fill {
  T* out;
  std::int64_t stride, first;
  Sequence s;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    out[i * stride] = element(first + i);
  }
  KOKKOS_INLINE_FUNCTION T element(std::int64_t i) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<std::uint64_t>(s.integer_start) +
                            static_cast<std::uint64_t>(i) *
                                static_cast<std::uint64_t>(s.integer_step));
    } else if (s.ends_exactly && i >= s.count / 2) {
      return scalar_cast<T>(s.scale * (s.last - static_cast<double>(s.count - 1 - i) * s.step));
    } else {
      return scalar_cast<T>(s.scale * (s.start + static_cast<double>(i) * s.step));
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
      for_each_item("dtensor::sequence", count, to.device(),
                    Fill<T>{static_cast<T*>(to.data()), stride, first, sequence});
    }
  });
}

}  // namespace dtensor::detail
