// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/linalg.hpp"

#include "dtensor/core/error.hpp"
#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/promotion.hpp"

namespace dtensor {

DTensor matmul(const DTensor& a, const DTensor& b) {
  static const Rule rules[2][2] = {{Rule("k,k->", in_each()), Rule("k,kn->n", in_each())},
                                   {Rule("mk,k->m", in_each()), Rule("mk,kn->mn", in_each())}};
  detail::check_matmul(a.shape(), a.dtype(), b.shape(), b.dtype());
  return dispatch({"matmul", rules[a.dim() - 1][b.dim() - 1], a.dtype()}, {a, b},
                  [](Locals x) { return matmul(x[0], x[1]); });
}

}  // namespace dtensor
