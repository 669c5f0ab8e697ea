// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel of one's own on distributed tensors: heat spreading on a plate, by explicit steps of a
// five-point stencil. The plate is split by columns while neighbours above and below are read, and
// by rows while those to the left and right are: each time the kernel finds what it needs in its
// own part. The sum of all heat must stay, and the plate must be the same on any number of ranks.
#include <dtensor/dtensor.hpp>
#include <iostream>

using namespace dtensor;

using Plate = Kokkos::View<const double**, Kokkos::LayoutStride, DeviceMemory>;
using NewPlate = Kokkos::View<double**, Kokkos::LayoutRight, DeviceMemory>;

// What flows into each element from its two neighbours in one column. Nothing leaves at the ends.
NewPlate flow_in_columns(Plate plate) {
  const auto rows = static_cast<int>(plate.extent(0)), columns = static_cast<int>(plate.extent(1));
  NewPlate flow("dtensor::example::flow", plate.extent(0), plate.extent(1));
  Kokkos::parallel_for(
      "dtensor::example::flow_in_columns",
      Kokkos::MDRangePolicy<DeviceExecution, Kokkos::Rank<2>>({0, 0}, {rows, columns}),
      KOKKOS_LAMBDA(int i, int j) {
        const double above = i > 0 ? plate(i - 1, j) - plate(i, j) : 0;
        const double below = i + 1 < rows ? plate(i + 1, j) - plate(i, j) : 0;
        flow(i, j) = above + below;
      });
  return flow;
}

int main(int argc, char** argv) {
  Runtime runtime(argc, argv);
  DeviceMesh mesh({Runtime::size()});
  const Placements by_rows{Shard(0)}, by_columns{Shard(1)};

  // A hot spot on a plate that no number of ranks divides.
  const std::int64_t rows = 37, columns = 23;
  std::vector<double> spot(static_cast<std::size_t>(rows * columns), 0.0);
  spot[static_cast<std::size_t>(5 * columns + 4)] = 1000.0;
  DTensor heat = distribute_tensor(Tensor::from_vector(spot, {rows, columns}), mesh, by_rows);

  const auto vertical = experimental::local_map(flow_in_columns, by_columns, {by_columns},
                                                {.redistribute_inputs = true});
  for (int step = 0; step < 100; ++step) {
    const DTensor up_down = vertical(heat);
    const DTensor left_right = transpose(vertical(transpose(heat, 0, 1)), 0, 1);
    heat = heat + (up_down + left_right) * 0.2;
  }

  const double total = sum(heat).full_tensor().item<double>();
  const double squares = sum(heat * heat).full_tensor().item<double>();
  if (Runtime::rank() == 0) {
    std::cout.precision(8);
    std::cout << "heat = " << total << ", sum of squares = " << squares << "\n";
  }
}
