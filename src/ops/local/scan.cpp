// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "scan.hpp"

#include "dtensor/ops/local/reduction.hpp"
#include "dtensor/ops/promotion.hpp"
#include "reduction_loop.hpp"
#include "reduction_types.hpp"

namespace dtensor {

namespace {

using detail::Scan;

template <class T>
using result_t = std::conditional_t<std::is_integral_v<T>, std::int64_t, T>;

// Integers wrap around.
template <Scan Operation, class A>
KOKKOS_INLINE_FUNCTION A joined(const A& a, const A& b) {
  if constexpr (std::is_integral_v<A>) {
    const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
    return static_cast<A>(Operation == Scan::sum ? x + y : x * y);
  } else {
    return Operation == Scan::sum ? a + b : a * b;
  }
}

template <Scan Operation, class A>
KOKKOS_INLINE_FUNCTION A neutral() {
  return A(Operation == Scan::sum ? 0 : 1);
}

// Lines along the dimension walk the result (operand 0), the input (1) and the carry (2). A work
// item is a block of neighbouring lines, taken together: their sums do not wait for each other.
template <class T, Scan Operation, int Block>
struct ScanLines {
  using A = sum_t<T>;
  result_t<T>* out;
  const T* in;
  const A* carry;
  StridedLoop<3> lines;
  std::int64_t length, out_stride, in_stride;

  KOKKOS_INLINE_FUNCTION std::int64_t blocks() const { return (lines.row() + Block - 1) / Block; }
  std::int64_t items() const { return lines.count / lines.row() * blocks(); }

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t item) const {
    const int last = lines.rank - 1;
    const PerOperand<3> base = lines.locate(last, item / blocks());
    const PerOperand<3> step = lines.stride[last];
    const std::int64_t first = item % blocks() * Block;
    const std::int64_t rest = lines.row() - first;
    const int count = static_cast<int>(rest < Block ? rest : Block);
    result_t<T>* KOKKOS_RESTRICT o = out + base[0] + first * step[0];
    const T* x = in + base[1] + first * step[1];
    A sums[Block];
    for (int i = 0; i < count; ++i) {
      sums[i] = carry ? carry[base[2] + (first + i) * step[2]] : neutral<Operation, A>();
    }
    if (step[0] == 1 && step[1] == 1) {
      for (std::int64_t r = 0; r < length; ++r) scan_row(o, x, r, count, sums, 1, 1);
    } else {
      for (std::int64_t r = 0; r < length; ++r) {
        scan_row(o, x, r, count, sums, step[0], step[1]);
      }
    }
  }

  KOKKOS_INLINE_FUNCTION void scan_row(result_t<T>* KOKKOS_RESTRICT o, const T* x, std::int64_t r,
                                       int count, A* sums, std::int64_t out_step,
                                       std::int64_t in_step) const {
    for (int i = 0; i < count; ++i) {
      sums[i] = joined<Operation>(sums[i], scalar_cast<A>(x[r * in_stride + i * in_step]));
      o[r * out_stride + i * out_step] = scalar_cast<result_t<T>>(sums[i]);
    }
  }
};

template <class A, Scan Operation>
struct FoldRows {
  const A* rows;
  const std::int64_t* which;
  A* out;
  std::int64_t count, length;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    A total = neutral<Operation, A>();
    for (std::int64_t k = 0; k < count; ++k) {
      total = joined<Operation>(total, rows[which[k] * length + i]);
    }
    out[i] = total;
  }
};

template <class F>
void with_operation(Scan operation, const F& f) {
  if (operation == Scan::sum) {
    f.template operator()<Scan::sum>();
  } else {
    f.template operator()<Scan::product>();
  }
}

}  // namespace

namespace detail {

DType scan_dtype(DType dtype) {
  return is_floating(dtype) && size_of(dtype) == 2 ? DType::float32 : sum_dtype(dtype);
}

void scan_into(const Tensor& out, const Tensor& in, int dim, Scan operation, const Tensor& carry) {
  if (in.numel() == 0) return;
  Extents extents = in.shape(), out_strides = out.strides(), in_strides = in.strides();
  extents.erase(dim);
  out_strides.erase(dim);
  in_strides.erase(dim);
  const auto lines = make_loop<3>(extents, {out_strides, in_strides, row_major_strides(extents)});
  dispatch_dtype(in.dtype(), [&]<class T>() {
    with_operation(operation, [&]<Scan Operation>() {
      dispatch_space(in.device(), [&]<class Execution>() {
        using A = sum_t<T>;
        constexpr int block = works_by_row<Execution> ? 128 : 1;
        const ScanLines<T, Operation, block> task{
            static_cast<result_t<T>*>(out.data()),
            static_cast<const T*>(in.data()),
            carry.defined() ? static_cast<const A*>(carry.data()) : nullptr,
            lines,
            in.shape()[dim],
            out.strides()[dim],
            in.strides()[dim]};
        for_items<Execution>("dtensor::scan", task.items(), task);
      });
    });
  });
}

Tensor scan_total(const Tensor& in, int dim, Scan operation) {
  const DimSet dims = DimSet().set(static_cast<std::size_t>(dim));
  const Tensor wide = is_floating(in.dtype()) ? in.to(scan_dtype(in.dtype())) : in;
  return operation == Scan::sum ? scaled_sum(wide, dims, false, sum_dtype(wide.dtype()), 1)
                                : product(wide, dims, false);
}

Tensor fold_rows(const Tensor& rows, const std::vector<std::int64_t>& which, Scan operation) {
  Shape shape = rows.shape();
  shape.erase(0);
  Tensor out = Tensor::empty(shape, rows.dtype(), rows.device());
  const auto count = static_cast<std::int64_t>(which.size());
  const Tensor list = Tensor::from_vector(which, {count}, rows.device());
  dispatch_dtype(rows.dtype(), [&]<class A>() {
    if constexpr (std::is_same_v<A, sum_t<A>>) {
      with_operation(operation, [&]<Scan Operation>() {
        const FoldRows<A, Operation> f{static_cast<const A*>(rows.data()),
                                       list.data_as<std::int64_t>(), static_cast<A*>(out.data()),
                                       count, out.numel()};
        dispatch_space(rows.device(), [&]<class Execution>() {
          for_items<Execution>("dtensor::fold_rows", out.numel(), f);
        });
      });
    }
  });
  fence(rows.device(), "dtensor::fold_rows");  // before the list goes
  return out;
}

Tensor scan(const char* function, const Tensor& a, std::int64_t dim, Scan operation) {
  const int d = normalize_dim(function, dim, a.dim());
  const Tensor out = Tensor::empty(a.shape(), sum_dtype(a.dtype()), a.device());
  scan_into(out, a, d, operation, Tensor());
  return out;
}

}  // namespace detail
}  // namespace dtensor
