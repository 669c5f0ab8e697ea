// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ops/programs/values.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "dtensor/core/error.hpp"
#include "dtensor/layout/placement.hpp"

namespace dtensor::testing {

namespace {

std::int64_t integer(Number v) { return static_cast<std::int64_t>(v.real()); }
Number number(std::int64_t v) { return {static_cast<double>(v), 0}; }

bool is_exact_type(DType dtype) { return is_integral(dtype) || dtype == DType::boolean; }

// As the type holds it: integers wrap around.
Number as_held(Number v, DType dtype) {
  switch (dtype) {
    case DType::int32:
      return number(static_cast<std::int32_t>(integer(v)));
    case DType::int16:
      return number(static_cast<std::int16_t>(integer(v)));
    case DType::int8:
      return number(static_cast<std::int8_t>(integer(v)));
    case DType::uint8:
      return number(static_cast<std::uint8_t>(integer(v)));
    case DType::boolean:
      return number(v != Number(0));
    default:
      return v;
  }
}

Number small_number(DType dtype, Numbers& numbers) {
  if (dtype == DType::boolean) return number(numbers.below(2));
  if (dtype == DType::uint8) return number(numbers.below(6));
  if (is_integral(dtype)) return number(numbers.below(11) - 5);
  const bool narrow = dtype == DType::float16 || dtype == DType::bfloat16;
  const int steps = narrow ? 9 : dtype == DType::float32 || dtype == DType::complex64 ? 33 : 65;
  const double step = narrow ? 0.5 : steps == 33 ? 0.25 : 0.125;
  const auto part = [&] { return step * (numbers.below(steps) - steps / 2); };
  const double real = part();
  return is_complex(dtype) ? Number(real, part()) : Number(real, 0);
}

// A factor and its inverse, both exact.
std::pair<Number, Number> unit_factor(DType dtype, Numbers& numbers) {
  if (is_exact_type(dtype)) {
    const double sign = dtype == DType::uint8 || numbers.below(2) ? 1 : -1;
    return {sign, sign};
  }
  const double size = numbers.below(2) ? 2 : 0.5, sign = numbers.below(2) ? 1 : -1;
  if (is_complex(dtype) && numbers.below(2)) return {Number(0, sign * size), {0, -sign / size}};
  return {sign * size, sign / size};
}

std::pair<double, double> range_of(DType dtype) {
  switch (dtype) {
    case DType::uint8:
      return {0, 255};
    case DType::int8:
      return {-128, 127};
    case DType::boolean:
      return {0, 1};
    default:
      return {-30000, 30000};
  }
}

// What each of `size` ranks contributes to a value.
std::vector<Number> contributions(Number value, ReduceOp op, DType dtype, std::int64_t size,
                                  Numbers& numbers) {
  std::vector<Number> result(static_cast<std::size_t>(size));
  const auto winner = static_cast<std::size_t>(numbers.below(static_cast<int>(size)));
  if (dtype == DType::boolean) {
    // Whatever the reduction is on numbers, here it is "or", "and" or "exclusive or".
    if (op == ReduceOp::bxor) {
      std::int64_t rest = integer(value);
      for (std::size_t i = 1; i < result.size(); ++i) {
        const int bit = numbers.below(2);
        result[i] = number(bit);
        rest ^= bit;
      }
      result[0] = number(rest);
      return result;
    }
    const bool is_and = op == ReduceOp::min || op == ReduceOp::product || op == ReduceOp::band;
    const bool decided = is_and ? value == Number(0) : value != Number(0);
    for (std::size_t i = 0; i < result.size(); ++i) {
      const Number neutral = is_and ? 1 : 0;
      result[i] = !decided ? neutral : i == winner ? value : number(numbers.below(2));
    }
    return result;
  }
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg: {
      Number rest = op == ReduceOp::avg ? value * static_cast<double>(size) : value;
      for (std::size_t i = 1; i < result.size(); ++i) {
        result[i] = small_number(dtype, numbers);
        rest -= result[i];
      }
      result[0] = rest;
      break;
    }
    case ReduceOp::product: {
      Number rest = value;
      for (std::size_t i = 1; i < result.size(); ++i) {
        const auto [factor, inverse] = unit_factor(dtype, numbers);
        result[i] = factor;
        rest *= inverse;
      }
      result[0] = rest;
      break;
    }
    case ReduceOp::min:
    case ReduceOp::max:
      for (std::size_t i = 0; i < result.size(); ++i) {
        const double away = i == winner ? 0 : std::abs(small_number(dtype, numbers).real());
        const auto [low, high] = range_of(dtype);
        const double v = value.real() + (op == ReduceOp::max ? -away : away);
        result[i] = away == 0 ? value : Number(std::clamp(v, low, high));
      }
      break;
    case ReduceOp::band:
    case ReduceOp::bor:
    case ReduceOp::bxor: {
      std::int64_t rest = integer(value);
      for (std::size_t i = 0; i < result.size(); ++i) {
        const std::int64_t mask = numbers.below(16);
        if (op == ReduceOp::bxor) {
          result[i] = number(i == 0 ? 0 : mask);
          if (i > 0) rest ^= mask;
        } else if (op == ReduceOp::band) {
          result[i] = number(i == winner ? rest : rest | mask);
        } else {
          result[i] = number(i == winner ? rest : rest & mask);
        }
      }
      if (op == ReduceOp::bxor) result[0] = number(rest);
      break;
    }
  }
  for (Number& v : result) v = as_held(v, dtype);
  return result;
}

Number reduced(Number a, Number b, ReduceOp op, DType dtype) {
  const bool flags = dtype == DType::boolean;
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return flags ? number(integer(a) | integer(b)) : a + b;
    case ReduceOp::product:
      if (!is_complex(dtype)) return a.real() * b.real();
      return a * b;
    case ReduceOp::min:
      return std::isnan(a.real()) || a.real() < b.real() ? a : b;
    case ReduceOp::max:
      return std::isnan(a.real()) || a.real() > b.real() ? a : b;
    case ReduceOp::band:
      return number(integer(a) & integer(b));
    case ReduceOp::bor:
      return number(integer(a) | integer(b));
    case ReduceOp::bxor:
      break;
  }
  return number(integer(a) ^ integer(b));
}

}  // namespace

Plain::Plain(const Tensor& tensor) : shape(tensor.shape()), dtype(tensor.dtype()) {
  for (const auto& v : tensor.to(DType::complex128).to_vector<Kokkos::complex<double>>()) {
    values.emplace_back(v.real(), v.imag());
  }
}

Tensor Plain::tensor() const {
  std::vector<Kokkos::complex<double>> list;
  for (Number v : values) list.emplace_back(v.real(), v.imag());
  return Tensor::from_vector(list, shape).to(dtype);
}

Plain small_numbers(const Shape& shape, DType dtype, std::uint64_t seed) {
  Numbers numbers(seed);
  Plain result(shape, dtype);
  for (Number& v : result.values) v = small_number(dtype, numbers);
  return result;
}

Plain indices_below(const Shape& shape, DType dtype, std::int64_t bound, std::uint64_t seed) {
  Numbers numbers(seed);
  Plain result(shape, dtype);
  for (Number& v : result.values) v = number(numbers.below(static_cast<int>(bound)));
  return result;
}

Plain part_of(const Plain& whole, const Layout& layout, const Extents& coordinate,
              std::uint64_t seed) {
  std::vector<std::vector<std::int64_t>> indices;
  for (int d = 0; d < whole.shape.size(); ++d) {
    indices.emplace_back();
    const IndexSet set = layout.index_set(coordinate, d);
    for (const Interval& i : set.intervals()) {
      for (std::int64_t j = i.begin; j < i.end; ++j) indices.back().push_back(j);
    }
  }
  Plain part(layout.local_shape(coordinate), whole.dtype);
  std::size_t next = 0;
  for_each_index(part.shape, [&](const Extents& at) {
    std::int64_t element = 0;
    for (int d = 0; d < at.size(); ++d) {
      const auto position = static_cast<std::size_t>(at[d]);
      element = element * whole.shape[d] + indices[static_cast<std::size_t>(d)][position];
    }
    Number value = whole.values[static_cast<std::size_t>(element)];
    // A contribution along one mesh dimension is made up of contributions along the next.
    std::uint64_t path = seed * 1009 + static_cast<std::uint64_t>(element);
    for (int m = 0; m < layout.grid()->dim(); ++m) {
      const Placement& p = layout.placement(m);
      if (!p.is_partial()) continue;
      Numbers numbers(path * 131 + static_cast<std::uint64_t>(m) + 1);
      for (int i = 0; i < 4; ++i) numbers.next();
      value = contributions(value, p.reduce_op(), whole.dtype, layout.grid()->size(m),
                            numbers)[static_cast<std::size_t>(coordinate[m])];
      path = path * 31 + static_cast<std::uint64_t>(coordinate[m]) + 1;
    }
    part.values[next++] = value;
  });
  return part;
}

Plain combined(const std::vector<Plain>& parts, ReduceOp op) {
  Plain total = parts[0];
  for (std::size_t i = 0; i < total.values.size(); ++i) {
    Number& v = total.values[i];
    for (std::size_t r = 1; r < parts.size(); ++r) {
      v = reduced(v, parts[r].values[i], op, total.dtype);
    }
    if (op == ReduceOp::avg) v /= static_cast<double>(parts.size());
    v = as_held(v, total.dtype);
  }
  return total;
}

double difference(const Plain& a, const Plain& b) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (!(a.shape == b.shape) || a.dtype != b.dtype) return infinity;
  const auto finite = [](Number v) { return std::isfinite(v.real()) && std::isfinite(v.imag()); };
  double result = 0;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const Number x = a.values[i], y = b.values[i];
    if (x == y) continue;
    if (!finite(x) || !finite(y)) {
      // Contributions to an infinite value may add up to NaN.
      if (finite(x) != finite(y)) return infinity;
      continue;
    }
    result = std::max(result, std::abs(x - y));
  }
  return result;
}

double tolerance(DType dtype) {
  switch (dtype) {
    case DType::float32:
    case DType::complex64:
      return 1e-3;
    case DType::float16:
      return 2e-2;
    case DType::bfloat16:
      return 1e-1;
    default:
      return 1e-7;
  }
}

Shape random_shape(Numbers& numbers, int max_dims) {
  Shape shape;
  std::int64_t elements = 1;
  for (int rank = numbers.below(max_dims + 1); shape.size() < rank;) {
    const int kind = numbers.below(24);
    std::int64_t extent = kind == 0 ? 0 : kind < 5 ? 1 : 2 + numbers.below(8);
    if (elements * extent > 200) extent = 1 + numbers.below(2);
    elements *= std::max<std::int64_t>(extent, 1);
    shape.push_back(extent);
  }
  return shape;
}

std::vector<ReduceOp> reductions_of(DType dtype) {
  std::vector<ReduceOp> result;
  for (int i = 0; i < reduce_op_count; ++i) {
    const auto op = static_cast<ReduceOp>(i);
    const bool ordered = !is_complex(dtype), bits = is_exact_type(dtype);
    if (op == ReduceOp::avg && bits) continue;
    if ((op == ReduceOp::min || op == ReduceOp::max) && !ordered) continue;
    if (op >= ReduceOp::band && !bits) continue;
    result.push_back(op);
  }
  return result;
}

Layout random_layout(const Shape& shape, DType dtype,
                     const std::shared_ptr<const ProcessGrid>& grid, Numbers& numbers) {
  const std::vector<ReduceOp> reductions = reductions_of(dtype);
  for (int attempt = 0; attempt < 20; ++attempt) {
    Placements placements;
    for (int m = 0; m < grid->dim(); ++m) {
      const int kind = numbers.below(10);
      const std::int64_t parts = grid->size(m);
      if (kind < 2 || (kind < 7 && shape.empty())) {
        placements.push_back(Replicate());
      } else if (kind < 7) {
        const int d = numbers.below(shape.size());
        if (kind < 5) {
          placements.push_back(Shard(d));
        } else if (kind == 5) {
          placements.push_back(StridedShard(d, 2 + numbers.below(2)));
        } else {
          std::vector<std::int64_t> extents(static_cast<std::size_t>(parts), 0);
          for (std::int64_t i = 0; i < shape[d]; ++i) {
            ++extents[static_cast<std::size_t>(numbers.below(static_cast<int>(parts)))];
          }
          placements.push_back(Shard(d, extents));
        }
      } else {
        const auto count = static_cast<int>(reductions.size());
        // Sums are what programs have most of.
        const auto op = numbers.below(3) == 0
                            ? ReduceOp::sum
                            : reductions[static_cast<std::size_t>(numbers.below(count))];
        // A third of a sum is not exact where other mesh dimensions split it further.
        const bool rounds = op == ReduceOp::avg && parts == 3 && grid->size() > parts;
        placements.push_back(Partial(rounds ? ReduceOp::sum : op));
      }
    }
    ShardOrder order;
    for (int d = 0; d < shape.size(); ++d) {
      std::vector<int> splits;
      for (int m = 0; m < grid->dim(); ++m) {
        if (placements[static_cast<std::size_t>(m)].is_shard(d)) splits.push_back(m);
      }
      if (splits.size() > 1 && numbers.below(2)) {
        std::reverse(splits.begin(), splits.end());
        order.push_back({d, splits});
      }
    }
    try {
      return Layout(shape, grid, placements, order);
    } catch (const LayoutError&) {
      // Given extents do not fit, or contributions of two kinds.
    }
  }
  return Layout(shape, grid, Placements(static_cast<std::size_t>(grid->dim()), Replicate()));
}

}  // namespace dtensor::testing
