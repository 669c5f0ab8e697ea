// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "permutation.hpp"

#include <numeric>
#include <utility>

#include "dtensor/random/random.hpp"
#include "wide_product.hpp"

namespace dtensor {

namespace {

// Up to this length every permutation is equally likely: each rank shuffles a list of its own.
constexpr std::int64_t max_shuffled = 4096;

std::vector<std::int64_t> shuffled(const RandomBlocks& blocks, std::int64_t n) {
  std::vector<std::int64_t> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), std::int64_t{0});
  for (std::int64_t i = n - 1; i > 0; --i) {
    const auto place = static_cast<std::uint64_t>(i);
    const PhiloxBlock block = blocks[place];
    const std::uint64_t word = block.word[0] | static_cast<std::uint64_t>(block.word[1]) << 32;
    std::swap(values[static_cast<std::size_t>(i)],
              values[static_cast<std::size_t>(upper_product(word, place + 1))]);
  }
  return values;
}

template <class Execution, class T>
void permute(T* out, const detail::Part& part, const KeyedPermutation& permutation) {
  const GlobalIndex<typename Execution::memory_space> index(part.shape, part.sets);
  Kokkos::parallel_for(
      "dtensor::randperm",
      Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>(0, part.local.numel()),
      KOKKOS_LAMBDA(const std::int64_t i) {
        out[i] = static_cast<T>(permutation(static_cast<std::uint64_t>(index(i))));
      });
}

}  // namespace

void detail::randperm(const Part& out, std::int64_t n, Generator& generator) {
  const RandomBlocks blocks = generator.take("randperm");
  if (out.local.numel() == 0) return;
  if (n <= max_shuffled) {
    const std::vector<std::int64_t> values = shuffled(blocks, n);
    std::vector<std::int64_t> own;
    for (const Interval& i : out.sets.front().intervals()) {
      own.insert(own.end(), values.begin() + i.begin, values.begin() + i.end);
    }
    out.local.copy_from(Tensor::from_vector(own, out.local.shape(), out.local.device()));
    return;
  }
  const KeyedPermutation permutation(blocks, static_cast<std::uint64_t>(n));
  dispatch_dtype(out.local.dtype(), [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) > 1) {
      dispatch_space(out.local.device(), [&]<class Execution>() {
        permute<Execution>(static_cast<T*>(out.local.data()), out, permutation);
      });
    }
  });
}

}  // namespace dtensor
