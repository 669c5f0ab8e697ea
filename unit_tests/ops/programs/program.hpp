// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random programs: run on one device and distributed, compared, and made small when they differ.
#pragma once

#include <set>

#include "dtensor/comm/device_mesh.hpp"
#include "ops/programs/operators.hpp"

namespace dtensor::testing {

/// A program as data: everything else follows from it on every rank alike.
struct Program {
  struct Step {
    int op;                  ///< in `program_operators()`
    std::uint64_t seed;      ///< of its arguments
    std::uint64_t variable;  ///< its first operand, modulo the number of variables
  };
  Shape shape;  ///< of the first variable
  DType dtype = DType::float64;
  std::uint64_t seed = 0;
  std::vector<Step> steps;
  std::set<std::size_t> replicated;  ///< new tensors that are not distributed, by number
};

/// A program of `steps` operators that can be applied. \param seed  says everything
Program random_program(std::uint64_t seed);

/// How a program runs on one device.
struct Trace {
  struct Result {
    Call call;
    std::vector<int> outputs;        ///< variables
    std::optional<ErrorKind> error;  ///< when it throws
  };
  std::vector<Variable> variables;
  std::vector<std::optional<Leaf>> leaves;  ///< by variable, where it is a new tensor
  std::vector<Result> results;
};
/// Steps that cannot be applied are left out.
Trace run_on_one_device(const Program& program);

/// What is wrong with the program on this mesh, empty for nothing. Collective over the mesh; the
/// answer differs between ranks when they do.
std::string run_distributed(const Program& program, const Trace& trace, const DeviceMesh& mesh);

/// As C++.
std::string to_string(const Program& program, const Trace& trace, const DeviceMesh& mesh);

/// The smallest program found that still fails. \param fails  alike on every rank
Program shrunk(const Program& program, const std::function<bool(const Program&)>& fails);

}  // namespace dtensor::testing
