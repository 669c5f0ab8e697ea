// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every layout of a small tensor: each coordinate holds what splitting a list of indices gives, and
// the coordinates of the splitting mesh dimensions hold every element exactly once.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "dtensor/layout/layout.hpp"
#include "redistribute/reference.hpp"

using namespace dtensor;
using dtensor::testing::Indices;
using dtensor::testing::naive_elements;
using dtensor::testing::naive_split;

namespace {

std::shared_ptr<const ProcessGrid> grid_of(const Shape& shape) {
  std::vector<int> ranks(static_cast<std::size_t>(shape.product()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return std::make_shared<const ProcessGrid>(shape, ranks);
}

std::vector<Shape> meshes() {
  std::vector<Shape> result;
  for (std::int64_t a = 1; a <= 8; ++a) {
    result.push_back({a});
    for (std::int64_t b = 1; a * b <= 8; ++b) {
      result.push_back({a, b});
      for (std::int64_t c = 1; a * b * c <= 8; ++c) result.push_back({a, b, c});
    }
  }
  return result;
}

/// All combinations of one of `choices` per mesh dimension.
template <class F>
void for_each_placements(const Placements& choices, int mesh_dims, F&& f) {
  std::vector<std::size_t> index(static_cast<std::size_t>(mesh_dims), 0);
  while (true) {
    Placements placements;
    for (std::size_t i : index) placements.push_back(choices[i]);
    f(placements);
    std::size_t m = index.size();
    while (m > 0 && ++index[m - 1] == choices.size()) index[--m] = 0;
    if (m == 0) return;
  }
}

/// All orders in which the mesh dimensions can split, as a permutation of them.
std::vector<std::vector<int>> orders(int mesh_dims) {
  std::vector<int> order(static_cast<std::size_t>(mesh_dims));
  std::iota(order.begin(), order.end(), 0);
  std::vector<std::vector<int>> result;
  do {
    result.push_back(order);
  } while (std::next_permutation(order.begin(), order.end()));
  return result;
}

ShardOrder shard_order_of(const std::vector<int>& order, const Placements& placements, int rank) {
  ShardOrder result;
  for (int d = 0; d < rank; ++d) {
    std::vector<int> split;
    for (int m : order) {
      if (placements[static_cast<std::size_t>(m)].is_shard(d)) split.push_back(m);
    }
    if (!split.empty()) result.emplace_back(d, split);
  }
  return result;
}

void check(const Layout& layout, const std::vector<int>& order) {
  const ProcessGrid& grid = *layout.grid();
  const Shape& shape = layout.shape();
  std::vector<char> held(static_cast<std::size_t>(shape.product()), 0);
  for (std::int64_t p = 0; p < grid.size(); ++p) {
    const Extents c = grid.coordinate_at(p);
    std::vector<Indices> expected;
    Shape local;
    Extents offset;
    for (int d = 0; d < shape.size(); ++d) {
      Indices list(static_cast<std::size_t>(shape[d]));
      std::iota(list.begin(), list.end(), 0);
      for (int m : order) {
        if (layout.placement(m).is_shard(d)) {
          list = naive_split(list, layout.placement(m), c[m], grid.size(m));
        }
      }
      Indices found;
      const IndexSet set = layout.index_set(c, d);
      for (const Interval& i : set.intervals()) {
        for (std::int64_t v = i.begin; v < i.end; ++v) found.push_back(v);
      }
      ASSERT_EQ(found, list) << to_string(layout) << " at " << to_string(c);
      local.push_back(static_cast<std::int64_t>(list.size()));
      offset.push_back(list.empty() ? shape[d] : list.front());
      expected.push_back(std::move(list));
    }
    ASSERT_EQ(layout.local_shape(c), local);
    ASSERT_EQ(layout.local_offset(c), offset);

    // The chunks are boxes without common elements that make up the product of the lists.
    const Indices elements = naive_elements(shape, expected);
    Indices in_chunks;
    for (const Chunk& chunk : layout.chunks(c)) {
      ASSERT_GT(chunk.shape.product(), 0);
      std::vector<Indices> box;
      for (int d = 0; d < shape.size(); ++d) {
        Indices range(static_cast<std::size_t>(chunk.shape[d]));
        std::iota(range.begin(), range.end(), chunk.offset[d]);
        box.push_back(std::move(range));
      }
      const Indices part = naive_elements(shape, box);
      in_chunks.insert(in_chunks.end(), part.begin(), part.end());
    }
    std::sort(in_chunks.begin(), in_chunks.end());
    ASSERT_EQ(in_chunks, elements) << to_string(layout) << " at " << to_string(c);

    bool first_replica = true;
    for (int m = 0; m < grid.dim(); ++m)
      first_replica &= layout.placement(m).is_shard() || c[m] == 0;
    if (!first_replica) continue;
    for (std::int64_t e : elements) {
      ASSERT_EQ(held[static_cast<std::size_t>(e)]++, 0) << "twice: " << to_string(layout);
    }
  }
  ASSERT_EQ(std::count(held.begin(), held.end(), 1), shape.product()) << to_string(layout);
}

void check_all_orders(const Shape& shape, const Shape& mesh, const Placements& placements) {
  const auto grid = grid_of(mesh);
  std::set<ShardOrder> done;
  for (const auto& order : orders(mesh.size())) {
    const ShardOrder shard_order = shard_order_of(order, placements, shape.size());
    if (!done.insert(shard_order).second) continue;
    ASSERT_NO_FATAL_FAILURE(check(Layout(shape, grid, placements, shard_order), order));
  }
}

}  // namespace

TEST(LayoutExhaustive, OneTensorDimension) {
  for (const Shape& mesh : meshes()) {
    Placements choices{Shard(0), StridedShard(0, 2), StridedShard(0, 3), Replicate()};
    if (mesh.size() < 3) choices.push_back(Partial());
    for_each_placements(choices, mesh.size(), [&](const Placements& placements) {
      for (std::int64_t n = 0; n <= 17; ++n) check_all_orders({n}, mesh, placements);
    });
  }
}

TEST(LayoutExhaustive, TwoTensorDimensions) {
  for (const Shape& mesh : meshes()) {
    Placements choices{Shard(0), Shard(1), StridedShard(0, 2), Replicate()};
    if (mesh.size() < 3) choices.push_back(StridedShard(1, 4));
    for_each_placements(choices, mesh.size(), [&](const Placements& placements) {
      for (const Shape& shape : {Shape{5, 3}, Shape{4, 9}, Shape{1, 7}, Shape{0, 2}}) {
        check_all_orders(shape, mesh, placements);
      }
    });
  }
}

TEST(LayoutExhaustive, ExtentsGivenForEveryMeshDimensionAndOrder) {
  // Rows of 0 to 17 elements, given to each coordinate unevenly, some of them none.
  const auto uneven = [](std::int64_t n, std::int64_t parts) {
    std::vector<std::int64_t> extents(static_cast<std::size_t>(parts), 0);
    for (std::int64_t i = 0; i < n; ++i) ++extents[static_cast<std::size_t>((i * i + n) % parts)];
    return extents;
  };
  for (const Shape& mesh : meshes()) {
    for (std::int64_t n = 0; n <= 17; ++n) {
      for (int given = 0; given < mesh.size(); ++given) {
        Placements choices{Shard(0), StridedShard(0, 2), Replicate()};
        for_each_placements(choices, mesh.size(), [&](Placements placements) {
          placements[static_cast<std::size_t>(given)] = Shard(0, uneven(n, mesh[given]));
          // Given extents describe the whole dimension: their mesh dimension splits first.
          std::vector<int> order{given};
          for (int m = mesh.size() - 1; m >= 0; --m) {
            if (m != given) order.push_back(m);
          }
          check(Layout({n}, grid_of(mesh), placements, shard_order_of(order, placements, 1)),
                order);
        });
      }
    }
  }
}

TEST(LayoutExhaustive, GivenExtentsBelowAnEvenSplit) {
  for (std::int64_t parts = 1; parts <= 4; ++parts) {
    const Placements placements{Shard(0), Shard(0, {3, 0, 2})};
    check(Layout({5 * parts}, grid_of({parts, 3}), placements), {0, 1});
  }
}
