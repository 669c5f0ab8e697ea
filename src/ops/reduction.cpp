// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/reduction.hpp"

#include "dtensor/core/error.hpp"
#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/promotion.hpp"

namespace dtensor {

namespace {

DTensor reduce(const char* name, const DTensor& a, const std::vector<bool>& reduced, bool keepdim,
               bool averages) {
  std::string input, output;
  std::int64_t divisor = 1;
  for (int d = 0; d < a.dim(); ++d) {
    const char letter = static_cast<char>('a' + d);
    const bool is_reduced = reduced[static_cast<std::size_t>(d)];
    input += letter;
    if (!is_reduced) {
      output += letter;
    } else if (keepdim) {
      output += '1';
    }
    if (is_reduced && averages) divisor *= a.shape()[d];
  }
  const DType result = averages ? fractional_dtype(a.dtype()) : sum_dtype(a.dtype());
  const Rule rule(input + "->" + output, unless_converted(a.dtype(), result, in_the_only_input()));
  return dispatch({name, rule, result}, {a}, [&](Locals x) {
    return detail::scaled_sum(x[0], reduced, keepdim, result, divisor);
  });
}

std::vector<bool> all_dims(const DTensor& a) {
  return std::vector<bool>(static_cast<std::size_t>(a.dim()), true);
}

}  // namespace

DTensor sum(const DTensor& a) { return reduce("sum", a, all_dims(a), false, false); }
DTensor sum(const DTensor& a, const std::vector<std::int64_t>& dims, bool keepdim) {
  return reduce("sum", a, detail::reduced_dims("sum", dims, a.dim()), keepdim, false);
}
DTensor mean(const DTensor& a) { return reduce("mean", a, all_dims(a), false, true); }
DTensor mean(const DTensor& a, const std::vector<std::int64_t>& dims, bool keepdim) {
  return reduce("mean", a, detail::reduced_dims("mean", dims, a.dim()), keepdim, true);
}

}  // namespace dtensor
