// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Triangles, diagonals and tensors whose values follow from the index.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "dtensor/ops/sequences.hpp"
#include "dtensor/ops/shape.hpp"
#include "dtensor/ops/triangle.hpp"
#include "ops/distributed_reference.hpp"
#include "ops/errors.hpp"
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
using testing::thrown;
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
  offset = std::clamp<std::int64_t>(offset, -100, 100);
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
      for (std::int64_t k :
           {std::int64_t{0}, std::int64_t{1}, std::int64_t{-2}, std::int64_t{3},
            std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
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
  EXPECT_THROW(eye(large, large, DType::float64, host), ValueError);
  const DeviceMesh mesh = flat_mesh();
  const MeshScope scope(mesh);
  EXPECT_EQ(arange(0, 5).placements(), Placements{Replicate()});
  EXPECT_EQ(linspace(0, 1, 5, {.placements = Placements{Shard(0)}}).placements(),
            Placements{Shard(0)});
  EXPECT_EQ(eye(4).shape(), (Shape{4, 4}));
}

TEST(Sequences, IntegersToTheLast) {
  const DeviceKind host = DeviceKind::host;
  const std::int64_t low = std::numeric_limits<std::int64_t>::min(), high = -(low + 1);
  const std::int64_t large = std::int64_t{1} << 60;
  using Values = std::vector<std::int64_t>;
  const auto range = [&](std::int64_t start, std::int64_t end, std::int64_t step) {
    return arange(start, end, step, DType::int64, host).to_vector<std::int64_t>();
  };
  EXPECT_EQ(range(0, low, low), Values{0});
  EXPECT_EQ(range(high, low, low), (Values{high, -1}));
  EXPECT_EQ(range(low, high, high), (Values{low, -1, high - 1}));
  EXPECT_EQ(range(large + 1, large + 1, -7), Values{});
  EXPECT_EQ(range(large, large + 1, 1), Values{large});
  const auto refused = [&](std::int64_t start, std::int64_t end, std::int64_t step,
                           DType dtype = DType::int64) {
    return thrown(ErrorKind::value, [&] { arange(start, end, step, dtype, host); });
  };
  EXPECT_NE(refused(0, low, -1), "");
  EXPECT_NE(refused(low, high, 1), "");
  EXPECT_NE(refused(large + 3, large, 5), "");
  EXPECT_NE(refused(large + 1, large, 1), "");
  // All numbers fit the type, the end need not.
  EXPECT_EQ(
      refused(250, 260, 1, DType::uint8),
      "arange: uint8 from 250 to 260 in steps of 1; expected numbers that the scalar type can "
      "hold");
  EXPECT_NE(refused(-200, -190, 3, DType::int8), "");
  EXPECT_EQ(arange(250, 256, 1, DType::uint8, host).numel(), 6);
  EXPECT_EQ(arange(127, -129, -1, DType::int8, host).numel(), 256);
  EXPECT_EQ(arange(300, 300, 1, DType::uint8, host).numel(), 0);
}

TEST(Sequences, LargestNumbers) {
  const DeviceKind host = DeviceKind::host;
  using Values = std::vector<double>;
  const double most = std::numeric_limits<double>::max();
  EXPECT_EQ(linspace(-1.5e308, 1.5e308, 3, DType::float64, host).to_vector<double>(),
            (Values{-1.5e308, 0, 1.5e308}));
  for (std::int64_t n : {2, 3, 4, 7, 50}) {
    const auto values = linspace(-most, most, n, DType::float64, host).to_vector<double>();
    EXPECT_EQ(values.front(), -most);
    EXPECT_EQ(values.back(), most);
    EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
  }
  EXPECT_EQ(arange(-1.5e308, 1.5e308, 1e308, DType::float64, host).to_vector<double>(),
            (Values{-1.5e308, -0.5e308, 0.5e308}));
  for (double bad :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_THROW(linspace(bad, 1, 3, DType::float64, host), ValueError);
    EXPECT_THROW(linspace(0, bad, 0, DType::float64, host), ValueError);
    EXPECT_THROW(arange(0, 1, bad, DType::float64, host), ValueError);
  }
}

TEST(Sequences, ErrorsNameTheFunction) {
  const DeviceMesh mesh = flat_mesh();
  const auto name = [](const auto& f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.function();
    }
    return "";
  };
  const Placements bad{Shard(2)}, two{Shard(0), Shard(0)};
  for (const Placements& p : {bad, two, Placements{Shard(0, {99})}, Placements{Partial()}}) {
    EXPECT_EQ(name([&] { eye(3, 3, mesh, p); }), "eye");
    EXPECT_EQ(name([&] { arange(0, 3, 1, mesh, p); }), "arange");
    EXPECT_EQ(name([&] { linspace(0, 3, 4, mesh, p); }), "linspace");
  }
  const std::int64_t large = std::int64_t{1} << 62;
  EXPECT_EQ(name([&] { eye(large, large, mesh, {Shard(0)}); }), "eye");
  EXPECT_EQ(name([&] { arange(0, large, 1, mesh, {Shard(0)}); }), "arange");
  EXPECT_EQ(name([&] { linspace(0, 1, large, mesh, {Shard(0)}); }), "linspace");
}

}  // namespace
}  // namespace dtensor
