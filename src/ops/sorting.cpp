// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/sorting.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/view_rule.hpp"
#include "exchange.hpp"
#include "local/sequences.hpp"
#include "local/sorting.hpp"
#include "sample_sort.hpp"
#include "shape_primitives.hpp"

namespace dtensor {

namespace detail {

namespace {

template <class T>
using Result = ValuesAndIndices<T>;

void check_ordered(const char* function, DType dtype) {
  if (!is_complex(dtype)) return;
  throw TypeError(function, to_string(dtype), "a type whose numbers have an order");
}

// The indices a rank holds along a dimension, as a tensor.
Tensor index_tensor(const IndexSet& held, DeviceKind device) {
  const Tensor index = Tensor::empty({held.size()}, DType::int64, device);
  std::int64_t position = 0;
  for (const Interval& i : held.intervals()) {
    fill_sequence(index.narrow(0, position, i.length()), {i.end, 0, 1, 0, 0, false, 0}, i.begin);
    position += i.length();
  }
  return index;
}

Result<Tensor> as_result(const Tensor& pairs, const Shape& shape, int dim, DType dtype) {
  auto [values, indices] = split_pairs(pairs, shape, dim, dtype);
  return {std::move(values), std::move(indices)};
}

Result<Tensor> sorted(const Tensor& a, int dim, bool descending) {
  const Tensor pairs = make_pairs(a, dim, index_tensor(IndexSet(0, a.shape()[dim]), a.device()));
  sort_pairs(pairs, PairOrder(a.dtype(), descending));
  return as_result(pairs, a.shape(), dim, a.dtype());
}

Result<Tensor> top(const Tensor& a, int dim, std::int64_t k, bool largest) {
  const Tensor pairs = make_pairs(a, dim, index_tensor(IndexSet(0, a.shape()[dim]), a.device()));
  Shape shape = a.shape();
  shape[dim] = k;
  return as_result(top_pairs(pairs, k, PairOrder(a.dtype(), largest)), shape, dim, a.dtype());
}

DTensor whole_values(const char* function, const DTensor& a) {
  return with_partials(function, a, [](ReduceOp) { return false; });
}

// Two results of one local computation.
Result<DTensor> assemble_both(const DTensor& like, const Layout& layout,
                              FunctionRef<Result<Tensor>()> make) {
  std::optional<Result<Tensor>> local;
  const DTensor values = assemble(like, layout, like.dtype(), [&] {
    local = make();
    return local->values;
  });
  const DTensor indices = assemble(like, layout, DType::int64, [&] { return local->indices; });
  return {values, indices};
}

Result<DTensor> sorted(const DTensor& a, int dim, bool descending) {
  const DTensor x = whole_values("sort", a);
  const Layout& layout = x.layout();
  if (ranks_along(layout, dim) == 1 || x.numel() == 0) {
    return assemble_both(x, layout, [&] { return sorted(x.to_local(), dim, descending); });
  }
  if (const auto by_lines = whole_lines(layout, dim)) {
    const DTensor lines = redistribute(x, x.device_mesh(), *by_lines, false, "sort",
                                       "each rank sorts whole lines", 0);
    const auto result = sorted(lines, dim, descending);
    const auto back = [&](const DTensor& t) {
      return redistribute(t, t.device_mesh(), layout, true, "sort",
                          "the result has the placements of the input");
    };
    return {back(result.values), back(result.indices)};
  }
  return assemble_both(x, layout, [&] {
    const DeviceMesh& mesh = x.device_mesh();
    const Tensor& local = x.to_local();
    const PairOrder order(x.dtype(), descending);
    const IndexSet held = layout.index_set(*mesh.coordinate(), dim);
    const Tensor pairs = make_pairs(local, dim, index_tensor(held, mesh.device()));
    sort_pairs(pairs, order);
    return as_result(sample_sort(pairs, mesh, layout, dim, x.dtype(), order), local.shape(), dim,
                     x.dtype());
  });
}

Result<DTensor> top(const DTensor& a, int dim, std::int64_t k, bool largest) {
  const DTensor x = whole_values("topk", a);
  const Layout& layout = x.layout();
  if (ranks_along(layout, dim) == 1) {
    return assemble_both(x, resized(layout, dim, k),
                         [&] { return top(x.to_local(), dim, k, largest); });
  }
  Placements placements = layout.placements();
  for (Placement& p : placements) {
    if (p.is_shard(dim)) p = Replicate();
  }
  ShardOrder shard_order;
  for (const auto& entry : layout.shard_order()) {
    if (entry.first != dim) shard_order.push_back(entry);
  }
  const Layout to = resized(layout.with_placements(placements, shard_order), dim, k);
  return assemble_both(x, to, [&] {
    const DeviceMesh& mesh = x.device_mesh();
    const Extents& self = *mesh.coordinate();
    const PairOrder order(x.dtype(), largest);
    const auto candidates_of = [&](const Extents& c) {
      return std::min(k, layout.index_set(c, dim).size());
    };
    const Tensor pairs =
        make_pairs(x.to_local(), dim, index_tensor(layout.index_set(self, dim), mesh.device()));
    const Tensor own = top_pairs(pairs, candidates_of(self), order);
    Exchange exchange(mesh);
    std::vector<Tensor> all;
    for (const Extents& c : coordinates_along(*mesh.grid(), layout.split_by(dim), self)) {
      if (c == self) {
        all.push_back(own);
        continue;
      }
      Shape shape = own.shape();
      shape[1] = candidates_of(c);
      all.push_back(Tensor::empty(shape, DType::int64, mesh.device()));
      exchange.send(mesh.grid()->position_at(c), own);
      exchange.receive(mesh.grid()->position_at(c), all.back());
    }
    Hash what;
    what.add(layout.hash());
    what.add(static_cast<std::uint64_t>(x.dtype()));
    what.add_range(std::vector<std::int64_t>{dim, k, largest ? 1 : 0});
    auto error = announce_exchange("topk", "the candidates of all ranks", exchange.bytes_sent(),
                                   layout, to, Collective::all_gather);
    exchange.run(what.value(),
                 start_agreement(mesh, "topk", what,
                                 fmt::format("{} of {} {} along dimension {}", k,
                                             to_string(x.dtype()), to_string(layout), dim),
                                 std::move(error)));
    return as_result(top_pairs(concatenated("topk", all, 1), k, order), to.local_shape(self), dim,
                     x.dtype());
  });
}

}  // namespace

}  // namespace detail

template <AnyTensor T>
ValuesAndIndices<T> sort(const T& a, std::int64_t dim, bool descending) {
  const int d = normalize_dim("sort", dim, a.dim());
  detail::check_ordered("sort", a.dtype());
  return detail::sorted(a, d, descending);
}

template <AnyTensor T>
T argsort(const T& a, std::int64_t dim, bool descending) {
  const int d = normalize_dim("argsort", dim, a.dim());
  detail::check_ordered("argsort", a.dtype());
  return detail::sorted(a, d, descending).indices;
}

template <AnyTensor T>
ValuesAndIndices<T> topk(const T& a, std::int64_t k, std::int64_t dim, bool largest) {
  const int d = normalize_dim("topk", dim, a.dim());
  detail::check_ordered("topk", a.dtype());
  if (k < 0 || k > a.shape()[d]) {
    throw ValueError("topk", fmt::format("{} elements of dimension {}", k, d),
                     fmt::format("from 0 to its extent {}", a.shape()[d]));
  }
  return detail::top(a, d, k, largest);
}

#define DTENSOR_INSTANTIATE(T)                                     \
  template ValuesAndIndices<T> sort(const T&, std::int64_t, bool); \
  template T argsort(const T&, std::int64_t, bool);                \
  template ValuesAndIndices<T> topk(const T&, std::int64_t, std::int64_t, bool);
DTENSOR_INSTANTIATE(Tensor)
DTENSOR_INSTANTIATE(DTensor)
#undef DTENSOR_INSTANTIATE

}  // namespace dtensor
