// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Triangles, diagonals and tensors whose values follow from the index.
#include <gtest/gtest.h>

#include <algorithm>

#include "dtensor/ops/sequences.hpp"
#include "dtensor/ops/shape.hpp"
#include "dtensor/ops/triangle.hpp"
#include "ops/distributed_reference.hpp"
#include "ops/layouts.hpp"

namespace dtensor {
namespace {

using testing::Array;
using testing::Communication;
using testing::error_of;
using testing::flat_mesh;
using testing::for_each_index;
using testing::layouts;
using testing::Numbers;
using testing::place;
using testing::square_mesh;
using testing::uneven;

Array triangle(const Array& x, bool lower, std::int64_t k) {
  Array y = x;
  const int n = x.shape.size();
  for_each_index(x.shape, [&](const Extents& i) {
    const std::int64_t right = i[n - 1] - i[n - 2];
    if (lower ? right > k : right < k) y.at(i) = 0;
  });
  return y;
}

Array diagonal_of(const Array& x, std::int64_t offset, int d1, int d2) {
  Shape shape;
  for (int d = 0; d < x.shape.size(); ++d) {
    if (d != d1 && d != d2) shape.push_back(x.shape[d]);
  }
  std::int64_t length = 0;
  const std::int64_t row = offset < 0 ? -offset : 0, column = offset < 0 ? 0 : offset;
  while (row + length < x.shape[d1] && column + length < x.shape[d2]) ++length;
  shape.push_back(length);
  Array y(shape);
  for_each_index(shape, [&](const Extents& i) {
    Extents from;
    int next = 0;
    for (int d = 0; d < x.shape.size(); ++d) {
      from.push_back(d == d1   ? row + i[i.size() - 1]
                     : d == d2 ? column + i[i.size() - 1]
                               : i[next++]);
    }
    y.at(i) = x.at(from);
  });
  return y;
}

void check(const DeviceMesh& mesh) {
  Numbers numbers(21);
  for (const Shape& shape : {Shape{5, 7}, Shape{7, 4}, Shape{3, 4, 5}, Shape{0, 3}, Shape{1, 1}}) {
    const Array x = numbers.array(shape);
    const int n = shape.size();
    for (const Layout& layout : layouts(shape, mesh, numbers)) {
      const DTensor dx = place(x, mesh, layout);
      for (std::int64_t k : {0, 1, -2, 3, -100, 100}) {
        const Communication communication;
        const DTensor lower = tril(dx, k), upper = triu(dx, k);
        EXPECT_EQ(communication.count, 0);
        EXPECT_EQ(lower.layout(), layout);
        ASSERT_LT(error_of(lower, triangle(x, true, k)), 1e-12) << to_string(layout) << k;
        ASSERT_LT(error_of(upper, triangle(x, false, k)), 1e-12) << to_string(layout) << k;
        const auto& placements = layout.placements();
        const bool linear = std::none_of(placements.begin(), placements.end(), [](const auto& p) {
          return p.is_partial(ReduceOp::max) || p.is_partial(ReduceOp::min);
        });
        const Communication none;
        const DTensor main = diagonal(dx, k), other = diagonal(dx, k, -1, 0);
        EXPECT_TRUE(none.count == 0 || !linear) << to_string(layout);
        ASSERT_LT(error_of(main, diagonal_of(x, k, 0, 1)), 1e-12) << to_string(layout) << k;
        ASSERT_LT(error_of(other, diagonal_of(x, k, n - 1, 0)), 1e-12) << to_string(layout) << k;
      }
    }
  }
}
TEST(Triangle, OneMeshDimension) { check(flat_mesh()); }
TEST(Triangle, TwoMeshDimensions) { check(square_mesh()); }

TEST(Triangle, LocalTensors) {
  Numbers numbers(22);
  const Array x = numbers.array({3, 4, 5});
  const Tensor t = Tensor::from_vector(x.values, x.shape);
  EXPECT_EQ(tril(t, 1).to_vector<double>(), triangle(x, true, 1).values);
  EXPECT_EQ(triu(t, -1).to_vector<double>(), triangle(x, false, -1).values);
  EXPECT_EQ(diagonal(t, 2, 2, 1).to_vector<double>(), diagonal_of(x, 2, 2, 1).values);
  EXPECT_EQ(diagonal(t).storage(), t.storage());
  const Tensor strided = transpose(t, 1, 2);
  for (DType dtype : {DType::complex128, DType::int32, DType::float16, DType::boolean}) {
    const Tensor converted = strided.to(dtype);
    Array y(converted.shape());
    y.values = converted.to(DType::float64).to_vector<double>();
    EXPECT_EQ(tril(converted).to(DType::float64).to_vector<double>(), triangle(y, true, 0).values);
  }
  EXPECT_EQ(triu(strided, 1).shape(), (Shape{3, 5, 4}));
  EXPECT_THROW(tril(select(select(t, 0, 0), 0, 0)), ValueError);
  EXPECT_THROW(diagonal(t, 0, 1, -2), ValueError);
  EXPECT_THROW(diagonal(t, 0, 1, 3), IndexError);
}

TEST(Triangle, DiagonalStaysWhereItIs) {
  const DeviceMesh mesh = flat_mesh();
  if (mesh.size() != 4) return;
  const DTensor x = place(Numbers(23).array({8, 9}), mesh, Placements{Shard(0)});
  EXPECT_EQ(to_string(diagonal(x).placements()), "[S(0)]");
  EXPECT_EQ(to_string(diagonal(x, -3).placements()), "[S(0,[0, 1, 2, 2])]");
  EXPECT_EQ(diagonal(x).to_local().storage(), x.to_local().storage());
  const DTensor y = place(Numbers(23).array({8, 9}), mesh, Placements{Shard(1)});
  EXPECT_EQ(to_string(diagonal(y, 1).placements()), "[S(0,[2, 3, 3, 0])]");
}

void check_sequences(const DeviceMesh& mesh) {
  Numbers numbers(24);
  for (std::int64_t n : {13, 4, 1, 0}) {
    for (const Layout& layout : layouts({n}, mesh, numbers)) {
      if (layout.has_partial()) {
        EXPECT_THROW(arange(0, n, 1, mesh, layout.placements()), LayoutError);
        EXPECT_THROW(linspace(0, 1, n, mesh, layout.placements()), LayoutError);
        continue;
      }
      if (!layout.shard_order().empty()) continue;
      const Communication communication;
      const DTensor a = arange(5, 5 - 3 * n, -3, mesh, layout.placements(), DType::int32);
      const DTensor b = linspace(-1.5, 2.25, n, mesh, layout.placements());
      EXPECT_EQ(communication.count, 0);
      Array ea({n}), eb({n});
      for (std::int64_t i = 0; i < n; ++i) {
        ea.at({i}) = static_cast<double>(5 - 3 * i);
        eb.at({i}) =
            n == 1 ? -1.5 : -1.5 + 3.75 * static_cast<double>(i) / static_cast<double>(n - 1);
      }
      EXPECT_EQ(error_of(a, ea), 0);
      EXPECT_LT(error_of(b, eb), 1e-14);
      const Tensor full = b.full_tensor();
      EXPECT_TRUE(n < 2 || full.to_vector<double>().back() == 2.25);
    }
  }
  for (const Shape& shape : {Shape{5, 7}, Shape{6, 6}, Shape{7, 2}, Shape{0, 3}}) {
    for (const Layout& layout : layouts(shape, mesh, numbers)) {
      if (layout.has_partial() || !layout.shard_order().empty()) continue;
      Array e(shape);
      for (std::int64_t i = 0; i < std::min(shape[0], shape[1]); ++i) e.at({i, i}) = 1;
      for (DType dtype : {DType::float32, DType::boolean}) {
        EXPECT_EQ(error_of(eye(shape[0], shape[1], mesh, layout.placements(), dtype), e), 0)
            << to_string(layout);
      }
    }
  }
}
TEST(Sequences, OneMeshDimension) { check_sequences(flat_mesh()); }
TEST(Sequences, TwoMeshDimensions) { check_sequences(square_mesh()); }

TEST(Sequences, LocalTensorsAndErrors) {
  using Values = std::vector<double>;
  const DeviceKind host = DeviceKind::host;
  EXPECT_EQ(arange(0, 1, 0.25, DType::float64, host).to_vector<double>(),
            (Values{0, 0.25, 0.5, 0.75}));
  EXPECT_EQ(arange(0, 1.1, 0.25, DType::float64, host).numel(), 5);
  EXPECT_EQ(arange(3, -4, -3, DType::int8, host).to_vector<std::int8_t>(),
            (std::vector<std::int8_t>{3, 0, -3}));
  const std::int64_t large = std::int64_t{1} << 60;
  EXPECT_EQ(arange(large, large + 3, 2, DType::int64, host).to_vector<std::int64_t>(),
            (std::vector<std::int64_t>{large, large + 2}));
  EXPECT_EQ(linspace(1, 3, 5, DType::float64, host).to_vector<double>(),
            (Values{1, 1.5, 2, 2.5, 3}));
  EXPECT_EQ(linspace(0, 1, 1, DType::float64, host).to_vector<double>(), (Values{0}));
  // 49 times the double next to 1/49 is not 1.
  EXPECT_EQ(linspace(0, 1, 50, DType::float64, host).to_vector<double>().back(), 1);
  EXPECT_EQ(eye(2, 3, DType::float64, host).to_vector<double>(), (Values{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(eye(2, -1, DType::float64, host).shape(), (Shape{2, 2}));
  EXPECT_THROW(arange(0, 1, 0, DType::float64, host), ValueError);
  EXPECT_THROW(arange(0, 1, -1, DType::float64, host), ValueError);
  EXPECT_THROW(arange(0, INFINITY, 1, DType::float64, host), ValueError);
  EXPECT_THROW(arange(0, 1.5, 1, DType::int64, host), TypeError);
  EXPECT_THROW(arange(0, 2, 1, DType::boolean, host), TypeError);
  EXPECT_THROW(arange(0, 2, 1, DType::complex64, host), TypeError);
  EXPECT_THROW(linspace(0, 2, -1, DType::float64, host), ValueError);
  EXPECT_THROW(linspace(0, 2, 3, DType::int64, host), TypeError);
  EXPECT_THROW(eye(-1, 2, DType::float64, host), ValueError);
  const DeviceMesh mesh = flat_mesh();
  const MeshScope scope(mesh);
  EXPECT_EQ(arange(0, 5).placements(), Placements{Replicate()});
  EXPECT_EQ(linspace(0, 1, 5, {.placements = Placements{Shard(0)}}).placements(),
            Placements{Shard(0)});
  EXPECT_EQ(eye(4).shape(), (Shape{4, 4}));
}

}  // namespace
}  // namespace dtensor
