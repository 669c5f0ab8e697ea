// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random walkers in a kernel of one's own: the same walks on any number of ranks.
#include <dtensor/dtensor.hpp>
#include <iostream>

using namespace dtensor;

int main(int argc, char** argv) {
  Runtime runtime(argc, argv);
  DeviceMesh mesh({Runtime::size()});

  const DTensor walkers = zeros({1001}, mesh, {Shard(0)});
  const auto position = walkers.local_view<double*>();
  const auto number = global_index(walkers);  // which of all walkers a local one is
  Generator generator(2024);

  for (int step = 0; step < 10; ++step) {
    const auto random = generator.device();
    Kokkos::parallel_for(
        "random_walk", position.extent_int(0), KOKKOS_LAMBDA(const int i) {
          auto r = random.at(number(i));
          const bool rests = r.uniform<double>() < 0.25;
          if (!rests) position(i) += r.normal<double>();
        });
  }

  const auto places = walkers.full_tensor().to_vector<double>();
  double squares = 0;
  for (double x : places) squares += x * x;
  if (Runtime::rank() == 0) {
    std::cout.precision(17);
    std::cout << "walker 1000 is at " << places[1000] << "\n"
              << "mean square " << squares / 1001 << " (expected 7.5)\n";
  }
}
