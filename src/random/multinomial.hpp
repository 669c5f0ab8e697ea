// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Drawing categories from the part of the weights that a rank holds.
#pragma once

#include "dtensor/random/random.hpp"

namespace dtensor {

/// The ranks that hold categories of the same rows, and this one among them.
class Sharers {
 public:
  virtual ~Sharers() = default;
  /// Reduces a tensor of (rows held, any).
  virtual Tensor reduce(const Tensor& tensor, ReduceOp op) const = 0;
  /// Puts the columns of all ranks side by side; each brings as many.
  virtual Tensor gather(const Tensor& tensor) const = 0;
};

/// The weights that a rank holds, and what it knows of the others'.
struct Categories {
  Tensor weights;  ///< (rows held, categories held), float64, row-major
  std::int64_t all_categories = 0;
  IndexSet rows, held;
  /// The most intervals of categories that a rank holds: each has that many slots.
  std::int64_t slots_per_rank = 1;
  /// The slots of all intervals, in increasing order of their categories.
  std::vector<std::int64_t> slots{0};
  std::int64_t own_first_slot = 0;
};

/// What is wrong with the weights; the larger one counts.
enum class WeightProblem : std::int64_t { none = 0, too_few = 1, invalid = 2 };

/// (rows held, samples) category numbers, and what is wrong with the rows held. The same on all
/// ranks that share the rows. Collective over them where they are several.
Tensor draw_with_replacement(const Categories& categories, std::int64_t samples,
                             const RandomBlocks& blocks, const Sharers& sharers,
                             WeightProblem& problem);
Tensor draw_without_replacement(const Categories& categories, std::int64_t samples,
                                const RandomBlocks& blocks, const Sharers& sharers,
                                WeightProblem& problem);

}  // namespace dtensor
