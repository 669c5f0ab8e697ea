// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Same bits under every layout, against the same call on one plain tensor.
#include "dtensor/random/random.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "dtensor/ops/shape.hpp"
#include "random_checks.hpp"

using namespace dtensor;
using namespace dtensor::testing;

namespace {

const Shape odd_shape{7, 5, 6};

// `fill(x, generator)` overwrites a Tensor or a DTensor.
template <class Fill>
void expect_fill_agrees(const char* what, const Shape& shape, const std::vector<DType>& types,
                        const Fill& fill) {
  for (DType dtype : types) {
    const Tensor whole = Tensor::empty(shape, dtype);
    Generator one(11, 2, 5);
    fill(whole, one);
    expect_layouts_agree(what, whole, [&](const DeviceMesh& mesh, const Placements& placements) {
      const DTensor x = full(shape, 1, mesh, placements, dtype);
      Generator generator(11, 2, 5);
      fill(x, generator);
      EXPECT_EQ(generator, one) << "the state after " << what;
      return x;
    });
  }
}

}  // namespace

TEST(Random, FillsAreTheSameUnderEveryLayout) {
  const auto fractional = fractional_types();
  expect_fill_agrees("uniform_", odd_shape, fractional,
                     [](const auto& x, Generator& g) { uniform_(x, -2, 3.5, g); });
  expect_fill_agrees("normal_", odd_shape, fractional,
                     [](const auto& x, Generator& g) { normal_(x, -1, 2.5, g); });
  expect_fill_agrees("exponential_", odd_shape, floating_types(),
                     [](const auto& x, Generator& g) { exponential_(x, 0.5, g); });
  std::vector<DType> all = fractional;
  all.insert(all.end(), integer_types().begin(), integer_types().end());
  all.push_back(DType::boolean);
  expect_fill_agrees("bernoulli_", odd_shape, all,
                     [](const auto& x, Generator& g) { bernoulli_(x, 0.3, g); });
}

TEST(Random, ShapesWithoutElementsOrDimensions) {
  const auto fill = [](const auto& x, Generator& g) { normal_(x, 0, 1, g); };
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{0, 3}, Shape{2, 0}, Shape{1, 1, 13}}) {
    expect_fill_agrees("normal_", shape, {DType::float32}, fill);
  }
}

TEST(Random, LongRunsAreCutWithoutATrace) {
  // Longer than one batch and than one piece of a run; 3 elements per row are no multiple of a
  // block.
  for (const Shape& shape : {Shape{50001, 3}, Shape{2, 70001}}) {
    expect_fill_agrees("uniform_", shape, {DType::float32, DType::float64},
                       [](const auto& x, Generator& g) { uniform_(x, 0, 1, g); });
  }
}

TEST(Random, FactoriesAreTheSameUnderEveryLayout) {
  for (DType dtype : fractional_types()) {
    manual_seed(3);
    const Tensor u = rand(odd_shape, dtype), n = randn(odd_shape, dtype);
    expect_layouts_agree("rand", u, [&](const DeviceMesh& mesh, const Placements& placements) {
      manual_seed(3);
      return rand(odd_shape, mesh, placements, dtype);
    });
    expect_layouts_agree("randn", n, [&](const DeviceMesh& mesh, const Placements& placements) {
      Generator second(3, 0, 1);
      return randn(odd_shape, mesh, placements, dtype, second);
    });
    expect_layouts_agree("rand_like", u, [&](const DeviceMesh& mesh, const Placements& placements) {
      Generator first(3);
      return rand_like(zeros(odd_shape, mesh, placements, dtype), first);
    });
    expect_layouts_agree("randn_like", n,
                         [&](const DeviceMesh& mesh, const Placements& placements) {
                           Generator second(3, 0, 1);
                           return randn_like(zeros(odd_shape, mesh, placements, dtype), second);
                         });
  }
  const DeviceMesh mesh({world_size()});
  const MeshScope scope(mesh);
  Generator first(3);
  const DTensor x = rand({9}, {.dtype = DType::float32, .placements = Placements{Shard(0)}}, first);
  EXPECT_EQ(x.dtype(), DType::float32);
  EXPECT_EQ(x.placements(), Placements{Shard(0)});
  EXPECT_EQ(randn({9}).placements(), Placements{Replicate()});
}

TEST(Random, IntegersAreTheSameUnderEveryLayout) {
  const auto max64 = std::numeric_limits<std::int64_t>::max();
  for (DType dtype : integer_types()) {
    Generator one(8);
    const Tensor whole = randint(3, 100, odd_shape, dtype, DeviceKind::device, one);
    expect_layouts_agree("randint", whole, [&](const DeviceMesh& mesh, const Placements& p) {
      Generator generator(8);
      return randint(3, 100, odd_shape, mesh, p, dtype, generator);
    });
  }
  Generator one(8);
  const Tensor wide = randint(-max64, max64, odd_shape, DType::int64, DeviceKind::device, one);
  expect_layouts_agree("randint", wide, [&](const DeviceMesh& mesh, const Placements& p) {
    Generator generator(8);
    return randint(-max64, max64, odd_shape, mesh, p, DType::int64, generator);
  });
}

TEST(Random, PermutationsAreTheSameUnderEveryLayout) {
  for (std::int64_t n : {1, 2, 13, 4096, 4097, 20011}) {
    for (DType dtype : {DType::int64, DType::int32}) {
      Generator one(4);
      const Tensor whole = randperm(n, dtype, DeviceKind::device, one);
      const auto values = whole.to(DType::int64).to_vector<std::int64_t>();
      const std::set<std::int64_t> different(values.begin(), values.end());
      EXPECT_EQ(static_cast<std::int64_t>(different.size()), n);
      EXPECT_EQ(*different.begin(), 0);
      EXPECT_EQ(*different.rbegin(), n - 1);
      expect_layouts_agree("randperm", whole, [&](const DeviceMesh& mesh, const Placements& p) {
        Generator generator(4);
        return randperm(n, mesh, p, dtype, generator);
      });
    }
  }
  EXPECT_EQ(randperm(0, DType::int64).numel(), 0);
  // As many as a signed 8-bit integer holds.
  EXPECT_EQ(randperm(128, DType::int8).numel(), 128);
  EXPECT_THROW(randperm(129, DType::int8), ValueError);
}

TEST(Random, DropoutAndBernoulliAreTheSameUnderEveryLayout) {
  for (DType dtype : fractional_types()) {
    const Tensor input = global_tensor<float>(odd_shape).to(dtype);
    Generator one(6);
    const Tensor whole = dropout(input, 0.4, true, one);
    const auto distributed = [&](const DeviceMesh& mesh, const Placements& p) {
      return distribute_tensor(input, mesh, p, std::nullopt);
    };
    expect_layouts_agree("dropout", whole, [&](const DeviceMesh& mesh, const Placements& p) {
      Generator generator(6);
      return dropout(distributed(mesh, p), 0.4, true, generator);
    });
    if (is_complex(dtype)) continue;
    Generator other(7);
    const Tensor flips = bernoulli(input, other);
    expect_layouts_agree("bernoulli", flips, [&](const DeviceMesh& mesh, const Placements& p) {
      Generator generator(7);
      return bernoulli(distributed(mesh, p), generator);
    });
  }
}

TEST(Random, DropoutKeepsScaledValues) {
  const Tensor x = Tensor::full({100000}, 3.0, DType::float64);
  Generator generator(1);
  const auto values = dropout(x, 0.25, true, generator).to_vector<double>();
  double dropped = 0;
  for (double v : values) {
    if (v == 0) {
      ++dropped;
    } else {
      ASSERT_EQ(v, 3.0 * (1 / 0.75));
    }
  }
  EXPECT_NEAR(dropped / 100000, 0.25, 5 * std::sqrt(0.25 * 0.75 / 100000));
  EXPECT_EQ(dropout(x, 1.0).to_vector<double>(), std::vector<double>(100000, 0.0));
  EXPECT_EQ(dropout(x, 0.0).to_vector<double>(), std::vector<double>(100000, 3.0));
  const Generator before = generator;
  EXPECT_EQ(dropout(x, 0.5, false, generator).data(), x.data()) << "the input itself";
  EXPECT_EQ(generator, before);
}

TEST(Random, InPlaceOnTransposedMemory) {
  // Whatever the memory order is, positions count in row-major order.
  const Tensor dense = Tensor::empty({4, 9}, DType::float32);
  const Tensor turned = Tensor::empty({9, 4}, DType::float32).transpose(0, 1);
  Generator a(5), b(5);
  normal_(dense, 0, 1, a);
  EXPECT_EQ(normal_(turned, 0, 1, b).data(), turned.data());
  EXPECT_EQ(dense.to_vector<float>(), turned.to_vector<float>());
  Generator c(5), d(5);
  EXPECT_EQ(dropout(dense, 0.5, true, c).to_vector<float>(),
            dropout(turned, 0.5, true, d).to_vector<float>());
  bernoulli_(turned, 0.5, c);
  bernoulli_(dense, 0.5, d);
  EXPECT_EQ(dense.to_vector<float>(), turned.to_vector<float>());
}

TEST(Random, DropoutScalesThePartsOfComplexNumbers) {
  using Complex = Kokkos::complex<double>;
  const Tensor x =
      Tensor::full({1000}, Scalar(std::complex<double>(INFINITY, -3)), DType::complex128);
  Generator generator(1);
  int kept = 0;
  for (const Complex& v : dropout(x, 0.5, true, generator).to_vector<Complex>()) {
    if (v == Complex(0, 0)) continue;
    ++kept;
    ASSERT_EQ(v.real(), INFINITY);
    ASSERT_EQ(v.imag(), -6);
  }
  EXPECT_GT(kept, 400);
}

TEST(Random, ElementsThatShareMemoryAreRefused) {
  const Tensor row = Tensor::zeros({5}, DType::float64);
  const Tensor expanded = row.as_strided({4, 5}, {0, 1}, 0);
  const auto refuses = [&](const char* name, const auto& call) {
    Generator generator(3);
    const std::string text = expect_error_everywhere<ValueError>([&] { call(generator); });
    expect_contains(text, name);
    expect_contains(text, "(4, 5)");
    expect_contains(text, "do not share memory");
    EXPECT_EQ(generator.offset(), 1u) << "as on ranks that have other memory";
  };
  refuses("uniform_", [&](Generator& g) { uniform_(expanded, 0, 1, g); });
  refuses("normal_", [&](Generator& g) { normal_(expanded, 0, 1, g); });
  refuses("exponential_", [&](Generator& g) { exponential_(expanded, 1, g); });
  refuses("bernoulli_", [&](Generator& g) { bernoulli_(expanded, 0.5, g); });
  const DeviceMesh mesh({world_size()});
  // Ranks that hold nothing find it, too.
  const DTensor x =
      expand(distribute_tensor(Tensor::zeros({1, 5}, DType::float64), mesh, {Shard(1)}), {4, 5});
  refuses("uniform_", [&](Generator& g) { uniform_(x, 0, 1, g); });
  EXPECT_EQ(row.to_vector<double>(), std::vector<double>(5, 0.0));
  EXPECT_NO_THROW(uniform_(row.as_strided({1, 5}, {0, 1}, 0)));
  // They may be read.
  EXPECT_EQ(dropout(expanded).shape(), (Shape{4, 5}));
}

TEST(Random, ReplicasAreEqualAndShardsDoNotRepeat) {
  const DeviceMesh mesh({world_size()});
  Generator generator(9);
  const auto whole =
      rand({world_size(), 512}, mesh, {Shard(0)}, DType::float64, generator).full_tensor();
  const auto values = whole.to_vector<double>();
  const std::set<double> different(values.begin(), values.end());
  EXPECT_EQ(different.size(), values.size());
  // Replicas are those of rank 0.
  const DTensor replicated = randn({513}, mesh, {Replicate()}, DType::float32, generator);
  auto bytes = bytes_of(replicated.to_local());
  const auto own = bytes;
  MPI_Bcast(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, 0, MPI_COMM_WORLD);
  EXPECT_EQ(bytes, own);
}

TEST(Random, ConsecutiveCallsAndStreamsDiffer) {
  std::set<std::vector<float>> seen;
  for (std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
    for (std::uint32_t stream : {0u, 1u, 255u, Generator::max_stream}) {
      for (std::uint64_t offset :
           {std::uint64_t{0}, std::uint64_t{0xffffffff}, Generator::max_offset - 2}) {
        Generator generator(seed, stream, offset);
        seen.insert(rand({8}, DType::float32, DeviceKind::device, generator).to_vector<float>());
        seen.insert(rand({8}, DType::float32, DeviceKind::device, generator).to_vector<float>());
      }
    }
  }
  EXPECT_EQ(seen.size(), 3u * 4u * 3u * 2u);
}

TEST(Random, OnRanksOutsideOfTheMesh) {
  std::vector<int> ranks{0};
  if (world_size() > 2) ranks.push_back(world_size() - 1);
  const DeviceMesh mesh = DeviceMesh::from_ranks(ranks, {static_cast<std::int64_t>(ranks.size())});
  Generator generator(2);
  const DTensor x = rand({7, 3}, mesh, {Shard(0)}, DType::float64, generator);
  const DTensor y = dropout(normal_(x, 0, 1, generator), 0.5, true, generator);
  const DTensor z = randperm(9, mesh, {Shard(0)}, DType::int64, generator);
  EXPECT_EQ(generator.offset(), 4u) << "the same on every rank";
  EXPECT_EQ(randn({}, mesh, {Replicate()}, DType::float64, generator).to_local().numel(),
            mesh.is_member() ? 1 : 0);
  if (!mesh.is_member()) {
    EXPECT_EQ(x.to_local().numel() + y.to_local().numel() + z.to_local().numel(), 0);
    EXPECT_EQ(global_index(x).size(), 0);
  }
}

TEST(Random, OnlyTheShardIsMade) {
  const DeviceMesh mesh({world_size()});
  const std::int64_t rows = 1000 * world_size();
  for (int repeat = 0; repeat < 2; ++repeat) {
    trim_memory_pool();
    reset_memory_peak();
    const std::int64_t before = memory_statistics().in_use;
    Generator generator(1);
    const DTensor x = repeat ? rand({rows, 4096}, mesh, {Shard(0)}, DType::float32, generator)
                             : randn({rows, 2048}, mesh, {Shard(0)}, DType::float64, generator);
    const std::int64_t shard = 1000 * 4096 * 4;
    EXPECT_EQ(x.to_local().numel() * size_of(x.dtype()), shard);
    EXPECT_LE(memory_statistics().peak - before, shard + (1 << 20));
  }
}

// Kernels have functions of their own: device compilers take no lambda in the body of a test.
void write_indices(const GlobalIndex<>& index, const Shape& local, const Tensor& found,
                   const Tensor& by_indices) {
  const auto out = found.view<std::int64_t*>(), other = by_indices.view<std::int64_t*>();
  const std::int64_t n1 = local[1], n2 = local[2];
  Kokkos::parallel_for(
      "dtensor::test", static_cast<int>(index.size()), KOKKOS_LAMBDA(const std::int64_t i) {
        out(i) = index(i);
        other(i) = index(i / (n1 * n2), i / n2 % n1, i % n2);
      });
}

void draw_by_kernel(const Tensor& local, const GlobalIndex<>& index, Generator& generator) {
  const auto random = generator.device();
  auto* const out = local.data_as<double>();
  Kokkos::parallel_for(
      "dtensor::test", static_cast<int>(index.size()), KOKKOS_LAMBDA(const std::int64_t i) {
        auto r = random.at(index(i));
        double sum = r.normal<double>() + r.uniform<double>() * 3 - r.exponential<double>();
        sum += static_cast<double>(r.normal<float>() + r.uniform<float>() + r.exponential<float>());
        out[i] =
            sum + static_cast<double>(r.uint64() >> 60) + static_cast<double>(r.uint32() >> 30);
      });
}

TEST(Random, GlobalIndicesOfEveryLayout) {
  const Shape shape{5, 6, 7};
  std::vector<std::int64_t> values(static_cast<std::size_t>(shape.product()));
  std::iota(values.begin(), values.end(), std::int64_t{0});
  const Tensor whole = Tensor::from_vector(values, shape);
  for (const DeviceMesh& mesh : meshes()) {
    for (const Placements& placements : all_placements(shape, mesh)) {
      const DTensor x = distribute_tensor(whole, mesh, placements, std::nullopt);
      const auto expected = x.to_local().to_vector<std::int64_t>();
      const GlobalIndex<> index = global_index(x);
      ASSERT_EQ(index.size(), x.to_local().numel());
      const Tensor found = Tensor::empty({x.to_local().numel()}, DType::int64);
      const Tensor by_indices = Tensor::empty({x.to_local().numel()}, DType::int64);
      write_indices(index, x.to_local().shape(), found, by_indices);
      EXPECT_EQ(found.to_vector<std::int64_t>(), expected) << to_string(x.layout());
      EXPECT_EQ(by_indices.to_vector<std::int64_t>(), expected) << to_string(x.layout());
      if (index.size() == 0) continue;
      const Shape& local = x.to_local().shape();
      const auto on_host = global_index<Kokkos::HostSpace>(x);
      const auto of_last = [&](auto... others) {
        return on_host(local[0] - 1, local[1] - 1, others...);
      };
      EXPECT_EQ(of_last(std::int64_t{0}, std::int64_t{9}), of_last(std::int64_t{0}));
      EXPECT_EQ(of_last() / 7, of_last(std::int64_t{0}) / 7) << "what is left out counts as none";
    }
  }
}

TEST(Random, KernelsOfOnesOwnAreTheSameUnderEveryLayout) {
  const Tensor whole = Tensor::empty(odd_shape, DType::float64);
  Generator one(1);
  draw_by_kernel(whole, GlobalIndex<>({odd_shape.product()}, {IndexSet(0, odd_shape.product())}),
                 one);
  expect_layouts_agree("a kernel", whole, [&](const DeviceMesh& mesh, const Placements& p) {
    const DTensor x = empty(odd_shape, mesh, p);
    Generator generator(1);
    draw_by_kernel(x.to_local(), global_index(x), generator);
    EXPECT_EQ(generator.offset(), 256u);
    return x;
  });
}

TEST(Random, Errors) {
  const DeviceMesh mesh({world_size()});
  const Generator before = default_generator();
  const DTensor partial = from_local(Tensor::zeros({4}, DType::float64), mesh, {Partial()});
  const auto refuses_partial = [](const char* name, const auto& call) {
    const std::string text = expect_error_everywhere<LayoutError>(call);
    expect_contains(text, name);
    expect_contains(text, "P");
  };
  refuses_partial("dropout", [&] { dropout(partial); });
  refuses_partial("dropout", [&] { dropout(partial, 0.5, false); });
  refuses_partial("uniform_", [&] { uniform_(partial); });
  refuses_partial("normal_", [&] { normal_(partial); });
  refuses_partial("exponential_", [&] { exponential_(partial); });
  refuses_partial("bernoulli_", [&] { bernoulli_(partial); });
  refuses_partial("bernoulli", [&] { bernoulli(partial); });
  refuses_partial("rand_like", [&] { rand_like(partial); });
  refuses_partial("randn_like", [&] { randn_like(partial); });
  refuses_partial("rand", [&] { rand({4}, mesh, {Partial()}); });
  refuses_partial("randn", [&] { randn({4}, mesh, {Partial()}); });
  refuses_partial("randint", [&] { randint(0, 4, {4}, mesh, {Partial()}); });
  refuses_partial("randperm", [&] { randperm(4, mesh, {Partial()}); });

  const Tensor x = Tensor::zeros({3}, DType::float32), n = Tensor::zeros({3}, DType::int32);
  expect_contains(expect_error_everywhere<TypeError>([&] { uniform_(n); }), "int32");
  EXPECT_THROW(normal_(n), TypeError);
  EXPECT_THROW(dropout(n), TypeError);
  EXPECT_THROW(bernoulli(n), TypeError);
  EXPECT_THROW(exponential_(Tensor::zeros({3}, DType::complex64)), TypeError);
  EXPECT_THROW(rand({3}, DType::int64), TypeError);
  EXPECT_THROW(randn({3}, mesh, {Shard(0)}, DType::boolean), TypeError);
  EXPECT_THROW(randint(0, 5, {3}, DType::float32), TypeError);
  EXPECT_THROW(randperm(5, DType::boolean), TypeError);
  expect_contains(expect_error_everywhere<ValueError>([&] { uniform_(x, 2, 1); }), "2 and 1");
  EXPECT_THROW(uniform_(x, 0, INFINITY), ValueError);
  EXPECT_THROW(uniform_(x, NAN, 1), ValueError);
  EXPECT_THROW(uniform_(x, -3e38, 3e38), ValueError) << "the difference overflows";
  EXPECT_THROW(uniform_(Tensor::zeros({3}, DType::float16), 0, 1e5), ValueError);
  EXPECT_THROW(normal_(x, 0, -1), ValueError);
  EXPECT_THROW(normal_(x, 0, INFINITY), ValueError);
  EXPECT_THROW(exponential_(x, 0), ValueError);
  EXPECT_THROW(exponential_(x, INFINITY), ValueError);
  // What does not fit the type of the tensor is named, alike by all three.
  const auto refuses = [](const char* part, const auto& call) {
    expect_contains(expect_error_everywhere<ValueError>(call), part);
  };
  const Tensor h = Tensor::zeros({3}, DType::float16), z = Tensor::zeros({3}, DType::complex64);
  const Scalar i(std::complex<double>(0.5, 2)), no(std::complex<double>(0, NAN));
  refuses("a bound of 1e+39 for float32", [&] { uniform_(x, 0, 1e39); });
  refuses("a bound of 70000 for float16", [&] { uniform_(h, 0, 70000); });
  refuses("2", [&] { uniform_(x, 0, i); });
  refuses("for float32", [&] { uniform_(x, i, 1); });
  refuses("nan", [&] { uniform_(z, no, 1); });
  refuses("a mean of nan", [&] { normal_(x, NAN); });
  refuses("a mean of inf", [&] { normal_(x, INFINITY); });
  refuses("a mean of 1e+39 for float32", [&] { normal_(x, 1e39); });
  refuses("for float32", [&] { normal_(x, i); });
  refuses("nan", [&] { normal_(z, no); });
  refuses("a standard deviation of 1e+39", [&] { normal_(x, 0, 1e39); });
  refuses("a standard deviation of nan", [&] { normal_(x, 0, NAN); });
  refuses("a standard deviation of 70000 for float16", [&] { normal_(h, 0, 70000); });
  refuses("a rate of 1e+39", [&] { exponential_(x, 1e39); });
  refuses("a rate of 1e-39 for float32", [&] { exponential_(x, 1e-39); });
  refuses("a rate of 1e-300", [&] { exponential_(x, 1e-300); });
  refuses("a rate of 1e-05 for float16", [&] { exponential_(h, 1e-5); });
  refuses("a rate of nan", [&] { exponential_(x, NAN); });
  refuses("a rate of -2", [&] { exponential_(x, -2); });
  EXPECT_THROW(dropout(x, 1.5, false), ValueError) << "checked without training too";
  EXPECT_THROW(dropout(n, 0.5, false), TypeError);
  EXPECT_THROW(bernoulli_(x, 1.5), ValueError);
  EXPECT_THROW(bernoulli_(x, NAN), ValueError);
  EXPECT_THROW(dropout(x, -0.1), ValueError);
  EXPECT_THROW(randint(5, 5, {3}, DType::int64), ValueError);
  EXPECT_THROW(randint(0, 300, {3}, DType::uint8), ValueError);
  EXPECT_THROW(randint(-1, 3, {3}, DType::uint8), ValueError);
  EXPECT_NO_THROW(randint(0, 256, {3}, DType::uint8));
  EXPECT_THROW(randperm(-1, DType::int64), ValueError);
  Generator last(0, 0, Generator::max_offset);
  EXPECT_THROW(rand({3}, DType::float32, DeviceKind::device, last), StateError);
  EXPECT_EQ(last.offset(), Generator::max_offset);
  EXPECT_EQ(default_generator().offset(), before.offset() + 1) << "errors take no offset";
}
