// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Running sums and products against plain loops, on one process and under every placement.
#include <gtest/gtest.h>

#include "dtensor/ops/scan.hpp"
#include "ops/distributed_reference.hpp"
#include "ops/errors.hpp"
#include "ops/layouts.hpp"

namespace dtensor {
namespace {

using namespace testing;  // the references

Array reference_scan(const Array& a, int dim, bool product) {
  Array out = a;
  for_each_index(a.shape, [&](const Extents& index) {
    if (index[dim] == 0) return;
    Extents before = index;
    --before[dim];
    out.at(index) = product ? out.at(before) * a.at(index) : out.at(before) + a.at(index);
  });
  return out;
}

TEST(Scan, EveryScalarTypeAndStride) {
  Numbers numbers(31);
  for (int t = 0; t < dtype_count; ++t) {
    const auto dtype = static_cast<DType>(t);
    for (const Shape& shape : {Shape{3, 5, 4}, Shape{7, 300}, Shape{9}, Shape{2, 0, 3}}) {
      Array a = numbers.array(shape);
      for (double& v : a.values) {
        v = dtype == DType::boolean ? v > 0 : std::floor(std::abs(v) / 2) + 1;
        if (shape.product() > 100) v = 1;
      }
      const Tensor dense = Tensor::from_vector(a.values, shape).to(dtype);
      for (int dim = 0; dim < shape.size(); ++dim) {
        for (int view = 0; view < 2; ++view) {
          const Tensor x = view == 0 ? dense : dense.transpose(0, -1).contiguous().transpose(0, -1);
          const Tensor s = cumsum(x, dim - shape.size()), p = cumprod(x, dim);
          EXPECT_EQ(s.dtype(), is_floating(dtype) || is_complex(dtype) ? dtype : DType::int64);
          const auto near = [&](const Tensor& result, bool product) {
            const Array expected = reference_scan(a, dim, product);
            const auto values = result.to(DType::float64).to_vector<double>();
            // Small integers: exact but for the rounding of bfloat16.
            const double tolerance = dtype == DType::bfloat16 ? 4e-3 : 0;
            ASSERT_EQ(values.size(), expected.values.size());
            for (std::size_t i = 0; i < values.size(); ++i) {
              ASSERT_NEAR(values[i], expected.values[i], tolerance * expected.values[i])
                  << to_string(dtype) << " " << to_string(shape) << " " << dim << " at " << i;
            }
          };
          near(s, false);
          near(p, true);
        }
      }
    }
  }
  EXPECT_EQ(cumsum(Tensor::full({3}, 100, DType::int8), 0).to_vector<std::int64_t>()[2], 300);
  // Accumulated in float.
  const Tensor half = cumsum(Tensor::full({4096}, 0.5, DType::float16), 0);
  EXPECT_EQ(half.to(DType::float64).to_vector<double>()[4095], 2048);
  EXPECT_NE(thrown(ErrorKind::index, [&] { cumprod(half, 1); }).find("cumprod"), std::string::npos);
}

void check(const DeviceMesh& mesh) {
  Numbers numbers(32);
  for (const Shape& shape : {Shape{5, 7}, Shape{23}, Shape{4, 3, 2}, Shape{0, 3}, Shape{1, 2}}) {
    const Array a = numbers.array(shape);
    for (const Layout& layout : layouts(shape, mesh, numbers)) {
      const DTensor x = place(a, mesh, layout);
      for (int dim = 0; dim < shape.size(); ++dim) {
        const DTensor s = cumsum(x, dim), p = cumprod(x, dim);
        ASSERT_LT(error_of(s, reference_scan(a, dim, false)), 1e-11) << to_string(layout) << dim;
        ASSERT_LT(error_of(p, reference_scan(a, dim, true)), 1e-10) << to_string(layout) << dim;
      }
    }
  }
}

TEST(Scan, OnOneMeshDimension) { check(flat_mesh()); }
TEST(Scan, OnTwoMeshDimensions) { check(square_mesh()); }

TEST(Scan, OnlyTotalsTravel) {
  const DeviceMesh mesh = flat_mesh();
  const std::int64_t n = mesh.size();
  const Array a = Numbers(33).array({60, 5});
  for (const Placement& p : {Placement(Shard(0)), Placement(Shard(0, uneven(60, n))),
                             Placement(Shard(1)), Placement(Replicate()), Placement(Partial())}) {
    const DTensor x = place(a, mesh, Placements{p});
    Communication traffic;
    const DTensor s = cumsum(x, 0);
    EXPECT_TRUE(s.placements()[0] == p) << to_string(s.placements());
    EXPECT_EQ(traffic.count, n > 1 && p.is_shard(0) ? 1 : 0) << to_string(p);
    EXPECT_LE(traffic.bytes, (n - 1) * 5 * 8) << to_string(p);
  }
  // Contributions to sums are none to products, nor where totals have to travel.
  const DTensor x = place(a, mesh, Placements{Partial()});
  EXPECT_EQ(cumprod(x, 0).layout().has_partial(), false);
}

// 16-bit totals travel as float.
TEST(Scan, SixteenBitTypes) {
  const DeviceMesh mesh = flat_mesh();
  const Layout layout({3000}, mesh.grid(), {Shard(0)});
  const DTensor x(
      mesh, layout,
      Tensor::full(layout.local_shape(*mesh.coordinate()), 1, DType::bfloat16, mesh.device()));
  const auto values = cumsum(x, 0).full_tensor().to(DType::float64).to_vector<double>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], static_cast<float>(bfloat16(static_cast<float>(i + 1)))) << i;
  }
}

}  // namespace
}  // namespace dtensor
