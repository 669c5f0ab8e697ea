// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The primitives that products of tensors are made of, on `Tensor` and `DTensor`. A letter stands
/// for a dimension; a dimension that is missing in the output is summed over.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dtensor/distributed/dtensor.hpp"
#include "dtensor/ops/dims.hpp"
#include "dtensor/ops/rule.hpp"

namespace dtensor::detail {

/// The product of two tensors, "bmk" and "bkn" to "bmn", where every letter is in at least two of
/// the three.
struct Contraction {
  Contraction(std::string a, std::string b, std::string output);

  std::string a, b, output;
  Rule rule;
  std::string batch, left, right, summed;  ///< the letters of a batch of matrix products
  bool swapped;                            ///< b is the left factor
};
Tensor contract(const char* name, const Contraction& contraction, const Tensor& a, const Tensor& b);
DTensor contract(const char* name, const Contraction& contraction, const DTensor& a,
                 const DTensor& b);

/// One tensor summed over dimensions and with the others in another order.
struct Reordering {
  Reordering(const std::string& input, const std::string& output);

  Rule rule;
  DimSet summed;
  bool sums;
  std::vector<std::int64_t> order;  ///< of the dimensions that are left
};
Tensor reorder(const char* name, const Reordering& reordering, const Tensor& a);
DTensor reorder(const char* name, const Reordering& reordering, const DTensor& a);

/// The elements whose indices in two dimensions of equal extent are equal; `dropped` is missing in
/// the result. Where both dimensions are sharded the ranks hold contributions to the diagonal;
/// nothing is communicated.
Tensor diagonal(const char* name, const Tensor& a, int kept, int dropped);
DTensor diagonal(const char* name, const DTensor& a, int kept, int dropped);

}  // namespace dtensor::detail
