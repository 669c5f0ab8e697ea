// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The way every operator on DTensors goes: decide on layouts, redistribute the inputs that need
/// it, run the local kernel, wrap its result.
#pragma once

#include <atomic>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dtensor/core/function_ref.hpp"
#include "dtensor/distributed/dtensor.hpp"
#include "dtensor/ops/decision.hpp"

namespace dtensor {

/// An operator about to be applied.
struct Operation {
  const char* name;  ///< for errors and events; a literal
  const Rule& rule;
  DType result;  ///< scalar type of the result
  /// Global strides of the result; row-major when absent.
  std::optional<Extents> strides = std::nullopt;
};

/// The inputs of an operator, for the time of the call.
class Inputs : public std::span<const DTensor> {
 public:
  Inputs(std::initializer_list<DTensor> list) : span(list.begin(), list.size()) {}
  Inputs(const std::vector<DTensor>& list) : span(list) {}
};

/// The inputs' local tensors.
using Locals = std::span<const Tensor>;
/// From the inputs' local tensors to this rank's part of the result.
using LocalKernel = FunctionRef<Tensor(Locals)>;

/// Applies an operator. The decision comes from a bounded cache; its key is the rule, the layouts
/// and the scalar types. Scalar operands live in `kernel` and never in the cache. Throws
/// `LayoutError` naming both when inputs are on different meshes, `ValueError` when shapes do not
/// fit; every rank finds these alike, without communication. Collective over the mesh when an input
/// has to be redistributed and that communicates, local otherwise. `kernel` is not called on ranks
/// outside of the mesh.
DTensor dispatch(const Operation& operation, Inputs inputs, LocalKernel kernel);

/// Inputs in the layouts that an operator takes them in, and the layout of its result: what
/// `dispatch` does before it calls the kernel, for operators whose kernels need to know which part
/// of the whole they have, or that have several results.
struct Prepared {
  std::vector<DTensor> inputs;
  Layout output;
};
/// As `dispatch`.
Prepared prepare(const Operation& operation, Inputs inputs);
/// The same with a decision from somewhere else than the cache.
Prepared prepare(const char* name, Inputs inputs,
                 FunctionRef<std::shared_ptr<const Decision>()> make_decision);
/// Wraps this rank's part of a result; `make` is not called on ranks outside of the mesh.
DTensor wrap(const Operation& operation, const DeviceMesh& mesh, const Layout& output,
             FunctionRef<Tensor()> make);

namespace detail {
/// Throws `LayoutError` naming both meshes where they differ.
void check_mesh(const char* function, const DTensor& a, const DTensor& b);

/// What a program has registered to decide instead of an operator's rule: the decision, or null
/// where nothing is registered for that operator. Null while nothing is registered at all.
using DecisionSource = std::shared_ptr<const Decision> (*)(const Operation&, Inputs);
extern std::atomic<DecisionSource> registered_decisions;

/// Sees every call of `dispatch` before it is carried out. For tests of the rules.
using DispatchWatcher = void (*)(const Operation&, Inputs, LocalKernel);
/// Null for none. Not while another thread calls operators.
void watch_dispatch(DispatchWatcher watcher) noexcept;
}  // namespace detail

}  // namespace dtensor
