// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `CustomOperator`: an operator of a program's own that goes the way of the library's.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "dtensor/experimental/register_sharding.hpp"
#include "dtensor/ops/dispatch.hpp"

namespace dtensor::experimental {

struct CustomOperatorOptions {
  /// Let the ranks agree after the kernel (one small all-reduce), so that what goes wrong in it on
  /// one rank is thrown on all. Without, a failure of the kernel stays where it is.
  bool check = true;
};

/// A kernel on local tensors with a name. On DTensors it decides on layouts, redistributes the
/// inputs that need it (events carry the operator's name) and calls the kernel with the local
/// parts, like every operator. What it takes without communication is what `register_sharding`
/// says about its name; without a registration it replicates all inputs. A cheap handle.
///
/// ```
/// CustomOperator scale_rows("my::scale_rows",
///     [](Locals x, const Attributes&) { return x[0] * x[1]; },
///     [](const std::vector<TensorDescription>& in, const Attributes&) { return in[0]; });
/// const auto registration = register_sharding("my::scale_rows", [](const OperatorCall&) {
///   return std::vector<AcceptableSharding>{{{Shard(0)}, {Shard(0), Shard(0)}}};
/// });
/// DTensor y = scale_rows({x, factors});  // (n, m) and (n, 1)
/// ```
class CustomOperator {
 public:
  using Kernel = std::function<std::vector<Tensor>(Locals, const Attributes&)>;
  using Describe = std::function<std::vector<TensorDescription>(
      const std::vector<TensorDescription>&, const Attributes&)>;

  /// \param kernel    computes this rank's part of the results from those of the inputs; returns a
  ///                  `Tensor` or a vector of them
  /// \param describe  shape and scalar type of the whole results from those of the whole inputs;
  ///                  returns a `TensorDescription` or a vector of them. Throws for inputs that do
  ///                  not fit; every rank finds the same.
  /// Throws `ValueError` for an empty name. Local.
  template <class K, class D>
  CustomOperator(const std::string& name, K kernel, D describe,
                 const CustomOperatorOptions& options = {})
      : CustomOperator(
            name, Kernel([kernel = std::move(kernel)](Locals inputs, const Attributes& attributes) {
              return as_vector<Tensor>(kernel(inputs, attributes));
            }),
            Describe([describe = std::move(describe)](const std::vector<TensorDescription>& inputs,
                                                      const Attributes& attributes) {
              return as_vector<TensorDescription>(describe(inputs, attributes));
            }),
            options) {}
  CustomOperator(const std::string& name, Kernel kernel, Describe describe,
                 const CustomOperatorOptions& options = {});

  const std::string& name() const noexcept;

  /// The only result. Throws `ValueError` without inputs or when there are several results,
  /// `LayoutError` for inputs on different meshes or a contradiction in the registered shardings,
  /// and what `describe` throws: all of that on every rank, before anything is communicated.
  /// `LayoutError` when the kernel returns another number of results, another shape or scalar type
  /// than that rank's part has. Not called on ranks outside of the mesh. Collective over the mesh.
  DTensor operator()(const std::vector<DTensor>& inputs, const Attributes& attributes = {}) const;
  /// All results.
  std::vector<DTensor> results(const std::vector<DTensor>& inputs,
                               const Attributes& attributes = {}) const;
  /// The kernel on whole tensors. Local.
  Tensor operator()(const std::vector<Tensor>& inputs, const Attributes& attributes = {}) const;
  std::vector<Tensor> results(const std::vector<Tensor>& inputs,
                              const Attributes& attributes = {}) const;

 private:
  template <class Element, class Result>
  static std::vector<Element> as_vector(Result result) {
    if constexpr (std::convertible_to<Result, Element>) {
      return {Element(std::move(result))};
    } else {
      return std::vector<Element>(std::move(result));
    }
  }
  struct Impl;
  std::shared_ptr<const Impl> impl_;
};

}  // namespace dtensor::experimental
