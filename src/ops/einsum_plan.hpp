// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// What `einsum` does for given subscripts and shapes. Pure arithmetic.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "contraction.hpp"
#include "dtensor/core/extents.hpp"

namespace dtensor::detail {

struct EinsumPlan {
  /// What happens to an operand before it meets another one.
  struct Preparation {
    struct Diagonal {
      int kept, dropped;
    };
    std::vector<Diagonal> diagonals;
    std::optional<Reordering> reordering;
  };
  /// The product of two tensors: operands are counted from 0, results of steps after them.
  struct Step {
    std::size_t a, b;
    Contraction contraction;
  };
  std::vector<Preparation> operands;
  std::vector<Step> steps;
};

/// Throws `ValueError` naming `name`.
EinsumPlan make_einsum_plan(const char* name, std::string_view subscripts,
                            const std::vector<Shape>& shapes);

}  // namespace dtensor::detail
