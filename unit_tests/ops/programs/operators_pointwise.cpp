// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fmt/format.h>

#include <map>

#include "dtensor/ops/promotion.hpp"
#include "ops/programs/operators.hpp"

namespace dtensor::testing {

namespace {

// What the operators need; those not listed are smooth.
Need need_of(PointwiseOp op, DType dtype) {
  using enum PointwiseOp;
  switch (op) {
    case exp:
    case expm1:
    case sinh:
    case cosh:
    case square:
      return Need::small;
    case sqrt:
    case rsqrt:
    case log:
    case log2:
    case reciprocal:
    case angle:
    case hypot:
    case atan2:
      return Need::away_from_zero;
    case pow:
      return Need::exact_nonzero;
    case abs:
      return is_complex(dtype) ? Need::away_from_zero : Need::moderate;
    case neg:
    case sin:
    case cos:
    case atan:
    case tanh:
    case sigmoid:
    case erf:
    case relu:
    case gelu:
    case gelu_tanh:
    case silu:
    case softplus:
    case conj:
    case real:
    case imag:
    case add:
    case sub:
    case mul:
    case maximum:
    case minimum:
    case clamp:
    case lerp:
    case addcmul:
      return Need::moderate;
    default:
      return Need::exact;
  }
}

Precision precision_of(PointwiseOp op) {
  using enum PointwiseOp;
  switch (op) {
    case abs:
    case neg:
    case sign:
    case relu:
    case floor:
    case ceil:
    case round:
    case trunc:
    case isnan:
    case isinf:
    case isfinite:
    case logical_not:
    case bitwise_not:
    case conj:
    case real:
    case imag:
    case maximum:
    case minimum:
    case eq:
    case ne:
    case lt:
    case le:
    case gt:
    case ge:
    case logical_and:
    case logical_or:
    case logical_xor:
    case bitwise_and:
    case bitwise_or:
    case bitwise_xor:
    case bitwise_left_shift:
    case bitwise_right_shift:
    case where:
    case clamp:
      return Precision::moves;
    case square:
    case add:
    case sub:
    case mul:
    case addcmul:
    case lerp:
      return Precision::exact;
    case floor_div:
    case remainder:
    case fmod:
    case pow:
      return Precision::exact;
    default:
      return Precision::rounds;
  }
}

// A shape that is broadcast together with `shape`.
Shape broadcast_partner(Maker& m, const Shape& shape) {
  if (m.chance(50)) return shape;
  Shape result;
  const int from = m.chance(50) ? 0 : m.below(shape.size() + 1);
  if (from == 0 && shape.size() < 4 && m.chance(20)) result.push_back(1 + m.below(3));
  for (int d = from; d < shape.size(); ++d) {
    const std::int64_t extent = shape[d];
    result.push_back(m.chance(25) ? 1 : extent == 1 && m.chance(30) ? 1 + m.below(4) : extent);
  }
  if (m.chance(3)) {
    for (std::int64_t& extent : result) extent += 1;  // that does not fit
  }
  return result;
}

unsigned kind_of(DType dtype) { return kinds::of(dtype); }

struct Chosen {
  PointwiseOp op;
  std::vector<int> tensors;  // for each operand the argument, or -1
  std::vector<Scalar> numbers;
  std::string text;

  template <class T>
  detail::Operands<T> operands(const std::vector<T>& x) const {
    detail::Operands<T> result;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i] >= 0) {
        result.push_back(x[static_cast<std::size_t>(tensors[i])]);
      } else {
        result.push_back(numbers[i]);
      }
    }
    return result;
  }
};

// An operator of the table and its operands. The first one of the program is the first operand, of
// `where` the first choice.
std::optional<Chosen> choose(Maker& m, bool in_place, int least_arity) {
  std::vector<const PointwiseRow*> rows;
  for (const PointwiseRow& row : pointwise_table()) {
    if (row.arity >= least_arity) rows.push_back(&row);
  }
  const PointwiseRow& row = *rows[static_cast<std::size_t>(m.below(static_cast<int>(rows.size())))];
  if ((row.kinds & kind_of(m.dtype())) == 0 && !m.chance(5)) return std::nullopt;
  if (in_place && row.result != PointwiseResult::same && is_integral(m.dtype())) {
    return std::nullopt;
  }
  Chosen c{row.op, {0}, {0}, std::string(in_place ? row.in_place_name : row.name) + "(%0"};
  int operand = 1;
  if (row.op == PointwiseOp::where) {
    if (in_place) return std::nullopt;
    c = {row.op, {1, 0}, {0, 0}, "where(%1, %0"};
    m.add(broadcast_partner(m, m.shape()), m.chance(80) ? DType::boolean : m.any_dtype());
    operand = 2;
  }
  for (int i = operand; i < row.arity; ++i) {
    const bool is_value =
        (row.op == PointwiseOp::addcmul || row.op == PointwiseOp::addcdiv) && i == 3;
    if (is_value || m.chance(25)) {
      const double value = m.number();
      const bool whole = value == static_cast<std::int64_t>(value);
      Scalar number = value;
      if (whole && (m.chance(70) || !is_floating(m.dtype()))) {
        number = static_cast<std::int64_t>(value);
      }
      c.tensors.push_back(-1);
      c.numbers.push_back(number);
      c.text += ", " + to_string(number);
      continue;
    }
    const DType dtype = m.chance(75) ? m.dtype() : m.any_dtype();
    Shape shape = in_place ? m.shape() : broadcast_partner(m, m.shape());
    if (in_place && m.chance(40) && m.dim() > 0) shape[m.below(m.dim())] = 1;
    c.tensors.push_back(static_cast<int>(m.arguments.size()));
    c.numbers.push_back(0);
    c.text += fmt::format(", %{}", m.arguments.size());
    m.add(shape, dtype);
  }
  c.text += ")";
  return c;
}

std::optional<Call> pointwise_of(Maker& m, int least_arity) {
  const auto c = choose(m, false, least_arity);
  if (!c) return std::nullopt;
  return m.call(need_of(c->op, m.dtype()), precision_of(c->op), c->text,
                [c = *c](const auto& x) { return detail::pointwise(c.op, c.operands(x)); });
}

std::optional<Call> pointwise(Maker& m) { return pointwise_of(m, 1); }
// Few rows, with many ways to hand on contributions.
std::optional<Call> pointwise_of_three(Maker& m) { return pointwise_of(m, 3); }

std::optional<Call> pointwise_in_place(Maker& m) {
  const auto c = choose(m, true, 1);
  if (!c) return std::nullopt;
  return m.call(need_of(c->op, m.dtype()), precision_of(c->op), c->text, [c = *c](const auto& x) {
    auto copies = x;
    return in_place(x[0], [&](const auto& target) {
      copies[0] = target;
      detail::pointwise_in_place(c.op, c.operands(copies));
    });
  });
}

std::optional<Call> bounds(Maker& m) {
  const double lower = m.number();
  const bool both = m.chance(50);
  if (is_integral(m.dtype()) && lower != static_cast<std::int64_t>(lower)) return std::nullopt;
  return m.call(Need::moderate, Precision::moves,
                fmt::format("clamp(%0, {}{})", lower, both ? ", 2" : ""), [=](const auto& x) {
                  return both ? clamp(x[0], Scalar(lower), Scalar(2)) : clamp(x[0], Scalar(lower));
                });
}

std::optional<Call> conversion(Maker& m) {
  const DType to_type = m.any_dtype();
  const bool jumps = !is_floating(to_type) && !is_complex(to_type);
  const bool unsigned_type = to_type == DType::uint8;
  if (jumps && (m.first().largest > 100 || (unsigned_type && m.first().lowest < 0))) {
    if (is_floating(m.dtype()) || is_complex(m.dtype())) return std::nullopt;
  }
  return m.call(jumps ? Need::exact : Need::moderate, Precision::moves,
                fmt::format("to(%0, {})", to_string(to_type)),
                [=](const auto& x) { return to(x[0], to_type); });
}

std::optional<Call> fill(Maker& m) {
  const int value = m.below(4);
  return m.call(Need::nothing, Precision::moves, fmt::format("fill_(%0, {})", value),
                [=](const auto& x) {
                  const auto y = copy_of(x[0]);
                  fill_(y, value);
                  return y;
                });
}

std::optional<Call> copy(Maker& m) {
  const DType from = m.chance(70) ? m.dtype() : m.any_dtype();
  Shape shape = m.shape();
  if (m.dim() > 0 && m.chance(40)) shape[m.below(m.dim())] = 1;
  m.add(shape, from);
  if (m.dtype() == DType::uint8 && from != m.dtype()) return std::nullopt;
  return m.call(Need::exact, Precision::moves, "copy_(%0, %1)", [](const auto& x) {
    const auto y = copy_of(x[0]);
    copy_(y, x[1]);
    return y;
  });
}

// The operators of C++, with a number on either side.
std::optional<Call> symbols(Maker& m) {
  if (m.dtype() == DType::boolean || m.dtype() == DType::uint8) return std::nullopt;
  const int number = m.below(7) - 3;
  switch (m.below(4)) {
    case 0:
      return m.call(Need::moderate, Precision::exact, fmt::format("{} - %0", number),
                    [=](const auto& x) { return number - x[0]; });
    case 1:
      return m.call(Need::moderate, Precision::exact, fmt::format("%0 * {} + 10", number),
                    [=](const auto& x) { return x[0] * number + 10; });
    case 2:
      return m.call(Need::moderate, Precision::exact, "-%0", [](const auto& x) { return -x[0]; });
    default:
      return m.call(Need::moderate, Precision::rounds, "%0 / 4 - %0",
                    [](const auto& x) { return x[0] / 4 - x[0]; });
  }
}

}  // namespace

std::vector<ProgramOperator> pointwise_operators() {
  return {{"pointwise", 30, pointwise},
          {"pointwise of three", 8, pointwise_of_three},
          {"pointwise in place", 10, pointwise_in_place},
          {"clamp", 3, bounds},
          {"to", 4, conversion},
          {"fill_", 1, fill},
          {"copy_", 2, copy},
          {"symbols", 5, symbols}};
}

}  // namespace dtensor::testing
