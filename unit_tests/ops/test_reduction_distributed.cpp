// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions of DTensors under every combination of placements, against one process.
#include <gtest/gtest.h>

#include "ops/distributed_reference.hpp"
#include "ops/errors.hpp"
#include "ops/layouts.hpp"
#include "ops/reduction_reference.hpp"

namespace dtensor {
namespace {

using namespace testing;  // the references

const double nan = std::nan("");

Shape result_shape(const Shape& shape, unsigned dims, bool keepdim) {
  Shape result;
  for (int d = 0; d < shape.size(); ++d) {
    const bool reduced = dims >> d & 1;
    if (!reduced || keepdim) result.push_back(reduced ? 1 : shape[d]);
  }
  return result;
}

Array expected_of(const std::vector<Values>& in, double (*reference)(const Values&),
                  const Shape& shape) {
  Array expected(shape);
  for (std::size_t i = 0; i < in.size(); ++i) expected.values[i] = reference(in[i]);
  return expected;
}

void check_all(const DeviceMesh& mesh) {
  Numbers numbers(21);
  for (const Shape& shape : {Shape{5, 7}, Shape{2, 1}, Shape{}, Shape{4, 3, 2}, Shape{13}}) {
    Array a = numbers.array(shape);
    a.values[0] = 0;  // for all, any and counts
    for (const Layout& layout : layouts(shape, mesh, numbers, 8)) {
      const DTensor x = place(a, mesh, layout);
      for (unsigned dims = 0; dims < 1u << shape.size(); ++dims) {
        const std::vector<Values> in = groups(a, dims);
        const bool keepdim = dims % 2 == 1;
        const Shape kept = result_shape(shape, dims, keepdim);
        for (const auto& op : reduction_operators<DTensor>()) {
          Array expected = expected_of(in, op.reference, kept);
          const DTensor result = op.apply(x, list_of(dims, shape.size()), keepdim);
          const std::string what = std::string(op.name) + " of " + to_string(layout) + " over " +
                                   std::to_string(dims) + " gave " + to_string(result.placements());
          if (std::isnan(expected.values[0])) {  // variances of one element
            for (double v : result.full_tensor().to_vector<double>()) {
              ASSERT_TRUE(std::isnan(v)) << what;
            }
            continue;
          }
          ASSERT_LT(error_of(result, expected), 1e-11) << what;
        }
      }
    }
  }
}

TEST(DistributedReduction, OnOneMeshDimension) { check_all(flat_mesh()); }
TEST(DistributedReduction, OnTwoMeshDimensions) { check_all(square_mesh()); }

// Few different values, so that most elements tie with ones on other ranks.
void check_places(const DeviceMesh& mesh) {
  Numbers numbers(22);
  for (const Shape& shape : {Shape{5, 7}, Shape{13}, Shape{4, 3, 2}}) {
    Array a = numbers.array(shape);
    for (double& v : a.values) v = std::floor(v / 2);
    for (const Layout& layout : layouts(shape, mesh, numbers, 10)) {
      // Sums of contributions are not exact: they would break ties.
      bool exact = true;
      for (const Placement& p : layout.placements()) exact &= !p.is_partial(ReduceOp::avg);
      if (!exact) continue;
      const DTensor x = place(a, mesh, layout);
      const std::string what = to_string(layout);
      for (int d = 0; d < shape.size(); ++d) {
        const std::vector<Values> in = groups(a, 1u << d);
        const Shape kept = result_shape(shape, 1u << d, false);
        const Shape unit = result_shape(shape, 1u << d, true);
        const auto lowest = [](const Values& v) { return *std::min_element(v.begin(), v.end()); };
        const auto lowest_at = [](const Values& v) {
          return static_cast<double>(std::min_element(v.begin(), v.end()) - v.begin());
        };
        const auto highest = [](const Values& v) { return *std::max_element(v.begin(), v.end()); };
        const auto largest = max(x, d), smallest = min(x, d, true);
        ASSERT_EQ(error_of(largest.values, expected_of(in, highest, kept)), 0) << what;
        ASSERT_EQ(error_of(largest.indices, expected_of(in, reference_argmax, kept)), 0) << what;
        ASSERT_EQ(error_of(smallest.values, expected_of(in, lowest, unit)), 0) << what;
        ASSERT_EQ(error_of(smallest.indices, expected_of(in, lowest_at, unit)), 0) << what;
        ASSERT_EQ(error_of(argmin(x, d, true), expected_of(in, lowest_at, unit)), 0) << what;
      }
      const std::vector<Values> whole = groups(a, (1u << shape.size()) - 1);
      ASSERT_EQ(error_of(argmax(x), expected_of(whole, reference_argmax, {})), 0) << what;
      ASSERT_EQ(error_of(max(x), expected_of(whole,
                                             [](const Values& v) {
                                               return *std::max_element(v.begin(), v.end());
                                             },
                                             {})),
                0)
          << what;
    }
  }
}

TEST(DistributedReduction, PlacesOnOneMeshDimension) { check_places(flat_mesh()); }
TEST(DistributedReduction, PlacesOnTwoMeshDimensions) { check_places(square_mesh()); }

TEST(DistributedReduction, PlacesOfEveryScalarType) {
  const DeviceMesh mesh = flat_mesh();
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (is_complex(dtype)) continue;
    Array a({9, 2});
    a.at({7, 0}) = a.at({8, 0}) = a.at({4, 1}) = 1;
    const DTensor x = place(a, mesh, Placements{Shard(0, uneven(9, mesh.size()))});
    const DTensor typed(mesh, x.layout(), x.to_local().to(dtype));
    const auto largest = max(typed, 0);
    EXPECT_EQ(largest.values.dtype(), dtype);
    Array ones({2}, 1), where({2});
    where.values = {7, 4};
    EXPECT_EQ(error_of(largest.values, ones), 0) << to_string(dtype);
    EXPECT_EQ(error_of(largest.indices, where), 0) << to_string(dtype);
  }
  // Beyond what a double holds.
  const std::int64_t large = (std::int64_t{1} << 60) + mesh.local_rank(0);
  const DTensor x(mesh, Layout({mesh.size()}, mesh.grid(), {Shard(0)}),
                  Tensor::full({1}, large, DType::int64, mesh.device()));
  const auto found = max(x, 0);
  EXPECT_EQ(found.values.full_tensor().item<std::int64_t>(),
            (std::int64_t{1} << 60) + mesh.size() - 1);
  EXPECT_EQ(found.indices.full_tensor().item<std::int64_t>(), mesh.size() - 1);
}

TEST(DistributedReduction, TheFirstNaNWinsOnEveryRank) {
  const DeviceMesh mesh = flat_mesh();
  Array a({11});
  for (std::size_t i = 0; i < 11; ++i) a.values[i] = static_cast<double>(i);
  a.values[3] = a.values[9] = nan;
  for (const Placement& p : {Placement(Shard(0)), Placement(Shard(0, uneven(11, mesh.size()))),
                             Placement(StridedShard(0, 2)), Placement(Replicate())}) {
    const DTensor x = place(a, mesh, Placements{p});
    EXPECT_EQ(error_of(argmax(x, 0), Array({}, 3)), 0) << to_string(p);
    EXPECT_EQ(error_of(argmin(x), Array({}, 3)), 0) << to_string(p);
    for (const DTensor& r : {max(x), min(x), norm(x, infinity), logsumexp(x), var(x)}) {
      EXPECT_TRUE(std::isnan(r.full_tensor().item<double>())) << to_string(p);
    }
  }
}

TEST(DistributedReduction, CommunicatesNoMoreThanStates) {
  const DeviceMesh mesh = flat_mesh();
  const std::int64_t n = mesh.size();
  Numbers numbers(23);
  const Array a = numbers.array({60, 6});
  const auto traffic = [&](const Placement& p, const auto& f, int count, std::int64_t bytes) {
    const DTensor x = place(a, mesh, Placements{p});
    const Communication t;
    f(x);
    EXPECT_EQ(t.count, n == 1 ? 0 : count) << to_string(p);
    EXPECT_LE(t.bytes, bytes * (n - 1)) << to_string(p);
  };
  for (const Placement& p : {Placement(Shard(0)), Placement(Shard(0, uneven(60, n)))}) {
    // Contributions of a kind that Partial knows stay where they are.
    traffic(
        p,
        [&](const DTensor& x) {
          const auto expect = [&](const DTensor& r, ReduceOp op) {
            EXPECT_TRUE(n == 1 || r.placements()[0].is_partial(op)) << to_string(r.placements());
          };
          expect(sum(x, 0), ReduceOp::sum);
          expect(mean(x, 0), ReduceOp::sum);
          expect(prod(x, 0), ReduceOp::product);
          expect(amax(x, 0), ReduceOp::max);
          expect(amin(x), ReduceOp::min);
          expect(any(x, 0), ReduceOp::bor);
          expect(all(x), ReduceOp::band);
          expect(count_nonzero(x, 0), ReduceOp::sum);
          expect(norm(x, 1, 0), ReduceOp::sum);
          expect(norm(x, 0, 0), ReduceOp::sum);
          expect(norm(x, infinity, 0), ReduceOp::max);
          expect(norm(x, -infinity), ReduceOp::min);
        },
        0, 0);
    // States of two numbers per result.
    for (const auto& f :
         {+[](const DTensor& x) { var(x, 0); }, +[](const DTensor& x) { stddev(x, 0, 0, true); },
          +[](const DTensor& x) { logsumexp(x, 0); }, +[](const DTensor& x) { argmax(x, 0); },
          +[](const DTensor& x) { min(x, 0, true); }}) {
      traffic(p, f, 1, 6 * 2 * 8);
    }
    traffic(
        p, [](const DTensor& x) { argmin(x); }, 1, 2 * 8);
    traffic(
        p, [](const DTensor& x) { norm(x, 2, 0); }, 1, 2 * 6 * 8);
  }
  // What is not reduced over ranks needs none of them.
  for (const Placement& p : {Placement(Shard(1)), Placement(Replicate())}) {
    traffic(
        p,
        [&](const DTensor& x) {
          for (const auto& op : reduction_operators<DTensor>()) {
            EXPECT_TRUE(op.apply(x, 0, true).placements()[0] == p) << op.name;
          }
          EXPECT_TRUE(max(x, 0, true).indices.placements()[0] == p);
        },
        0, 0);
  }
}

// Many states: each rank merges its part of them, so that bytes do not grow with the ranks.
TEST(DistributedReduction, ManyStatesAreMergedInParts) {
  const DeviceMesh mesh = flat_mesh();
  const std::int64_t n = mesh.size(), columns = 20011;
  Array a({6, columns});
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    a.values[i] = static_cast<double>((i * 7919) % 1009);
  }
  const std::vector<Values> in = groups(a, 1);
  const DTensor x = place(a, mesh, Placements{Shard(0)});
  const Communication t;
  const DTensor v = var(x, 0), where = argmax(x, 0, true);
  EXPECT_EQ(t.count, n == 1 ? 0 : n == 2 ? 2 : 4);
  EXPECT_LE(t.bytes, 2 * (2 + 2) * 8 * columns + 1000);
  EXPECT_LT(error_of(v, expected_of(in, [](const Values& w) { return reference_variance(w, 1); },
                                    {columns})),
            1e-12);
  EXPECT_EQ(error_of(where, expected_of(in, reference_argmax, {1, columns})), 0);
}

TEST(DistributedReduction, ContributionsThatAreHandedOn) {
  const DeviceMesh mesh = flat_mesh();
  Numbers numbers(24);
  const Array a = numbers.array({4, 3});
  const auto with = [&](ReduceOp op) { return place(a, mesh, Placements{Partial(op)}); };
  const Communication communication;
  const auto keeps = [&](const DTensor& r, ReduceOp op) {
    EXPECT_TRUE(r.placements()[0].is_partial(op)) << to_string(r.placements());
    EXPECT_EQ(communication.count, 0);
  };
  keeps(sum(with(ReduceOp::sum), 0), ReduceOp::sum);
  keeps(sum(with(ReduceOp::avg), 0), ReduceOp::avg);
  keeps(mean(with(ReduceOp::sum)), ReduceOp::sum);
  keeps(amax(with(ReduceOp::max), 1), ReduceOp::max);
  keeps(amin(with(ReduceOp::min)), ReduceOp::min);
  if (mesh.size() == 1) return;
  for (const DTensor& r :
       {amax(with(ReduceOp::sum), 0), amax(with(ReduceOp::min), 0), sum(with(ReduceOp::max), 0),
        var(with(ReduceOp::sum), 0), norm(with(ReduceOp::sum), 1, 0), prod(with(ReduceOp::sum), 0),
        any(with(ReduceOp::max), 0)}) {
    EXPECT_FALSE(r.layout().has_partial());
  }
  EXPECT_EQ(communication.count, 7);
}

// Products of contributions, "or" and "and" of flags.
TEST(DistributedReduction, FlagsAndProducts) {
  const DeviceMesh mesh = flat_mesh();
  const std::int64_t n = mesh.size(), rank = mesh.local_rank(0);
  const auto local = [&](const Scalar& value, DType dtype, ReduceOp op) {
    return DTensor(mesh, Layout({2}, mesh.grid(), {Partial(op)}),
                   Tensor::full({2}, value, dtype, mesh.device()));
  };
  EXPECT_EQ(error_of(prod(local(2, DType::float64, ReduceOp::product)),
                     Array({}, std::pow(4.0, static_cast<double>(n)))),
            0);
  const DTensor last = local(rank == n - 1, DType::boolean, ReduceOp::bor);
  EXPECT_EQ(error_of(any(last), Array({}, 1)), 0);
  EXPECT_EQ(error_of(all(last), Array({}, 1)), 0);
  EXPECT_EQ(error_of(count_nonzero(last), Array({}, 2)), 0);
  const DTensor but_last = local(rank != n - 1, DType::boolean, ReduceOp::band);
  EXPECT_EQ(error_of(any(but_last), Array({}, 0)), 0);
  EXPECT_EQ(error_of(all(but_last), Array({}, 0)), 0);
}

TEST(DistributedReduction, OverNothing) {
  const DeviceMesh mesh = flat_mesh();
  const DTensor x = place(Array({0, 3}), mesh, Placements{Shard(0)});
  EXPECT_EQ(error_of(sum(x, 0), Array({3}, 0)), 0);
  EXPECT_EQ(error_of(prod(x, 0), Array({3}, 1)), 0);
  EXPECT_EQ(error_of(all(x, 0), Array({3}, 1)), 0);
  EXPECT_EQ(error_of(any(x, 0), Array({3}, 0)), 0);
  for (double v : var(x, 0).full_tensor().to_vector<double>()) EXPECT_TRUE(std::isnan(v));
  for (double v : logsumexp(x, 0).full_tensor().to_vector<double>()) EXPECT_EQ(v, -infinity);
  EXPECT_NE(thrown(ErrorKind::value, [&] { amax(x, 0); }).find("dimension 0"), std::string::npos);
  EXPECT_NE(thrown(ErrorKind::value, [&] { max(x, 0); }).find("dimension 0"), std::string::npos);
  EXPECT_NE(thrown(ErrorKind::value, [&] { argmin(x); }), "");
  EXPECT_NE(thrown(ErrorKind::value, [&] { norm(x, -infinity); }), "");
  EXPECT_EQ(amax(x, 1).shape(), (Shape{0}));
  // Most ranks hold nothing.
  const DTensor one = place(Array({1, 3}, -2.5), mesh, Placements{Shard(0)});
  EXPECT_EQ(error_of(max(one, 0).values, Array({3}, -2.5)), 0);
  EXPECT_EQ(error_of(amax(one, 0), Array({3}, -2.5)), 0);
  EXPECT_EQ(error_of(argmax(one, 0), Array({3}, 0)), 0);
  EXPECT_EQ(error_of(var(one, 0, 0), Array({3}, 0)), 0);
  EXPECT_EQ(error_of(logsumexp(one, 0), Array({3}, -2.5)), 0);
}

TEST(DistributedReduction, Comparisons) {
  const DeviceMesh mesh = flat_mesh(), square = square_mesh();
  Numbers numbers(25);
  const Array a = numbers.array({5, 7});
  Array b = a;
  b.values[23] += 1e-3;
  for (const DeviceMesh& m : {mesh, square}) {
    for (const Layout& la : layouts(a.shape, m, numbers, 6)) {
      if (la.has_partial()) continue;
      const DTensor x = place(a, m, la);
      for (const Layout& lb : layouts(a.shape, m, numbers, 6)) {
        if (lb.has_partial()) continue;
        ASSERT_TRUE(equal(x, place(a, m, lb)));
        ASSERT_FALSE(equal(x, place(b, m, lb)));
        ASSERT_FALSE(allclose(x, place(b, m, lb)));
        ASSERT_TRUE(allclose(x, place(b, m, lb), 0, 2e-3));
      }
    }
  }
  const DTensor x = place(a, mesh, Placements{Shard(0)});
  {
    const Communication t;
    EXPECT_TRUE(equal(x, x));
    EXPECT_EQ(t.count, mesh.size() == 1 ? 0 : 1);
    EXPECT_LE(t.bytes, mesh.size());
    EXPECT_FALSE(equal(x, place(Array({5}), mesh, Placements{Shard(0)})));
    EXPECT_EQ(t.count, mesh.size() == 1 ? 0 : 1);
  }
  EXPECT_NE(thrown(ErrorKind::type, [&] { equal(x, x.to_local()); }).find("distribute_tensor"),
            std::string::npos);
}

// A rank outside of the mesh makes the same calls and holds nothing.
TEST(DistributedReduction, OutsideOfTheMesh) {
  const int n = Runtime::size();
  std::vector<int> ranks;
  for (int r = 0; r < std::max(n - 1, 1); ++r) ranks.push_back(r);
  const DeviceMesh mesh = DeviceMesh::from_ranks(ranks, Shape{static_cast<int>(ranks.size())});
  const Layout layout(Shape{4, 3}, mesh.grid(), {Shard(0)});
  const Shape local = mesh.is_member() ? layout.local_shape(*mesh.coordinate()) : Shape{0, 0};
  const DTensor x(mesh, layout, Tensor::full(local, 2.0, DType::float64, mesh.device()));
  const DTensor v = var(x, 0, 1, true);
  const auto largest = max(x, 0);
  EXPECT_EQ(v.shape(), (Shape{1, 3}));
  EXPECT_EQ(largest.indices.dtype(), DType::int64);
  EXPECT_TRUE(equal(x, x));
  EXPECT_EQ(norm(x, 2, 0).shape(), (Shape{3}));
  if (mesh.is_member()) {
    EXPECT_EQ(v.full_tensor().to_vector<double>(), (Values{0, 0, 0}));
    EXPECT_EQ(norm(x, 2, 0).full_tensor().to_vector<double>(), (Values{4, 4, 4}));
  } else {
    EXPECT_EQ(v.to_local().numel(), 0);
  }
}

}  // namespace
}  // namespace dtensor
