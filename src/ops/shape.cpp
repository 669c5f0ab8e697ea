// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/shape.hpp"

#include <numeric>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/promotion.hpp"

namespace dtensor {

DTensor transpose(const DTensor& a, std::int64_t dim0, std::int64_t dim1) {
  const int d0 = normalize_dim("transpose", dim0, a.dim());
  const int d1 = normalize_dim("transpose", dim1, a.dim());
  std::string letters(static_cast<std::size_t>(a.dim()), ' ');
  std::iota(letters.begin(), letters.end(), 'a');
  std::string exchanged = letters;
  std::swap(exchanged[static_cast<std::size_t>(d0)], exchanged[static_cast<std::size_t>(d1)]);
  Extents strides = a.stride();
  std::swap(strides[d0], strides[d1]);
  const Rule rule(letters + "->" + exchanged, moves_elements());
  return dispatch({"transpose", rule, a.dtype(), strides}, {a},
                  [&](Locals x) { return x[0].transpose(d0, d1); });
}

}  // namespace dtensor
