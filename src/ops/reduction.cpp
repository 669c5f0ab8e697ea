// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions whose parts on the ranks are contributions of a kind that Partial knows.
#include "dtensor/ops/reduction.hpp"

#include <fmt/format.h>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/local/reduction.hpp"
#include "dtensor/ops/promotion.hpp"
#include "reduction_checks.hpp"
#include "reduction_rule.hpp"
#include "states.hpp"

namespace dtensor::detail {

namespace {

// A reduction that leaves `reduction` over sharded dimensions.
template <class Kernel>
DTensor reduce(const char* function, const DTensor& a, DimSet dims, bool keepdim, DType result,
               ReduceOp reduction, std::uint32_t passes, const Kernel& kernel) {
  // Integers wrap around and bool is combined by "or": converting contributions is not linear.
  const bool exact = a.dtype() == result || is_floating(a.dtype()) || is_complex(a.dtype());
  const Rule& rule = reduction_rule(a.dim(), dims, keepdim, reduction, exact ? passes : 0);
  return dispatch({function, rule, result}, {a}, [&](Locals x) { return kernel(x[0]); });
}

DType norm_dtype(DType dtype) { return real_dtype(fractional_dtype(dtype)); }

// What norms with a root are summed up as.
DType power_sum_dtype(DType dtype) {
  return size_of(norm_dtype(dtype)) == 2 ? DType::float32 : norm_dtype(dtype);
}

void check_norm(double p, const Shape& shape, DimSet dims) {
  if (std::isnan(p)) throw ValueError("norm", "p = NaN", "a number, or an infinity");
  if (std::isinf(p)) check_not_empty("norm", shape, dims);
}

Tensor zero_norm(const Tensor& a, DimSet dims, bool keepdim, DType result) {
  return count(a, dims, keepdim, Count::number).to(result);
}

}  // namespace

Tensor sum(const char*, const Tensor& a, DimSet dims, bool keepdim) {
  return scaled_sum(a, dims, keepdim, sum_dtype(a.dtype()), 1);
}
DTensor sum(const char* function, const DTensor& a, DimSet dims, bool keepdim) {
  const DType result = sum_dtype(a.dtype());
  return reduce(function, a, dims, keepdim, result, ReduceOp::sum, sums,
                [&](const Tensor& x) { return scaled_sum(x, dims, keepdim, result, 1); });
}

Tensor mean(const char*, const Tensor& a, DimSet dims, bool keepdim) {
  return scaled_sum(a, dims, keepdim, fractional_dtype(a.dtype()), reduced_count(a.shape(), dims));
}
DTensor mean(const char* function, const DTensor& a, DimSet dims, bool keepdim) {
  const DType result = fractional_dtype(a.dtype());
  const std::int64_t n = reduced_count(a.shape(), dims);
  return reduce(function, a, dims, keepdim, result, ReduceOp::sum, sums,
                [&](const Tensor& x) { return scaled_sum(x, dims, keepdim, result, n); });
}

Tensor prod(const char*, const Tensor& a, DimSet dims, bool keepdim) {
  return product(a, dims, keepdim);
}
DTensor prod(const char* function, const DTensor& a, DimSet dims, bool keepdim) {
  return reduce(function, a, dims, keepdim, sum_dtype(a.dtype()), ReduceOp::product,
                PartialPass::bit(ReduceOp::product),
                [&](const Tensor& x) { return product(x, dims, keepdim); });
}

Tensor amax(const char* function, const Tensor& a, DimSet dims, bool keepdim) {
  check_ordered(function, a.dtype());
  check_not_empty(function, a.shape(), dims);
  return extreme(a, dims, keepdim, true);
}
DTensor amax(const char* function, const DTensor& a, DimSet dims, bool keepdim) {
  check_ordered(function, a.dtype());
  check_not_empty(function, a.shape(), dims);
  return reduce(function, a, dims, keepdim, a.dtype(), ReduceOp::max,
                PartialPass::bit(ReduceOp::max),
                [&](const Tensor& x) { return extreme(x, dims, keepdim, true); });
}
Tensor amin(const char* function, const Tensor& a, DimSet dims, bool keepdim) {
  check_ordered(function, a.dtype());
  check_not_empty(function, a.shape(), dims);
  return extreme(a, dims, keepdim, false);
}
DTensor amin(const char* function, const DTensor& a, DimSet dims, bool keepdim) {
  check_ordered(function, a.dtype());
  check_not_empty(function, a.shape(), dims);
  return reduce(function, a, dims, keepdim, a.dtype(), ReduceOp::min,
                PartialPass::bit(ReduceOp::min),
                [&](const Tensor& x) { return extreme(x, dims, keepdim, false); });
}

Tensor any(const char*, const Tensor& a, DimSet dims, bool keepdim) {
  return count(a, dims, keepdim, Count::any);
}
DTensor any(const char* function, const DTensor& a, DimSet dims, bool keepdim) {
  const std::uint32_t passes = a.dtype() == DType::boolean ? PartialPass::bit(ReduceOp::bor) : 0;
  return reduce(function, a, dims, keepdim, DType::boolean, ReduceOp::bor, passes,
                [&](const Tensor& x) { return count(x, dims, keepdim, Count::any); });
}
Tensor all(const char*, const Tensor& a, DimSet dims, bool keepdim) {
  return count(a, dims, keepdim, Count::all);
}
DTensor all(const char* function, const DTensor& a, DimSet dims, bool keepdim) {
  const std::uint32_t passes = a.dtype() == DType::boolean ? PartialPass::bit(ReduceOp::band) : 0;
  return reduce(function, a, dims, keepdim, DType::boolean, ReduceOp::band, passes,
                [&](const Tensor& x) { return count(x, dims, keepdim, Count::all); });
}

Tensor count_nonzero(const char*, const Tensor& a, DimSet dims, bool keepdim) {
  return count(a, dims, keepdim, Count::number);
}
DTensor count_nonzero(const char* function, const DTensor& a, DimSet dims, bool keepdim) {
  return reduce(function, a, dims, keepdim, DType::int64, ReduceOp::sum, 0,
                [&](const Tensor& x) { return count(x, dims, keepdim, Count::number); });
}

Tensor norm(const Tensor& a, double p, DimSet dims, bool keepdim) {
  check_norm(p, a.shape(), dims);
  if (p == 0) return zero_norm(a, dims, keepdim, norm_dtype(a.dtype()));
  return power_sum(a.to(fractional_dtype(a.dtype())), dims, keepdim, p, true);
}

DTensor norm(const DTensor& a, double p, DimSet dims, bool keepdim) {
  check_norm(p, a.shape(), dims);
  const DType fraction = fractional_dtype(a.dtype()), result = norm_dtype(a.dtype());
  const auto contributions = [&](ReduceOp reduction) {
    return reduce("norm", a, dims, keepdim, result, reduction, 0, [&](const Tensor& x) {
      return p == 0 ? zero_norm(x, dims, keepdim, result)
                    : power_sum(x.to(fraction), dims, keepdim, p, true);
    });
  };
  if (std::isinf(p)) return contributions(p > 0 ? ReduceOp::max : ReduceOp::min);
  if (p == 0 || p == 1) return contributions(ReduceOp::sum);
  const Rule& rule = reduction_rule(a.dim(), dims, keepdim, ReduceOp::sum, 0);
  const Operation operation{"norm", rule, power_sum_dtype(a.dtype())};
  const Prepared ready = prepare(operation, {a});
  const DeviceMesh& mesh = a.device_mesh();
  const bool whole = reducing_mesh_dims(ready.output).empty();
  const DTensor sums = wrap(operation, mesh, ready.output, [&] {
    return power_sum(ready.inputs[0].to_local().to(fraction), dims, keepdim, p, whole);
  });
  const Layout layout = ready.output.without_partial();
  const DTensor total =
      whole ? sums
            : redistribute(sums, mesh, layout, false, "norm",
                           "the root of a sum needs the whole sum", {0, &ready.inputs[0].layout()});
  return wrap({"norm", rule, result}, mesh, layout, [&] {
    const Tensor local = total.to_local();
    return whole ? local.to(result) : norm_of_power_sum(local, p, result);
  });
}

bool equal(const Tensor& a, const Tensor& b) {
  check_same_dtype("equal", a.dtype(), b.dtype());
  return a.shape() == b.shape() && close("equal", a, b, 0, 0, false);
}
bool equal(const DTensor& a, const DTensor& b) {
  check_mesh("equal", a, b);
  check_same_dtype("equal", a.dtype(), b.dtype());
  return a.shape() == b.shape() && close("equal", a, b, 0, 0, false);
}

bool close(const char* function, const Tensor& a, const Tensor& b, double rtol, double atol,
           bool equal_nan) {
  check_comparable(function, a.shape(), a.dtype(), b.shape(), b.dtype(), rtol, atol);
  check_same_memory(function, a, b);
  return !differ(a, b, rtol, atol, equal_nan).item<bool>();
}

bool close(const char* function, const DTensor& a, const DTensor& b, double rtol, double atol,
           bool equal_nan) {
  check_comparable(function, a.shape(), a.dtype(), b.shape(), b.dtype(), rtol, atol);
  static const auto* const rules = [] {
    auto* list = new std::vector<Rule>;
    const std::string letters = "abcdefgh";
    for (std::size_t rank = 0; rank <= letters.size(); ++rank) {
      const std::string all = letters.substr(0, rank);
      list->emplace_back(all + "," + all + "->", not_linear(), ReduceOp::bor);
    }
    return list;
  }();
  const Operation operation{function, (*rules)[static_cast<std::size_t>(a.dim())], DType::boolean};
  const DTensor differs = dispatch(
      operation, {a, b}, [&](Locals x) { return differ(x[0], x[1], rtol, atol, equal_nan); });
  const DeviceMesh& mesh = a.device_mesh();
  if (!mesh.is_member()) return true;
  return !redistribute(differs, mesh, differs.layout().without_partial(), false, function,
                       "every rank gets the answer", {0, &a.layout()})
              .to_local()
              .item<bool>();
}

}  // namespace dtensor::detail
