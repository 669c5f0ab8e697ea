// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "dtensor/distributed/dtensor.hpp"
#include "dtensor/redistribute/execution.hpp"

namespace dtensor::detail {

/// A program for this rank and the communicator it runs over.
struct Compiled {
  std::shared_ptr<const Program> program;
  std::shared_ptr<Communicator> communicator;  ///< null on a rank that takes no part
};

/// From a bounded cache. \param participants in the order of the communicator
Compiled compiled(const Layout& source, const Layout& destination, DType dtype,
                  std::shared_ptr<Communicator> communicator, const std::vector<int>& participants);

/// Memory for what a move makes on this rank; checks too that there is enough for its messages. To
/// be called before the ranks agree, so that all of them learn when one has not enough.
std::vector<Tensor> memory_for(const Program& program, DeviceKind device);

/// Starts the move of a local tensor. \param agreement null when nothing is communicated
std::shared_ptr<Execution> start(const Compiled& compiled, const Tensor& local,
                                 std::unique_ptr<Agreement> agreement, const char* operation,
                                 const char* reason, std::vector<Tensor> results = {});

}  // namespace dtensor::detail
