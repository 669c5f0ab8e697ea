// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The primitives of shapes on distributed tensors.
#include <fmt/format.h>

#include <algorithm>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/core/lru_cache.hpp"
#include "dtensor/ops/decision.hpp"
#include "dtensor/ops/view_rule.hpp"
#include "dtensor/redistribute/cost_model.hpp"
#include "dtensor/redistribute/program.hpp"
#include "shape_primitives.hpp"

namespace dtensor::detail {

namespace {

constexpr const char* moves_along = "the elements along a sharded dimension change places";

// The most intervals that a rank's indices of a group are moved in.
constexpr std::int64_t max_moved_intervals = std::int64_t{1} << 16;

// Layouts that follow from another one and a few numbers; empty where there is none.
struct Key {
  char kind;
  Layout layout;
  Extents numbers;
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    Hash h;
    h.add(static_cast<std::uint64_t>(key.kind));
    h.add(key.layout.hash());
    h.add_range(key.numbers);
    return h.value();
  }
};
std::optional<Layout> cached(char kind, const Layout& layout, const Extents& numbers,
                             FunctionRef<std::optional<Layout>()> make) {
  static auto* cache = new LruCache<Key, std::optional<Layout>, KeyHash>(1024);
  return cache->get(Key{kind, layout, numbers}, [&](const Key&) { return make(); });
}

std::optional<Layout> cached_view(const Layout& layout, const Shape& shape) {
  return cached('v', layout, shape, [&] { return view_layout(layout, shape); });
}

DTensor moved(const char* function, const DTensor& a, const Layout& layout, const char* reason,
              int input = 0) {
  return redistribute(a, a.device_mesh(), layout, false, function, reason, input);
}

// The mesh dimensions that split dimensions `begin` to `end` split `to` evenly instead.
Layout splitting_instead(const Layout& layout, int begin, int end, int to) {
  Placements placements = layout.placements();
  for (Placement& p : placements) {
    if (p.is_shard() && p.dim() >= begin && p.dim() < end) p = Shard(to);
  }
  ShardOrder order;
  for (const auto& entry : layout.shard_order()) {
    if (entry.first < begin || entry.first >= end) order.push_back(entry);
  }
  return layout.with_placements(placements, order);
}

// The first of some dimensions that has more than one index, else the first.
int leading(const Shape& shape, int begin, int end) {
  for (int d = begin; d < end; ++d) {
    if (shape[d] != 1) return d;
  }
  return begin;
}

// A group of dimensions that cannot be regrouped where the elements are.
std::optional<DimGroup> blocking_group(const Layout& layout, const Shape& shape) {
  for (const DimGroup& g : dim_groups(layout.shape(), shape)) {
    Shape between;
    for (int d = 0; d < g.in_begin; ++d) between.push_back(layout.shape()[d]);
    for (int d = g.out_begin; d < g.out_end; ++d) between.push_back(shape[d]);
    for (int d = g.in_end; d < layout.shape().size(); ++d) between.push_back(layout.shape()[d]);
    if (!cached_view(layout, between)) return g;
  }
  return std::nullopt;
}

[[noreturn]] void throw_no_view(const char* function, const DTensor& a, const Shape& shape) {
  // Placements that would do, for the message.
  Layout fitting = a.layout();
  while (const auto group = blocking_group(fitting, shape)) {
    const Layout even = splitting_instead(fitting, group->in_begin, group->in_end,
                                          leading(fitting.shape(), group->in_begin, group->in_end));
    if (const auto view = cached_view(even, shape)) {
      fitting = even;
      break;
    }
    Placements placements = fitting.placements();
    for (Placement& p : placements) {
      if (p.is_shard() && p.dim() >= group->in_begin && p.dim() < group->in_end) p = Replicate();
    }
    fitting = fitting.with_placements(placements);
  }
  throw LayoutError(
      function, fmt::format("shape {} of {}", to_string(shape), to_string(a.layout())),
      fmt::format("a shape for which placements say what each rank holds, in at most {} pieces in "
                  "all; redistribute to {} first, or use reshape, which moves elements",
                  max_view_intervals, to_string(fitting.placements())));
}

Shape part_of(const Shape& shape, int begin, int end) {
  Shape part;
  for (int d = begin; d < end; ++d) part.push_back(shape[d]);
  return part;
}

std::optional<IndexSet> flat_set(const Layout& layout, const Extents& coordinate, int begin,
                                 int end) {
  std::vector<IndexSet> sets;
  for (int d = begin; d < end; ++d) sets.push_back(layout.index_set(coordinate, d));
  return flatten(part_of(layout.shape(), begin, end), sets, max_moved_intervals);
}

// The group's dimensions regrouped, each element sent to where even shards of the leading one have
// it. The other dimensions stay as they are.
DTensor regrouped(const char* function, const DTensor& a, const Shape& shape, const DimGroup& g) {
  const Layout& from = a.layout();
  const int in_rank = from.shape().size(), added = g.out_end - g.out_begin;
  const auto shift = [&](int d) { return d < g.in_begin ? d : d - g.in_end + g.in_begin + added; };
  const auto inside = [&](int d) { return d >= g.in_begin && d < g.in_end; };
  Shape target;
  for (int d = 0; d < g.in_begin; ++d) target.push_back(from.shape()[d]);
  for (int d = g.out_begin; d < g.out_end; ++d) target.push_back(shape[d]);
  for (int d = g.in_end; d < in_rank; ++d) target.push_back(from.shape()[d]);
  const int to_dim = leading(target, g.in_begin, g.in_begin + added);
  Placements placements = from.placements();
  std::vector<int> split_by;
  for (int d = g.in_begin; d < g.in_end; ++d) {
    split_by.insert(split_by.end(), from.split_by(d).begin(), from.split_by(d).end());
  }
  for (Placement& p : placements) {
    if (!p.is_shard()) continue;
    if (!inside(p.dim())) {
      p = p.with_dim(shift(p.dim()));
    } else if (added > 0) {
      p = Shard(to_dim);
    } else {
      p = Replicate();  // a single element
    }
  }
  ShardOrder order;
  for (const auto& [d, mesh_dims] : from.shard_order()) {
    if (!inside(d)) order.emplace_back(shift(d), mesh_dims);
  }
  const Layout to(target, from.grid(), placements, order);
  const Extents origin = Extents::filled(from.grid()->dim(), 0);
  for (const Extents& c : coordinates_along(*from.grid(), split_by, origin)) {
    if (flat_set(from, c, g.in_begin, g.in_end)) continue;
    // Too many pieces: first into pieces of whole rows.
    const int dim = leading(from.shape(), g.in_begin, g.in_end);
    const DTensor rows =
        moved(function, a, splitting_instead(from, g.in_begin, g.in_end, dim), moves_along);
    return regrouped(function, rows, shape, g);
  }
  return assemble(a, to, a.dtype(), [&] {
    // The group is one dimension of the local tensors.
    const auto flat_shape = [&](const Shape& local, int end) {
      Shape s = part_of(local, 0, g.in_begin);
      s.push_back(part_of(local, g.in_begin, end).product());
      for (int d = end; d < local.size(); ++d) s.push_back(local[d]);
      return s;
    };
    const Tensor& local = a.to_local();
    const Shape result_shape = to.local_shape(*a.device_mesh().coordinate());
    const Tensor source = reshaped(function, local, flat_shape(local.shape(), g.in_end), true);
    const Tensor result = Tensor::empty(flat_shape(result_shape, g.in_begin + added), a.dtype(),
                                        a.device_mesh().device());
    Rearrangement move(
        a.device_mesh(),
        {result, to, added > 0 ? to.split_by(to_dim) : std::vector<int>(),
         [&](const Extents& c) { return *flat_set(to, c, g.in_begin, g.in_begin + added); }},
        g.in_begin);
    const std::int64_t count = part_of(from.shape(), g.in_begin, g.in_end).product();
    move.add({source, from, split_by,
              [&](const Extents& c) { return *flat_set(from, c, g.in_begin, g.in_end); }},
             {{0, 0, count}});
    move.run(function, "the elements of the new shape lie on other ranks");
    return result.reshape(result_shape);
  });
}

}  // namespace

DTensor assemble(const DTensor& like, const Layout& layout, DType dtype, FunctionRef<Tensor()> make,
                 std::optional<Extents> strides) {
  const DeviceMesh& mesh = like.device_mesh();
  const Tensor local = mesh.is_member() ? make()
                                        : Tensor::empty(local_shape_on(layout, Runtime::rank()),
                                                        dtype, mesh.device());
  return DTensor(mesh, layout, local, std::move(strides));
}

Layout resized(const Layout& layout, int dim, std::int64_t extent) {
  if (layout.shape()[dim] == extent) return layout;
  Shape shape = layout.shape();
  shape[dim] = extent;
  Placements placements = layout.placements();
  for (Placement& p : placements) {
    if (p.is_shard(dim) && p.has_extents()) p = Shard(dim);
  }
  return Layout(shape, layout.grid(), placements, layout.shard_order());
}

std::int64_t ranks_along(const Layout& layout, int dim) {
  std::int64_t ranks = 1;
  for (int m : layout.split_by(dim)) ranks *= layout.grid()->size(m);
  return ranks;
}

std::optional<Layout> whole_lines(const Layout& layout, int dim) {
  const Shape& shape = layout.shape();
  std::optional<int> other;
  for (int d = 0; d < shape.size(); ++d) {
    if (d == dim || !layout.split_by(d).empty() || shape[d] < ranks_along(layout, dim)) continue;
    if (!other || shape[d] > shape[*other]) other = d;
  }
  if (!other) return std::nullopt;
  return splitting_instead(layout, dim, dim + 1, *other);
}

DTensor reshaped(const char* function, const DTensor& a, const Shape& shape, bool may_copy) {
  if (a.shape() == shape) return a;
  const auto layout = cached_view(a.layout(), shape);
  if (!layout) {
    if (!may_copy) throw_no_view(function, a, shape);
    return reshaped(function, regrouped(function, a, shape, *blocking_group(a.layout(), shape)),
                    shape, true);
  }
  const auto strides = view_strides(a.shape(), a.stride(), shape);
  if (!strides && !may_copy) {
    throw ValueError(function,
                     fmt::format("shape {} of a tensor of shape {} with strides {}",
                                 to_string(shape), to_string(a.shape()), to_string(a.stride())),
                     "a shape that its strides allow; reshape copies where they do not");
  }
  return assemble(
      a, *layout, a.dtype(),
      [&] {
        return reshaped(function, a.to_local(), layout->local_shape(*a.device_mesh().coordinate()),
                        true);
      },
      strides);
}

DTensor permuted(const char*, const DTensor& a, const std::vector<std::int64_t>& dims) {
  Extents strides;
  for (std::int64_t d : dims) strides.push_back(a.stride()[static_cast<int>(d)]);
  const auto layout = cached('p', a.layout(), dims, [&] {
    const Layout& from = a.layout();
    Shape shape;
    std::vector<int> to(dims.size());
    for (std::size_t d = 0; d < dims.size(); ++d) {
      shape.push_back(from.shape()[static_cast<int>(dims[d])]);
      to[static_cast<std::size_t>(dims[d])] = static_cast<int>(d);
    }
    Placements placements = from.placements();
    for (Placement& p : placements) {
      if (p.is_shard()) p = p.with_dim(to[static_cast<std::size_t>(p.dim())]);
    }
    ShardOrder order = from.shard_order();
    for (auto& entry : order) entry.first = to[static_cast<std::size_t>(entry.first)];
    return std::optional(Layout(shape, from.grid(), placements, order));
  });
  return assemble(
      a, *layout, a.dtype(), [&] { return a.to_local().permute(dims); }, strides);
}

namespace {

// Positions in steps of one size: a view of them, else a copy.
Tensor take_runs(const char* function, const Tensor& a, int dim, const std::vector<Run>& runs) {
  std::int64_t count = 0, step = 1;
  bool even = true;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Run& r = runs[i];
    if (count == 1) step = r.from - runs[0].from;
    if (count == 0) step = r.step;
    even = even && r.from == runs[0].from + count * step && (r.length == 1 || r.step == step);
    count += r.length;
  }
  if (even) return sliced(function, a, dim, runs.empty() ? 0 : runs[0].from, step, count);
  Shape shape = a.shape();
  shape[dim] = count;
  const Tensor result = Tensor::empty(shape, a.dtype(), a.device());
  copy_runs(result, a, dim, runs);
  fence(a.device(), "dtensor::take_runs");
  return result;
}

}  // namespace

DTensor sliced(const char* function, const DTensor& a, int dim, std::int64_t start,
               std::int64_t step, std::int64_t length) {
  if (start == 0 && step == 1 && length == a.shape()[dim]) return a;
  const auto layout = cached('s', a.layout(), {dim, start, step, length}, [&] {
    return mapped_layout(a.layout(), dim, length, [&](const IndexSet& set) {
      return dtensor::sliced(set, start, step, length);
    });
  });
  const Segments segments{{0, start, length, step}};
  if (!layout) return rearranged(function, a, dim, length, segments);
  Extents strides = a.stride();
  strides[dim] *= step;
  return assemble(
      a, *layout, a.dtype(),
      [&] {
        const Extents& self = *a.device_mesh().coordinate();
        return take_runs(
            function, a.to_local(), dim,
            runs(a.layout().index_set(self, dim), layout->index_set(self, dim), segments));
      },
      strides);
}

DTensor expanded(const char* function, const DTensor& a, const Shape& shape) {
  const int added = shape.size() - a.dim();
  Placements placements = a.placements();
  for (Placement& p : placements) {
    if (p.is_shard() && a.shape()[p.dim()] != shape[p.dim() + added]) p = Replicate();
  }
  ShardOrder order;
  for (const auto& entry : a.layout().shard_order()) {
    if (a.shape()[entry.first] == shape[entry.first + added]) order.push_back(entry);
  }
  const DTensor whole = moved(function, a, a.layout().with_placements(placements, order),
                              "a dimension of extent 1 is repeated on all ranks");
  Extents strides = Extents::filled(shape.size(), 0);
  for (int d = added; d < shape.size(); ++d) {
    if (shape[d] == a.shape()[d - added]) strides[d] = a.stride()[d - added];
  }
  for (Placement& p : placements) {
    if (p.is_shard()) p = p.with_dim(p.dim() + added);
  }
  for (auto& entry : order) entry.first += added;
  const Layout layout(shape, a.layout().grid(), placements, order);
  return assemble(
      a, layout, a.dtype(),
      [&] {
        return expanded(function, whole.to_local(),
                        layout.local_shape(*a.device_mesh().coordinate()));
      },
      strides);
}

DTensor rearranged(const char* function, const DTensor& a, int dim, std::int64_t extent,
                   const Segments& segments, const std::optional<Scalar>& fill) {
  const Layout to = resized(a.layout(), dim, extent);
  return assemble(a, to, a.dtype(), [&] {
    const Layout& from = a.layout();
    const Tensor result = Tensor::empty(to.local_shape(*a.device_mesh().coordinate()), a.dtype(),
                                        a.device_mesh().device());
    if (fill) result.fill(*fill);
    Rearrangement move(
        a.device_mesh(),
        {result, to, to.split_by(dim), [&](const Extents& c) { return to.index_set(c, dim); }},
        dim);
    move.add({a.to_local(), from, from.split_by(dim),
              [&](const Extents& c) { return from.index_set(c, dim); }},
             segments);
    move.run(function, moves_along);
    return result;
  });
}

namespace {

// The repetitions are rows, and flattened.
std::optional<Layout> repeated_layout(const Layout& layout, int dim, std::int64_t times) {
  const std::int64_t extent = layout.shape()[dim];
  Placements placements = layout.placements();
  for (Placement& p : placements) p = p.is_shard(dim) ? p.with_dim(1) : Placement(Replicate());
  ShardOrder order = layout.shard_order(), rest;
  std::erase_if(order, [&](const auto& entry) {
    if (entry.first != dim) rest.push_back(entry);
    return entry.first != dim;
  });
  for (auto& entry : order) entry.first = 1;
  const auto flat =
      view_layout(Layout({times, extent}, layout.grid(), placements, order), {times * extent});
  if (!flat) return std::nullopt;
  placements = layout.placements();
  for (std::size_t m = 0; m < placements.size(); ++m) {
    if (!placements[m].is_shard(dim)) continue;
    const Placement& p = flat->placements()[m];
    placements[m] = p.is_shard() ? p.with_dim(dim) : p;
  }
  for (const auto& entry : flat->shard_order()) rest.emplace_back(dim, entry.second);
  Shape shape = layout.shape();
  shape[dim] *= times;
  return Layout(shape, layout.grid(), placements, rest);
}

// Into the shards that `to` has along the dimension, from all indices of it on each rank.
DTensor repeated_from_whole(const char* function, const DTensor& a, int dim, const Layout& to) {
  Placements placements = a.placements();
  for (Placement& p : placements) {
    if (p.is_shard(dim)) p = Replicate();
  }
  ShardOrder order = a.layout().shard_order();
  std::erase_if(order, [&](const auto& entry) { return entry.first == dim; });
  const DTensor whole =
      moved(function, a, a.layout().with_placements(placements, order), moves_along);
  return assemble(a, to, a.dtype(), [&] {
    const Extents& self = *a.device_mesh().coordinate();
    const Tensor result = Tensor::empty(to.local_shape(self), a.dtype(), a.device_mesh().device());
    const std::int64_t extent = a.shape()[dim];
    std::int64_t position = 0;
    const IndexSet held = to.index_set(self, dim);
    for (const Interval& i : held.intervals()) {
      const std::int64_t first = i.begin / extent, last = (i.end - 1) / extent;
      const Tensor copies = repeated_along(function, whole.to_local(), dim, last - first + 1);
      copy_runs(result, copies, dim, {{position, i.begin - first * extent, i.length(), 1}});
      position += i.length();
    }
    fence(result.device(), "dtensor::repeated");
    return result;
  });
}

}  // namespace

DTensor repeated_along(const char* function, const DTensor& a, int dim, std::int64_t times) {
  const std::int64_t extent = a.shape()[dim];
  const auto layout = cached('r', a.layout(), {dim, times},
                             [&] { return repeated_layout(a.layout(), dim, times); });
  if (layout) {
    return assemble(a, *layout, a.dtype(),
                    [&] { return repeated_along(function, a.to_local(), dim, times); });
  }
  // With enough repetitions each rank needs all indices anyway, and needs them once.
  if (times > ranks_along(a.layout(), dim)) {
    return repeated_from_whole(function, a, dim, resized(a.layout(), dim, times * extent));
  }
  Segments segments;
  for (std::int64_t t = 0; t < times; ++t) segments.push_back({t * extent, 0, extent});
  return rearranged(function, a, dim, times * extent, segments);
}

namespace {

// The placements of one input of `cat`, for all of them. Contributions are kept where all inputs
// are Partial alike.
Layout layout_for_all(const DTensor& base, const std::vector<DTensor>& tensors) {
  Placements placements = base.placements();
  for (int m = 0; m < base.device_mesh().dim(); ++m) {
    Placement& p = placements[static_cast<std::size_t>(m)];
    const bool alike = std::all_of(tensors.begin(), tensors.end(),
                                   [&](const DTensor& t) { return t.layout().placement(m) == p; });
    if (p.is_partial() && !alike) p = Replicate();
  }
  return base.layout().with_placements(placements, base.layout().shard_order());
}

// Where an input of `cat` must be moved to first: along the dimension it has its own shards.
Layout aligned(const Layout& layout, const Layout& common, int dim) {
  bool own = true;  // only mesh dimensions that shard the result's dimension shard the input's
  for (int m = 0; m < common.grid()->dim(); ++m) {
    own = own && (!layout.placement(m).is_shard(dim) || common.placement(m).is_shard(dim));
  }
  Placements placements = common.placements();
  for (int m = 0; m < common.grid()->dim(); ++m) {
    Placement& p = placements[static_cast<std::size_t>(m)];
    if (!p.is_shard(dim)) continue;
    const Placement& has = layout.placement(m);
    const bool stays = own && (has.is_shard(dim) || has.is_replicate());
    p = stays ? has : Placement(own ? Placement(Replicate()) : Placement(Shard(dim)));
  }
  ShardOrder order;
  for (const auto& entry : (own ? layout : common).shard_order()) {
    if (entry.first == dim) order.push_back(entry);
  }
  for (const auto& entry : common.shard_order()) {
    if (entry.first != dim) order.push_back(entry);
  }
  return layout.with_placements(placements, order);
}

// The placements that all inputs of `cat` get, but for the dimension it goes along: those of the
// input that takes the least to move to, and then leave the least on a rank.
Layout common_layout(const std::vector<DTensor>& tensors, int dim) {
  std::optional<Layout> best;
  std::pair<double, std::int64_t> best_cost;
  std::vector<const Layout*> tried;
  for (const DTensor& base : tensors) {
    const bool known = std::any_of(tried.begin(), tried.end(),
                                   [&](const Layout* l) { return *l == base.layout(); });
    if (known) continue;
    tried.push_back(&base.layout());
    const Layout layout = layout_for_all(base, tensors);
    double seconds = 0;
    for (const DTensor& t : tensors) {
      const Layout to = aligned(t.layout(), layout, dim);
      seconds += estimated_seconds(t.layout(), to, t.dtype());
      // What is sharded along the dimension goes from there to where the result needs it.
      if (!to.split_by(dim).empty()) {
        seconds += CostModel().seconds(1, t.numel() * size_of(t.dtype()) / t.device_mesh().size());
      }
    }
    const Extents first = Extents::filled(layout.grid()->dim(), 0);
    const std::pair cost(seconds, layout.local_shape(first).product());
    if (best && !(cost < best_cost)) continue;
    best = layout;
    best_cost = cost;
  }
  return *best;
}

}  // namespace

DTensor concatenated(const char* function, const std::vector<DTensor>& tensors, int dim) {
  const DeviceMesh& mesh = tensors.front().device_mesh();
  const Layout common = common_layout(tensors, dim);
  std::int64_t extent = 0;
  std::vector<DTensor> inputs;
  for (const DTensor& t : tensors) {
    extent += t.shape()[dim];
    inputs.push_back(redistribute(t, mesh, aligned(t.layout(), common, dim), true, function,
                                  "the inputs need placements that fit together",
                                  static_cast<int>(inputs.size())));
  }
  const Layout to = resized(common, dim, extent);
  return assemble(tensors.front(), to, tensors.front().dtype(), [&] {
    const Tensor result =
        Tensor::empty(to.local_shape(*mesh.coordinate()), tensors.front().dtype(), mesh.device());
    Rearrangement move(
        mesh,
        {result, to, to.split_by(dim), [&](const Extents& c) { return to.index_set(c, dim); }},
        dim);
    std::int64_t position = 0;
    for (const DTensor& t : inputs) {
      const Layout& from = t.layout();
      move.add({t.to_local(), from, from.split_by(dim),
                [&from, dim](const Extents& c) { return from.index_set(c, dim); }},
               {{position, 0, t.shape()[dim]}});
      position += t.shape()[dim];
    }
    move.run(function, moves_along);
    return result;
  });
}

DTensor with_partials(const char* function, const DTensor& a, FunctionRef<bool(ReduceOp)> keeps,
                      int input) {
  Placements placements = a.placements();
  for (Placement& p : placements) {
    if (p.is_partial() && !keeps(p.reduce_op())) p = Replicate();
  }
  if (placements == a.placements()) return a;
  return moved(function, a, a.layout().with_placements(placements, a.layout().shard_order()),
               "the operator needs the reduced value of a Partial input", input);
}

}  // namespace dtensor::detail
