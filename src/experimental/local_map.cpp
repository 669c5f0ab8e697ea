// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/experimental/local_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <sstream>

#include "dtensor/comm/agreement.hpp"
#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/layout/hash.hpp"
#include "dtensor/redistribute/program.hpp"
#include "event_names.hpp"

namespace dtensor::experimental::detail {

namespace {

constexpr char separator = '\x1f';

std::string text_of(const Tensor& t) {
  return t.defined() ? fmt::format("{} {}", to_string(t.dtype()), to_string(t.shape()))
                     : std::string("an undefined tensor");
}

// What a layout's constructor finds wrong in an argument or a result, in the name of the function
// that is mapped.
template <class F>
Layout on_behalf_of(const std::string& name, const char* what, std::size_t index, const F& f) {
  try {
    return f();
  } catch (const Error& e) {
    if (e.function() == name) throw;
    throw_error(e.kind(), name, fmt::format("{} {}: {}", what, index, e.given()), e.expected(),
                e.rank());
  }
}

// Those of some mesh dimensions that are among others, in their order.
std::vector<int> those_among(const std::vector<int>& mesh_dims, const std::vector<int>& others) {
  std::vector<int> result;
  for (int m : mesh_dims) {
    if (std::find(others.begin(), others.end(), m) != others.end()) result.push_back(m);
  }
  return result;
}

// Whether a tensor's memory ends within that of another one.
bool lies_in(const Tensor& inner, const Storage& storage) {
  const auto address = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p); };
  const auto begin = address(inner.data()), end = begin + inner.storage()->bytes();
  const auto from = address(storage.data()), to = from + storage.bytes();
  return from <= begin && end <= to;
}

// The global extent of an input dimension of which this rank has as much, and which the same mesh
// dimensions split in the same way as `layout` splits dimension `d`.
std::optional<std::int64_t> extent_from(const DTensor& input, const Layout& layout, int d,
                                        std::int64_t local_extent) {
  const Layout& from = input.layout();
  const Tensor& local = input.to_local();
  // The same dimension first: another one may have the same extent by chance.
  std::vector<int> dims(static_cast<std::size_t>(from.shape().size()));
  std::iota(dims.begin(), dims.end(), 0);
  std::stable_sort(dims.begin(), dims.end(), [&](int a, int b) { return (a == d) > (b == d); });
  for (int e : dims) {
    if (local.shape()[e] != local_extent || from.split_by(e) != layout.split_by(d)) continue;
    const auto& split = layout.split_by(d);
    const bool alike = std::all_of(split.begin(), split.end(), [&](int m) {
      return from.placement(m).with_dim(0) == layout.placement(m).with_dim(0);
    });
    if (alike) return from.shape()[e];
  }
  return std::nullopt;
}

}  // namespace

Tensor row_major(const Tensor& tensor) { return tensor.contiguous(); }

Tensor column_major(const Tensor& tensor) {
  std::vector<std::int64_t> reversed(static_cast<std::size_t>(tensor.dim()));
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return tensor.permute(reversed).contiguous().permute(reversed);
}

Tensor LocalMapCall::on_lent_storage(const Tensor& view) const {
  if (view.numel() == 0) return Tensor::empty(view.shape(), view.dtype(), view.device());
  for (const Tensor& t : lent_) {
    if (!lies_in(view, *t.storage())) continue;
    const auto bytes = static_cast<const unsigned char*>(view.data()) -
                       static_cast<const unsigned char*>(t.storage()->data());
    if (view.dtype() == t.dtype() && bytes % size_of(t.dtype()) == 0) {
      return t.as_strided(view.shape(), view.strides(), bytes / size_of(t.dtype()));
    }
    // Its elements taken for others, the parts of complex numbers.
    return Tensor::from_blob(view.data(), view.shape(), view.strides(), view.dtype(), t.device(),
                             t.storage());
  }
  throw ValueError(options_.name,
                   fmt::format("as result {} a View that does not own its memory, which is none of "
                               "the inputs'",
                               results_.size()),
                   "a View that owns its memory or lies in that of an input, or a Tensor");
}

void LocalMapCall::check_result_count(std::size_t results, std::size_t placements) const {
  if (results == placements) return;
  throw LayoutError(options_.name, fmt::format("{} tensors returned by the function", results),
                    fmt::format("{}, as out_placements has", placements));
}

void LocalMapCall::prepare(const std::vector<bool>& is_dtensor, std::vector<MappedInput>& inputs) {
  const std::string& name = options_.name;
  if (!in_placements_.empty() && in_placements_.size() != is_dtensor.size()) {
    throw ValueError(
        name,
        fmt::format("{} in_placements for {} arguments", in_placements_.size(), is_dtensor.size()),
        "one per argument, or none at all");
  }
  for (std::size_t i = 0; i < in_placements_.size(); ++i) {
    if (is_dtensor[i] || !in_placements_[i]) continue;
    throw ValueError(name,
                     fmt::format("in_placements {} for argument {}, which is no DTensor",
                                 to_string(*in_placements_[i]), i),
                     "std::nullopt there");
  }
  mesh_ = options_.device_mesh ? *options_.device_mesh
          : inputs.empty()     ? DeviceMesh::current()
                               : inputs.front().tensor.device_mesh();
  for (const MappedInput& input : inputs) {
    if (input.tensor.device_mesh() == *mesh_) continue;
    throw LayoutError(
        name,
        fmt::format("argument {} on {}", input.argument, to_string(input.tensor.device_mesh())),
        fmt::format("a DTensor on {}, as {}", to_string(*mesh_),
                    options_.device_mesh ? std::string("device_mesh says")
                                         : fmt::format("argument {} is", inputs.front().argument)));
  }
  if (in_placements_.empty()) return;
  // Everything is checked before the first input moves.
  std::vector<std::optional<Layout>> wanted(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const auto& [argument, tensor] = inputs[i];
    if (!in_placements_[argument]) continue;
    // As a layout: negative dimensions are counted, and the number of placements is checked.
    const Layout layout = on_behalf_of(name, "in_placements of argument", argument, [&] {
      return Layout(tensor.shape(), mesh_->grid(), *in_placements_[argument]);
    });
    if (layout == tensor.layout()) continue;
    if (!options_.redistribute_inputs) {
      const bool ordered = !tensor.layout().shard_order().empty();
      throw LayoutError(name, fmt::format("argument {}, {}", argument, to_string(tensor.layout())),
                        fmt::format("{}{}; redistribute it before, or set redistribute_inputs",
                                    to_string(layout.placements()),
                                    ordered ? " in the default shard order" : ""));
    }
    for (int m = 0; m < mesh_->dim(); ++m) {
      if (!layout.placement(m).is_partial() ||
          layout.placement(m) == tensor.layout().placement(m)) {
        continue;
      }
      throw LayoutError(name,
                        fmt::format("argument {} as {}, to be redistributed to {}", argument,
                                    to_string(tensor.placements()), to_string(layout.placements())),
                        "Shard or Replicate; nothing is redistributed to Partial");
    }
    wanted[i] = layout;
  }
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!wanted[i]) continue;
    auto& [argument, tensor] = inputs[i];
    // All moves start before the first is waited for.
    tensor = dtensor::detail::redistribute(tensor, *mesh_, *wanted[i], true, event_name(name),
                                           "an input has other placements than in_placements",
                                           static_cast<int>(argument));
  }
}

ShardOrder LocalMapCall::order_of(const Result& result, std::size_t index,
                                  const std::vector<MappedInput>& inputs) const {
  Placements placements = result.placements;
  for (Placement& p : placements) {
    if (p.has_extents()) p = Shard(p.dim());  // they fit in the right order only
  }
  const Layout unordered(result.local.shape(), mesh_->grid(), placements);
  ShardOrder orders;
  for (int d = 0; d < unordered.shape().size(); ++d) {
    const std::vector<int>& split = unordered.split_by(d);
    if (split.size() < 2) continue;
    // Calls `f(input, mesh dimensions, those that split dimension d too)` for each dimension of an
    // input that two of them split.
    const auto for_each_split = [&](const auto& f) {
      for (const MappedInput& input : inputs) {
        const Layout& from = input.tensor.layout();
        for (int e = 0; e < from.shape().size(); ++e) {
          const std::vector<int> common = those_among(from.split_by(e), split);
          if (common.size() > 1) f(input, from.split_by(e), common);
        }
      }
    };
    std::vector<int> order;
    for_each_split([&](const MappedInput&, const std::vector<int>& all, const auto& common) {
      const bool just_these = common.size() == split.size() && all.size() == split.size();
      if (order.empty() && just_these) order = common;
    });
    if (order.empty()) order = split;
    for_each_split([&](const MappedInput& input, const auto&, const std::vector<int>& common) {
      if (those_among(order, common) == common) return;
      throw LayoutError(
          options_.name,
          fmt::format("argument {}, {}, for result {} as {} with dimension {} split by [{}], as "
                      "another argument has it or by default",
                      input.argument, to_string(input.tensor.layout()), index,
                      to_string(result.placements), d, fmt::join(order, ", ")),
          "one shard order; in_placements with redistribute_inputs brings an input to the default");
    });
    if (order != split) orders.emplace_back(d, order);
  }
  return orders;
}

Layout LocalMapCall::guess_layout(const Result& result, std::size_t index,
                                  const std::vector<MappedInput>& inputs) const {
  for (const Placement& p : result.placements) {
    if (p.is_partial()) check_reduce_op(options_.name.c_str(), p.reduce_op(), result.local.dtype());
  }
  const ShardOrder order = order_of(result, index, inputs);
  const auto layout_of = [&](const Shape& shape) {
    return Layout(shape, mesh_->grid(), result.placements, order);
  };
  if (index < options_.out_shapes.size() && options_.out_shapes[index]) {
    return layout_of(*options_.out_shapes[index]);
  }
  const Layout even = layout_of(
      Layout::infer_global_shape(result.local.shape(), *mesh_->grid(), result.placements, order));
  Shape shape = even.shape();
  for (int d = 0; d < shape.size(); ++d) {
    const auto& split = even.split_by(d);
    const bool given = std::any_of(split.begin(), split.end(),
                                   [&](int m) { return even.placement(m).has_extents(); });
    if (split.empty() || given) continue;
    for (const MappedInput& input : inputs) {
      if (const auto extent = extent_from(input.tensor, even, d, result.local.shape()[d])) {
        shape[d] = *extent;
        break;
      }
    }
  }
  return layout_of(shape);
}

std::string LocalMapCall::describe_results() const {
  std::string text;
  for (const Result& r : results_) {
    text += fmt::format("{}a local {} of a global {} as {}", text.empty() ? "" : ", ",
                        text_of(r.local), to_string(r.layout->shape()), to_string(r.placements));
  }
  return text.empty() ? "no result" : text;
}

// Local: this rank's own view of the results.
void LocalMapCall::check_results(const std::vector<MappedInput>& inputs) {
  if (options_.out_shapes.size() > results_.size()) {
    throw ValueError(
        options_.name,
        fmt::format("{} out_shapes for {} results", options_.out_shapes.size(), results_.size()),
        "at most one per result that becomes a DTensor");
  }
  for (std::size_t i = 0; i < results_.size(); ++i) {
    Result& r = results_[i];
    if (!r.local.defined()) {
      throw LayoutError(options_.name, fmt::format("an undefined tensor as result {}", i),
                        "a local tensor");
    }
    r.local = r.local.to(mesh_->device());
    r.layout = on_behalf_of(options_.name, "result", i, [&] { return guess_layout(r, i, inputs); });
  }
}

// The ranks do not agree, or one has another shape than its own guess gives it: what all of them
// have decides. Every rank computes the same from the same text.
void LocalMapCall::resolve_with_all_ranks() {
  // Before the separator what every rank must have asked for, after it what it has.
  std::string own;
  for (std::size_t i = 0; i < results_.size(); ++i) {
    own += fmt::format("result {} as {}", i, to_string(results_[i].placements));
    const bool given = i < options_.out_shapes.size() && options_.out_shapes[i];
    if (given) own += fmt::format(" of {}", to_string(*options_.out_shapes[i]));
    own += ", ";
  }
  own += separator;
  for (const Result& r : results_) {
    own += fmt::format("{} {} {} ", static_cast<int>(r.local.dtype()), r.local.dim(),
                       fmt::join(r.local.shape().begin(), r.local.shape().end(), " "));
  }
  const auto texts = mesh_->communicator()->all_gather_text(own);
  for (std::size_t p = 0; p < texts.size(); ++p) {
    const auto asked = [&](std::size_t k) { return texts[k].substr(0, texts[k].find(separator)); };
    if (asked(p) == asked(0)) continue;
    throw MismatchError(options_.name,
                        fmt::format("{}on rank {}; {}on rank {}", asked(0), mesh_->ranks()[0],
                                    asked(p), mesh_->ranks()[p]),
                        "the same on every rank");
  }
  struct Part {
    int dtype = 0;
    Shape shape;
  };
  std::vector<std::vector<Part>> parts;  // per rank and result
  for (const std::string& text : texts) {
    parts.emplace_back();
    std::istringstream stream(text.substr(text.find(separator) + 1));
    int rank = 0;
    for (Part part; stream >> part.dtype >> rank; part = {}) {
      for (std::int64_t extent = 0; rank > 0 && stream >> extent; --rank) {
        part.shape.push_back(extent);
      }
      parts.back().push_back(part);
    }
  }
  const ProcessGrid& grid = *mesh_->grid();
  for (std::size_t i = 0; i < results_.size(); ++i) {
    Result& r = results_[i];
    const auto fail = [&](std::size_t position, const std::string& expected) {
      const Part& part = parts[position][i];
      const int rank = grid.rank_at(static_cast<std::int64_t>(position));
      throw LayoutError(options_.name,
                        fmt::format("a local {} {} as result {}, placements {}, on rank {}",
                                    to_string(static_cast<DType>(part.dtype)),
                                    to_string(part.shape), i, to_string(r.placements), rank),
                        expected, rank);
    };
    const Part& first = parts.front()[i];
    for (std::size_t p = 1; p < parts.size(); ++p) {
      if (parts[p][i].dtype != first.dtype || parts[p][i].shape.size() != first.shape.size()) {
        fail(p, fmt::format("scalar type and number of dimensions as on rank {}: {} {}",
                            grid.rank_at(0), to_string(static_cast<DType>(first.dtype)),
                            to_string(first.shape)));
      }
    }
    const bool given = i < options_.out_shapes.size() && options_.out_shapes[i];
    Shape shape = given ? *options_.out_shapes[i] : first.shape;
    if (!given) {
      for (int d = 0; d < shape.size(); ++d) {
        const auto& split = r.layout->split_by(d);
        if (split.empty()) continue;
        shape[d] = 0;
        for (std::size_t p = 0; p < parts.size(); ++p) {
          const Extents at = grid.coordinate_at(static_cast<std::int64_t>(p));
          bool counts = true;  // the first of those that hold the same
          for (int m = 0; m < grid.dim(); ++m) {
            counts &= at[m] == 0 || std::find(split.begin(), split.end(), m) != split.end();
          }
          if (counts) shape[d] += parts[p][i].shape[d];
        }
      }
    }
    std::optional<Layout> layout;
    try {
      layout.emplace(shape, mesh_->grid(), r.placements, r.layout->shard_order());
    } catch (const LayoutError& e) {
      fail(0, e.expected());
    }
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const Shape expected = layout->local_shape(grid.coordinate_at(static_cast<std::int64_t>(p)));
      if (parts[p][i].shape == expected) continue;
      fail(p, fmt::format("{}, that rank's part of {} {}", to_string(expected),
                          given ? "the given out_shape" : "what all ranks have together,",
                          to_string(shape)));
    }
    r.layout = layout;
  }
}

void LocalMapCall::run(FunctionRef<void()> function, const std::vector<MappedInput>& inputs) {
  Hash fingerprint;
  const auto call = [&] {
    function();
    check_results(inputs);
    fingerprint.add(results_.size());
    for (const Result& r : results_) {
      fingerprint.add(r.layout->hash());
      fingerprint.add(static_cast<std::uint64_t>(r.local.dtype()));
    }
  };
  if (!options_.check) {
    call();
    return;
  }
  std::exception_ptr error;
  try {
    call();
  } catch (...) {
    error = std::current_exception();
  }
  // A rank whose own part does not fit is in disagreement with everyone.
  bool fits = true;
  for (std::size_t i = 0; !error && i < results_.size(); ++i) {
    const Result& r = results_[i];
    fits &= r.local.shape() == r.layout->local_shape(*mesh_->coordinate());
  }
  if (!fits) fingerprint.add(static_cast<std::uint64_t>(Runtime::rank()) + 1);
  Agreement agreement(
      *mesh_->communicator(), options_.name, fingerprint.value(),
      [this] { return describe_results(); }, error);
  try {
    agreement.wait();
    if (fits) return;  // else this is the only rank
  } catch (const MismatchError& e) {
    if (e.rank() != -1 || error) throw;
  }
  resolve_with_all_ranks();
}

DTensor LocalMapCall::take_result() {
  if (!mesh_->is_member()) return DTensor();
  const Result& r = results_[taken_++];
  return DTensor(*mesh_, *r.layout, r.local);
}

}  // namespace dtensor::experimental::detail
