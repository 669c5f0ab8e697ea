// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <vector>

#include "dtensor/core/tensor.hpp"
#include "dtensor/layout/index_set.hpp"

namespace dtensor::detail {

/// A diagonal of a global matrix: elements (row + i, column + i) for i below `length`.
struct Diagonal {
  std::int64_t row, column, length;
};
Diagonal diagonal_of(std::int64_t rows, std::int64_t columns, std::int64_t offset);

/// Elements of a diagonal that lie in one piece on a rank.
struct DiagonalPiece {
  std::int64_t first;        ///< index along the diagonal
  std::int64_t row, column;  ///< position of that one in the local tensor
  std::int64_t length;
};
/// The pieces of a diagonal that a rank with these rows and columns holds.
std::vector<DiagonalPiece> diagonal_pieces(const Diagonal& diagonal, const IndexSet& rows,
                                           const IndexSet& columns);

/// A view of one piece: the dimensions of `a` but `dim1` and `dim2`, then the diagonal.
Tensor diagonal_view(const Tensor& a, int dim1, int dim2, const DiagonalPiece& piece);

}  // namespace dtensor::detail
