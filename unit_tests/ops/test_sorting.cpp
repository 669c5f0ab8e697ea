// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sort and topk under every kind of placement, against std::stable_sort on one process.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "dtensor/ops/shape.hpp"
#include "dtensor/ops/sorting.hpp"
#include "ops/distributed_reference.hpp"
#include "ops/layouts.hpp"

namespace dtensor {
namespace {

using testing::Array;
using testing::Communication;
using testing::flat_mesh;
using testing::for_each_index;
using testing::layouts;
using testing::Numbers;
using testing::place;
using testing::square_mesh;

struct Expected {
  Array values, indices;
};

Expected sorted(const Array& x, int dim, bool descending, std::int64_t k) {
  Shape shape = x.shape;
  shape[dim] = k;
  Expected e{Array(shape), Array(shape)};
  Shape lines = x.shape;
  lines[dim] = 1;
  for_each_index(lines, [&](const Extents& line) {
    std::vector<std::int64_t> order;
    Extents at = line;
    const auto value = [&](std::int64_t i) {
      at[dim] = i;
      return x.at(at);
    };
    for (std::int64_t i = 0; i < x.shape[dim]; ++i) order.push_back(i);
    const auto less = [](double a, double b) { return a < b || (std::isnan(b) && !std::isnan(a)); };
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t i, std::int64_t j) {
      return descending ? less(value(j), value(i)) : less(value(i), value(j));
    });
    for (std::int64_t i = 0; i < k; ++i) {
      Extents to = line;
      to[dim] = i;
      e.values.at(to) = value(order[static_cast<std::size_t>(i)]);
      e.indices.at(to) = static_cast<double>(order[static_cast<std::size_t>(i)]);
    }
  });
  return e;
}

// Equal, with NaN equal to itself and -0 different from 0.
bool same(const Tensor& t, const Array& expected) {
  if (!(t.shape() == expected.shape)) return false;
  const auto values = t.to(DType::float64).to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double a = values[i], b = expected.values[i];
    if (!(a == b || (std::isnan(a) && std::isnan(b))) || std::signbit(a) != std::signbit(b)) {
      return std::isnan(a) && std::isnan(b);
    }
  }
  return true;
}

// Few different numbers, so that many are equal.
Array many_equal(Numbers& numbers, const Shape& shape, int different) {
  Array a(shape);
  for (double& v : a.values) v = numbers.below(different) - different / 2;
  return a;
}

void check(const DeviceMesh& mesh) {
  Numbers numbers(41);
  for (const Shape& shape : {Shape{5, 7}, Shape{13}, Shape{41}, Shape{2, 19}, Shape{3, 2, 6},
                             Shape{0, 4}, Shape{0}, Shape{1}}) {
    for (int dim = 0; dim < shape.size(); ++dim) {
      const Array x = many_equal(numbers, shape, dim % 2 == 0 ? 9 : 1000);
      const bool descending = numbers.below(2) == 1;
      const Expected all = sorted(x, dim, descending, shape[dim]);
      const std::int64_t k = std::min<std::int64_t>(shape[dim], 3);
      const Expected first = sorted(x, dim, !descending, k);
      for (const Layout& layout : layouts(shape, mesh, numbers, 8)) {
        const DTensor dx = place(x, mesh, layout);
        const auto result = sort(dx, dim, descending);
        ASSERT_TRUE(same(result.values.full_tensor(), all.values)) << to_string(layout) << dim;
        ASSERT_TRUE(same(result.indices.full_tensor(), all.indices)) << to_string(layout) << dim;
        EXPECT_TRUE(layout.has_partial() || result.values.layout() == layout);
        EXPECT_EQ(result.indices.layout(), result.values.layout());
        const auto top = topk(dx, k, dim, !descending);
        ASSERT_TRUE(same(top.values.full_tensor(), first.values)) << to_string(layout) << dim;
        ASSERT_TRUE(same(top.indices.full_tensor(), first.indices)) << to_string(layout) << dim;
      }
    }
  }
}
TEST(Sorting, OneMeshDimension) { check(flat_mesh()); }
TEST(Sorting, TwoMeshDimensions) { check(square_mesh()); }

// Long enough for the radix sort; few values, all different, sorted already, all equal.
TEST(Sorting, LongLines) {
  for (const DeviceMesh& mesh : {flat_mesh(), square_mesh()}) {
    Numbers numbers(42);
    const std::int64_t n = 3001;
    std::vector<Array> arrays{many_equal(numbers, {n}, 7), many_equal(numbers, {n}, 1 << 20),
                              Array({n}, 2.5), Array({n})};
    for (std::int64_t i = 0; i < n; ++i) arrays[3].at({i}) = static_cast<double>(n - i);
    for (const Array& x : arrays) {
      for (bool descending : {false, true}) {
        const Expected all = sorted(x, 0, descending, n), ten = sorted(x, 0, descending, 10);
        for (const Layout& layout : layouts({n}, mesh, numbers, 5)) {
          if (layout.has_partial()) continue;
          const DTensor dx = place(x, mesh, layout);
          const auto result = sort(dx, 0, descending);
          ASSERT_TRUE(same(result.values.full_tensor(), all.values)) << to_string(layout);
          ASSERT_TRUE(same(result.indices.full_tensor(), all.indices)) << to_string(layout);
          ASSERT_TRUE(same(topk(dx, 10, 0, descending).indices.full_tensor(), ten.indices));
        }
      }
    }
  }
}

TEST(Sorting, EveryScalarType) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = INFINITY;
  const DeviceMesh mesh = flat_mesh();
  for (int d = 0; d < dtype_count; ++d) {
    const auto dtype = static_cast<DType>(d);
    std::vector<double> numbers{3, 1, 0, 100, 7, 1, 0, 90, 2};
    if (is_floating(dtype)) {
      for (double v : {nan, -0.0, -1.5, infinity, 0.0, -infinity, -nan, -100.0}) {
        numbers.push_back(v);
      }
    } else if (dtype != DType::uint8 && dtype != DType::boolean) {
      for (double v : {-1.0, -128.0, 127.0}) numbers.push_back(v);
    } else if (dtype == DType::uint8) {
      numbers.push_back(255);
    }
    const auto n = static_cast<std::int64_t>(numbers.size());
    const Tensor t = Tensor::from_vector(numbers, {n}).to(dtype);
    if (is_complex(dtype)) {
      EXPECT_THROW(sort(t), TypeError);
      EXPECT_THROW(argsort(t), TypeError);
      EXPECT_THROW(topk(t, 1), TypeError);
      continue;
    }
    Array x({n});
    x.values = t.to(DType::float64).to_vector<double>();
    const DTensor dt = distribute_tensor(t, mesh, {Shard(0)}, std::nullopt);
    for (bool descending : {false, true}) {
      const Expected e = sorted(x, 0, descending, n), four = sorted(x, 0, descending, 4);
      const auto local = sort(t, 0, descending);
      EXPECT_EQ(local.values.dtype(), dtype);
      EXPECT_EQ(local.indices.dtype(), DType::int64);
      EXPECT_TRUE(same(local.values, e.values)) << to_string(dtype);
      EXPECT_TRUE(same(local.indices, e.indices)) << to_string(dtype);
      EXPECT_TRUE(same(argsort(t, 0, descending), e.indices)) << to_string(dtype);
      EXPECT_TRUE(same(topk(t, 4, 0, descending).values, four.values)) << to_string(dtype);
      const auto global = sort(dt, 0, descending);
      EXPECT_TRUE(same(global.values.full_tensor(), e.values)) << to_string(dtype);
      EXPECT_TRUE(same(global.indices.full_tensor(), e.indices)) << to_string(dtype);
      EXPECT_TRUE(same(argsort(dt, 0, descending).full_tensor(), e.indices));
    }
  }
}

// Row O10 of the known cases.
TEST(Sorting, TopkCommunication) {
  const DeviceMesh mesh = flat_mesh();
  Numbers numbers(43);
  const Array x = numbers.array({12, 8, 8});
  const Expected e = sorted(x, 0, true, 3);
  for (int d = 0; d < 3; ++d) {
    const DTensor dx = place(x, mesh, Placements{Shard(d)});
    const Communication communication;
    const auto top = topk(dx, 3, 0);
    EXPECT_EQ(communication.count, d == 0 && mesh.size() > 1 ? 1 : 0);
    EXPECT_TRUE(d != 0 || mesh.size() == 1 || communication.collective == Collective::all_gather);
    EXPECT_TRUE(same(top.values.full_tensor(), e.values));
    EXPECT_TRUE(same(top.indices.full_tensor(), e.indices));
  }
}

TEST(Sorting, WholeLinesNeedNoCommunication) {
  const DeviceMesh mesh = flat_mesh();
  Numbers numbers(44);
  const DTensor x = place(numbers.array({6 * mesh.size(), 5}), mesh, Placements{Shard(0)});
  const Communication communication;
  EXPECT_EQ(sort(x, 1).values.layout(), x.layout());
  EXPECT_EQ(topk(x, 2, 1).values.placements(), x.placements());
  EXPECT_EQ(communication.count, 0);
  // Lines are exchanged and come back.
  sort(transpose(x, 0, 1), 1);
  EXPECT_LE(communication.count, mesh.size() == 1 ? 0 : 4);
}

TEST(Sorting, ErrorsAndRanksOutsideOfTheMesh) {
  const DTensor x = place(Numbers(45).array({5, 7}), flat_mesh(), Placements{Shard(0)});
  EXPECT_THROW(sort(x, 2), IndexError);
  EXPECT_THROW(topk(x, 6, 0), ValueError);
  EXPECT_THROW(topk(x, -1, 0), ValueError);
  if (Runtime::size() < 3) return;
  const DeviceMesh mesh = DeviceMesh::from_ranks({2, 0}, {2});
  const DTensor y =
      distribute_tensor(Tensor::full({7}, 2, DType::float64), mesh, {Shard(0)}, std::nullopt);
  EXPECT_EQ(sort(y).values.full_tensor().numel(), mesh.is_member() ? 7 : 0);
  EXPECT_EQ(topk(y, 2).indices.full_tensor().numel(), mesh.is_member() ? 2 : 0);
}

}  // namespace
}  // namespace dtensor
