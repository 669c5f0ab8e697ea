// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The backends of one build against one another, and kernels against tensor functions.
#include <gtest/gtest.h>

#include "dtensor/random/random.hpp"
#include "random/draw.hpp"

using namespace dtensor;

namespace {

// All distributions at every index, in one execution space.
template <class Execution>
std::vector<double> drawn(std::int64_t n) {
  using View = Kokkos::View<double*, typename Execution::memory_space>;
  const View values("dtensor::test", static_cast<std::size_t>(n));
  Generator generator(12, 3, 4);
  const DeviceGenerator random = generator.device();
  Kokkos::parallel_for(
      "dtensor::test", Kokkos::RangePolicy<Execution>(0, static_cast<std::size_t>(n)),
      KOKKOS_LAMBDA(const std::int64_t i) {
        auto r = random.at(i);
        const double a = r.normal<double>(), b = r.exponential<double>(), c = r.uniform<double>();
        const float d = r.normal<float>(), e = r.exponential<float>(), f = r.uniform<float>();
        // Each alone in its bits: sums would hide differences.
        values(i) = i % 6 == 0   ? a
                    : i % 6 == 1 ? b
                    : i % 6 == 2 ? c
                                 : static_cast<double>(i % 6 == 3   ? d
                                                       : i % 6 == 4 ? e
                                                                    : f);
      });
  Execution().fence();
  const auto host = Kokkos::create_mirror_view_and_copy(Kokkos::HostSpace(), values);
  return {host.data(), host.data() + n};
}

// Two numbers of a block.
struct Halves {
  using Value = std::uint64_t;
  static constexpr int per_block = 2;
  KOKKOS_INLINE_FUNCTION void operator()(const PhiloxBlock& b, Value* values) const {
    for (int i = 0; i < 2; ++i) {
      values[i] = b.word[2 * i] | static_cast<std::uint64_t>(b.word[2 * i + 1]) << 32;
    }
  }
};

}  // namespace

// What a kernel draws comes from the same words and transforms as what fills a tensor.
TEST(Backends, KernelsAndFillsAgree) {
  const std::int64_t n = 1001;
  const auto filled = [&](DType dtype, const auto& fill) {
    Generator generator(12, 3, 4);
    const Tensor x = Tensor::empty({4 * n}, dtype);
    fill(x, generator);
    return x.to(DType::float64).to_vector<double>();
  };
  const auto u = [](const Tensor& x, Generator& g) { uniform_(x, 0, 1, g); };
  const auto z = [](const Tensor& x, Generator& g) { normal_(x, 0, 1, g); };
  const auto e = [](const Tensor& x, Generator& g) { exponential_(x, 1, g); };
  const auto uniform = filled(DType::float32, u), uniform64 = filled(DType::float64, u);
  const auto normal = filled(DType::float32, z), normal64 = filled(DType::float64, z);
  const auto exponential = filled(DType::float32, e), exponential64 = filled(DType::float64, e);
  Generator generator(12, 3, 4);
  const DeviceGenerator random = generator.device();
  for (std::int64_t i = 0; i < n; ++i) {
    // The first block of index i is block i of a tensor: elements 4 i of float32, 2 i of float64.
    const auto k = static_cast<std::size_t>(i);
    EXPECT_EQ(random.at(i).uniform<float>(), uniform[4 * k]);
    EXPECT_EQ(random.at(i).uniform<double>(), uniform64[2 * k]);
    EXPECT_EQ(random.at(i).normal<float>(), normal[4 * k]);
    EXPECT_EQ(random.at(i).normal<double>(), normal64[2 * k]);
    EXPECT_EQ(random.at(i).exponential<float>(), exponential[4 * k]);
    EXPECT_EQ(random.at(i).exponential<double>(), exponential64[2 * k]);
  }
}

#if defined(KOKKOS_ENABLE_CUDA) || defined(KOKKOS_ENABLE_HIP) || defined(KOKKOS_ENABLE_SYCL)
TEST(Backends, DeviceAgreesWithHost) {
  EXPECT_EQ(drawn<DeviceExecution>(5000), drawn<HostExecution>(5000));
}
#endif

// Block by block, as on a device, against the batches of the host: runs that begin and end within
// blocks, several intervals, several rows.
TEST(Backends, ByBlockAndByBatch) {
  const auto expect_equal = [](const Shape& shape, const std::vector<IndexSet>& sets, auto words) {
    using Value = typename decltype(words)::Value;
    const std::int64_t count = GlobalIndex<Kokkos::HostSpace>(shape, sets).size();
    Generator generator(3, 1, 7);
    const RandomBlocks blocks = generator.take("test");
    const auto values = [&]<bool by_block>() {
      std::vector<Value> out(static_cast<std::size_t>(count), 0);
      const detail::Part part{Tensor::empty({count}, DType::uint8, DeviceKind::host), shape, sets};
      const Draw<decltype(words), Store<Value>> draw{blocks, words, {out.data()}};
      for_each_run<HostExecution, by_block>("dtensor::test", part, draw);
      HostExecution().fence();
      return out;
    };
    const auto by_block = values.template operator()<true>();
    EXPECT_EQ(by_block, values.template operator()<false>());
    // And not because both did nothing.
    EXPECT_NE(by_block, std::vector<Value>(static_cast<std::size_t>(count), 0));
  };
  const IndexSet some(3, 1001), row_numbers(1, 4);
  IndexSet pieces(1, 2);
  pieces.append({5, 18});
  pieces.append({22, 23});
  expect_equal({2001}, {some}, Words{});
  expect_equal({25}, {pieces}, Words{});
  expect_equal({7, 2001}, {row_numbers, some}, Words{});
  expect_equal({7, 25}, {row_numbers, pieces}, Words{});
  expect_equal({7, 25}, {row_numbers, pieces}, Halves{});
  expect_equal({200000}, {IndexSet(1, 199998)}, Words{});
}

#if defined(KOKKOS_ENABLE_SERIAL) && defined(KOKKOS_ENABLE_OPENMP)
TEST(Backends, SerialAgreesWithOpenMP) {
  EXPECT_EQ(drawn<Kokkos::Serial>(5000), drawn<Kokkos::OpenMP>(5000));
}
#endif
