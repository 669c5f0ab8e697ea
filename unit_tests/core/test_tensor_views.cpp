// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Views of a tensor: every one shares memory, and shows the elements that index arithmetic says.
#include <gtest/gtest.h>

#include <limits>
#include <numeric>
#include <vector>

#include "dtensor/core/tensor.hpp"

using namespace dtensor;

namespace {

Tensor counting(const Shape& shape) {
  std::vector<std::int32_t> v(static_cast<std::size_t>(shape.product()));
  std::iota(v.begin(), v.end(), 0);
  return Tensor::from_vector(v, shape);
}

using Values = std::vector<std::int32_t>;

}  // namespace

TEST(TensorViews, TransposeAndPermute) {
  const Tensor t = counting({2, 3, 4});
  const Tensor swapped = t.transpose(0, -1);
  EXPECT_EQ(swapped.shape(), (Shape{4, 3, 2}));
  EXPECT_EQ(swapped.storage(), t.storage());
  const auto s = swapped.view<std::int32_t***>();
  const Tensor rotated = t.permute({2, 0, 1});
  EXPECT_EQ(rotated.shape(), (Shape{4, 2, 3}));
  const auto r = rotated.view<std::int32_t***>();
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 3; ++j) {
      for (int k = 0; k < 4; ++k) {
        EXPECT_EQ(s(k, j, i), 12 * i + 4 * j + k);
        EXPECT_EQ(r(k, i, j), 12 * i + 4 * j + k);
      }
    }
  }
  EXPECT_EQ(t.permute({-3, -2, -1}).strides(), t.strides());
  EXPECT_THROW(t.permute({0, 1}), ValueError);
  EXPECT_THROW(t.permute({0, 1, 1}), ValueError);
  EXPECT_THROW(t.permute({0, 1, -2}), ValueError);
  EXPECT_THROW(t.permute({0, 1, 3}), IndexError);
  EXPECT_THROW(t.transpose(0, 3), IndexError);
  EXPECT_THROW(counting({}).transpose(0, 0), IndexError);
}

TEST(TensorViews, Narrow) {
  const Tensor t = counting({4, 5});
  const Tensor part = t.narrow(0, 1, 2).narrow(-1, 2, 3);
  EXPECT_EQ(part.storage_offset(), 7);
  EXPECT_EQ(part.to_vector<std::int32_t>(), (Values{7, 8, 9, 12, 13, 14}));
  EXPECT_EQ(part.storage(), t.storage());
  EXPECT_EQ(t.narrow(0, 4, 0).shape(), (Shape{0, 5}));
  EXPECT_EQ(t.narrow(0, 4, 0).to_vector<std::int32_t>(), Values{});
  for (const auto& [start, length] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {-1, 2}, {0, 5}, {4, 1}, {2, -1}, {5, 0}, {1, std::int64_t{1} << 62}}) {
    EXPECT_THROW(t.narrow(0, start, length), IndexError) << start << " " << length;
  }
}

TEST(TensorViews, Reshape) {
  const Tensor t = counting({4, 6});
  const Tensor flat = t.reshape({24});
  EXPECT_EQ(flat.storage(), t.storage());
  EXPECT_EQ(t.reshape({2, 3, 4}).strides(), (Extents{12, 4, 1}));
  EXPECT_EQ(t.narrow(0, 1, 2).reshape({12}).to_vector<std::int32_t>()[0], 6);
  const Tensor copied = t.transpose(0, 1).reshape({24});
  EXPECT_NE(copied.storage(), t.storage());
  EXPECT_EQ(copied.to_vector<std::int32_t>()[1], 6);
  EXPECT_EQ(counting({1}).reshape({}).item<std::int32_t>(), 0);
  EXPECT_EQ(counting({0, 3}).reshape({5, 0}).shape(), (Shape{5, 0}));
  EXPECT_THROW(t.reshape({23}), ValueError);
  EXPECT_THROW(t.reshape({-24}), ValueError);
}

TEST(TensorViews, AsStridedStaysInsideTheStorage) {
  const Tensor t = counting({12});
  EXPECT_EQ(t.as_strided({3, 2}, {4, 1}, 2).to_vector<std::int32_t>(),
            (Values{2, 3, 6, 7, 10, 11}));
  EXPECT_EQ(t.as_strided({2, 2}, {0, 1}, 10).to_vector<std::int32_t>(), (Values{10, 11, 10, 11}));
  EXPECT_THROW(t.as_strided({3, 2}, {4, 1}, 3), IndexError);
  EXPECT_THROW(t.as_strided({2}, {1}, -1), IndexError);
  EXPECT_THROW(t.as_strided({3}, {-1}, 1), ValueError);
  EXPECT_THROW(t.as_strided({2}, {1}, std::numeric_limits<std::int64_t>::max()), IndexError);
  EXPECT_THROW(t.as_strided({9}, {std::int64_t{1} << 60}, 0), ValueError);
  EXPECT_THROW(t.as_strided({2, 2}, {1}, 0), ValueError);
  EXPECT_EQ(t.as_strided({0}, {1}, 100).numel(), 0);
}
