// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The rules of reductions.
#pragma once

#include <cstdint>
#include <string>

#include "dtensor/ops/dims.hpp"
#include "dtensor/ops/rule.hpp"

namespace dtensor {

/// The rule of reducing `dims` of a tensor of `rank` dimensions with `reduction`, handing on
/// contributions of the kinds in `passes` (bits as in `PartialPass::ops`). Made on first use, then
/// kept.
const Rule& reduction_rule(int rank, DimSet dims, bool keepdim, ReduceOp reduction,
                           std::uint32_t passes);

/// The rule of an equation, made on first use, then kept. \param linear_in  inputs that it is
/// linear in, one bit each
const Rule& cached_rule(const std::string& equation, std::uint32_t linear_in = 0);

/// Contributions to sums.
inline constexpr std::uint32_t sums =
    PartialPass::bit(ReduceOp::sum) | PartialPass::bit(ReduceOp::avg);

/// How many elements of the whole go into each result.
std::int64_t reduced_count(const Shape& shape, DimSet dims);

}  // namespace dtensor
