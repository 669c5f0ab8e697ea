// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Who needs what from whom in a step of a plan, as index-set arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "dtensor/redistribute/transfer.hpp"

namespace dtensor {

struct Step;
class Layout;

/// Equal shape and ranks; names do not matter.
bool same_grid(const Layout& a, const Layout& b) noexcept;

/// Whether mesh dimension `mesh_dim` is Partial with the same operation on both sides, so that its
/// contributions stay where they are.
bool keeps_partial(const Layout& from, const Layout& to, int mesh_dim) noexcept;

/// What a rank receives in a step.
struct Received {
  std::int64_t messages = 0;
  std::int64_t elements = 0;
};
Received received(const Step& step, int rank);

/// Number of elements of the result that a rank has to get from somewhere, itself included.
std::int64_t needed_elements(const Step& step, int rank);

/// Whether a rank needs everything that it holds before the step.
bool keeps_all(const Step& step, int rank);

/// A part of a rank's result, with the ranks whose values make it up, in the order of reduction.
struct Region {
  Transfer transfer;
  std::vector<int> contributors;  ///< ranks of `MPI_COMM_WORLD`
  Shape source_shape;             ///< local shape on the contributors
};

/// The regions that make up the result of an exchange on `rank`.
std::vector<Region> incoming(const Step& step, int rank);

/// What `rank` sends in an exchange: the receiving rank, its local shape and the elements.
struct Outgoing {
  int rank;
  Shape destination_shape;
  Transfer transfer;
};
std::vector<Outgoing> outgoing(const Step& step, int rank);

}  // namespace dtensor
