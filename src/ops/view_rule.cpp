// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/view_rule.hpp"

#include <algorithm>

#include "dtensor/core/error.hpp"

namespace dtensor {

std::vector<DimGroup> dim_groups(const Shape& in, const Shape& out) {
  if (in.product() == 0) return {{0, in.size(), 0, out.size()}};
  std::vector<DimGroup> groups;
  int i = 0, o = 0;
  while (i < in.size() && o < out.size()) {
    DimGroup group{i, i + 1, o, o + 1};
    std::int64_t in_count = in[i++], out_count = out[o++];
    while (in_count != out_count) {
      if (in_count < out_count) {
        in_count *= in[i++];
      } else {
        out_count *= out[o++];
      }
    }
    group.in_end = i;
    group.out_end = o;
    groups.push_back(group);
  }
  // Extents of 1 are left. A rank that holds none of such an input dimension holds nothing of the
  // others either, so it belongs to the group before.
  if (i < in.size()) {
    if (groups.empty()) groups.push_back({0, 0, 0, 0});
    groups.back().in_end = in.size();
  }
  if (o < out.size()) groups.push_back({in.size(), in.size(), o, out.size()});
  return groups;
}

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0); }

bool is_all(const IndexSet& set, std::int64_t extent) { return set.size() == extent; }

}  // namespace

std::optional<IndexSet> flatten(const Shape& extents, const std::vector<IndexSet>& sets,
                                std::int64_t max_intervals) {
  // From the last dimension on; `flat` are the indices in the dimensions seen so far.
  IndexSet flat(0, 1);
  std::int64_t count = 1;
  for (int d = extents.size() - 1; d >= 0; --d) {
    const IndexSet& set = sets[static_cast<std::size_t>(d)];
    IndexSet next;
    if (is_all(flat, count)) {
      for (const Interval& i : set.intervals()) next.append({i.begin * count, i.end * count});
    } else {
      const auto pieces = static_cast<std::int64_t>(flat.intervals().size());
      if (set.size() > max_intervals / std::max<std::int64_t>(pieces, 1)) return std::nullopt;
      for (const Interval& i : set.intervals()) {
        for (std::int64_t j = i.begin; j < i.end; ++j) {
          for (const Interval& f : flat.intervals()) {
            next.append({j * count + f.begin, j * count + f.end});
          }
        }
      }
    }
    flat = std::move(next);
    count *= extents[d];
  }
  if (static_cast<std::int64_t>(flat.intervals().size()) > max_intervals) return std::nullopt;
  return flat;
}

namespace {

// Whether `set` is a product of indices of `rows` rows and one set of indices inside each.
bool split_rows(const IndexSet& set, std::int64_t row, IndexSet& rows, IndexSet& inside) {
  std::int64_t current = -1;  // the row that `part` belongs to
  IndexSet part;
  bool first = true;
  const auto end_part = [&] {
    if (current < 0) return true;
    if (first) inside = part;
    const bool equal = first || inside == part;
    first = false;
    rows.append({current, current + 1});
    current = -1;
    part = IndexSet();
    return equal;
  };
  for (const Interval& i : set.intervals()) {
    std::int64_t begin = i.begin;
    while (begin < i.end) {
      const std::int64_t r = begin / row;
      const std::int64_t whole = i.end / row - r;  // rows that may be whole, from this one on
      if (begin % row == 0 && whole > 0) {
        if (!end_part()) return false;
        const IndexSet all(0, row);
        if (!first && !(inside == all)) return false;
        inside = all;
        first = false;
        rows.append({r, r + whole});
        begin = (r + whole) * row;
        continue;
      }
      if (r != current && !end_part()) return false;
      current = r;
      const std::int64_t end = std::min(i.end, (r + 1) * row);
      part.append({begin - r * row, end - r * row});
      begin = end;
    }
  }
  return end_part();
}

}  // namespace

std::optional<std::vector<IndexSet>> unflatten(const Shape& extents, const IndexSet& set) {
  if (set.empty()) return std::nullopt;
  std::vector<IndexSet> sets;
  IndexSet rest = set;
  std::int64_t row = extents.product();
  for (std::int64_t extent : extents) {
    row /= extent;
    IndexSet rows, inside;
    if (!split_rows(rest, row, rows, inside)) return std::nullopt;
    sets.push_back(std::move(rows));
    rest = std::move(inside);
  }
  return sets;
}

IndexSet sliced(const IndexSet& set, std::int64_t start, std::int64_t step, std::int64_t length) {
  IndexSet result;
  for (const Interval& i : set.intervals()) {
    const std::int64_t begin = std::max<std::int64_t>(ceil_div(i.begin - start, step), 0);
    const std::int64_t end = std::min(ceil_div(i.end - start, step), length);
    if (begin < end) result.append({begin, end});
  }
  return result;
}

std::vector<Extents> coordinates_along(const ProcessGrid& grid, const std::vector<int>& mesh_dims,
                                       const Extents& origin) {
  std::vector<Extents> result{origin};
  for (int m : mesh_dims) {
    std::vector<Extents> next;
    for (const Extents& c : result) {
      for (std::int64_t i = 0; i < grid.size(m); ++i) {
        next.push_back(c);
        next.back()[m] = i;
      }
    }
    result = std::move(next);
  }
  return result;
}

namespace {

// Splits dimensions by mesh dimensions such that all coordinates hold what they should.
class SplitSearch {
 public:
  SplitSearch(const ProcessGrid& grid, const Holdings& holdings) : grid_(grid), h_(holdings) {
    dim_of_.assign(h_.mesh_dims.size(), none);
  }

  std::optional<std::vector<std::vector<Split>>> run() {
    if (!assign(0)) return std::nullopt;
    return splits_;
  }

 private:
  static constexpr int none = -1;

  bool assign(std::size_t k) {
    if (k == h_.mesh_dims.size()) return solve();
    // Dimensions of extent 1 last, and none for mesh dimensions along which all hold the same.
    std::vector<int> candidates;
    for (int d = 0; d < h_.shape.size(); ++d) candidates.push_back(d);
    std::stable_partition(candidates.begin(), candidates.end(),
                          [&](int d) { return h_.shape[d] != 1; });
    candidates.push_back(none);
    for (int d : candidates) {
      dim_of_[k] = d;
      if (assign(k + 1)) return true;
    }
    return false;
  }

  bool solve() {
    splits_.assign(static_cast<std::size_t>(h_.shape.size()), {});
    for (int d = 0; d < h_.shape.size(); ++d) {
      std::vector<std::size_t> order;
      for (std::size_t k = 0; k < dim_of_.size(); ++k) {
        if (dim_of_[k] == d) order.push_back(k);
      }
      bool found = order.empty();
      if (!found) {
        do {
          found = solve_dim(d, order);
        } while (!found && std::next_permutation(order.begin(), order.end()));
      }
      if (!found) return false;
    }
    return verify();
  }

  // What the coordinates in one part of the coarser splits hold; absent when they hold nothing.
  using Parts = std::vector<std::optional<IndexSet>>;

  // The union of the coordinates' sets for each combination along the first `levels` of `order`.
  Parts unions(int dim, const std::vector<std::size_t>& order, std::size_t levels) const {
    std::size_t count = 1;
    for (std::size_t l = 0; l < levels; ++l) count *= size(order[l]);
    std::vector<std::vector<Interval>> intervals(count);
    std::vector<char> holds(count, 0);
    for (std::size_t c = 0; c < h_.sets.size(); ++c) {
      if (!h_.sets[c]) continue;
      std::size_t part = 0;
      for (std::size_t l = 0; l < levels; ++l) {
        part = part * size(order[l]) +
               static_cast<std::size_t>(h_.coordinates[c][h_.mesh_dims[order[l]]]);
      }
      holds[part] = 1;
      const auto& own = (*h_.sets[c])[static_cast<std::size_t>(dim)].intervals();
      intervals[part].insert(intervals[part].end(), own.begin(), own.end());
    }
    Parts parts(count);
    for (std::size_t p = 0; p < count; ++p) {
      if (!holds[p]) continue;
      auto& list = intervals[p];
      std::sort(list.begin(), list.end(),
                [](const Interval& a, const Interval& b) { return a.begin < b.begin; });
      IndexSet set;
      std::int64_t end = 0;
      for (const Interval& i : list) {
        set.append({std::max(i.begin, end), i.end});
        end = std::max(end, i.end);
      }
      parts[p] = std::move(set);
    }
    return parts;
  }

  bool solve_dim(int dim, const std::vector<std::size_t>& order) {
    auto& result = splits_[static_cast<std::size_t>(dim)];
    result.clear();
    std::vector<IndexSet> whole{IndexSet(0, h_.shape[dim])};
    for (std::size_t level = 0; level < order.size(); ++level) {
      const Parts parts = unions(dim, order, level + 1);
      std::vector<IndexSet> next;
      bool found = false;
      for (const Placement& p : candidates(dim, size(order[level]), whole, parts)) {
        found = splits_as(p, size(order[level]), whole, parts, next);
        if (!found) continue;
        result.push_back({h_.mesh_dims[order[level]], p});
        break;
      }
      if (!found) return false;
      whole = std::move(next);
    }
    return true;
  }

  // Placements that could split each of `whole` into its `parts`, the plainest first.
  static Placements candidates(int dim, std::size_t count, const std::vector<IndexSet>& whole,
                               const Parts& parts) {
    Placements result{Shard(dim)};
    for (std::size_t w = 0; w < whole.size(); ++w) {
      std::vector<std::int64_t> extents;
      std::size_t runs = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const auto& part = parts[w * count + i];
        extents.push_back(part ? part->size() : 0);
        if (part) runs = std::max(runs, intersect(whole[w], *part).size());
      }
      if (runs == 0) continue;
      if (runs > 1) result.push_back(StridedShard(dim, static_cast<std::int64_t>(runs)));
      result.push_back(Shard(dim, std::move(extents)));
      break;
    }
    return result;
  }

  static bool splits_as(const Placement& placement, std::size_t count,
                        const std::vector<IndexSet>& whole, const Parts& parts,
                        std::vector<IndexSet>& next) {
    next.clear();
    for (std::size_t w = 0; w < whole.size(); ++w) {
      for (std::size_t i = 0; i < count; ++i) {
        try {
          next.push_back(whole[w].split(placement, static_cast<std::int64_t>(i),
                                        static_cast<std::int64_t>(count)));
        } catch (const LayoutError&) {
          return false;  // extents that do not add up to what is split
        }
        const auto& part = parts[w * count + i];
        if (part && !(*part == next.back())) return false;
      }
    }
    return true;
  }

  bool verify() const {
    for (std::size_t c = 0; c < h_.sets.size(); ++c) {
      std::int64_t elements = 1;
      for (int d = 0; d < h_.shape.size(); ++d) {
        IndexSet set(0, h_.shape[d]);
        for (const Split& s : splits_[static_cast<std::size_t>(d)]) {
          set = set.split(s.placement, h_.coordinates[c][s.mesh_dim], grid_.size(s.mesh_dim));
        }
        elements *= set.size();
        if (h_.sets[c] && !(set == (*h_.sets[c])[static_cast<std::size_t>(d)])) return false;
      }
      if (!h_.sets[c] && elements != 0) return false;
    }
    return true;
  }

  std::size_t size(std::size_t k) const {
    return static_cast<std::size_t>(grid_.size(h_.mesh_dims[k]));
  }

  const ProcessGrid& grid_;
  const Holdings& h_;
  std::vector<int> dim_of_;  // of each of the mesh dimensions
  std::vector<std::vector<Split>> splits_;
};

// A layout under construction: placements that are not set are Replicate.
struct Draft {
  Shape shape;
  std::shared_ptr<const ProcessGrid> grid;
  Placements placements;
  ShardOrder order;

  Draft(const Layout& like, const Shape& s) : shape(s), grid(like.grid()) {
    for (const Placement& p : like.placements()) {
      placements.push_back(p.is_shard() ? Placement(Replicate()) : p);
    }
  }
  void set(int dim, const std::vector<Split>& splits) {
    std::vector<int> mesh_dims;
    for (const Split& s : splits) {
      placements[static_cast<std::size_t>(s.mesh_dim)] = s.placement.with_dim(dim);
      mesh_dims.push_back(s.mesh_dim);
    }
    if (mesh_dims.size() > 1) order.emplace_back(dim, std::move(mesh_dims));
  }
  std::optional<Layout> layout() const { return Layout(shape, grid, placements, order); }
};

std::vector<Split> splits_of(const Layout& layout, int dim) {
  std::vector<Split> splits;
  for (int m : layout.split_by(dim)) splits.push_back({m, layout.placement(m)});
  return splits;
}

// What coordinates hold of the input dimensions of a group, in the group's output dimensions.
// Empty when that is no product of index sets.
std::optional<Holdings> regroup(const Layout& layout, const Shape& shape, const DimGroup& group) {
  Holdings h;
  Shape in;
  for (int d = group.in_begin; d < group.in_end; ++d) {
    in.push_back(layout.shape()[d]);
    h.mesh_dims.insert(h.mesh_dims.end(), layout.split_by(d).begin(), layout.split_by(d).end());
  }
  for (int d = group.out_begin; d < group.out_end; ++d) h.shape.push_back(shape[d]);
  const ProcessGrid& grid = *layout.grid();
  h.coordinates = coordinates_along(grid, h.mesh_dims, Extents::filled(grid.dim(), 0));
  std::int64_t left = max_view_intervals;
  for (const Extents& c : h.coordinates) {
    std::vector<IndexSet> sets;
    bool empty = false;
    for (int d = group.in_begin; d < group.in_end; ++d) {
      sets.push_back(layout.index_set(c, d));
      empty |= sets.back().empty();
    }
    if (empty) {
      h.sets.emplace_back();
      continue;
    }
    const auto flat = flatten(in, sets, left);
    if (!flat) return std::nullopt;
    left -= static_cast<std::int64_t>(flat->intervals().size());
    h.sets.push_back(unflatten(h.shape, *flat));
    if (!h.sets.back()) return std::nullopt;
  }
  return h;
}

// The same for even shards, without an index being looked at: ranks take even parts of each of
// `factor` pieces of the flattened dimension, and of what coarser splits left of it.
struct EvenSplit {
  int mesh_dim;
  std::int64_t factor, ranks;
};

// Dimensions while they are split in that way. A split of a dimension into pieces is one of the
// flattened dimension into pieces of each row, if the parts have the same bounds.
class SplitRows {
 public:
  explicit SplitRows(const Shape& shape) : held_(shape), tail_(shape.product()) { enter(0); }

  int dim() const { return dim_; }
  /// Of all that ranks hold in the dimensions before.
  std::int64_t rows() const { return rows_; }
  /// What each holds of the dimension; 0 after the last one.
  std::int64_t held() const { return dim_ < held_.size() ? held_[dim_] : 0; }
  void next() {
    rows_ *= held_[dim_];
    enter(dim_ + 1);
  }
  /// False where the bounds differ, or ranks have nothing.
  bool split(std::int64_t pieces, std::int64_t ranks) {
    if (uneven_ || ranks < 2 || held() % pieces != 0 || held() / pieces < 2) return false;
    uneven_ = held() / pieces % ranks != 0;
    if (uneven_) return tail_ == 1;
    held_[dim_] /= ranks;
    return true;
  }

 private:
  void enter(int dim) {
    dim_ = dim;
    if (dim < held_.size()) tail_ /= held_[dim];
  }
  Extents held_;
  std::int64_t tail_, rows_ = 1;
  int dim_ = 0;
  bool uneven_ = false;  // by the last split there can be
};

std::optional<std::vector<EvenSplit>> flat_splits(const Layout& layout, const DimGroup& group) {
  Shape shape;
  for (int d = group.in_begin; d < group.in_end; ++d) shape.push_back(layout.shape()[d]);
  std::vector<EvenSplit> splits;
  for (SplitRows in(shape); in.dim() < shape.size(); in.next()) {
    for (int m : layout.split_by(group.in_begin + in.dim())) {
      const Placement& p = layout.placement(m);
      const std::int64_t ranks = layout.grid()->size(m);
      if (p.has_extents() || !in.split(p.split_factor(), ranks)) return std::nullopt;
      splits.push_back({m, in.rows() * p.split_factor(), ranks});
    }
  }
  return splits;
}

std::optional<std::vector<std::vector<Split>>> even_splits(const Layout& layout, const Shape& shape,
                                                           const DimGroup& group) {
  if (shape.product() == 0) return std::nullopt;
  const auto flat = flat_splits(layout, group);
  if (!flat) return std::nullopt;
  Shape to;
  for (int d = group.out_begin; d < group.out_end; ++d) to.push_back(shape[d]);
  std::vector<std::vector<Split>> splits(static_cast<std::size_t>(to.size()));
  SplitRows out(to);
  for (const EvenSplit& s : *flat) {
    while (out.held() > 0 && s.factor >= out.rows() * out.held()) out.next();
    const std::int64_t pieces = s.factor / out.rows();
    if (out.held() == 0 || s.factor % out.rows() != 0 || !out.split(pieces, s.ranks)) {
      return std::nullopt;
    }
    const Placement p = pieces == 1 ? Placement(Shard(0)) : Placement(StridedShard(0, pieces));
    splits[static_cast<std::size_t>(out.dim())].push_back({s.mesh_dim, p});
  }
  return splits;
}

std::optional<std::vector<std::vector<Split>>> group_splits(const Layout& layout,
                                                            const Shape& shape,
                                                            const DimGroup& group) {
  if (auto splits = even_splits(layout, shape, group)) return splits;
  const auto holdings = regroup(layout, shape, group);
  return holdings ? find_splits(*layout.grid(), *holdings) : std::nullopt;
}

}  // namespace

std::optional<std::vector<std::vector<Split>>> find_splits(const ProcessGrid& grid,
                                                           const Holdings& holdings) {
  return SplitSearch(grid, holdings).run();
}

std::optional<Layout> view_layout(const Layout& layout, const Shape& shape) {
  Draft draft(layout, shape);
  for (const DimGroup& group : dim_groups(layout.shape(), shape)) {
    if (group.is_same() && layout.shape()[group.in_begin] == shape[group.out_begin]) {
      draft.set(group.out_begin, splits_of(layout, group.in_begin));
      continue;
    }
    const auto splits = group_splits(layout, shape, group);
    if (!splits) return std::nullopt;
    for (std::size_t d = 0; d < splits->size(); ++d) {
      draft.set(group.out_begin + static_cast<int>(d), (*splits)[d]);
    }
  }
  return draft.layout();
}

std::optional<Layout> mapped_layout(const Layout& layout, int dim, std::int64_t extent,
                                    IndexMap map) {
  Shape shape = layout.shape();
  shape[dim] = extent;
  Draft draft(layout, shape);
  for (int d = 0; d < shape.size(); ++d) {
    if (d != dim) draft.set(d, splits_of(layout, d));
  }
  Holdings h;
  h.shape = {extent};
  h.mesh_dims = layout.split_by(dim);
  const ProcessGrid& grid = *layout.grid();
  h.coordinates = coordinates_along(grid, h.mesh_dims, Extents::filled(grid.dim(), 0));
  for (const Extents& c : h.coordinates) {
    IndexSet set = map(layout.index_set(c, dim));
    h.sets.emplace_back();
    if (!set.empty()) h.sets.back() = {std::move(set)};
  }
  const auto splits = find_splits(grid, h);
  if (!splits) return std::nullopt;
  draft.set(dim, splits->front());
  return draft.layout();
}

}  // namespace dtensor
