// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fmt/format.h>

#include <numeric>

#include "ops/programs/operators.hpp"

namespace dtensor::testing {

namespace {

constexpr int most_dims = 5;

// Neighbours merged, extents split, ones put in and left out.
Shape another_shape(Maker& m) {
  Shape shape = m.shape();
  for (int step = m.below(4); step >= 0; --step) {
    const int d = shape.empty() ? 0 : m.below(shape.size());
    const auto replaced = [&](int dims, std::vector<std::int64_t> with) {
      Shape result;
      for (int i = 0; i < d; ++i) result.push_back(shape[i]);
      for (std::int64_t extent : with) result.push_back(extent);
      for (int i = d + dims; i < shape.size(); ++i) result.push_back(shape[i]);
      shape = result;
    };
    switch (m.below(3)) {
      case 0:
        if (d + 1 < shape.size()) replaced(2, {shape[d] * shape[d + 1]});
        break;
      case 1:
        if (shape.size() == most_dims) break;
        if (shape.empty() || m.chance(15)) {
          replaced(0, {1});
          break;
        }
        for (std::int64_t factor : {2 + m.below(3), 2, 3}) {
          if (shape[d] == 0 || shape[d] % factor != 0) continue;
          replaced(1, {factor, shape[d] / factor});
          break;
        }
        break;
      default:
        if (!shape.empty() && shape[d] == 1) replaced(1, {});
    }
  }
  if (m.chance(3) && !shape.empty()) shape[0] += 1;  // another number of elements
  return shape;
}

// A view; as the error of a DTensor says where elements of other ranks are needed, `reshape` else.
template <class T, class F>
T viewed(const T& a, const Shape& shape, const F& f) {
  if constexpr (std::is_same_v<T, DTensor>) {
    try {
      return f(a);
    } catch (const LayoutError&) {
      return reshape(a, shape);
    }
  } else {
    return f(a);
  }
}

std::optional<Call> make_view(Maker& m) {
  Shape shape = another_shape(m);
  // Whether strides allow a view on a DTensor depends on how its ranks hold it.
  const bool is_view = m.first().tensor.is_contiguous() && m.chance(50);
  if (!shape.empty() && m.first().tensor.numel() > 0 && m.chance(20)) {
    shape[m.below(shape.size())] = -1;
  }
  return m.call(Need::nothing, Precision::moves,
                fmt::format("{}(%0, {})", is_view ? "view" : "reshape", text_of(shape)),
                [=](const auto& x) {
                  if (!is_view) return reshape(x[0], shape);
                  return viewed(x[0], shape, [&](const auto& t) { return view(t, shape); });
                });
}

std::optional<Call> make_flatten(Maker& m) {
  if (m.dim() == 0 || !m.first().tensor.is_contiguous()) return std::nullopt;
  const std::int64_t a = m.below(m.dim()), b = m.below(m.dim());
  if (a > b && !m.chance(5)) return std::nullopt;
  return m.call(Need::nothing, Precision::moves, fmt::format("flatten(%0, {}, {})", a, b),
                [=](const auto& x) { return flatten(x[0], a, b); });
}

std::optional<Call> make_unflatten(Maker& m) {
  if (m.dim() == 0 || m.dim() == most_dims) return std::nullopt;
  const int d = m.below(m.dim());
  const std::int64_t extent = m.shape()[d], factor = 2 + m.below(3);
  if (extent == 0 || (extent % factor != 0 && !m.chance(5))) return std::nullopt;
  if (!m.first().tensor.is_contiguous()) return std::nullopt;
  const Shape sizes = m.chance(50) ? Shape{factor, -1} : Shape{extent / factor, factor};
  Shape shape;
  for (int i = 0; i < m.dim(); ++i) {
    if (i != d) shape.push_back(m.shape()[i]);
    if (i == d) shape.push_back(sizes[0]);
    if (i == d) shape.push_back(sizes[1] == -1 ? extent / factor : sizes[1]);
  }
  return m.call(Need::nothing, Precision::moves,
                fmt::format("unflatten(%0, {}, {})", d, text_of(sizes)), [=](const auto& x) {
                  return viewed(x[0], shape, [&](const auto& t) { return unflatten(t, d, sizes); });
                });
}

std::optional<Call> make_permute(Maker& m) {
  std::vector<std::int64_t> dims(static_cast<std::size_t>(m.dim()));
  std::iota(dims.begin(), dims.end(), 0);
  for (int i = m.dim() - 1; i > 0; --i) {
    std::swap(dims[static_cast<std::size_t>(i)], dims[static_cast<std::size_t>(m.below(i + 1))]);
  }
  if (m.chance(2) && m.dim() > 1) dims[0] = dims[1];
  return m.call(Need::nothing, Precision::moves, "permute(%0, " + text_of(dims) + ")",
                [=](const auto& x) { return permute(x[0], dims); });
}

std::optional<Call> make_transpose(Maker& m) {
  if (m.dim() == 0) return std::nullopt;
  const std::int64_t a = m.any_dim(), b = m.any_dim();
  const bool moves = m.chance(30);
  return m.call(
      Need::nothing, Precision::moves,
      fmt::format("{}(%0, {}, {})", moves ? "movedim" : "transpose", a, b),
      [=](const auto& x) { return moves ? movedim(x[0], {a}, {b}) : transpose(x[0], a, b); });
}

// Written through a view, the tensor behind it changes.
std::optional<Call> make_write_through(Maker& m) {
  if (m.dim() == 0 || m.dtype() == DType::boolean) return std::nullopt;
  const std::int64_t a = m.any_dim(), b = m.any_dim();
  return m.call(Need::moderate, Precision::exact,
                fmt::format("mul_(transpose(%0, {}, {}), 2), %0", a, b), [=](const auto& x) {
                  return in_place(x[0], [&](const auto& y) { mul_(transpose(y, a, b), 2); });
                });
}

// To any placements; one device has none.
std::optional<Call> make_redistribute(Maker& m) {
  const std::uint64_t seed = m.numbers.next();
  return m.call(Need::nothing, Precision::moves, fmt::format("redistribute(%0, {})", seed),
                [=](const auto& x) {
                  if constexpr (std::is_same_v<std::remove_cvref_t<decltype(x[0])>, Tensor>) {
                    return x[0];
                  } else {
                    Numbers numbers(seed);
                    const Layout to = random_layout(x[0].shape(), x[0].dtype(),
                                                    x[0].device_mesh().grid(), numbers)
                                          .without_partial();
                    return x[0].redistribute(to.placements(), {.shard_order = to.shard_order()});
                  }
                });
}

std::optional<Call> make_squeeze(Maker& m) {
  if (m.dim() == 0 || m.chance(40)) {
    if (m.chance(50) || m.dim() == most_dims) {
      return m.call(Need::nothing, Precision::moves, "squeeze(%0)",
                    [](const auto& x) { return squeeze(x[0]); });
    }
    const std::int64_t d = m.below(m.dim() + 1);
    return m.call(Need::nothing, Precision::moves, fmt::format("unsqueeze(%0, {})", d),
                  [=](const auto& x) { return unsqueeze(x[0], d); });
  }
  const std::int64_t d = m.any_dim();
  return m.call(Need::nothing, Precision::moves, fmt::format("squeeze(%0, {})", d),
                [=](const auto& x) { return squeeze(x[0], d); });
}

std::optional<Call> make_expand(Maker& m) {
  Shape shape;
  if (m.dim() < 4 && m.chance(30)) shape.push_back(1 + m.below(3));
  for (std::int64_t extent : m.shape()) {
    shape.push_back(extent == 1 && m.chance(70) ? m.below(5) : m.chance(20) ? -1 : extent);
  }
  return m.call(Need::nothing, Precision::moves, "expand(%0, " + text_of(shape) + ")",
                [=](const auto& x) { return expand(x[0], shape); });
}

std::optional<Call> make_narrow(Maker& m) {
  if (m.dim() == 0) return std::nullopt;
  const std::int64_t d = m.any_dim();
  const std::int64_t extent = m.shape()[static_cast<int>(d < 0 ? d + m.dim() : d)];
  const auto bound = static_cast<int>(extent) + 1;
  const std::int64_t start = m.below(bound);
  switch (m.below(4)) {
    case 0: {
      const std::int64_t length = m.below(static_cast<int>(extent - start) + (m.chance(5) ? 2 : 1));
      return m.call(Need::nothing, Precision::moves,
                    fmt::format("narrow(%0, {}, {}, {})", d, start, length),
                    [=](const auto& x) { return narrow(x[0], d, start, length); });
    }
    case 1: {
      const std::int64_t index = m.below(bound) - (m.chance(30) ? extent : 0);
      return m.call(Need::nothing, Precision::moves, fmt::format("select(%0, {}, {})", d, index),
                    [=](const auto& x) { return select(x[0], d, index); });
    }
    default: {
      const std::int64_t begin = m.chance(30) ? start - extent : start;
      const std::int64_t end = m.chance(30) ? -m.below(bound) : m.below(bound + 2);
      const std::int64_t step = 1 + m.below(4) - (m.chance(2) ? 1 : 0);
      return m.call(Need::nothing, Precision::moves,
                    fmt::format("slice(%0, {}, {}, {}, {})", d, begin, end, step),
                    [=](const auto& x) { return slice(x[0], d, begin, end, step); });
    }
  }
}

std::optional<Call> make_split(Maker& m) {
  if (m.dim() == 0) return std::nullopt;
  const std::int64_t d = m.any_dim(), n = 1 + m.below(3);
  const std::int64_t extent = m.shape()[static_cast<int>(d < 0 ? d + m.dim() : d)];
  switch (m.below(3)) {
    case 0:
      return m.call(Need::nothing, Precision::moves, fmt::format("chunk(%0, {}, {})", n, d),
                    [=](const auto& x) { return chunk(x[0], n, d); });
    case 1: {
      const std::int64_t first = m.below(static_cast<int>(extent) + 1);
      const std::vector<std::int64_t> sizes{first, extent - first};
      return m.call(Need::nothing, Precision::moves,
                    fmt::format("split(%0, {}, {})", text_of(sizes), d),
                    [=](const auto& x) { return split(x[0], sizes, d); });
    }
    default:
      if (extent > 3 * n) return std::nullopt;
      return m.call(Need::nothing, Precision::moves, fmt::format("split(%0, {}, {})", n, d),
                    [=](const auto& x) { return split(x[0], n, d); });
  }
}

std::optional<Call> make_repeat(Maker& m) {
  std::vector<std::int64_t> times;
  std::int64_t count = std::max<std::int64_t>(m.first().tensor.numel(), 1);
  if (m.dim() < 4 && m.chance(20)) times.push_back(1 + m.below(2));
  for (int d = 0; d < m.dim(); ++d) {
    const std::int64_t n = count > 200 ? 1 : m.chance(5) ? 0 : 1 + m.below(3);
    times.push_back(n);
    count *= std::max<std::int64_t>(n, 1);
  }
  return m.call(Need::nothing, Precision::moves, "repeat(%0, " + text_of(times) + ")",
                [=](const auto& x) { return repeat(x[0], times); });
}

std::optional<Call> make_cat(Maker& m) {
  if (m.first().tensor.numel() > 400) return std::nullopt;
  const bool stacks = m.chance(40) && m.dim() < 4;
  if (!stacks && m.dim() == 0) return std::nullopt;
  const std::int64_t d = stacks ? m.below(m.dim() + 1) : m.any_dim();
  std::string operands = "%0";
  for (int i = m.below(3); i >= 0; --i) {
    Shape shape = m.shape();
    if (!stacks && m.chance(60)) shape[static_cast<int>(d < 0 ? d + m.dim() : d)] = m.below(6);
    if (m.chance(2) && m.dim() > 0) shape[m.below(m.dim())] += 1;
    operands += fmt::format(", %{}", m.arguments.size());
    m.add(shape, m.chance(2) ? m.any_dtype() : m.dtype());
  }
  return m.call(Need::nothing, Precision::moves,
                fmt::format("{}({{{}}}, {})", stacks ? "stack" : "cat", operands, d),
                [=](const auto& x) { return stacks ? stack(x, d) : cat(x, d); });
}

std::optional<Call> make_roll(Maker& m) {
  const std::vector<std::int64_t> dims = m.any_dims();
  if (m.chance(50)) {
    return m.call(Need::nothing, Precision::moves, "flip(%0, " + text_of(dims) + ")",
                  [=](const auto& x) { return flip(x[0], dims); });
  }
  std::vector<std::int64_t> shifts;
  for (std::size_t i = 0; i < std::max<std::size_t>(dims.size(), 1); ++i) {
    shifts.push_back(m.below(9) - 4);
  }
  return m.call(Need::nothing, Precision::moves,
                fmt::format("roll(%0, {}, {})", text_of(shifts), text_of(dims)),
                [=](const auto& x) { return roll(x[0], shifts, dims); });
}

std::optional<Call> make_pad(Maker& m) {
  if (m.first().tensor.numel() > 300) return std::nullopt;
  std::vector<std::int64_t> pads;
  const int dims = m.below(m.dim() + 1);
  for (int i = 0; i < 2 * dims; ++i) pads.push_back(m.below(5) - 1);
  const int value = m.below(3);
  return m.call(Need::nothing, Precision::moves,
                fmt::format("pad(%0, {}, {})", text_of(pads), value),
                [=](const auto& x) { return pad(x[0], pads, value); });
}

std::optional<Call> make_triangle(Maker& m) {
  if (m.dim() < 2 && !m.chance(3)) return std::nullopt;
  const int offset = m.below(7) - 3, d1 = m.below(std::max(m.dim(), 1)),
            d2 = m.below(std::max(m.dim(), 1));
  switch (m.below(3)) {
    case 0:
      return m.call(Need::nothing, Precision::moves, fmt::format("tril(%0, {})", offset),
                    [=](const auto& x) { return tril(x[0], offset); });
    case 1:
      return m.call(Need::nothing, Precision::moves, fmt::format("triu(%0, {})", offset),
                    [=](const auto& x) { return triu(x[0], offset); });
    default:
      return m.call(Need::nothing, Precision::moves,
                    fmt::format("diagonal(%0, {}, {}, {})", offset, d1, d2),
                    [=](const auto& x) { return diagonal(x[0], offset, d1, d2); });
  }
}

}  // namespace

std::vector<ProgramOperator> shape_operators() {
  return {{"view and reshape", 10, make_view},
          {"flatten", 2, make_flatten},
          {"unflatten", 2, make_unflatten},
          {"permute", 5, make_permute},
          {"transpose", 4, make_transpose},
          {"writing through a view", 2, make_write_through},
          {"redistribute", 5, make_redistribute},
          {"squeeze", 4, make_squeeze},
          {"expand", 3, make_expand},
          {"narrow", 8, make_narrow},
          {"split", 4, make_split},
          {"repeat", 3, make_repeat},
          {"cat and stack", 6, make_cat},
          {"flip and roll", 4, make_roll},
          {"pad", 3, make_pad},
          {"tril, triu and diagonal", 5, make_triangle}};
}

}  // namespace dtensor::testing
