// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/dispatch.hpp"

#include <fmt/format.h>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/lru_cache.hpp"
#include "dtensor/layout/hash.hpp"
#include "dtensor/redistribute/execution.hpp"

namespace dtensor {

namespace {

struct KeyView {
  const char* function;
  const Rule& rule;
  Inputs inputs;
  DType result;
};

struct Key {
  Rule rule;
  std::vector<Layout> layouts;
  std::vector<DType> dtypes;
  DType result;
  explicit Key(const KeyView& v) : rule(v.rule), result(v.result) {
    for (const DTensor& input : v.inputs) {
      layouts.push_back(input.layout());
      dtypes.push_back(input.dtype());
    }
  }
};

bool operator==(const Key& a, const Key& b) noexcept {
  return a.rule == b.rule && a.layouts == b.layouts && a.dtypes == b.dtypes && a.result == b.result;
}
bool operator==(const Key& a, const KeyView& b) noexcept {
  if (a.result != b.result || a.layouts.size() != b.inputs.size()) return false;
  for (std::size_t i = 0; i < a.layouts.size(); ++i) {
    if (!(a.layouts[i] == b.inputs[i].layout()) || a.dtypes[i] != b.inputs[i].dtype()) return false;
  }
  return a.rule == b.rule;
}

struct KeyHash {
  using is_transparent = void;
  std::size_t operator()(const Key& key) const noexcept {
    Hash h;
    h.add(key.rule.hash());
    for (const Layout& layout : key.layouts) h.add(layout.hash());
    for (DType dtype : key.dtypes) h.add(static_cast<std::uint64_t>(dtype));
    h.add(static_cast<std::uint64_t>(key.result));
    return h.value();
  }
  std::size_t operator()(const KeyView& key) const noexcept {
    Hash h;
    h.add(key.rule.hash());
    for (const DTensor& input : key.inputs) h.add(input.layout().hash());
    for (const DTensor& input : key.inputs) h.add(static_cast<std::uint64_t>(input.dtype()));
    h.add(static_cast<std::uint64_t>(key.result));
    return h.value();
  }
};

// A decision and what follows from it for this rank.
struct Decided : Decision {
  explicit Decided(Decision decision)
      : Decision(std::move(decision)),
        local_shape(local_shape_on(output, Runtime::rank())),
        strides(row_major_strides(output.shape())) {}
  Shape local_shape;
  Extents strides;
};
using DecidedPointer = std::shared_ptr<const Decided>;

LruCache<Key, DecidedPointer, KeyHash>& cache() {
  static auto* instance = new LruCache<Key, DecidedPointer, KeyHash>(1024);
  return *instance;
}

void check_meshes(const char* name, Inputs inputs) {
  for (const DTensor& input : inputs) detail::check_mesh(name, inputs.front(), input);
}

const char* reason_for(const Layout& from, const Layout& to) {
  for (int m = 0; m < from.grid()->dim(); ++m) {
    if (from.placement(m).is_partial() && !(from.placement(m) == to.placement(m))) {
      return "the operator needs the reduced value of a Partial input";
    }
  }
  return "the operator needs its inputs under placements that fit together";
}

std::vector<DTensor> redistributed(const char* name, Inputs inputs, const Decision& decision) {
  std::vector<DTensor> result(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Layout& from = inputs[i].layout();
    const Layout& to = decision.inputs[i];
    if (from == to) continue;
    // One tensor given twice moves once.
    std::size_t same = 0;
    while (same < i && !(&inputs[same].layout() == &from && decision.inputs[same] == to)) {
      ++same;
    }
    // All moves start before the first is waited for.
    result[i] = same < i ? result[same]
                         : detail::redistribute(inputs[i], inputs[i].device_mesh(), to, true, name,
                                                reason_for(from, to), static_cast<int>(i));
  }
  return result;
}

// Values never live in a decision; it comes from a bounded cache.
DecidedPointer cached_decision(const Operation& operation, Inputs inputs) {
  if (const auto source = detail::registered_decisions.load(std::memory_order_acquire)) {
    if (const auto registered = source(operation, inputs)) {
      return std::make_shared<const Decided>(*registered);
    }
  }
  return cache().get(KeyView{operation.name, operation.rule, inputs, operation.result},
                     [](const KeyView& view) {
                       const Key key(view);
                       return std::make_shared<const Decided>(
                           decide(view.function, key.rule, key.layouts, key.dtypes, key.result));
                     });
}

}  // namespace

void detail::check_mesh(const char* function, const DTensor& a, const DTensor& b) {
  if (a.device_mesh() == b.device_mesh()) return;
  throw LayoutError(
      function,
      fmt::format("inputs on {} and on {}", to_string(a.device_mesh()), to_string(b.device_mesh())),
      "inputs on one mesh; redistribute(mesh, placements) moves a tensor to another");
}

std::atomic<detail::DecisionSource> detail::registered_decisions{nullptr};

Prepared prepare(const char* name, Inputs inputs,
                 FunctionRef<std::shared_ptr<const Decision>()> make_decision) {
  check_meshes(name, inputs);
  Execution::progress_all();
  const std::shared_ptr<const Decision> decision = make_decision();
  return {redistributed(name, inputs, *decision), decision->output};
}

Prepared prepare(const Operation& operation, Inputs inputs) {
  return prepare(operation.name, inputs, [&] { return cached_decision(operation, inputs); });
}

namespace {

DTensor wrapped(const Operation& operation, const DeviceMesh& mesh, const Layout& output,
                const Shape& local_shape, const Extents& strides, FunctionRef<Tensor()> make) {
  Tensor local =
      mesh.is_member() ? make() : Tensor::empty(local_shape, operation.result, mesh.device());
  if (!(local.shape() == local_shape)) {
    throw LayoutError(operation.name,
                      fmt::format("a local result of shape {} for {}", to_string(local.shape()),
                                  to_string(output)),
                      fmt::format("shape {} on rank {}", to_string(local_shape), Runtime::rank()));
  }
  return DTensor(detail::FitsLayout{}, mesh, output, std::move(local),
                 operation.strides ? *operation.strides : strides);
}

// Calls the kernel with the inputs' local tensors; those of the usual few inputs need no memory.
Tensor call(LocalKernel kernel, Inputs inputs) {
  constexpr std::size_t few = 4;
  if (inputs.size() <= few) {
    Tensor locals[few];
    for (std::size_t i = 0; i < inputs.size(); ++i) locals[i] = inputs[i].to_local();
    return kernel(Locals(locals, inputs.size()));
  }
  std::vector<Tensor> locals;
  for (const DTensor& input : inputs) locals.push_back(input.to_local());
  return kernel(locals);
}

}  // namespace

DTensor wrap(const Operation& operation, const DeviceMesh& mesh, const Layout& output,
             FunctionRef<Tensor()> make) {
  return wrapped(operation, mesh, output, local_shape_on(output, Runtime::rank()),
                 row_major_strides(output.shape()), make);
}

namespace {
detail::DispatchWatcher watcher = nullptr;
}

void detail::watch_dispatch(DispatchWatcher w) noexcept { watcher = w; }

DTensor dispatch(const Operation& operation, Inputs inputs, LocalKernel kernel) {
  if (watcher) watcher(operation, inputs, kernel);
  check_meshes(operation.name, inputs);
  Execution::progress_all();
  const DecidedPointer decision = cached_decision(operation, inputs);
  const auto finish = [&](Inputs ready) {
    return wrapped(operation, inputs.front().device_mesh(), decision->output, decision->local_shape,
                   decision->strides, [&] { return call(kernel, ready); });
  };
  if (!decision->moves) return finish(inputs);
  return finish(redistributed(operation.name, inputs, *decision));
}

}  // namespace dtensor
