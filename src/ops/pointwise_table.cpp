// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/pointwise_table.hpp"

#include <array>
#include <bit>

namespace dtensor {

namespace {

using enum ReduceOp;
using Result = PointwiseResult;

constexpr std::uint32_t bits(std::initializer_list<ReduceOp> ops) {
  std::uint32_t mask = 0;
  for (ReduceOp op : ops) mask |= PartialPass::bit(op);
  return mask;
}
// Sums survive what is linear in some inputs together, averages also what adds a whole value.
// Maxima and minima survive what never decreases. It must be so at infinities and for NaN, too: the
// root of contributions (-1, 4) to a maximum is (NaN, 2), so that roots and logarithms reduce.
constexpr std::uint32_t linear = bits({sum, avg}), extrema = bits({max, min});
// Reductions of equal values to that value.
constexpr std::uint32_t idempotent = bits({avg, min, max, band, bor});
constexpr std::uint32_t any_op = (std::uint32_t{1} << reduce_op_count) - 1;

// Inputs as bits.
constexpr std::uint32_t a = 1, b = 2, c = 4;

PartialPasses none() { return {}; }
PartialPasses is_linear() { return {{a, linear}}; }
PartialPasses is_monotone() { return {{a, extrema}}; }
PartialPasses is_sum() { return {{a | b, linear}, {a, bits({avg})}, {b, bits({avg})}}; }
PartialPasses is_extremum(ReduceOp own) {
  return {{a | b, bits({own})}, {a, extrema}, {b, extrema}};
}
// Bitwise "and" distributes over "or" and "xor", "or" over "and".
PartialPasses is_bitwise(ReduceOp own, std::uint32_t distributes) {
  return {{a | b, bits({own})}, {a, distributes}, {b, distributes}};
}
PartialPasses chooses() { return {{b | c, any_op}, {b, idempotent}, {c, idempotent}}; }
PartialPasses adds_product() {
  return {{a | b, linear}, {a | c, linear}, {a, bits({avg})}, {b, bits({avg})}, {c, bits({avg})}};
}

std::vector<PointwiseRow> make_table() {
  using namespace kinds;
#define ROW(name, arity, kinds, result, passes) \
  PointwiseRow { PointwiseOp::name, #name, #name "_", arity, kinds, Result::result, passes }
  return {
      ROW(abs, 1, numbers, real, none()),
      ROW(neg, 1, numbers, same, is_linear()),
      ROW(sign, 1, real_numbers, same, is_monotone()),
      ROW(sqrt, 1, all, fractional, none()),
      ROW(rsqrt, 1, all, fractional, none()),
      ROW(square, 1, numbers, same, none()),
      ROW(exp, 1, all, fractional, is_monotone()),
      ROW(expm1, 1, no_complex, fractional, is_monotone()),
      ROW(log, 1, all, fractional, none()),
      ROW(log1p, 1, no_complex, fractional, none()),
      ROW(log2, 1, all, fractional, none()),
      ROW(sin, 1, all, fractional, none()),
      ROW(cos, 1, all, fractional, none()),
      ROW(tan, 1, all, fractional, none()),
      ROW(asin, 1, no_complex, fractional, none()),
      ROW(acos, 1, no_complex, fractional, none()),
      ROW(atan, 1, no_complex, fractional, is_monotone()),
      ROW(sinh, 1, all, fractional, is_monotone()),
      ROW(cosh, 1, all, fractional, none()),
      ROW(tanh, 1, all, fractional, is_monotone()),
      ROW(sigmoid, 1, no_complex, fractional, is_monotone()),
      ROW(erf, 1, no_complex, fractional, is_monotone()),
      ROW(relu, 1, real_numbers, same, is_monotone()),
      ROW(gelu, 1, no_complex, fractional, none()),
      ROW(gelu_tanh, 1, no_complex, fractional, none()),
      ROW(silu, 1, no_complex, fractional, none()),
      ROW(softplus, 1, no_complex, fractional, is_monotone()),
      ROW(reciprocal, 1, all, fractional, none()),
      ROW(floor, 1, real_numbers, same, is_monotone()),
      ROW(ceil, 1, real_numbers, same, is_monotone()),
      ROW(round, 1, real_numbers, same, is_monotone()),
      ROW(trunc, 1, real_numbers, same, is_monotone()),
      ROW(isnan, 1, all, boolean, none()),
      ROW(isinf, 1, all, boolean, none()),
      ROW(isfinite, 1, all, boolean, none()),
      ROW(logical_not, 1, all, boolean, none()),
      ROW(bitwise_not, 1, boolean | integer, same, none()),
      ROW(conj, 1, all, same, is_linear()),
      ROW(real, 1, all, real, is_linear()),
      ROW(imag, 1, all, real, is_linear()),
      ROW(angle, 1, all, real_fractional, none()),
      ROW(add, 2, all, same, is_sum()),
      ROW(sub, 2, numbers, same, is_sum()),
      ROW(mul, 2, all, same, (PartialPasses{{a, linear}, {b, linear}})),
      ROW(div, 2, all, fractional, none()),
      ROW(floor_div, 2, real_numbers, same, none()),
      ROW(remainder, 2, real_numbers, same, none()),
      ROW(fmod, 2, real_numbers, same, none()),
      ROW(pow, 2, numbers, same, none()),
      ROW(maximum, 2, no_complex, same, is_extremum(max)),
      ROW(minimum, 2, no_complex, same, is_extremum(min)),
      ROW(atan2, 2, no_complex, fractional, none()),
      ROW(hypot, 2, no_complex, fractional, none()),
      ROW(eq, 2, all, boolean, none()),
      ROW(ne, 2, all, boolean, none()),
      ROW(lt, 2, no_complex, boolean, none()),
      ROW(le, 2, no_complex, boolean, none()),
      ROW(gt, 2, no_complex, boolean, none()),
      ROW(ge, 2, no_complex, boolean, none()),
      ROW(logical_and, 2, all, boolean, none()),
      ROW(logical_or, 2, all, boolean, none()),
      ROW(logical_xor, 2, all, boolean, none()),
      ROW(bitwise_and, 2, boolean | integer, same, is_bitwise(band, bits({band, bor, bxor}))),
      ROW(bitwise_or, 2, boolean | integer, same, is_bitwise(bor, bits({band, bor}))),
      ROW(bitwise_xor, 2, boolean | integer, same, (PartialPasses{{a | b, bits({bxor})}})),
      ROW(bitwise_left_shift, 2, integer, same, none()),
      ROW(bitwise_right_shift, 2, integer, same, none()),
      ROW(where, 3, all, same, chooses()),
      ROW(clamp, 3, no_complex, same, is_monotone()),
      ROW(lerp, 3, floating | complex, same,
          (PartialPasses{{a | b, linear}, {a, bits({avg})}, {b, bits({avg})}})),
      ROW(addcmul, 4, numbers, same, adds_product()),
      ROW(addcdiv, 4, all, fractional, (PartialPasses{{a, bits({avg})}})),
  };
#undef ROW
}

const std::vector<PointwiseRow>& table() {
  static const std::vector<PointwiseRow> rows = make_table();
  return rows;
}

}  // namespace

std::span<const PointwiseRow> pointwise_table() { return table(); }

const PointwiseRow& pointwise_row(PointwiseOp op) { return table()[static_cast<std::size_t>(op)]; }

PartialPasses pointwise_passes(const PointwiseRow& row, unsigned tensors, bool converted,
                               DType common, const PointwiseNumbers& numbers) {
  const unsigned others = ((1u << row.arity) - 1) & ~tensors;
  PartialPasses result;
  const auto hand_on = [&](std::uint32_t inputs, std::uint32_t ops) {
    // Sums of integers wrap around and contributions of bool are combined by "or": the conversion
    // of a reduction is not the reduction of conversions.
    if (converted) ops &= ~bits({sum, avg, product});
    // Not every type has every reduction.
    if (is_complex(common)) ops &= ~extrema;
    if (is_complex(common) || is_floating(common)) ops &= ~bits({band, bor, bxor});
    // Contributions 2 and -1 times infinity are NaN; their sum times infinity is not.
    if (!numbers.regular) ops &= ~linear;
    if (ops == 0) return;
    PartialPass pass{0, ops};
    int input = 0;
    for (int i = 0; i < row.arity; ++i) {
      if ((tensors >> i & 1) == 0) continue;
      pass.inputs |= (inputs >> i & 1) << input;
      ++input;
    }
    result.push_back(pass);
  };
  for (const PartialPass& pass : row.passes) {
    if ((pass.inputs & others) == 0) hand_on(pass.inputs, pass.ops);
  }
  if (!std::has_single_bit(others)) return result;
  // A tensor may divide by zero: contributions 2 and -1 make NaN of it, their sum does not.
  if (row.op == PointwiseOp::div && others == b) hand_on(a, linear);
  if (numbers.positive && is_floating(common) &&
      (row.op == PointwiseOp::mul || (row.op == PointwiseOp::div && others == b))) {
    hand_on(tensors, extrema);
  }
  if (numbers.zero && row.op == PointwiseOp::where && others != a) {
    hand_on(tensors & (b | c), bits({sum, bxor}));
  }
  return result;
}

namespace kinds {

unsigned of(DType dtype) noexcept {
  if (is_complex(dtype)) return complex;
  if (is_floating(dtype)) return floating;
  return is_integral(dtype) ? integer : boolean;
}

std::string describe(unsigned mask) {
  static constexpr std::array<std::pair<unsigned, const char*>, 4> names{
      {{boolean, "bool"}, {integer, "integers"}, {floating, "floating"}, {complex, "complex"}}};
  std::string text;
  for (const auto& [bit, name] : names) {
    if ((mask & bit) == 0) continue;
    mask &= ~bit;
    text += (text.empty() ? "" : mask == 0 ? " or " : ", ") + std::string(name);
  }
  return text;
}

}  // namespace kinds

}  // namespace dtensor
