// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where elements are after a view: every layout that is found must put the same elements, in the
// same order, on every coordinate.
#include <gtest/gtest.h>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/view_rule.hpp"
#include "ops/reference.hpp"

namespace dtensor {
namespace {

using testing::for_each_index;
using testing::Numbers;

std::shared_ptr<const ProcessGrid> grid(const Shape& shape) {
  std::vector<int> ranks;
  for (int r = 0; r < shape.product(); ++r) ranks.push_back(r);
  return std::make_shared<const ProcessGrid>(shape, ranks);
}

// The numbers of a coordinate's elements in the global row-major order, in local order.
std::vector<std::int64_t> elements(const Layout& layout, const Extents& coordinate) {
  std::vector<std::vector<std::int64_t>> indices;
  for (int d = 0; d < layout.shape().size(); ++d) {
    indices.emplace_back();
    const IndexSet set = layout.index_set(coordinate, d);
    for (const Interval& i : set.intervals()) {
      for (std::int64_t j = i.begin; j < i.end; ++j) indices.back().push_back(j);
    }
  }
  std::vector<std::int64_t> result;
  for_each_index(layout.local_shape(coordinate), [&](const Extents& at) {
    std::int64_t element = 0;
    for (int d = 0; d < at.size(); ++d) {
      element = element * layout.shape()[d] +
                indices[static_cast<std::size_t>(d)][static_cast<std::size_t>(at[d])];
    }
    result.push_back(element);
  });
  return result;
}

void expect_same_places(const Layout& from, const Layout& to) {
  for (std::int64_t r = 0; r < from.grid()->size(); ++r) {
    const Extents c = from.grid()->coordinate_at(r);
    ASSERT_EQ(elements(from, c), elements(to, c)) << to_string(from) << " to " << to_string(to);
  }
}

std::string view(const Shape& shape, const Shape& mesh, const Placements& placements,
                 const Shape& target) {
  const Layout from(shape, grid(mesh), placements);
  const auto to = view_layout(from, target);
  if (!to) return "none";
  expect_same_places(from, *to);
  return to_string(to->placements());
}

TEST(ViewRule, GroupsOfDimensions) {
  using Groups = std::vector<DimGroup>;
  EXPECT_EQ(dim_groups({2, 3, 4}, {6, 4}), (Groups{{0, 2, 0, 1}, {2, 3, 1, 2}}));
  EXPECT_EQ(dim_groups({6, 4}, {2, 3, 4}), (Groups{{0, 1, 0, 2}, {1, 2, 2, 3}}));
  EXPECT_EQ(dim_groups({12, 8}, {16, 6}), (Groups{{0, 2, 0, 2}}));
  EXPECT_EQ(dim_groups({5, 1}, {5}), (Groups{{0, 2, 0, 1}}));
  EXPECT_EQ(dim_groups({5}, {5, 1}), (Groups{{0, 1, 0, 1}, {1, 1, 1, 2}}));
  EXPECT_EQ(dim_groups({1, 1, 5}, {5}), (Groups{{0, 3, 0, 1}}));
  EXPECT_EQ(dim_groups({}, {1, 1}), (Groups{{0, 0, 0, 2}}));
  EXPECT_EQ(dim_groups({1}, {}), (Groups{{0, 1, 0, 0}}));
  EXPECT_EQ(dim_groups({0, 3}, {3, 2, 0}), (Groups{{0, 2, 0, 3}}));
}

// Row O14 and O15 of the known cases.
TEST(ViewRule, KnownCases) {
  EXPECT_EQ(view({6, 256}, {6}, {Shard(0)}, {1536}), "[S(0)]");
  EXPECT_EQ(view({6, 256}, {6}, {Shard(1)}, {1536}), "[SS(0,6)]");
  EXPECT_EQ(view({8, 256}, {6}, {Shard(0)}, {2048}), "[S(0,[512, 512, 512, 512, 0, 0])]");
  EXPECT_EQ(view({8, 256}, {6}, {Shard(1)}, {8, 2, 128}), "none");
  EXPECT_EQ(view({12, 8}, {4}, {Shard(1)}, {16, 6}), "none");
  EXPECT_EQ(view({12, 8}, {4}, {Shard(0)}, {16, 6}), "[S(0)]");
}

TEST(ViewRule, FlattenAndSplit) {
  EXPECT_EQ(view({4, 6, 5}, {2}, {Shard(2)}, {24, 5}), "[S(1)]");
  EXPECT_EQ(view({4, 6, 5}, {2}, {Shard(1)}, {24, 5}), "[SS(0,4)]");
  EXPECT_EQ(view({24, 5}, {2}, {StridedShard(0, 4)}, {4, 6, 5}), "[S(1)]");
  EXPECT_EQ(view({24}, {2}, {Shard(0)}, {4, 6}), "[S(0)]");
  EXPECT_EQ(view({24}, {3}, {Shard(0)}, {4, 6}), "none");
  EXPECT_EQ(view({24}, {3}, {Shard(0, {6, 12, 6})}, {4, 6}), "[S(0,[1, 2, 1])]");
  EXPECT_EQ(view({24}, {3}, {Shard(0, {0, 24, 0})}, {4, 6}), "[S(0,[0, 4, 0])]");
  EXPECT_EQ(view({8, 8}, {2, 2}, {Shard(0), Shard(1)}, {64}), "[S(0), SS(0,4)]");
  EXPECT_EQ(view({64}, {2, 2}, {Shard(0), StridedShard(0, 4)}, {8, 8}), "[S(0), S(1)]");
  EXPECT_EQ(view({8, 8}, {2, 2}, {Partial(), Shard(0)}, {2, 32}), "[P, S(0)]");
  EXPECT_EQ(view({16}, {2, 2}, {Shard(0), Shard(0)}, {4, 4}), "[S(0), S(0)]");
  EXPECT_EQ(view({16}, {2, 2}, {Shard(0), Shard(0)}, {2, 2, 4}), "[S(0), S(1)]");
}

TEST(ViewRule, ExtentsOfOneAndZero) {
  EXPECT_EQ(view({1, 5, 7}, {3}, {Shard(0)}, {5, 7}), "[S(0,[5, 0, 0])]");
  EXPECT_EQ(view({5, 1}, {3}, {Shard(1, {0, 1, 0})}, {5}), "[S(0,[0, 5, 0])]");
  EXPECT_EQ(view({1, 6}, {2, 2}, {Shard(0), Shard(1)}, {6}), "[S(0,[6, 0]), S(0)]");
  EXPECT_EQ(view({1}, {3}, {Shard(0)}, {}), "none");
  EXPECT_EQ(view({1}, {1}, {Shard(0)}, {}), "[R]");
  EXPECT_EQ(view({5}, {3}, {Shard(0)}, {1, 5}), "[S(1)]");
  EXPECT_EQ(view({5}, {3}, {Shard(0)}, {5, 1, 1}), "[S(0)]");
  EXPECT_EQ(view({0, 4}, {3}, {Shard(1)}, {2, 0, 3}), "[S(0)]");
  EXPECT_EQ(view({4, 3}, {1}, {Shard(1)}, {12}), "[S(0)]");
}

// Even shards in whatever number of rows, and there and back again.
TEST(ViewRule, ManyRows) {
  const std::int64_t many = std::int64_t{1} << 40;
  const auto layout = [](const Shape& shape, const Shape& mesh, const Placements& placements) {
    return Layout(shape, grid(mesh), placements);
  };
  const auto expect_both = [](const Layout& a, const Layout& b) {
    EXPECT_EQ(view_layout(a, b.shape()), b) << to_string(a);
    EXPECT_EQ(view_layout(b, a.shape()), a) << to_string(b);
  };
  expect_both(layout({many, 8}, {4}, {Shard(1)}), layout({many * 8}, {4}, {StridedShard(0, many)}));
  expect_both(layout({many, 7}, {4}, {Shard(1)}), layout({many * 7}, {4}, {StridedShard(0, many)}));
  expect_both(layout({many, 8}, {2, 2}, {Shard(0), Shard(1)}),
              layout({many * 8}, {2, 2}, {Shard(0), StridedShard(0, many / 2)}));
  expect_both(layout({many, 8}, {2, 2}, {Shard(1), Shard(1)}),
              layout({many * 8}, {2, 2}, {StridedShard(0, many), StridedShard(0, many)}));
  expect_both(layout({many, 6, 4}, {3, 2}, {Shard(1), Shard(2)}),
              layout({many / 2, 2, 24}, {3, 2}, {Shard(2), StridedShard(2, 2)}));
  EXPECT_FALSE(view_layout(layout({many, 8}, {4}, {Shard(1)}), {many * 2, 4}));
}

// Whatever is found is right.
TEST(ViewRule, RandomLayoutsAndShapes) {
  const std::vector<std::vector<Shape>> families{
      {{24}, {4, 6}, {2, 3, 4}, {6, 4}, {1, 24}, {24, 1}, {2, 1, 12}, {8, 3}},
      {{7, 4}, {28}, {7, 2, 2}, {4, 7}, {1, 7, 4, 1}},
      {{2, 2, 2, 2}, {16}, {4, 4}, {2, 8}},
      {{6, 3}, {18}, {3, 6}, {2, 9}, {2, 3, 3}}};
  Numbers numbers(3);
  int found = 0, tried = 0;
  for (int round = 0; round < 4000; ++round) {
    const auto& family = families[static_cast<std::size_t>(numbers.below(4))];
    const auto any = [&] {
      return family[static_cast<std::size_t>(numbers.below(static_cast<int>(family.size())))];
    };
    const Shape from = any(), to = any();
    const Shape mesh = numbers.below(2) ? Shape{1 + numbers.below(5)}
                                        : Shape{1 + numbers.below(3), 1 + numbers.below(3)};
    Placements placements;
    for (std::int64_t size : mesh) {
      const int d = numbers.below(from.size());
      switch (numbers.below(5)) {
        case 0:
          placements.push_back(Replicate());
          break;
        case 1:
          placements.push_back(StridedShard(d, 1 + numbers.below(4)));
          break;
        case 2: {
          std::vector<std::int64_t> extents(static_cast<std::size_t>(size), 0);
          for (std::int64_t i = 0; i < from[d]; ++i) {
            ++extents[static_cast<std::size_t>(numbers.below(static_cast<int>(size)))];
          }
          placements.push_back(Shard(d, extents));
          break;
        }
        default:
          placements.push_back(Shard(d));
      }
    }
    ShardOrder order;
    if (mesh.size() == 2 && placements[0].is_shard() && placements[1].is_shard() &&
        placements[0].dim() == placements[1].dim() && numbers.below(2)) {
      order.push_back({placements[0].dim(), {1, 0}});
    }
    try {
      const Layout layout(from, grid(mesh), placements, order);
      ++tried;
      const auto view = view_layout(layout, to);
      if (!view) continue;
      ++found;
      expect_same_places(layout, *view);
      if (HasFatalFailure()) return;
    } catch (const LayoutError&) {
      // Extents that do not fit what the other mesh dimension leaves.
    }
  }
  EXPECT_GT(found, tried / 2);
}

TEST(ViewRule, SlicedAndUnflattenedSets) {
  IndexSet set(2, 5);
  set.append({7, 11});
  set.append({14, 15});
  EXPECT_EQ(to_string(sliced(set, 0, 1, 20)), "{2..4, 7..10, 14}");
  EXPECT_EQ(to_string(sliced(set, 3, 1, 6)), "{0..1, 4..5}");
  EXPECT_EQ(to_string(sliced(set, 1, 3, 5)), "{1..3}");
  EXPECT_EQ(to_string(sliced(set, 4, 10, 2)), "{0..1}");
  EXPECT_EQ(to_string(unflatten({3, 4}, IndexSet(4, 12))->front()), "{1..2}");
  EXPECT_FALSE(unflatten({3, 4}, IndexSet(3, 12)));
  EXPECT_FALSE(unflatten({3, 4}, IndexSet(0, 5)));
}

}  // namespace
}  // namespace dtensor
