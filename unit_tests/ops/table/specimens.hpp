// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every public operator once or a few times, with operands: what the table of operators in the
// documentation is made from.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "dtensor/distributed/dtensor.hpp"
#include "ops/programs/values.hpp"

namespace dtensor::testing {

struct Specimen {
  const char* section;
  std::string call;             ///< "sum(x, 0)"
  std::vector<Plain> operands;  ///< x, y, z and w
  std::function<std::vector<DTensor>(const std::vector<DTensor>&)> run;
};

std::vector<Specimen> specimens();

}  // namespace dtensor::testing
