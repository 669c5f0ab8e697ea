// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/indexing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/promotion.hpp"
#include "dtensor/ops/view_rule.hpp"
#include "local/indexing.hpp"
#include "shape_primitives.hpp"

namespace dtensor {

namespace detail {

namespace {

void check_integer(const char* function, DType dtype) {
  if (is_integral(dtype)) return;
  throw TypeError(function, fmt::format("indices of type {}", to_string(dtype)), "an integer type");
}

Tensor as_index(const Tensor& index) { return index.to(DType::int64).contiguous(); }

// What indices count: `extent` of something, or any number of it.
struct Counted {
  std::optional<std::int64_t> extent;
  FunctionRef<std::string()> name;
};

void check_range(const char* function, const std::pair<std::int64_t, std::int64_t>& range,
                 const Counted& counted) {
  const auto& extent = counted.extent;
  if (range.first > range.second || (range.first >= 0 && (!extent || range.second < *extent))) {
    return;
  }
  std::string expected = "an index of 0 or more";
  if (extent)
    expected = *extent == 0 ? "no indices" : fmt::format("an index from 0 to {}", *extent - 1);
  throw IndexError(
      function,
      fmt::format("index {} for {}", range.first < 0 ? range.first : range.second, counted.name()),
      expected);
}

// What one rank of the mesh finds in its indices is thrown on all of them.
void check_range(const char* function, const DTensor& index, const Counted& counted) {
  const DeviceMesh& mesh = index.device_mesh();
  if (!mesh.is_member()) return;
  const auto check = [&] { check_range(function, range_of(as_index(index.to_local())), counted); };
  const auto& placements = index.placements();
  const bool everywhere = std::all_of(placements.begin(), placements.end(),
                                      [](const Placement& p) { return p.is_replicate(); });
  if (everywhere) return check();
  index.to_local();  // not inside: ranks must not disagree while a redistribution is waited for
  all_or_none(*mesh.communicator(), function, check);
}

void check_range(const char* function, const Tensor& index, const Counted& counted) {
  check_range(function, range_of(index), counted);
}

// Checks indices of a dimension.
template <class T>
void check_indices(const char* function, const T& index, const T& of, int dim) {
  check_range(function, index, {of.shape()[dim], [&] {
                                  return fmt::format("dimension {} of a tensor of shape {}", dim,
                                                     to_string(of.shape()));
                                }});
}

// Whether ranks that share dimension `dim` of a tensor have different parts of another one.
bool is_spread(const DTensor& tensor, const Layout& layout, int dim) {
  const auto& split = layout.split_by(dim);
  return std::any_of(split.begin(), split.end(), [&](int m) {
    return layout.grid()->size(m) > 1 && tensor.layout().placement(m).is_shard();
  });
}

DTensor reduced(const char* function, const DTensor& a, int input) {
  return with_partials(
      function, a, [](ReduceOp) { return false; }, input);
}

DTensor moved(const char* function, const DTensor& a, OperatorInput input, const Layout& layout) {
  return redistribute(a, a.device_mesh(), layout, false, function,
                      "the operator needs its inputs under placements that fit together", input);
}

DTensor replicated(const char* function, const DTensor& a, OperatorInput input) {
  return moved(function, a, input,
               a.layout().with_placements(
                   Placements(static_cast<std::size_t>(a.device_mesh().dim()), Replicate())));
}

// Rules for each number of dimensions and each of them, made on first use.
const Rule& rule_around(int rank, int dim, Rule (*make)(const std::string&, const std::string&)) {
  using Key = std::tuple<int, int, Rule (*)(const std::string&, const std::string&)>;
  static auto* const rules = new std::map<Key, Rule>;
  static auto* const mutex = new std::mutex;
  const std::lock_guard lock(*mutex);
  const Key key{rank, dim, make};
  if (const auto found = rules->find(key); found != rules->end()) return found->second;
  const std::string letters = std::string("abcdefgh").substr(0, static_cast<std::size_t>(rank));
  const auto d = static_cast<std::size_t>(dim);
  return rules->emplace(key, make(letters.substr(0, d), letters.substr(d + 1))).first->second;
}

Rule index_select_rule(const std::string& before, const std::string& after) {
  return Rule(before + "x!" + after + ",i->" + before + "i" + after, moves_elements());
}
Rule gather_rule(const std::string& before, const std::string& after) {
  return Rule(before + "x!" + after + "," + before + "i" + after + "->" + before + "i" + after,
              moves_elements());
}

Rule scatter_add_rule(const std::string& before, const std::string& after) {
  const std::string at = before + "i" + after, to = before + "x!" + after;
  constexpr std::uint32_t average = PartialPass::bit(ReduceOp::avg);
  return Rule("+" + to + "," + at + "," + at + "->" + to,
              {linear_in({0, 2}), {1, average}, {4, average}});
}

// Contributions are handed on where `value` is the reduction of itself.
const Rule& masked_rule(int rank, int mask_rank, const Scalar& value) {
  std::uint32_t ops = 0;
  for (int op = 0; op < reduce_op_count; ++op) {
    if (is_fixed_point(static_cast<ReduceOp>(op), value)) ops |= std::uint32_t{1} << op;
  }
  thread_local std::map<std::tuple<int, int, std::uint32_t>, Rule> rules;
  const std::tuple key(rank, mask_rank, ops);
  const auto known = rules.find(key);
  if (known != rules.end()) return known->second;
  return rules.emplace(key, Rule::pointwise({rank, mask_rank}, {PartialPass{1, ops}}))
      .first->second;
}

// Along a sharded dimension. Every rank knows all indices, and so what each needs from whom.
DTensor select_across_ranks(const DTensor& a, int dim, const DTensor& index) {
  const Tensor all = as_index(index.to_local());
  const Layout& from = a.layout();
  const Layout to = resized(from, dim, index.numel());
  return assemble(a, to, a.dtype(), [&] {
    const DeviceMesh& mesh = a.device_mesh();
    const ProcessGrid& grid = *mesh.grid();
    const Extents& self = *mesh.coordinate();
    const auto wanted = all.to_vector<std::int64_t>();
    const Tensor& local = a.to_local();
    // Positions on `sender` that `receiver` wants, and where in the result it wants them.
    struct Picks {
      std::vector<std::int64_t> from, to;
    };
    const auto picks = [&](const IndexSet& held, const IndexSet& needed) {
      Picks p;
      std::int64_t position = 0;
      std::vector<std::int64_t> starts;
      for (const Interval& i : held.intervals()) {
        starts.push_back(position);
        position += i.length();
      }
      position = 0;
      for (const Interval& n : needed.intervals()) {
        for (std::int64_t j = n.begin; j < n.end; ++j, ++position) {
          const std::int64_t w = wanted[static_cast<std::size_t>(j)];
          const auto& intervals = held.intervals();
          const auto i = std::lower_bound(
              intervals.begin(), intervals.end(), w,
              [](const Interval& interval, std::int64_t at) { return interval.end <= at; });
          if (i == intervals.end() || w < i->begin) continue;
          p.from.push_back(starts[static_cast<std::size_t>(i - intervals.begin())] + w - i->begin);
          p.to.push_back(position);
        }
      }
      return p;
    };
    const auto tensor = [&](const std::vector<std::int64_t>& values) {
      const auto count = static_cast<std::int64_t>(values.size());
      return Tensor::from_vector(values, {count}, mesh.device());
    };
    Hash what;
    what.add(from.hash());
    what.add(to.hash());
    what.add(static_cast<std::uint64_t>(a.dtype()));
    what.add_range(wanted);
    Exchange exchange(mesh);
    const IndexSet own = from.index_set(self, dim), needed = to.index_set(self, dim);
    // What arrives, in the order of the ranks, and the position of each needed one among it.
    std::vector<Tensor> arrived;
    std::vector<std::int64_t> order(static_cast<std::size_t>(needed.size()));
    std::int64_t count = 0;
    for (const Extents& c : coordinates_along(grid, from.split_by(dim), self)) {
      const std::int64_t peer = grid.position_at(c);
      const Picks taken = picks(from.index_set(c, dim), needed);
      for (std::int64_t p : taken.to) order[static_cast<std::size_t>(p)] = count++;
      if (c == self) {
        arrived.push_back(select_indices(local, dim, tensor(taken.from)));
        continue;
      }
      Shape shape = local.shape();
      shape[dim] = static_cast<std::int64_t>(taken.to.size());
      arrived.push_back(Tensor::empty(shape, a.dtype(), mesh.device()));
      exchange.receive(peer, arrived.back());
      const Picks given = picks(own, to.index_set(c, dim));
      exchange.send(peer, select_indices(local, dim, tensor(given.from)));
    }
    auto error = announce_exchange("index_select", "the picked elements lie on other ranks",
                                   exchange.bytes_sent(), from, to);
    exchange.run(what.value(), start_agreement(mesh, "index_select", what,
                                               fmt::format("{} {} at {} indices of dimension {}",
                                                           to_string(a.dtype()), to_string(from),
                                                           index.numel(), dim),
                                               std::move(error)));
    return select_indices(concatenated("index_select", arrived, dim), dim, tensor(order));
  });
}

void check_index_1d(const char* function, const Shape& shape) {
  if (shape.size() == 1) return;
  throw ValueError(function, fmt::format("indices of shape {}", to_string(shape)),
                   "one dimension of indices");
}

Tensor index_selected(const Tensor& a, int dim, const Tensor& index) {
  check_same_memory("index_select", a, index);
  const Tensor where = as_index(index);
  check_indices("index_select", where, a, dim);
  return select_indices(a, dim, where);
}

DTensor index_selected(const DTensor& a, int dim, const DTensor& index) {
  check_mesh("index_select", a, index);
  const bool across = ranks_along(a.layout(), dim) > 1;
  const DTensor where =
      across ? replicated("index_select", index, 1) : reduced("index_select", index, 1);
  check_indices("index_select", where, a, dim);
  if (across) return select_across_ranks(a, dim, where);
  return dispatch({"index_select", rule_around(a.dim(), dim, index_select_rule), a.dtype()},
                  {a, where}, [&](Locals x) { return select_indices(x[0], dim, as_index(x[1])); });
}

// Checks the shapes of `gather` and `scatter_add`, and cuts a tensor to the extents of the indices.
template <class T>
void check_index_shape(const char* function, const T& a, int dim, const T& index) {
  bool fits = index.dim() == a.dim();
  for (int d = 0; fits && d < a.dim(); ++d) fits = d == dim || index.shape()[d] <= a.shape()[d];
  if (fits) return;
  throw ValueError(function,
                   fmt::format("indices of shape {} for a tensor of shape {} along dimension {}",
                               to_string(index.shape()), to_string(a.shape()), dim),
                   "as many dimensions, and no larger ones but for the one it goes along");
}

template <class T>
T cut_to(const char* function, const T& a, const Shape& shape, int but) {
  T result = a;
  for (int d = 0; d < a.dim(); ++d) {
    if (d != but && shape[d] != a.shape()[d]) {
      result = sliced(function, result, d, 0, 1, shape[d]);
    }
  }
  return result;
}

Tensor gathered(const Tensor& a, int dim, const Tensor& index) {
  check_same_memory("gather", a, index);
  const Tensor where = as_index(index);
  check_indices("gather", where, a, dim);
  return gather_held(cut_to("gather", a, index.shape(), dim), dim, where,
                     IndexSet(0, a.shape()[dim]));
}

DTensor gathered(const DTensor& a, int dim, const DTensor& index) {
  check_mesh("gather", a, index);
  const DTensor where = reduced("gather", index, 1);
  check_indices("gather", where, a, dim);
  const std::int64_t extent = a.shape()[dim];
  DTensor part = cut_to("gather", a, index.shape(), dim);
  if (is_spread(where, part.layout(), dim)) {
    // Not all indices to all ranks, if that can be.
    if (const auto lines = whole_lines(part.layout(), dim)) part = moved("gather", part, 0, *lines);
  }
  if (ranks_along(part.layout(), dim) == 1) {
    return dispatch(
        {"gather", rule_around(a.dim(), dim, gather_rule), a.dtype()}, {part, where},
        [&](Locals x) { return gather_held(x[0], dim, as_index(x[1]), IndexSet(0, extent)); });
  }
  // Each rank contributes the elements that it holds.
  const DTensor x = with_partials(
      "gather", part, [](ReduceOp op) { return op == ReduceOp::sum || op == ReduceOp::avg; });
  Placements indices = x.placements(), result = x.placements();
  for (std::size_t m = 0; m < indices.size(); ++m) {
    if (indices[m].is_partial()) indices[m] = Replicate();
    if (!indices[m].is_shard(dim)) continue;
    indices[m] = Replicate();
    result[m] = Partial();
  }
  ShardOrder order;
  for (const auto& entry : x.layout().shard_order()) {
    if (entry.first != dim) order.push_back(entry);
  }
  const DTensor at = moved("gather", where, 1, where.layout().with_placements(indices, order));
  return assemble(x, at.layout().with_placements(result, order), a.dtype(), [&] {
    return gather_held(x.to_local(), dim, as_index(at.to_local()),
                       x.layout().index_set(*x.device_mesh().coordinate(), dim));
  });
}

template <class T>
void check_source(const T& a, int dim, const T& index, const T& src) {
  common_dtype("scatter_add", a.dtype(), src.dtype());
  check_index_shape("scatter_add", a, dim, index);
  bool fits = src.dim() == index.dim();
  for (int d = 0; fits && d < src.dim(); ++d) fits = index.shape()[d] <= src.shape()[d];
  if (fits) return;
  throw ValueError("scatter_add",
                   fmt::format("indices of shape {} for sources of shape {}",
                               to_string(index.shape()), to_string(src.shape())),
                   "indices in no dimension larger than the sources");
}

Tensor scatter_added(const Tensor& a, int dim, const Tensor& index, const Tensor& src) {
  check_same_memory("scatter_add", a, index);
  check_same_memory("scatter_add", a, src);
  const Tensor where = as_index(index);
  check_indices("scatter_add", where, a, dim);
  const Tensor result = a.clone();
  add_held(cut_to("scatter_add", result, index.shape(), dim), dim, where,
           cut_to("scatter_add", src, index.shape(), -1), IndexSet(0, a.shape()[dim]));
  return result;
}

// Splits only dimensions whose parts placements can describe once they are cut.
DTensor cuttable(const DTensor& a, const Shape& shape, int but) {
  Placements placements = a.placements();
  for (int d = 0; d < a.dim(); ++d) {
    if (d == but || shape[d] == a.shape()[d]) continue;
    const auto cut = mapped_layout(a.layout(), d, shape[d], [&](const IndexSet& set) {
      return dtensor::sliced(set, 0, 1, shape[d]);
    });
    if (cut) continue;
    for (Placement& p : placements) {
      if (p.is_shard(d)) p = Replicate();
    }
  }
  if (placements == a.placements()) return a;
  ShardOrder order;
  for (const auto& entry : a.layout().shard_order()) {
    const auto& mesh_dims = entry.second;
    if (placements[static_cast<std::size_t>(mesh_dims.front())].is_shard()) order.push_back(entry);
  }
  return moved("scatter_add", a, 0, a.layout().with_placements(placements, order));
}

// The indices have been checked.
DTensor add_at(const DTensor& a, int dim, const DTensor& where, const DTensor& src) {
  if (is_spread(where, a.layout(), dim) || is_spread(src, a.layout(), dim)) {
    // Not all indices and sources to all ranks, if that can be.
    if (const auto lines = whole_lines(a.layout(), dim)) {
      const DTensor sum = add_at(moved("scatter_add", a, 0, *lines), dim, where, src);
      Placements back = sum.placements();
      for (std::size_t m = 0; m < back.size(); ++m) {
        if (a.placements()[m].is_shard()) back[m] = a.placements()[m];
      }
      return moved("scatter_add", sum, 0,
                   a.layout().with_placements(back, a.layout().shard_order()));
    }
  }
  const Shape& shape = where.shape();
  // Sums of contributions to both are contributions to the sum.
  Placements both = a.placements();
  for (int m = 0; m < a.device_mesh().dim(); ++m) {
    Placement& p = both[static_cast<std::size_t>(m)];
    const bool linear = p.is_partial(ReduceOp::sum) || p.is_partial(ReduceOp::avg);
    if (p.is_partial() && !(linear && src.layout().placement(m) == p)) p = Replicate();
  }
  const DTensor to = cuttable(
      moved("scatter_add", a, 0, a.layout().with_placements(both, a.layout().shard_order())), shape,
      dim);
  const DTensor result =
      assemble(to, to.layout(), a.dtype(), [&] { return to.to_local().clone(); });
  const DTensor part = cut_to("scatter_add", result, shape, dim);  // shares its memory
  Placements indices = part.placements(), sources = indices;
  for (std::size_t m = 0; m < indices.size(); ++m) {
    if (!indices[m].is_shard() || indices[m].is_shard(dim)) indices[m] = Replicate();
    if (!sources[m].is_partial()) sources[m] = indices[m];
  }
  ShardOrder order;
  for (const auto& entry : part.layout().shard_order()) {
    if (entry.first != dim) order.push_back(entry);
  }
  const DTensor at = moved("scatter_add", where, 1, where.layout().with_placements(indices, order));
  const DTensor cut = cut_to("scatter_add", src, shape, -1);
  const DTensor from = moved("scatter_add", cut, 2, cut.layout().with_placements(sources, order));
  if (a.device_mesh().is_member()) {
    add_held(part.to_local(), dim, as_index(at.to_local()), from.to_local(),
             part.layout().index_set(*part.device_mesh().coordinate(), dim));
  }
  return result;
}

DTensor scatter_added(const DTensor& a, int dim, const DTensor& index, const DTensor& src) {
  check_mesh("scatter_add", a, index);
  check_mesh("scatter_add", a, src);
  const DTensor where = reduced("scatter_add", index, 1);
  check_indices("scatter_add", where, a, dim);
  bool alike = src.shape() == where.shape() && ranks_along(a.layout(), dim) == 1;
  for (int d = 0; d < a.dim(); ++d) alike = alike && (d == dim || where.shape()[d] == a.shape()[d]);
  if (!alike) return add_at(a, dim, where, src);
  return dispatch({"scatter_add", rule_around(a.dim(), dim, scatter_add_rule), a.dtype()},
                  {a, where, src}, [&](Locals x) {
                    const Tensor result = x[0].clone();
                    add_held(result, dim, as_index(x[1]), x[2], IndexSet(0, a.shape()[dim]));
                    return result;
                  });
}

Tensor masked(const Tensor& a, const Tensor& mask, const Scalar& value) {
  check_same_memory("masked_fill", a, mask);
  masked_rule(a.dim(), mask.dim(), value).extents("masked_fill", {a.shape(), mask.shape()});
  return fill_masked(a, mask, value);
}

DTensor masked(const DTensor& a, const DTensor& mask, const Scalar& value) {
  check_mesh("masked_fill", a, mask);
  return dispatch({"masked_fill", masked_rule(a.dim(), mask.dim(), value), a.dtype()}, {a, mask},
                  [&](Locals l) { return fill_masked(l[0], l[1], value); });
}

void check_classes(std::int64_t classes) {
  if (classes >= -1) return;
  throw ValueError("one_hot", fmt::format("{} classes", classes),
                   "0 or more, or -1 for as many as the largest index needs");
}

template <class T>
void check_hot(const T& where, std::int64_t classes) {
  const auto name = [&] {
    return classes < 0 ? std::string("as many classes as needed")
                       : fmt::format("{} classes", classes);
  };
  check_range("one_hot", where, {classes < 0 ? std::nullopt : std::optional(classes), name});
}

// The shape of the result, whose number of classes may have to follow from the largest index.
Shape hot_shape(const Shape& index, std::int64_t classes, FunctionRef<std::int64_t()> largest) {
  check_rank("one_hot", static_cast<std::size_t>(index.size()) + 1);
  Shape shape = index;
  shape.push_back(classes >= 0 ? classes : std::min(largest(), INT64_MAX - 1) + 1);
  checked_element_count("one_hot", shape);
  return shape;
}

Tensor with_classes(const Tensor& index, std::int64_t classes) {
  const Tensor where = as_index(index);
  check_hot(where, classes);
  const Shape shape = hot_shape(index.shape(), classes, [&] { return range_of(where).second; });
  return make_one_hot(where, shape[index.dim()]);
}

DTensor with_classes(const DTensor& index, std::int64_t classes) {
  const DeviceMesh& mesh = index.device_mesh();
  const DTensor where = reduced("one_hot", index, 0);
  check_hot(where, classes);
  const Shape shape = hot_shape(where.shape(), classes, [&] {
    if (!mesh.is_member()) {
      throw StateError("one_hot", "a rank outside of the mesh, which does not know the indices",
                       "the number of classes");
    }
    const std::int64_t largest = range_of(as_index(where.to_local())).second;
    const Placements each(static_cast<std::size_t>(mesh.dim()), Partial(ReduceOp::max));
    const DTensor maxima(mesh, Layout({}, mesh.grid(), each),
                         Tensor::full({}, largest, DType::int64, mesh.device()));
    return replicated("one_hot", maxima, {0, &index.layout()}).to_local().item<std::int64_t>();
  });
  const Layout to(shape, where.layout().grid(), where.placements(), where.layout().shard_order());
  return assemble(where, to, DType::int64,
                  [&] { return make_one_hot(as_index(where.to_local()), shape[where.dim()]); });
}

}  // namespace

}  // namespace detail

template <AnyTensor T>
T index_select(const T& a, std::int64_t dim, const T& index) {
  const int d = normalize_dim("index_select", dim, a.dim());
  detail::check_integer("index_select", index.dtype());
  detail::check_index_1d("index_select", index.shape());
  return detail::index_selected(a, d, index);
}

template <AnyTensor T>
T gather(const T& a, std::int64_t dim, const T& index) {
  const int d = normalize_dim("gather", dim, a.dim());
  detail::check_integer("gather", index.dtype());
  detail::check_index_shape("gather", a, d, index);
  return detail::gathered(a, d, index);
}

template <AnyTensor T>
T scatter_add(const T& a, std::int64_t dim, const T& index, const T& src) {
  const int d = normalize_dim("scatter_add", dim, a.dim());
  detail::check_integer("scatter_add", index.dtype());
  detail::check_source(a, d, index, src);
  return detail::scatter_added(a, d, index, src);
}

template <AnyTensor T>
T masked_fill(const T& a, const T& mask, const Scalar& value) {
  if (mask.dtype() != DType::boolean) {
    throw TypeError("masked_fill", fmt::format("a mask of type {}", to_string(mask.dtype())),
                    "bool");
  }
  return detail::masked(a, mask, detail::as_element("masked_fill", a.dtype(), value));
}

template <AnyTensor T>
T one_hot(const T& index, std::int64_t classes) {
  detail::check_integer("one_hot", index.dtype());
  detail::check_classes(classes);
  return detail::with_classes(index, classes);
}

#define DTENSOR_INSTANTIATE(T)                                        \
  template T index_select(const T&, std::int64_t, const T&);          \
  template T gather(const T&, std::int64_t, const T&);                \
  template T scatter_add(const T&, std::int64_t, const T&, const T&); \
  template T masked_fill(const T&, const T&, const Scalar&);          \
  template T one_hot(const T&, std::int64_t);
DTENSOR_INSTANTIATE(Tensor)
DTENSOR_INSTANTIATE(DTensor)
#undef DTENSOR_INSTANTIATE

}  // namespace dtensor
