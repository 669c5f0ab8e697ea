// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/distributed/dtensor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtensor/comm/agreement.hpp"
#include "dtensor/comm/communication_scope.hpp"
#include "dtensor/comm/runtime.hpp"
#include "dtensor/layout/hash.hpp"
#include "redistribute.hpp"

namespace dtensor {

struct DTensor::State {
  DeviceMesh mesh;
  Layout layout;
  DType dtype;
  Extents strides;
  Tensor local;  // undefined while a redistribution is under way
  std::shared_ptr<Execution> pending;
};

DTensor::DTensor(DeviceMesh mesh, Layout layout, Tensor local, std::optional<Extents> strides) {
  const Shape expected = local_shape_on(layout, Runtime::rank());
  if (local.shape() != expected) {
    throw LayoutError("DTensor",
                      fmt::format("a local tensor of shape {} for {}", to_string(local.shape()),
                                  to_string(layout)),
                      fmt::format("shape {} on rank {}", to_string(expected), Runtime::rank()));
  }
  Extents global_strides = strides ? *strides : row_major_strides(layout.shape());
  // What is written in place has to be apart, which other ranks could not know it is not.
  if (!strides && !is_injective(local.shape(), local.strides())) local = local.clone();
  const DType dtype = local.dtype();
  state_ = std::make_shared<State>(
      State{std::move(mesh), std::move(layout), dtype, global_strides, std::move(local), nullptr});
}

DTensor::DTensor(detail::FitsLayout, const DeviceMesh& mesh, const Layout& layout, Tensor local,
                 const Extents& strides) {
  const DType dtype = local.dtype();
  state_ = std::make_shared<State>(State{mesh, layout, dtype, strides, std::move(local), nullptr});
}

DTensor::State& DTensor::state() const {
  if (!state_) {
    throw StateError("DTensor", "an undefined DTensor", "a DTensor made by a factory function");
  }
  return *state_;
}

DType DTensor::dtype() const { return state().dtype; }
const Extents& DTensor::stride() const { return state().strides; }
const DeviceMesh& DTensor::device_mesh() const { return state().mesh; }
const Layout& DTensor::layout() const { return state().layout; }

std::vector<Chunk> DTensor::chunks() const {
  const State& s = state();
  return s.mesh.coordinate() ? s.layout.chunks(*s.mesh.coordinate()) : std::vector<Chunk>();
}

const Tensor& DTensor::to_local() const {
  State& s = state();
  if (s.pending) {
    // Ends here whatever comes: a failure is reported once and not waited for again.
    const auto pending = std::move(s.pending);
    s.pending = nullptr;
    s.local = pending->wait();
  }
  if (!s.local.defined()) {
    throw StateError("DTensor::to_local", "a DTensor whose redistribution failed",
                     "the error of that redistribution to be handled");
  }
  return s.local;
}

bool DTensor::is_ready() const {
  State& s = state();
  return !s.pending || s.pending->test();
}

Tensor DTensor::full_tensor() const {
  const Placements replicated(static_cast<std::size_t>(device_mesh().dim()), Replicate());
  return detail::redistribute(*this, device_mesh(), layout().with_placements(replicated), false,
                              "full_tensor", "")
      .to_local();
}

namespace {

// Users may not ask for a Partial that the tensor does not already have.
void check_partial_entry(const Layout& source, const Layout& destination) {
  for (int m = 0; m < destination.grid()->dim(); ++m) {
    const Placement& to = destination.placement(m);
    if (!to.is_partial()) continue;
    const bool same_mesh = source.grid()->shape() == destination.grid()->shape() &&
                           source.grid()->ranks() == destination.grid()->ranks();
    if (same_mesh && source.placement(m) == to) continue;
    throw LayoutError(
        "redistribute",
        fmt::format("{} to {} on mesh dimension {}",
                    same_mesh ? to_string(source.placement(m)) : to_string(source.placements()),
                    to_string(to), m),
        "Shard or Replicate; a Partial comes from from_local or from an operator");
  }
}

std::string describe_move(const Layout& source, const Layout& destination, DType dtype,
                          DType result_dtype) {
  const std::string converted =
      result_dtype == dtype ? std::string() : fmt::format(" as {}", to_string(result_dtype));
  return fmt::format("{} {} to {} on {}{}", to_string(dtype), to_string(source),
                     to_string(destination.placements()), to_string(*destination.grid()),
                     converted);
}

}  // namespace

// Starts one redistribution and makes the DTensor that its result goes to.
class RedistributeCall {
 public:
  static DTensor run(const DTensor& tensor, const DeviceMesh& mesh,
                     const std::function<Layout()>& make_destination, DType result_dtype,
                     bool async_op, const char* operation, const char* reason,
                     detail::OperatorInput input) {
    DTensor::State& source = tensor.state();
    const Tensor& local = tensor.to_local();
    const auto communicator = source.mesh.joint_communicator(mesh);
    std::optional<Layout> destination;
    std::vector<int> joint;
    detail::Compiled program;
    std::vector<Tensor> results;
    std::exception_ptr error;
    Execution::progress_all();
    try {
      destination.emplace(make_destination());
      if (*destination == source.layout && mesh == source.mesh) return tensor;
      if (communicator) {
        program = detail::compiled(source.layout, *destination, source.dtype, communicator,
                                   source.mesh.ranks() == mesh.ranks()
                                       ? mesh.ranks()
                                       : joint = source.mesh.joint_ranks(mesh));
        const bool implicit = *reason != '\0' && program.program->plan->communicates();
        if (implicit && detail::communication_limited()) {
          error = detail::charge(operation, reason, input.number,
                                 input.layout ? *input.layout : source.layout, *destination,
                                 program.program->bytes_sent);
        }
        results = detail::memory_for(*program.program, mesh.device());
      }
    } catch (...) {
      if (!communicator) throw;
      error = std::current_exception();
    }
    if (!communicator) {
      return DTensor(mesh, *destination,
                     Tensor::empty(local_shape_on(*destination, Runtime::rank()), source.dtype,
                                   mesh.device()));
    }
    std::unique_ptr<Agreement> agreement;
    if (error || program.program->plan->communicates()) {
      Hash fingerprint;
      if (!error) {
        fingerprint.add(source.layout.hash());
        fingerprint.add(destination->hash());
        fingerprint.add(static_cast<std::uint64_t>(source.dtype));
        fingerprint.add(static_cast<std::uint64_t>(result_dtype));
      }
      agreement = std::make_unique<Agreement>(
          *communicator, operation, fingerprint.value(),
          [from = source.layout, to = destination, dtype = source.dtype, result_dtype] {
            return describe_move(from, *to, dtype, result_dtype);
          },
          error);
      if (error) agreement->wait();
    }
    auto execution = detail::start(program, local.to(mesh.device()), std::move(agreement),
                                   operation, reason, std::move(results));
    Tensor result;
    if (!async_op || !program.program->plan->communicates()) {
      result = execution->wait();
      execution = nullptr;
    } else {
      execution->leave_under_way();
    }
    return DTensor(std::make_shared<DTensor::State>(
        DTensor::State{mesh, *destination, source.dtype, row_major_strides(destination->shape()),
                       std::move(result), std::move(execution)}));
  }
};

DTensor DTensor::redistribute(const Placements& placements,
                              const RedistributeOptions& options) const {
  return redistribute(device_mesh(), placements, options);
}

DTensor DTensor::redistribute(const DeviceMesh& mesh, const Placements& placements,
                              const RedistributeOptions& options) const {
  const auto destination = [&] {
    Layout layout(shape(), mesh.grid(), placements, options.shard_order);
    check_partial_entry(this->layout(), layout);
    return layout;
  };
  const DType to = options.forward_dtype.value_or(dtype());
  const auto move = [&](const DTensor& tensor) {
    return RedistributeCall::run(tensor, mesh, destination, to, options.async_op, "redistribute",
                                 "", {});
  };
  if (to == dtype()) return move(*this);
  const auto convert = [&](const DTensor& tensor) {
    return DTensor(tensor.device_mesh(), tensor.layout(), tensor.to_local().to(to));
  };
  // Widening commutes with moving, and the narrow values travel in fewer bytes.
  const bool widens = size_of(to) > size_of(dtype()) && !options.async_op &&
                      static_cast<int>(placements.size()) == mesh.dim() && !layout().has_partial();
  return widens ? convert(move(*this)) : move(convert(*this));
}

namespace detail {
DTensor redistribute(const DTensor& tensor, const DeviceMesh& mesh, const Layout& destination,
                     bool async_op, const char* operation, const char* reason,
                     OperatorInput input) {
  return RedistributeCall::run(
      tensor, mesh, [&] { return destination; }, tensor.dtype(), async_op, operation, reason,
      input);
}
}  // namespace detail

std::string to_string(const DTensor& tensor) {
  if (!tensor.defined()) return "DTensor(undefined)";
  return fmt::format("DTensor({}, {}, {}, {})", to_string(tensor.dtype()),
                     to_string(tensor.shape()), to_string(tensor.placements()),
                     to_string(tensor.device_mesh()));
}

}  // namespace dtensor
