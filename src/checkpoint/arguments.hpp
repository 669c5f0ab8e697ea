// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Checks that saving and loading have in common.
#pragma once

#include <string>

#include "dtensor/checkpoint/checkpoint.hpp"
#include "dtensor/layout/hash.hpp"

namespace dtensor::checkpoint {

// The mesh of the tensors, of the first one when there are several. Throws `ValueError` when there
// is no tensor, `StateError` when the first is undefined. Local.
DeviceMesh mesh_of(const char* function, const Tensors& tensors);
// Throws `ValueError` when one is on another mesh, `StateError` when one is undefined. Local.
void check_one_mesh(const char* function, const DeviceMesh& mesh, const Tensors& tensors);

void add_text(Hash& hash, const std::string& text);
// Names, scalar types and layouts.
void add_tensors(Hash& hash, const Tensors& tensors);
// "'w': float64 (8, 8) as [S(0)] on (4) of ranks [0, 1, 2, 3]".
std::string describe(const Tensors& tensors);

}  // namespace dtensor::checkpoint
