// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The working distribution of blocked factorizations: blocks of rows that go round the ranks, so
/// that all ranks have work until the end.
#pragma once

#include <cstdint>
#include <vector>

#include "dtensor/distributed/dtensor.hpp"

namespace dtensor::detail {

/// Consecutive rows that one rank has.
struct RowBlock {
  std::int64_t begin, end;
  std::int64_t owner;  ///< position in the mesh
  std::int64_t local;  ///< where they begin on their owner
  std::int64_t rows() const noexcept { return end - begin; }
};

class RowBlocks {
 public:
  /// Of the rows of `matrix`, over all ranks of its mesh, of which this process is one.
  /// \param operation  for events; a literal
  RowBlocks(const char* operation, const DTensor& matrix);

  const std::vector<RowBlock>& blocks() const noexcept { return blocks_; }
  bool is_own(const RowBlock& block) const noexcept { return block.owner == self_; }
  /// Number of this rank's rows before row `begin` of the matrix, a block's.
  std::int64_t rows_before(std::int64_t begin) const;

  /// A row-major copy of this rank's rows of a matrix on the mesh. Collective.
  /// \param input  which one of the operator's inputs it is
  Tensor take(const DTensor& matrix, int input) const;
  /// The matrix with these rows, in a layout on the matrix's mesh. Collective.
  DTensor give(const Tensor& rows, const Shape& shape, const DeviceMesh& mesh,
               const Layout& layout) const;
  /// One block, from its owner to all. \param rows the block on its owner, elsewhere no rows
  Tensor broadcast(const RowBlock& block, const Tensor& rows) const;
  /// All rows from a block's first on, on every rank. \param rows this rank's
  Tensor gather_from(std::int64_t begin, const Tensor& rows) const;

 private:
  Layout layout(const Shape& shape) const;
  // Rows of all ranks, one rank's after the other's, on every rank.
  Tensor gather(const std::vector<std::int64_t>& counts, const Tensor& rows,
                const char* reason) const;

  const char* operation_;
  Layout input_;  // of the matrix, for errors
  DeviceMesh line_;
  std::int64_t rows_, rounds_, self_;
  std::vector<RowBlock> blocks_;
};

/// Whether every rank of the mesh has all values.
bool is_replicated(const Layout& layout);
/// What a rank outside of the mesh holds.
DTensor empty_part(const DeviceMesh& mesh, const Layout& layout, DType dtype);

}  // namespace dtensor::detail
