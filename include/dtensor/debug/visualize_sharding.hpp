// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Where the parts of a tensor live, as text.
#pragma once

#include <string>

#include "dtensor/distributed/dtensor.hpp"

namespace dtensor {

/// A line per rank of the mesh with the index ranges it holds:
/// "rank 1 at (0, 1): [0:900, 32:64]". Under Partial, contributions to them. Local.
std::string visualize_sharding(const Layout& layout);
std::string visualize_sharding(const DTensor& tensor);

}  // namespace dtensor
