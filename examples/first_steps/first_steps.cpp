// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The first program of the README: the same lines as for one device, on any number of ranks.
#include <dtensor/dtensor.hpp>
#include <iostream>

using namespace dtensor;

int main(int argc, char** argv) {
  Runtime runtime(argc, argv);
  DeviceMesh mesh({Runtime::size()});
  MeshScope scope(mesh);

  DTensor a = full({1000, 200}, 0.5, {.placements = Placements{Shard(0)}});
  DTensor b = ones({200, 300}, {.placements = Placements{Shard(1)}});
  DTensor c = matmul(a, b) - 40.0;
  DTensor norm = sqrt(sum(c * c));

  const double value = norm.full_tensor().item<double>();
  if (Runtime::rank() == 0) std::cout << "norm = " << value << "\n";
}
