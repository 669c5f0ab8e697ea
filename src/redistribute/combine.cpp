// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/redistribute/combine.hpp"

#include <limits>
#include <type_traits>

#include "dtensor/core/tensor.hpp"

namespace dtensor {

namespace {

// Signed overflow is undefined in C++: integers are added and multiplied as unsigned ones.
template <class T>
using wrapping_t = typename std::conditional_t<sizeof(T) <= 4, std::type_identity<std::uint32_t>,
                                               std::type_identity<std::uint64_t>>::type;

template <ReduceOp Op, class T>
KOKKOS_INLINE_FUNCTION T apply(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, bool>) {
    if constexpr (Op == ReduceOp::sum || Op == ReduceOp::max || Op == ReduceOp::bor) return a || b;
    if constexpr (Op == ReduceOp::product || Op == ReduceOp::min || Op == ReduceOp::band) {
      return a && b;
    }
    return a != b;
  } else if constexpr (Op == ReduceOp::sum) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<wrapping_t<T>>(a) + static_cast<wrapping_t<T>>(b));
    } else {
      return a + b;
    }
  } else if constexpr (Op == ReduceOp::product) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(static_cast<wrapping_t<T>>(a) * static_cast<wrapping_t<T>>(b));
    } else {
      return a * b;
    }
  } else if constexpr (Op == ReduceOp::min || Op == ReduceOp::max) {
    if constexpr (is_complex_scalar<T>) {
      return a;  // refused by check_reduce_op
    } else {
      const bool keep = Op == ReduceOp::min ? !(b < a) : !(b > a);
      if constexpr (std::is_floating_point_v<T>) {
        return b != b ? b : (keep ? a : b);
      } else {
        return keep ? a : b;
      }
    }
  } else if constexpr (std::is_integral_v<T>) {
    if constexpr (Op == ReduceOp::band) return static_cast<T>(a & b);
    if constexpr (Op == ReduceOp::bor) return static_cast<T>(a | b);
    return static_cast<T>(a ^ b);
  } else {
    return a;  // refused by check_reduce_op
  }
}

template <class Acc>
KOKKOS_INLINE_FUNCTION Acc divided(const Acc& a, std::int64_t divisor) {
  if constexpr (std::is_floating_point_v<Acc>) {
    return a / static_cast<Acc>(divisor);
  } else if constexpr (is_complex_scalar<Acc>) {
    return a / static_cast<typename Acc::value_type>(divisor);
  } else {
    return a;  // avg of integers is refused by check_reduce_op
  }
}

template <class T, ReduceOp Op>
struct CombineBlock {
  using Acc = accumulate_t<T>;
  static constexpr std::int64_t block = 1024;

  T* out;
  const T* const* contributions;
  std::size_t n;
  std::int64_t count;
  std::int64_t divisor;

  // Host: a block at a time, so that every contribution is read once and the sums stay in cache.
  void host(const std::int64_t item) const {
    const std::int64_t begin = item * block;
    const std::int64_t length = std::min(block, count - begin);
    if constexpr (std::is_same_v<Acc, T>) {
      reduce(out + begin, begin, length);
    } else {
      Acc acc[block];
      reduce(acc, begin, length);
      for (std::int64_t i = 0; i < length; ++i) out[begin + i] = static_cast<T>(acc[i]);
    }
  }

  void reduce(Acc* acc, std::int64_t begin, std::int64_t length) const {
    const T* first = contributions[0] + begin;
    if (n == 1) {
      for (std::int64_t i = 0; i < length; ++i) acc[i] = static_cast<Acc>(first[i]);
    } else {
      const T* second = contributions[1] + begin;
      for (std::int64_t i = 0; i < length; ++i) {
        acc[i] = apply<Op, Acc>(static_cast<Acc>(first[i]), static_cast<Acc>(second[i]));
      }
    }
    for (std::size_t k = 2; k < n; ++k) {
      const T* next = contributions[k] + begin;
      for (std::int64_t i = 0; i < length; ++i) {
        acc[i] = apply<Op, Acc>(acc[i], static_cast<Acc>(next[i]));
      }
    }
    if (divisor != 1) {
      for (std::int64_t i = 0; i < length; ++i) acc[i] = divided(acc[i], divisor);
    }
  }

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    Acc acc = static_cast<Acc>(contributions[0][i]);
    for (std::size_t k = 1; k < n; ++k) {
      acc = apply<Op, Acc>(acc, static_cast<Acc>(contributions[k][i]));
    }
    out[i] = static_cast<T>(divisor == 1 ? acc : divided(acc, divisor));
  }
};

template <class Execution, class T, ReduceOp Op>
void run(T* out, const std::vector<const void*>& contributions, std::int64_t count,
         std::int64_t divisor) {
  using Policy = Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>;
  CombineBlock<T, Op> f{out, nullptr, contributions.size(), count, divisor};
  if constexpr (std::is_same_v<typename Execution::memory_space, Kokkos::HostSpace>) {
    f.contributions = reinterpret_cast<const T* const*>(contributions.data());
    const std::int64_t blocks = (count + f.block - 1) / f.block;
    Kokkos::parallel_for("dtensor::combine", Policy(0, blocks),
                         [=](const std::int64_t item) { f.host(item); });
  } else {
    // As numbers: a View would take the stars of a pointer type for dimensions.
    std::vector<std::int64_t> addresses;
    for (const void* c : contributions) addresses.push_back(reinterpret_cast<std::intptr_t>(c));
    const Tensor list = Tensor::from_vector(
        addresses, {static_cast<std::int64_t>(addresses.size())}, DeviceKind::device);
    f.contributions = static_cast<const T* const*>(list.data());
    Kokkos::parallel_for("dtensor::combine", Policy(0, count), f);
    Execution().fence();  // the list goes out of scope
  }
}

}  // namespace

void combine(void* out, const std::vector<const void*>& contributions, std::int64_t count,
             DType dtype, ReduceOp op, std::int64_t divisor, DeviceKind kind) {
  if (count == 0) return;
  dispatch_dtype(dtype, [&]<class T>() {
    dispatch_space(kind, [&]<class Execution>() {
      T* const to = static_cast<T*>(out);
      const auto with = [&]<ReduceOp Op>() {
        run<Execution, T, Op>(to, contributions, count, divisor);
      };
      switch (op) {
        case ReduceOp::avg:
        case ReduceOp::sum:
          return with.template operator()<ReduceOp::sum>();
        case ReduceOp::min:
          return with.template operator()<ReduceOp::min>();
        case ReduceOp::max:
          return with.template operator()<ReduceOp::max>();
        case ReduceOp::product:
          return with.template operator()<ReduceOp::product>();
        case ReduceOp::band:
          return with.template operator()<ReduceOp::band>();
        case ReduceOp::bor:
          return with.template operator()<ReduceOp::bor>();
        case ReduceOp::bxor:
          return with.template operator()<ReduceOp::bxor>();
      }
    });
  });
}

Scalar identity_of(ReduceOp op, DType dtype) {
  switch (op) {
    case ReduceOp::product:
      return 1;
    case ReduceOp::band:
      return dtype == DType::boolean ? Scalar(true) : Scalar(-1);
    case ReduceOp::min:
    case ReduceOp::max: {
      const bool min = op == ReduceOp::min;
      if (is_floating(dtype)) {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        return min ? infinity : -infinity;
      }
      if (is_complex(dtype)) return 0;  // refused by check_reduce_op
      return dispatch_dtype(dtype, [&]<class T>() -> Scalar {
        if constexpr (std::is_integral_v<T>) {
          return min ? std::numeric_limits<T>::max() : std::numeric_limits<T>::lowest();
        } else {
          return 0;
        }
      });
    }
    case ReduceOp::sum:
    case ReduceOp::avg:
    case ReduceOp::bor:
    case ReduceOp::bxor:
      break;
  }
  return 0;
}

void divide(void* data, std::int64_t count, DType dtype, std::int64_t divisor, DeviceKind kind) {
  combine(data, {data}, count, dtype, ReduceOp::sum, divisor, kind);
}

}  // namespace dtensor
