// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `Dims`: the dimensions that an operator works over, as an argument.
#pragma once

#include <bitset>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "dtensor/core/extents.hpp"

namespace dtensor {

/// One flag per dimension of a tensor.
using DimSet = std::bitset<max_rank>;

/// Some dimensions of a tensor, or all. Implicit from one dimension, from a list and from
/// `all_dims`. Negative ones count from the end.
class Dims {
 public:
  struct All {};

  Dims(All) : all_(true) {}
  template <std::integral I>
  Dims(I dim) : list_{static_cast<std::int64_t>(dim)} {}
  Dims(bool) = delete;
  Dims(std::initializer_list<std::int64_t> dims) : list_(dims) {}
  Dims(const std::vector<std::int64_t>& dims) : list_(dims) {}

  /// The dimensions of a tensor of `rank` dimensions. Throws `IndexError` naming `function` for one
  /// out of range, `ValueError` for one given twice.
  DimSet of(const char* function, int rank) const;

 private:
  bool all_ = false;
  Extents list_;
};

/// All dimensions of a tensor.
inline constexpr Dims::All all_dims{};

}  // namespace dtensor
