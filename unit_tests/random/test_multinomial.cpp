// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Drawing categories: right values, the same under every layout, with few bytes.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "dtensor/comm/runtime.hpp"
#include "random_checks.hpp"

using namespace dtensor;
using namespace dtensor::testing;

namespace {

// Different weights, some of them 0; rows have different sums.
template <class T>
Tensor weights_of(const Shape& shape) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < shape.product(); ++i) {
    values.push_back(
        scalar_cast<T>(i * 37 % 11 == 3 ? 0.0 : 0.1 + static_cast<double>(i * i % 17)));
  }
  return Tensor::from_vector(values, shape);
}

void expect_agreement(const Tensor& weights, std::int64_t samples, bool replacement) {
  Generator one(21);
  const Tensor whole = multinomial(weights, samples, replacement, one);
  for (const DeviceMesh& mesh : meshes()) {
    for (const Placements& placements : all_placements(weights.shape(), mesh)) {
      const DTensor distributed = distribute_tensor(weights, mesh, placements, std::nullopt);
      Generator generator(21);
      const DTensor drawn = multinomial(distributed, samples, replacement, generator);
      EXPECT_EQ(generator, one);
      for (int m = 0; m < mesh.dim(); ++m) {
        const Placement& p = placements[static_cast<std::size_t>(m)];
        const bool rows = weights.dim() == 2 && p.is_shard(0);
        EXPECT_EQ(drawn.layout().placement(m), rows ? p : Placement(Replicate()));
      }
      EXPECT_TRUE(is_part_of(drawn, whole)) << to_string(distributed.layout());
    }
  }
}

class Bytes : public Observer {
 public:
  Bytes() { add_observer(*this); }
  ~Bytes() override { remove_observer(*this); }
  void on_event(const Event& event) override {
    if (event.collective == Collective::none) return;
    ++count;
    sent += event.bytes_sent;
  }
  int count = 0;
  std::int64_t sent = 0;
};

}  // namespace

TEST(Multinomial, IsTheSameUnderEveryLayout) {
  for (const Shape& shape : {Shape{13}, Shape{5, 17}}) {
    for (bool replacement : {true, false}) {
      expect_agreement(weights_of<double>(shape), 6, replacement);
      expect_agreement(weights_of<float>(shape), 6, replacement);
    }
  }
  expect_agreement(weights_of<bfloat16>({5, 17}), 40, true);
  expect_agreement(Tensor::full({1}, 1, DType::float16), 3, true);
  expect_agreement(Tensor::zeros({0, 4}, DType::float64), 3, true);
  expect_agreement(Tensor::zeros({0, 4}, DType::float64), 3, false);
}

TEST(Multinomial, FrequenciesFollowTheWeights) {
  const std::vector<double> weights{1, 0, 3, 0.5, 1e-30, 7.5, 4};
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const std::int64_t n = 200000;
  const auto chi_square = [&](const std::vector<std::int64_t>& drawn) {
    std::vector<double> counts(weights.size(), 0);
    for (std::int64_t c : drawn) ++counts.at(static_cast<std::size_t>(c));
    double value = 0;
    for (std::size_t c = 0; c < weights.size(); ++c) {
      const double expected = static_cast<double>(n) * weights[c] / sum;
      if (expected < 1e-6) {
        EXPECT_EQ(counts[c], 0) << c;
      } else {
        value += (counts[c] - expected) * (counts[c] - expected) / expected;
      }
    }
    return value;
  };
  const Tensor w = Tensor::from_vector(weights, {7});
  Generator generator(1);
  // Four degrees of freedom: above 28 in one of 10^5 cases.
  EXPECT_LT(chi_square(multinomial(w, n, true, generator).to_vector<std::int64_t>()), 28);
  // The first of each draw without replacement follows the weights too.
  std::vector<double> many;
  for (std::int64_t r = 0; r < n; ++r) many.insert(many.end(), weights.begin(), weights.end());
  const auto pairs =
      multinomial(Tensor::from_vector(many, {n, 7}), 2, false, generator).to_vector<std::int64_t>();
  std::vector<std::int64_t> first;
  double both = 0;
  for (std::size_t r = 0; r < pairs.size(); r += 2) {
    first.push_back(pairs[r]);
    EXPECT_NE(pairs[r], pairs[r + 1]);
    if (pairs[r] == 5 && pairs[r + 1] == 2) ++both;
  }
  EXPECT_LT(chi_square(first), 28);
  // Then the others keep their shares.
  const double p = 7.5 / sum * 3 / (sum - 7.5);
  EXPECT_NEAR(both / n, p, 5 * std::sqrt(p * (1 - p) / n));
  // What would be seen of equal weights is refused.
  const auto even = multinomial(Tensor::full({7}, 1, DType::float64), n, true, generator);
  std::vector<std::int64_t> others = even.to_vector<std::int64_t>();
  std::replace(others.begin(), others.end(), std::int64_t{1}, std::int64_t{0});
  std::replace(others.begin(), others.end(), std::int64_t{4}, std::int64_t{0});
  EXPECT_GT(chi_square(others), 1000);
}

TEST(Multinomial, AllCategoriesWithoutReplacement) {
  Generator generator(3);
  const auto drawn = multinomial(weights_of<double>({40}).narrow(0, 0, 7), 7, false, generator);
  const auto values = drawn.to_vector<std::int64_t>();
  EXPECT_EQ(std::set<std::int64_t>(values.begin(), values.end()).size(), 7u);
}

// Only how weights compare counts, down to the smallest and up to the largest numbers.
TEST(Multinomial, WeightsOfAnySizeAreDrawnAlike) {
  const double top = std::numeric_limits<double>::max(), least = 0x1p-1074;
  const Tensor plain = weights_of<double>({5, 17});
  for (bool replacement : {true, false}) {
    Generator one(8);
    const auto expected = multinomial(plain, 10, replacement, one).to_vector<std::int64_t>();
    for (double scale : {0x1p-1018, 0x1p-1000, 0x1p-300, 0x1p1019}) {
      std::vector<double> scaled = plain.to_vector<double>();
      for (double& w : scaled) w *= scale;
      Generator other(8);
      EXPECT_EQ(multinomial(Tensor::from_vector(scaled, {5, 17}), 10, replacement, other)
                    .to_vector<std::int64_t>(),
                expected)
          << scale;
    }
    // Equal weights, none of which is a normal number.
    Generator a(9), b(9);
    EXPECT_EQ(multinomial(Tensor::full({40}, 3 * least, DType::float64), 20, replacement, a)
                  .to_vector<std::int64_t>(),
              multinomial(Tensor::full({40}, 3, DType::float64), 20, replacement, b)
                  .to_vector<std::int64_t>());
  }
  Generator generator(10);
  const Tensor far = Tensor::from_vector(std::vector<double>{least, 0, top, 1, 1e-200}, {5});
  EXPECT_EQ(multinomial(far, 4, false, generator).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{2, 3, 4, 0}));
}

TEST(Multinomial, SendsSumsAndResultsOnly) {
  const DeviceMesh mesh({world_size()});
  const std::int64_t categories = 30000, samples = 5, ranks = world_size();
  const DTensor weights = full({2, categories}, 1, mesh, {Shard(1)}, DType::float64);
  Generator generator(3);
  {
    const Bytes bytes;
    multinomial(weights, samples, true, generator);
    EXPECT_EQ(bytes.count, ranks > 1 ? 3 : 0);  // the largest, the sums, the result
    // To each other rank two rows of the largest, of one sum and of the result.
    EXPECT_LE(bytes.sent, (ranks - 1) * 2 * 8 * (1 + 1 + samples));
  }
  {
    const Bytes bytes;
    multinomial(weights, samples, false, generator);
    EXPECT_EQ(bytes.count, ranks > 1 ? 1 : 0);  // candidates: times and categories
    EXPECT_LE(bytes.sent, (ranks - 1) * 2 * 16 * samples);
  }
  {
    const Bytes bytes;
    multinomial(weights.redistribute({Replicate()}), samples, true, generator);
    EXPECT_LE(bytes.count, 1) << "the redistribution";
  }
}

TEST(Multinomial, ErrorsAreFoundOnEveryRank) {
  const DeviceMesh mesh({world_size()});
  const auto last_is = [&](double value) {
    std::vector<double> values(2 * 12, 1.0);
    values.back() = value;
    return Tensor::from_vector(values, {2, 12});
  };
  Generator generator(4);
  for (const Placement& placement :
       {Placement(Shard(0)), Placement(Shard(1)), Placement(Replicate())}) {
    for (bool replacement : {true, false}) {
      const auto draw = [&](const Tensor& w) {
        multinomial(distribute_tensor(w, mesh, {placement}, std::nullopt), 12, replacement,
                    generator);
      };
      for (double bad : {-1.0, double{INFINITY}, double{NAN}}) {
        expect_contains(expect_error_everywhere<ValueError>([&] { draw(last_is(bad)); }),
                        "negative, infinite");
      }
      if (!replacement) {
        expect_contains(expect_error_everywhere<ValueError>([&] { draw(last_is(0)); }),
                        "fewer positive");
      }
      const Tensor zeros = Tensor::full({2, 12}, 1, DType::float64);
      zeros.narrow(0, 1, 1).fill(0);
      expect_contains(expect_error_everywhere<ValueError>([&] { draw(zeros); }), "positive weight");
    }
  }
  // A call that throws has taken its offset.
  EXPECT_EQ(generator.offset(), 3u * (2 * 4 + 1));
  const DTensor fine = full({3, 5}, 1, mesh, {Shard(1)}, DType::float64);
  EXPECT_THROW(multinomial(fine, 0, true), ValueError);
  EXPECT_THROW(multinomial(fine, 6, false), ValueError);
  EXPECT_THROW(multinomial(full({3, 5, 2}, 1, mesh, {Shard(1)}), 1), ValueError);
  EXPECT_THROW(multinomial(full({}, 1, mesh, {Replicate()}), 1), ValueError);
  EXPECT_THROW(multinomial(full({3, 0}, 1, mesh, {Shard(0)}), 1, true), ValueError);
  EXPECT_THROW(multinomial(full({3}, 1, mesh, {Shard(0)}, DType::int32), 1), TypeError);
  EXPECT_THROW(multinomial(from_local(Tensor::zeros({4}, DType::float64), mesh, {Partial()}), 1),
               LayoutError);
}

TEST(Multinomial, OnRanksOutsideOfTheMesh) {
  const DeviceMesh mesh = DeviceMesh::from_ranks({0}, {1});
  Generator generator(4);
  const DTensor drawn = multinomial(full({3, 5}, 1, mesh, {Shard(1)}), 4, true, generator);
  EXPECT_EQ(drawn.shape(), (Shape{3, 4}));
  EXPECT_EQ(drawn.to_local().numel(), mesh.is_member() ? 12 : 0);
  EXPECT_EQ(generator.offset(), 1u);
}

// A rank on its own would wait for the others, or draw what they do not.
TEST(Multinomial, RanksThatDisagreeAllThrow) {
  const DeviceMesh mesh({world_size()});
  if (world_size() == 1) {  // agrees with itself
    Generator generator(100);
    EXPECT_NO_THROW(multinomial(full({6, 40}, 1, mesh, {Shard(1)}), 8, true, generator));
    return;
  }
  const bool differs = Runtime::rank() == 1;
  for (const Placement& placement : {Placement(Shard(0)), Placement(Shard(1))}) {
    const DTensor weights = full({6, 40}, 1, mesh, {placement});
    for (bool replacement : {true, false}) {
      const auto mismatch = [&](Generator generator, const DTensor& w, std::int64_t samples,
                                bool with) {
        return expect_error_everywhere<MismatchError>(
            [&] { multinomial(w, samples, with, generator); });
      };
      const std::uint64_t one = differs ? 1 : 0;
      std::string text = mismatch(Generator(100 + one), weights, 8, replacement);
      expect_contains(text, "seed=100");
      expect_contains(text, "seed=101");
      expect_contains(text, replacement ? "8 samples with " : "8 samples without ");
      const std::uint32_t stream = differs ? 2 : 3;
      expect_contains(mismatch(Generator(1, stream), weights, 8, replacement), "stream=3");
      expect_contains(mismatch(Generator(1, 0, one), weights, 8, replacement), "offset=1");
      text = mismatch(Generator(1), weights, differs ? 9 : 8, replacement);
      expect_contains(text, "8 samples");
      expect_contains(text, "9 samples");
      mismatch(Generator(1), weights, 8, replacement != differs);
      const std::int64_t categories = differs ? 41 : 40;
      text = mismatch(Generator(1), full({6, categories}, 1, mesh, {placement}), 8, replacement);
      expect_contains(text, "(6, 41)");
      const DType dtype = differs ? DType::float32 : DType::float64;
      text = mismatch(Generator(1), full({6, 40}, 1, mesh, {placement}, dtype), 8, replacement);
      expect_contains(text, "float32");
      const Placement other = differs ? Shard(placement.is_shard(0) ? 1 : 0) : placement;
      mismatch(Generator(1), full({6, 40}, 1, mesh, {other}), 8, replacement);

      // What one rank finds wrong by itself.
      Generator generator(1);
      text = expect_error_everywhere<ValueError>(
          [&] { multinomial(weights, differs ? 0 : 3, replacement, generator); });
      expect_contains(text, "0 samples of 40");
      EXPECT_EQ(generator.offset(), 1u);
      Generator full_up(1, 0, differs ? Generator::max_offset : 0);
      expect_error_everywhere<StateError>([&] { multinomial(weights, 3, replacement, full_up); });
    }
  }
}

TEST(Multinomial, GeneratorsStayEqualAfterAnErrorOnSomeRanks) {
  const DeviceMesh mesh = DeviceMesh::from_ranks({0}, {1});
  Generator generator(4);
  const DTensor weights = full({3, 5}, -1, mesh, {Shard(1)});
  const auto draw = [&] { multinomial(weights, 4, true, generator); };
  if (mesh.is_member()) {
    EXPECT_THROW(draw(), ValueError);
  } else {
    EXPECT_NO_THROW(draw()) << "the weights are not here";
  }
  EXPECT_EQ(generator.offset(), 1u);
  EXPECT_THROW(multinomial(weights, 0, true, generator), ValueError);
  EXPECT_EQ(generator.offset(), 2u);
  EXPECT_THROW(multinomial(Tensor::full({3}, -1, DType::float32), 1, true, generator), ValueError);
  EXPECT_EQ(generator.offset(), 3u);
}
