// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/experimental/custom_operator.hpp"

#include <fmt/format.h>

#include "dtensor/comm/agreement.hpp"
#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/redistribute/program.hpp"
#include "event_names.hpp"
#include "sharding_registry.hpp"

namespace dtensor::experimental {

struct CustomOperator::Impl {
  const char* name;
  std::string name_text;
  Kernel kernel;
  Describe describe;
  CustomOperatorOptions options;
};

namespace {

template <class T>
std::vector<TensorDescription> describe_all(const std::vector<T>& tensors) {
  std::vector<TensorDescription> list;
  for (const T& t : tensors) list.push_back({t.shape(), t.dtype()});
  return list;
}

std::string text_of(const Shape& shape, DType dtype) {
  return fmt::format("{} {}", to_string(dtype), to_string(shape));
}

// What the kernel returned must be `expected`, this rank's parts of the results.
void check_results(const char* name, const std::vector<Tensor>& results,
                   const std::vector<TensorDescription>& expected) {
  if (results.size() != expected.size()) {
    throw LayoutError(name, fmt::format("{} results of its kernel", results.size()),
                      fmt::format("{}, as it describes", expected.size()));
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& [shape, dtype] = expected[i];
    if (!results[i].defined()) {
      throw LayoutError(name, fmt::format("an undefined tensor as result {} of its kernel", i),
                        text_of(shape, dtype));
    }
    if (results[i].shape() == shape && results[i].dtype() == dtype) continue;
    throw LayoutError(name,
                      fmt::format("{} as result {} of its kernel",
                                  text_of(results[i].shape(), results[i].dtype()), i),
                      text_of(shape, dtype));
  }
}

template <class T>
const T& the_only(const char* name, const std::vector<T>& results) {
  if (results.size() != 1) {
    throw ValueError(name, fmt::format("an operator of {} results", results.size()),
                     "one with a single result; `results` gives all of several");
  }
  return results.front();
}

}  // namespace

CustomOperator::CustomOperator(const std::string& name, Kernel kernel, Describe describe,
                               const CustomOperatorOptions& options) {
  if (name.empty()) throw ValueError("CustomOperator", "an empty name", "a name");
  impl_ = std::make_shared<const Impl>(
      Impl{event_name(name), name, std::move(kernel), std::move(describe), options});
}

const std::string& CustomOperator::name() const noexcept { return impl_->name_text; }

std::vector<DTensor> CustomOperator::results(const std::vector<DTensor>& inputs,
                                             const Attributes& attributes) const {
  const char* const name = impl_->name;
  if (inputs.empty()) throw ValueError(name, "no inputs", "at least one DTensor");
  OperatorCall call{describe_all(inputs), {}, placement_attributes(attributes), ""};
  call.outputs = impl_->describe(call.inputs, attributes);
  if (call.outputs.empty()) throw ValueError(name, "no results", "at least one");
  Decided decision;
  const Prepared ready = prepare(name, inputs, [&] {
    std::vector<Layout> layouts;
    for (const DTensor& input : inputs) layouts.push_back(input.layout());
    decision = registered_decision(name, call, layouts);
    if (!decision) decision = decide_among(name, call, {}, layouts);
    return decision;
  });
  std::vector<Layout> layouts{decision->output};
  layouts.insert(layouts.end(), decision->further_outputs.begin(), decision->further_outputs.end());
  std::vector<TensorDescription> parts;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    parts.push_back({local_shape_on(layouts[i], Runtime::rank()), call.outputs[i].dtype});
  }

  const DeviceMesh& mesh = inputs.front().device_mesh();
  std::vector<Tensor> results;
  const auto run = [&] {
    std::vector<Tensor> locals;
    for (const DTensor& input : ready.inputs) locals.push_back(input.to_local());
    results = impl_->kernel(locals, attributes);
    check_results(name, results, parts);
    for (Tensor& result : results) result = result.to(mesh.device());
  };
  if (!mesh.is_member()) {
    for (const auto& [shape, dtype] : parts) {
      results.push_back(Tensor::empty(shape, dtype, mesh.device()));
    }
  } else if (impl_->options.check) {
    all_or_none(*mesh.communicator(), name, run);
  } else {
    run();
  }
  std::vector<DTensor> wrapped;
  for (std::size_t i = 0; i < results.size(); ++i) {
    wrapped.emplace_back(mesh, layouts[i], results[i]);
  }
  return wrapped;
}

DTensor CustomOperator::operator()(const std::vector<DTensor>& inputs,
                                   const Attributes& attributes) const {
  return the_only(impl_->name, results(inputs, attributes));
}

std::vector<Tensor> CustomOperator::results(const std::vector<Tensor>& inputs,
                                            const Attributes& attributes) const {
  if (inputs.empty()) throw ValueError(impl_->name, "no inputs", "at least one Tensor");
  const auto described = impl_->describe(describe_all(inputs), attributes);
  std::vector<Tensor> results = impl_->kernel(inputs, attributes);
  check_results(impl_->name, results, described);
  return results;
}

Tensor CustomOperator::operator()(const std::vector<Tensor>& inputs,
                                  const Attributes& attributes) const {
  return the_only(impl_->name, results(inputs, attributes));
}

}  // namespace dtensor::experimental
