// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/layout/placement.hpp"

#include <fmt/format.h>

#include "dtensor/core/error.hpp"

namespace dtensor {

const char* to_string(ReduceOp op) noexcept {
  constexpr const char* names[reduce_op_count] = {"sum",     "avg",  "min", "max",
                                                  "product", "band", "bor", "bxor"};
  return names[static_cast<int>(op)];
}

void check_reduce_op(const char* function, ReduceOp op, DType dtype) {
  const char* expected = nullptr;
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::product:
      break;
    case ReduceOp::avg:
      if (!is_floating(dtype) && !is_complex(dtype)) expected = "a floating or complex type";
      break;
    case ReduceOp::min:
    case ReduceOp::max:
      if (is_complex(dtype)) expected = "a type with an order, not a complex one";
      break;
    case ReduceOp::band:
    case ReduceOp::bor:
    case ReduceOp::bxor:
      if (is_floating(dtype) || is_complex(dtype)) expected = "an integer type or bool";
      break;
  }
  if (expected) {
    throw TypeError(function, fmt::format("Partial({}) of {}", to_string(op), to_string(dtype)),
                    expected);
  }
}

const std::vector<std::int64_t>& Placement::extents() const noexcept {
  static const std::vector<std::int64_t> none;
  return extents_ ? *extents_ : none;
}

Placement Placement::with_dim(int dim) const {
  Placement p = *this;
  p.dim_ = dim;
  return p;
}

bool operator==(const Placement& a, const Placement& b) noexcept {
  return a.kind_ == b.kind_ && a.op_ == b.op_ && a.dim_ == b.dim_ &&
         a.split_factor_ == b.split_factor_ &&
         (a.extents_ == b.extents_ ||
          (a.has_extents() == b.has_extents() && a.extents() == b.extents()));
}

Shard::Shard(int dim, std::vector<std::int64_t> extents)
    : Placement(Kind::shard, dim, 1, ReduceOp::sum,
                std::make_shared<const std::vector<std::int64_t>>(std::move(extents))) {
  std::int64_t sum = 0;
  for (std::int64_t extent : this->extents()) {
    if (extent < 0 || __builtin_add_overflow(sum, extent, &sum)) {
      throw ValueError("Shard", to_string(*this),
                       "extents of zero or more that add up to less than 2^63");
    }
  }
}

StridedShard::StridedShard(int dim, std::int64_t split_factor)
    : Placement(Kind::strided_shard, dim, split_factor, ReduceOp::sum, nullptr) {
  if (split_factor < 1) {
    throw ValueError("StridedShard", fmt::format("split factor {}", split_factor),
                     "a split factor of 1 or more");
  }
}

std::string to_string(const Placement& p) {
  switch (p.kind()) {
    case Placement::Kind::shard:
      return p.has_extents() ? fmt::format("S({},[{}])", p.dim(), fmt::join(p.extents(), ", "))
                             : fmt::format("S({})", p.dim());
    case Placement::Kind::strided_shard:
      return fmt::format("SS({},{})", p.dim(), p.split_factor());
    case Placement::Kind::replicate:
      return "R";
    case Placement::Kind::partial:
      break;
  }
  return p.reduce_op() == ReduceOp::sum ? "P" : fmt::format("P({})", to_string(p.reduce_op()));
}

std::string to_string(const Placements& placements) {
  std::string text = "[";
  for (const Placement& p : placements) {
    if (text.size() > 1) text += ", ";
    text += to_string(p);
  }
  return text + "]";
}

}  // namespace dtensor
