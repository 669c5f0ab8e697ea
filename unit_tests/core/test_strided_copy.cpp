// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Strided copies against plain loops over all elements. Every byte of the destination's memory is
// compared, so that a write outside of the box shows too.
#include "dtensor/core/strided_copy.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "dtensor/core/storage.hpp"

using namespace dtensor;

namespace {

/// Calls `f(index)` for every index of a box.
template <class F>
void for_each_index(const Extents& extents, F&& f) {
  if (extents.product() == 0) return;
  Extents index = Extents::filled(extents.size(), 0);
  while (true) {
    f(index);
    int d = extents.size() - 1;
    while (d >= 0 && ++index[d] == extents[d]) index[d--] = 0;
    if (d < 0) return;
  }
}

std::int64_t offset_of(const Extents& index, const Extents& strides) {
  std::int64_t offset = 0;
  for (int d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
  return offset;
}

std::int64_t span(const Extents& extents, const Extents& strides) {
  if (extents.product() == 0) return 0;
  std::int64_t last = 0;
  for (int d = 0; d < extents.size(); ++d) last += (extents[d] - 1) * strides[d];
  return last + 1;
}

/// Strides of a box stored with the dimensions in the order `order` (last fastest), padded.
Extents strides_in_order(const Extents& extents, const std::vector<int>& order, std::int64_t pad,
                         std::int64_t innermost) {
  Extents strides = extents;
  std::int64_t stride = innermost;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    strides[*it] = stride;
    stride *= std::max<std::int64_t>(extents[*it], 1) + pad;
  }
  return strides;
}

void check_copy(const Extents& extents, const Extents& to, const Extents& from, std::int64_t size) {
  const std::int64_t margin = 3;
  std::vector<unsigned char> source(static_cast<std::size_t>(span(extents, from) * size));
  std::vector<unsigned char> expected(
      static_cast<std::size_t>((span(extents, to) + 2 * margin) * size), 0xEE);
  for (std::size_t i = 0; i < source.size(); ++i) {
    source[i] = static_cast<unsigned char>((i * 2654435761u) >> 7);
  }
  std::vector<unsigned char> result = expected;
  for_each_index(extents, [&](const Extents& index) {
    std::memcpy(expected.data() + (margin + offset_of(index, to)) * size,
                source.data() + offset_of(index, from) * size, static_cast<std::size_t>(size));
  });
  copy_strided({result.data() + margin * size, to}, {source.data(), from}, extents, size,
               DeviceKind::host);
  fence(DeviceKind::host, "test");
  ASSERT_TRUE(result == expected) << "extents " << to_string(extents) << " to strides "
                                  << to_string(to) << " from strides " << to_string(from)
                                  << " size " << size;
}

constexpr std::int64_t sizes[] = {1, 2, 4, 8, 16};

}  // namespace

TEST(CopyStrided, EveryPermutationOfFourDimensions) {
  std::vector<int> to_order(4);
  std::iota(to_order.begin(), to_order.end(), 0);
  const Extents extents{3, 2, 5, 4};
  do {
    std::vector<int> from_order(4);
    std::iota(from_order.begin(), from_order.end(), 0);
    do {
      for (std::int64_t size : sizes) {
        check_copy(extents, strides_in_order(extents, to_order, 0, 1),
                   strides_in_order(extents, from_order, 0, 1), size);
      }
    } while (std::next_permutation(from_order.begin(), from_order.end()));
  } while (std::next_permutation(to_order.begin(), to_order.end()));
}

TEST(CopyStrided, RandomBoxesOfEveryRank) {
  std::mt19937 random(5);
  const auto up_to = [&](int n) { return static_cast<std::int64_t>(random() % (n + 1)); };
  for (int rank = 0; rank <= max_rank; ++rank) {
    for (int trial = 0; trial < 150; ++trial) {
      Extents extents;
      for (int d = 0; d < rank; ++d) extents.push_back(1 + up_to(rank > 5 ? 2 : 6));
      std::vector<int> to_order(static_cast<std::size_t>(rank));
      std::iota(to_order.begin(), to_order.end(), 0);
      std::vector<int> from_order = to_order;
      std::shuffle(to_order.begin(), to_order.end(), random);
      std::shuffle(from_order.begin(), from_order.end(), random);
      check_copy(extents, strides_in_order(extents, to_order, up_to(1), 1 + up_to(2)),
                 strides_in_order(extents, from_order, up_to(1), 1 + up_to(2)),
                 sizes[random() % 5]);
    }
  }
}

TEST(CopyStrided, TransposesLargerThanATile) {
  for (std::int64_t size : sizes) {
    for (const Extents& extents :
         {Extents{32, 32}, Extents{33, 32}, Extents{32, 33}, Extents{1000, 3}, Extents{3, 1000},
          Extents{97, 131}, Extents{2, 65, 40}, Extents{65, 2, 40}, Extents{65, 40, 3}}) {
      std::vector<int> to_order(static_cast<std::size_t>(extents.size()));
      std::iota(to_order.begin(), to_order.end(), 0);
      std::vector<int> from_order = to_order;
      do {
        check_copy(extents, strides_in_order(extents, to_order, 0, 1),
                   strides_in_order(extents, from_order, 0, 1), size);
        check_copy(extents, strides_in_order(extents, to_order, 2, 1),
                   strides_in_order(extents, from_order, 1, 1), size);
      } while (std::next_permutation(from_order.begin(), from_order.end()));
    }
  }
}

TEST(CopyStrided, LongRowsAndRepeatedElements) {
  for (std::int64_t size : sizes) {
    check_copy({200001}, {1}, {1}, size);
    check_copy({70001}, {3}, {2}, size);
    check_copy({2, 70001}, {70001, 1}, {1, 2}, size);
    check_copy({5, 7}, {7, 1}, {0, 1}, size);     // one row repeated
    check_copy({50, 70}, {70, 1}, {1, 0}, size);  // one element per row
    check_copy({5, 7}, {7, 1}, {0, 0}, size);
  }
}

TEST(CopyStrided, NothingAndOneElement) {
  for (std::int64_t size : sizes) {
    check_copy({}, {}, {}, size);
    check_copy({1, 1}, {100, 7}, {3, 50}, size);
    check_copy({4, 0, 3}, {3, 3, 1}, {3, 3, 1}, size);
  }
}

TEST(ConvertStrided, ConvertsEveryElementOfAnyBox) {
  const Extents extents{7, 5, 300};
  const Extents to = strides_in_order(extents, {2, 0, 1}, 1, 2);
  const Extents from = strides_in_order(extents, {1, 2, 0}, 0, 1);
  std::vector<double> source(static_cast<std::size_t>(span(extents, from)));
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<double>(i) - 4000.75;
  std::vector<std::int32_t> result(static_cast<std::size_t>(span(extents, to)), 77);
  auto expected = result;
  for_each_index(extents, [&](const Extents& index) {
    expected[static_cast<std::size_t>(offset_of(index, to))] =
        static_cast<std::int32_t>(source[static_cast<std::size_t>(offset_of(index, from))]);
  });
  convert_strided({result.data(), to}, DType::int32, {source.data(), from}, DType::float64, extents,
                  DeviceKind::host);
  EXPECT_TRUE(result == expected);
}

TEST(FillStrided, FillsTheBoxAndNothingElse) {
  for (const Extents& extents : {Extents{4, 6}, Extents{3, 70001}, Extents{}, Extents{3, 0}}) {
    std::vector<int> order(static_cast<std::size_t>(extents.size()));
    std::iota(order.begin(), order.end(), 0);
    const Extents to = strides_in_order(extents, order, 1, 2);
    std::vector<float> result(static_cast<std::size_t>(span(extents, to) + 1), -1.0f);
    auto expected = result;
    for_each_index(extents, [&](const Extents& index) {
      expected[static_cast<std::size_t>(offset_of(index, to))] = 2.5f;
    });
    fill_strided({result.data(), to}, DType::float32, extents, 2.5, DeviceKind::host);
    EXPECT_TRUE(result == expected) << to_string(extents);
  }
}
