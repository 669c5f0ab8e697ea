// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Making tensors, sharing memory with Kokkos Views, typed access, copies and conversions.
#include "dtensor/core/tensor.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

using namespace dtensor;

namespace {

/// Element (i, j, ...) of a host tensor of doubles, through strides and pointer only.
double element(const Tensor& t, const Extents& index) {
  std::int64_t offset = 0;
  for (int d = 0; d < index.size(); ++d) offset += index[d] * t.strides()[d];
  return static_cast<const double*>(t.data())[offset];
}

std::vector<double> counting(std::int64_t n) {
  std::vector<double> v(static_cast<std::size_t>(n));
  std::iota(v.begin(), v.end(), 1.0);
  return v;
}

template <class ViewType>
void expect_aliases(const ViewType& view, const Extents& strides) {
  ASSERT_EQ(view.use_count(), 1);
  for (std::size_t i = 0; i < view.extent(0); ++i) {
    for (std::size_t j = 0; j < view.extent(1); ++j) view(i, j) = static_cast<double>(10 * i + j);
  }
  {
    const Tensor t = Tensor::from_view(view);
    EXPECT_EQ(view.use_count(), 2) << "the View is kept alive";
    EXPECT_EQ(t.shape(), (Shape{3, 5}));
    EXPECT_EQ(t.strides(), strides);
    EXPECT_EQ(t.dtype(), DType::float64);
    EXPECT_EQ(t.data(), view.data());
    EXPECT_EQ(element(t, {2, 3}), 23.0);
    view(2, 3) = -1;
    EXPECT_EQ(element(t, {2, 3}), -1.0);
    const auto back = t.view<double**>();
    back(1, 4) = -2;
    EXPECT_EQ(view(1, 4), -2.0);
    EXPECT_EQ(back.data(), view.data());
    const Tensor alias = t.narrow(0, 1, 1);
    EXPECT_EQ(alias.storage(), t.storage());
  }
  EXPECT_EQ(view.use_count(), 1) << "and let go with the last tensor";
}

template <class E, class F>
std::string text_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST(TensorFromView, AliasesEveryLayout) {
  expect_aliases(Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace>("test", 3, 5),
                 {5, 1});
  expect_aliases(Kokkos::View<double**, Kokkos::LayoutLeft, Kokkos::HostSpace>("test", 3, 5),
                 {1, 3});
  expect_aliases(Kokkos::View<double**, Kokkos::LayoutStride, Kokkos::HostSpace>(
                     "test", Kokkos::LayoutStride(3, 7, 5, 21)),
                 {7, 21});
}

TEST(TensorFromView, AliasesASubview) {
  Kokkos::View<double***, Kokkos::LayoutRight, Kokkos::HostSpace> whole("test", 4, 3, 5);
  const auto part = Kokkos::subview(whole, Kokkos::ALL(), 1, Kokkos::make_pair(1, 3));
  const Tensor t = Tensor::from_view(part);
  EXPECT_EQ(t.shape(), (Shape{4, 2}));
  EXPECT_EQ(t.strides(), (Extents{15, 1}));
  whole(2, 1, 2) = 8;
  EXPECT_EQ(element(t, {2, 1}), 8.0);
}

TEST(TensorFromView, KeepsTheMemoryOfAViewThatIsGone) {
  Tensor t;
  {
    Kokkos::View<double*, Kokkos::HostSpace> view("test", 4);
    view(2) = 6;
    t = Tensor::from_view(view);
  }
  EXPECT_EQ(element(t, {2}), 6.0);
}

TEST(TensorFromView, TakesEveryRankAndConstElements) {
  const Kokkos::View<float, Kokkos::HostSpace> scalar("test");
  scalar() = 4.5f;
  const Tensor s = Tensor::from_view(scalar);
  EXPECT_EQ(s.shape(), Shape());
  EXPECT_EQ(s.item<float>(), 4.5f);

  const Kokkos::View<int********, Kokkos::HostSpace> eight("test", 1, 2, 1, 2, 1, 2, 1, 3);
  EXPECT_EQ(Tensor::from_view(eight).shape(), (Shape{1, 2, 1, 2, 1, 2, 1, 3}));
  EXPECT_EQ(Tensor::from_view(eight).dtype(), DType::int32);

  const Kokkos::View<const int********, Kokkos::HostSpace> constant = eight;
  EXPECT_EQ(Tensor::from_view(constant).data(), eight.data());

  const Kokkos::View<double* [3], Kokkos::HostSpace> fixed("test", 2);
  EXPECT_EQ(Tensor::from_view(fixed).shape(), (Shape{2, 3}));

  const Kokkos::View<double**, Kokkos::HostSpace> nothing("test", 0, 3);
  EXPECT_EQ(Tensor::from_view(nothing).shape(), (Shape{0, 3}));
  EXPECT_EQ(Tensor::from_view(nothing).numel(), 0);
}

TEST(TensorView, ChecksTypeRankAndLayout) {
  const Tensor t = Tensor::from_vector(counting(6), {2, 3});
  EXPECT_EQ((t.view<double**, Kokkos::LayoutRight>()(1, 2)), 6.0);
  EXPECT_EQ((t.view<double**>()(1, 2)), 6.0);
  EXPECT_EQ((t.view<const double**>()(1, 0)), 4.0);
  EXPECT_EQ((t.transpose(0, 1).view<double**, Kokkos::LayoutLeft>()(2, 1)), 6.0);
  EXPECT_EQ(t.data_as<double>(), t.data());

  const std::string type = text_of<TypeError>([&] { t.view<float**>(); });
  EXPECT_TRUE(contains(type, "float32") && contains(type, "float64")) << type;
  const std::string rank = text_of<TypeError>([&] { t.view<double*>(); });
  EXPECT_TRUE(contains(rank, "1 dimensions") && contains(rank, "(2, 3)")) << rank;
  const std::string layout = text_of<ValueError>([&] { t.view<double**, Kokkos::LayoutLeft>(); });
  EXPECT_TRUE(contains(layout, "LayoutLeft") && contains(layout, "(3, 1)")) << layout;
  EXPECT_THROW((t.transpose(0, 1).view<double**, Kokkos::LayoutRight>()), ValueError);
  EXPECT_THROW((t.narrow(1, 0, 2).view<double**, Kokkos::LayoutRight>()), ValueError);
  EXPECT_THROW(t.data_as<float>(), TypeError);
  EXPECT_THROW(t.to_vector<float>(), TypeError);
  EXPECT_THROW(t.item<double>(), ValueError);
}

TEST(TensorView, StridesOfExtentOneDoNotMatter) {
  const Tensor row = Tensor::from_vector(counting(6), {2, 3}).narrow(0, 1, 1);
  EXPECT_EQ((row.view<double**, Kokkos::LayoutRight>()(0, 2)), 6.0);
  EXPECT_EQ((row.view<double**, Kokkos::LayoutLeft>()(0, 2)), 6.0);
  EXPECT_TRUE(row.is_contiguous());
  EXPECT_TRUE(Tensor::empty({0, 4}, DType::int8).is_contiguous());
  EXPECT_EQ((Tensor::empty({0, 4}, DType::float64).view<double**, Kokkos::LayoutLeft>().extent(1)),
            4u);
}

TEST(TensorFactories, MakeRowMajorTensors) {
  const Tensor z = Tensor::zeros({2, 3, 4}, DType::int16);
  EXPECT_EQ(z.strides(), (Extents{12, 4, 1}));
  EXPECT_EQ(z.to_vector<std::int16_t>(), std::vector<std::int16_t>(24, 0));
  EXPECT_EQ(Tensor::full({3}, 2.75, DType::int32).to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{2, 2, 2}));
  EXPECT_EQ(Tensor::full({2}, -1.5, DType::float16).to_vector<float16>()[1].bits, 0xBE00);
  EXPECT_EQ(Tensor::full({}, true, DType::boolean).item<bool>(), true);
  EXPECT_EQ(Tensor::empty({0, 3}, DType::float64).numel(), 0);
  EXPECT_THROW(Tensor::empty({2, -1}, DType::float64), ValueError);
  EXPECT_THROW(Tensor::empty({std::int64_t{1} << 40, std::int64_t{1} << 40}, DType::int8),
               ValueError);
  EXPECT_THROW(Tensor::from_vector(counting(5), {2, 3}), ValueError);
}

TEST(TensorFactories, EveryTypeSurvivesAVector) {
  for (int d = 0; d < dtype_count; ++d) {
    dispatch_dtype(static_cast<DType>(d), [&]<class T>() {
      const std::vector<T> values{scalar_cast<T>(1.0), scalar_cast<T>(0.0), scalar_cast<T>(3.0)};
      const Tensor t = Tensor::from_vector(values, {3});
      EXPECT_EQ(t.dtype(), static_cast<DType>(d));
      const std::vector<T> back = t.to_vector<T>();
      ASSERT_EQ(back.size(), 3u);
      for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(back[i] == values[i]) << d << " " << i;
    });
  }
}

TEST(TensorFactories, FromBlobChecksItsGeometry) {
  double data[6] = {1, 2, 3, 4, 5, 6};
  const Tensor t = Tensor::from_blob(data, {2, 2}, {3, 1}, DType::float64, DeviceKind::host);
  EXPECT_EQ(t.to_vector<double>(), (std::vector<double>{1, 2, 4, 5}));
  data[4] = 50;
  EXPECT_EQ(element(t, {1, 1}), 50.0);
  EXPECT_THROW(Tensor::from_blob(data, {2, 2}, {1}, DType::float64, DeviceKind::host), ValueError);
  EXPECT_THROW(Tensor::from_blob(data, {2}, {-1}, DType::float64, DeviceKind::host), ValueError);
  EXPECT_THROW(Tensor::from_blob(data, {-2}, {1}, DType::float64, DeviceKind::host), ValueError);
  EXPECT_THROW(Tensor::from_blob(nullptr, {3}, {1}, DType::float64, DeviceKind::host), ValueError);
  EXPECT_EQ(Tensor::from_blob(nullptr, {0}, {1}, DType::float64, DeviceKind::host).numel(), 0);
  // Repeated elements are a stride of zero.
  EXPECT_EQ(
      Tensor::from_blob(data, {2, 2}, {0, 1}, DType::float64, DeviceKind::host).to_vector<double>(),
      (std::vector<double>{1, 2, 1, 2}));
}

TEST(TensorCopies, CloneIsSeparateAndHandlesAlias) {
  const Tensor t = Tensor::from_vector(counting(6), {2, 3});
  const Tensor alias = t;
  const Tensor copy = t.clone();
  t.fill(9);
  EXPECT_EQ(alias.to_vector<double>(), std::vector<double>(6, 9.0));
  EXPECT_EQ(copy.to_vector<double>(), counting(6));
  EXPECT_NE(copy.data(), t.data());
}

TEST(TensorCopies, CloneOfAViewIsRowMajor) {
  const Tensor t = Tensor::from_vector(counting(6), {2, 3}).transpose(0, 1);
  const Tensor copy = t.clone();
  EXPECT_EQ(copy.strides(), (Extents{2, 1}));
  EXPECT_EQ(copy.to_vector<double>(), (std::vector<double>{1, 4, 2, 5, 3, 6}));
}

TEST(TensorCopies, CopyFromConvertsIntoAnyStrides) {
  const Tensor target = Tensor::zeros({3, 4}, DType::int32);
  const Tensor part = target.transpose(0, 1).narrow(0, 1, 2);  // columns 1 and 2 of three rows
  part.copy_from(Tensor::from_vector(std::vector<double>{1.5, 2.5, 3.5, -4.5, 5, 6}, {2, 3}));
  EXPECT_EQ(target.to_vector<std::int32_t>(),
            (std::vector<std::int32_t>{0, 1, -4, 0, 0, 2, 5, 0, 0, 3, 6, 0}));
  EXPECT_THROW(part.copy_from(Tensor::zeros({3, 2}, DType::int32)), ValueError);
  Tensor::zeros({0, 3}, DType::int32).copy_from(Tensor::zeros({0, 3}, DType::float64));
}

// Two handles on one allocation may lie across one another.
TEST(TensorCopies, OverlappingMemory) {
  std::vector<double> memory = counting(9);
  const Tensor rows =
      Tensor::from_blob(memory.data(), {3, 3}, {3, 1}, DType::float64, DeviceKind::host, nullptr);
  const Tensor columns =
      Tensor::from_blob(memory.data(), {3, 3}, {1, 3}, DType::float64, DeviceKind::host, nullptr);
  EXPECT_TRUE(columns.overlaps(rows));
  EXPECT_FALSE(rows.overlaps(rows));
  EXPECT_FALSE(rows.narrow(0, 0, 1).overlaps(rows.narrow(0, 1, 2)));
  columns.copy_from(rows);
  EXPECT_EQ(memory, (std::vector<double>{1, 4, 7, 2, 5, 8, 3, 6, 9}));
  const Tensor shifted =
      Tensor::from_blob(memory.data() + 1, {8}, {1}, DType::float64, DeviceKind::host, nullptr);
  shifted.copy_from(rows.reshape({9}).narrow(0, 0, 8));
  EXPECT_EQ(memory, (std::vector<double>{1, 1, 4, 7, 2, 5, 8, 3, 6}));
  // Elements of the target must be apart.
  const Tensor window = rows.as_strided({2, 3}, {1, 1}, 0);
  EXPECT_THROW(window.copy_from(Tensor::zeros({2, 3}, DType::float64)), ValueError);
  EXPECT_EQ(memory[1], 1);
}

TEST(TensorCopies, FillRefusesWhatTheTypeCannotHold) {
  const auto fill = [](DType dtype, const Scalar& value) {
    const Tensor t = Tensor::zeros({2}, dtype);
    t.fill(value);
    return t.to(DType::float64).to_vector<double>()[1];
  };
  EXPECT_EQ(fill(DType::int8, -128), -128);
  EXPECT_EQ(fill(DType::int8, 127.9), 127);
  EXPECT_EQ(fill(DType::uint8, 255), 255);
  EXPECT_EQ(fill(DType::uint8, -0.5), 0);
  EXPECT_EQ(fill(DType::boolean, 300), 1);
  EXPECT_EQ(fill(DType::float32, std::complex<double>(2, 0)), 2);
  EXPECT_EQ(fill(DType::int64, -9223372036854775808.0), -9223372036854775808.0);
  for (const auto& [dtype, value] :
       std::vector<std::pair<DType, Scalar>>{{DType::int8, 128},
                                             {DType::int8, -129.0},
                                             {DType::uint8, -1},
                                             {DType::uint8, 256.0},
                                             {DType::int16, 1 << 20},
                                             {DType::int32, 2147483648.0},
                                             {DType::int64, 1e19},
                                             {DType::int64, 9223372036854775808.0},
                                             {DType::int32, NAN},
                                             {DType::int64, INFINITY},
                                             {DType::float64, std::complex<double>(1, 2)},
                                             {DType::int8, std::complex<double>(0, 1)}}) {
    try {
      fill(dtype, value);
      ADD_FAILURE() << to_string(value) << " in " << to_string(dtype);
    } catch (const ValueError& e) {
      EXPECT_NE(e.given().find(to_string(value)), std::string::npos) << e.what();
      EXPECT_NE(e.given().find(to_string(dtype)), std::string::npos) << e.what();
    }
  }
}

TEST(TensorCopies, ConversionKeepsShapeAndValues) {
  const Tensor t = Tensor::from_vector(counting(6), {2, 3});
  EXPECT_EQ(t.to(DType::float64).data(), t.data()) << "nothing to convert";
  const Tensor converted = t.transpose(0, 1).to(DType::complex64);
  EXPECT_EQ(converted.shape(), (Shape{3, 2}));
  EXPECT_TRUE(converted.to_vector<Kokkos::complex<float>>()[1] == Kokkos::complex<float>(4, 0));
  EXPECT_EQ(t.to(t.device()).data(), t.data());
  const Tensor host = Tensor::from_vector(counting(6), {2, 3}, DeviceKind::host);
  const Tensor there = host.to(DeviceKind::device);
  EXPECT_EQ(there.device(), DeviceKind::device);
  EXPECT_NE(there.storage(), host.storage());
  EXPECT_EQ(there.to_vector<double>(), counting(6));
}

TEST(TensorCopies, FillOfAViewLeavesTheRest) {
  const Tensor t = Tensor::from_vector(counting(12), {3, 4});
  t.narrow(1, 1, 2).narrow(0, 1, 2).fill(-1);
  EXPECT_EQ(t.to_vector<double>(), (std::vector<double>{1, 2, 3, 4, 5, -1, -1, 8, 9, -1, -1, 12}));
}

TEST(TensorHandle, UndefinedThrowsOnUse) {
  const Tensor t;
  EXPECT_FALSE(t.defined());
  EXPECT_THROW(t.shape(), StateError);
  EXPECT_THROW(t.data(), StateError);
  EXPECT_THROW(t.clone(), StateError);
  EXPECT_EQ(to_string(t), "Tensor(undefined)");
}

TEST(TensorHandle, Prints) {
  EXPECT_EQ(to_string(Tensor::zeros({3, 4}, DType::bfloat16, DeviceKind::host)),
            "Tensor(bfloat16, (3, 4), host)");
  EXPECT_EQ(to_string(Tensor::zeros({3}, DType::boolean)), "Tensor(bool, (3,), device)");
}
