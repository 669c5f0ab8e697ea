// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/local/reduction.hpp"

#include <fmt/format.h>

#include <limits>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/promotion.hpp"
#include "strided_loop.hpp"

namespace dtensor {

namespace {

// What sums are accumulated in.
template <class T>
using sum_t = std::conditional_t<std::is_integral_v<T>, std::int64_t, accumulate_t<T>>;

// Integers wrap around.
template <class S>
KOKKOS_INLINE_FUNCTION void accumulate(S& sum, const S& value) {
  if constexpr (std::is_same_v<S, std::int64_t>) {
    sum = static_cast<S>(static_cast<std::uint64_t>(sum) + static_cast<std::uint64_t>(value));
  } else {
    sum = sum + value;
  }
}

template <class S>
struct RealOf {
  using type = S;
};
template <class R>
struct RealOf<Kokkos::complex<R>> {
  using type = R;
};

// What one thread can add many numbers in, one by one.
template <class S>
struct WideOf {
  using type = S;
};
template <>
struct WideOf<float> {
  using type = double;
};
template <>
struct WideOf<Kokkos::complex<float>> {
  using type = Kokkos::complex<double>;
};

// A sum over some dimensions: kept dimensions walk the result (operand 0) and the input (operand
// 1), reduced dimensions the input only.
template <class T>
struct SumLoop {
  using S = sum_t<T>;
  using Out = std::conditional_t<std::is_integral_v<T>, std::int64_t, T>;

  Out* out;
  const T* in;
  StridedLoop<2> kept;
  StridedLoop<1> reduced;
  std::int64_t divisor;

  KOKKOS_INLINE_FUNCTION S load(std::int64_t i) const { return scalar_cast<S>(in[i]); }

  template <class Sum>
  KOKKOS_INLINE_FUNCTION void store(std::int64_t i, const Sum& sum) const {
    if constexpr (std::is_integral_v<T>) {
      out[i] = sum;
    } else {
      using R = typename RealOf<Sum>::type;
      out[i] = scalar_cast<Out>(divisor == 1 ? sum : sum / static_cast<R>(divisor));
    }
  }
};

// Independent partial sums, which vector units and pipelines need.
constexpr int lanes = 16;

// Sum of a row. Halves are summed by themselves, so that rounding errors grow with the logarithm of
// the length.
template <class T>
sum_t<T> sum_row(const SumLoop<T>& loop, std::int64_t offset, std::int64_t count,
                 std::int64_t stride) {
  using S = sum_t<T>;
  if (count > 2048) {
    const std::int64_t half = count / 2 / lanes * lanes;
    S sum = sum_row(loop, offset, half, stride);
    accumulate(sum, sum_row(loop, offset + half * stride, count - half, stride));
    return sum;
  }
  S partial[lanes] = {};
  std::int64_t i = 0;
  if (stride == 1) {
    for (; i + lanes <= count; i += lanes) {
      for (int k = 0; k < lanes; ++k) accumulate(partial[k], loop.load(offset + i + k));
    }
  }
  for (; i < count; ++i) accumulate(partial[i % lanes], loop.load(offset + i * stride));
  for (int width = lanes / 2; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) accumulate(partial[k], partial[k + width]);
  }
  return partial[0];
}

// The input's elements to sum lie side by side: one result after the other.
template <class Execution, class T>
void sum_along_rows(const SumLoop<T>& loop) {
  const int last = loop.reduced.rank - 1;
  const std::int64_t row = loop.reduced.row();
  const std::int64_t rows = loop.reduced.count / row;
  Kokkos::parallel_for(
      "dtensor::sum_rows",
      Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>(0, loop.kept.count),
      [=](const std::int64_t item) {
        const PerOperand<2> base = loop.kept.locate(loop.kept.rank, item);
        sum_t<T> sum = {};
        for (std::int64_t r = 0; r < rows; ++r) {
          const std::int64_t offset = base[1] + loop.reduced.locate(last, r)[0];
          accumulate(sum, sum_row(loop, offset, row, loop.reduced.stride[last][0]));
        }
        loop.store(base[0], sum);
      });
}

// Results lie side by side: a block of them at a time, so that the input is read along its rows.
template <class Execution, class T>
void sum_across_rows(const SumLoop<T>& loop) {
  constexpr std::int64_t block = 512;
  using S = sum_t<T>;
  const int last = loop.kept.rank - 1;
  const std::int64_t length = loop.kept.row();
  const std::int64_t blocks = (length + block - 1) / block;
  const PerOperand<2> stride = loop.kept.stride[last];
  Kokkos::parallel_for("dtensor::sum_columns",
                       Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>(
                           0, loop.kept.count / length * blocks),
                       [=](const std::int64_t item) {
                         const PerOperand<2> base = loop.kept.locate(last, item / blocks);
                         const std::int64_t begin = item % blocks * block;
                         const std::int64_t count = std::min(block, length - begin);
                         S sums[block] = {};
                         for (std::int64_t r = 0; r < loop.reduced.count; ++r) {
                           const std::int64_t offset = base[1] + begin * stride[1] +
                                                       loop.reduced.locate(loop.reduced.rank, r)[0];
                           if (stride[1] == 1) {
                             for (std::int64_t i = 0; i < count; ++i)
                               accumulate(sums[i], loop.load(offset + i));
                           } else {
                             for (std::int64_t i = 0; i < count; ++i) {
                               accumulate(sums[i], loop.load(offset + i * stride[1]));
                             }
                           }
                         }
                         for (std::int64_t i = 0; i < count; ++i) {
                           loop.store(base[0] + (begin + i) * stride[0], sums[i]);
                         }
                       });
}

// One team per result.
template <class Execution, class T>
void sum_by_team(const SumLoop<T>& loop) {
  using Wide = typename WideOf<sum_t<T>>::type;
  using Policy = Kokkos::TeamPolicy<Execution>;
  constexpr std::int64_t most_teams = std::int64_t{1} << 30;
  for (std::int64_t begin = 0; begin < loop.kept.count; begin += most_teams) {
    const auto teams = static_cast<int>(std::min(most_teams, loop.kept.count - begin));
    Kokkos::parallel_for(
        "dtensor::sum", Policy(teams, Kokkos::AUTO),
        KOKKOS_LAMBDA(const typename Policy::member_type& team) {
          const PerOperand<2> base = loop.kept.locate(loop.kept.rank, begin + team.league_rank());
          Wide sum = {};
          Kokkos::parallel_reduce(
              Kokkos::TeamThreadRange(team, loop.reduced.count),
              [&](const std::int64_t r, Wide& partial) {
                const std::int64_t offset = base[1] + loop.reduced.locate(loop.reduced.rank, r)[0];
                accumulate(partial, scalar_cast<Wide>(loop.load(offset)));
              },
              sum);
          Kokkos::single(Kokkos::PerTeam(team), [&] { loop.store(base[0], sum); });
        });
  }
}

template <class Execution, class T>
void run(const SumLoop<T>& loop) {
  if constexpr (works_by_row<Execution>) {
    const std::int64_t reduced_stride = loop.reduced.stride[loop.reduced.rank - 1][0];
    const std::int64_t kept_stride = loop.kept.stride[loop.kept.rank - 1][1];
    if (loop.kept.row() == 1 || reduced_stride <= kept_stride) {
      sum_along_rows<Execution>(loop);
    } else {
      sum_across_rows<Execution>(loop);
    }
  } else {
    sum_by_team<Execution>(loop);
  }
}

std::vector<bool> all_dims(const Tensor& a) {
  return std::vector<bool>(static_cast<std::size_t>(a.dim()), true);
}

std::int64_t reduced_count(const Tensor& a, const std::vector<bool>& reduced) {
  std::int64_t count = 1;
  for (int d = 0; d < a.dim(); ++d) {
    if (reduced[static_cast<std::size_t>(d)]) count *= a.shape()[d];
  }
  return count;
}

Tensor sum_over(const Tensor& a, const std::vector<bool>& reduced, bool keepdim) {
  return detail::scaled_sum(a, reduced, keepdim, sum_dtype(a.dtype()), 1);
}

Tensor mean_over(const Tensor& a, const std::vector<bool>& reduced, bool keepdim) {
  return detail::scaled_sum(a, reduced, keepdim, fractional_dtype(a.dtype()),
                            reduced_count(a, reduced));
}

}  // namespace

namespace detail {

std::vector<bool> reduced_dims(const char* function, const std::vector<std::int64_t>& dims,
                               int rank) {
  std::vector<bool> reduced(static_cast<std::size_t>(rank), false);
  for (std::int64_t dim : dims) {
    const auto d = static_cast<std::size_t>(normalize_dim(function, dim, rank));
    if (reduced[d]) {
      throw ValueError(function, fmt::format("dimensions ({})", fmt::join(dims, ", ")),
                       "each dimension at most once");
    }
    reduced[d] = true;
  }
  return reduced;
}

Tensor scaled_sum(const Tensor& a, const std::vector<bool>& reduced, bool keepdim, DType result,
                  std::int64_t divisor) {
  // Means of integers are computed in their own type.
  const Tensor in = is_integral(result) ? a : a.to(result);
  Shape shape;
  Extents kept_extents, kept_strides, reduced_extents, reduced_strides;
  for (int d = 0; d < in.dim(); ++d) {
    const bool is_reduced = reduced[static_cast<std::size_t>(d)];
    (is_reduced ? reduced_extents : kept_extents).push_back(in.shape()[d]);
    (is_reduced ? reduced_strides : kept_strides).push_back(in.strides()[d]);
    if (!is_reduced || keepdim) shape.push_back(is_reduced ? 1 : in.shape()[d]);
  }
  Tensor out = Tensor::empty(shape, result, in.device());
  if (out.numel() == 0) return out;
  if (reduced_extents.product() == 0) {
    out.fill(divisor == 0 ? Scalar(std::numeric_limits<double>::quiet_NaN()) : Scalar(0));
    return out;
  }
  // The result's elements lie in the order of the kept dimensions. Reduced dimensions go in memory
  // order.
  const auto kept = make_loop<2>(kept_extents, {row_major_strides(kept_extents), kept_strides});
  const auto summed = make_loop<1>(reduced_extents, {reduced_strides});
  dispatch_dtype(in.dtype(), [&]<class T>() {
    using Loop = SumLoop<T>;
    const Loop loop{static_cast<typename Loop::Out*>(out.data()), static_cast<const T*>(in.data()),
                    kept, summed, divisor};
    dispatch_space(in.device(), [&]<class Execution>() { run<Execution>(loop); });
  });
  return out;
}

}  // namespace detail

Tensor sum(const Tensor& a) { return sum_over(a, all_dims(a), false); }
Tensor sum(const Tensor& a, const std::vector<std::int64_t>& dims, bool keepdim) {
  return sum_over(a, detail::reduced_dims("sum", dims, a.dim()), keepdim);
}
Tensor mean(const Tensor& a) { return mean_over(a, all_dims(a), false); }
Tensor mean(const Tensor& a, const std::vector<std::int64_t>& dims, bool keepdim) {
  return mean_over(a, detail::reduced_dims("mean", dims, a.dim()), keepdim);
}

}  // namespace dtensor
