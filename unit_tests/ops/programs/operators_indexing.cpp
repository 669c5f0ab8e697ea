// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <fmt/format.h>

#include "ops/programs/operators.hpp"

namespace dtensor::testing {

namespace {

int from_front(Maker& m, std::int64_t d) { return static_cast<int>(d < 0 ? d + m.dim() : d); }

std::int64_t bound_of(Maker& m, std::int64_t extent) { return extent + (m.chance(3) ? 2 : 0); }

std::optional<Call> make_index_select(Maker& m) {
  if (m.dim() == 0) return std::nullopt;
  const std::int64_t d = m.any_dim(), extent = m.shape()[from_front(m, d)];
  if (extent == 0) return std::nullopt;
  m.add_indices({m.below(7)}, bound_of(m, extent));
  return m.call(Need::nothing, Precision::moves, fmt::format("index_select(%0, {}, %1)", d),
                [=](const auto& x) { return index_select(x[0], d, x[1]); });
}

// A shape of indices, no larger than the tensor but along one dimension.
Shape index_shape(Maker& m, int dim) {
  Shape shape;
  for (int d = 0; d < m.dim(); ++d) {
    const std::int64_t extent = m.shape()[d];
    shape.push_back(d == dim       ? m.below(6)
                    : m.chance(70) ? extent
                                   : m.below(static_cast<int>(extent) + 1));
  }
  return shape;
}

std::optional<Call> make_gather(Maker& m) {
  if (m.dim() == 0) return std::nullopt;
  const std::int64_t d = m.any_dim(), extent = m.shape()[from_front(m, d)];
  if (extent == 0) return std::nullopt;
  m.add_indices(index_shape(m, from_front(m, d)), bound_of(m, extent));
  return m.call(Need::nothing, Precision::moves, fmt::format("gather(%0, {}, %1)", d),
                [=](const auto& x) { return gather(x[0], d, x[1]); });
}

std::optional<Call> make_scatter_add(Maker& m) {
  if (m.dim() == 0) return std::nullopt;
  const std::int64_t d = m.any_dim(), extent = m.shape()[from_front(m, d)];
  if (extent == 0) return std::nullopt;
  const Shape indices = index_shape(m, from_front(m, d));
  Shape source = indices;
  if (m.chance(30)) source[m.below(m.dim())] += 1;
  m.add_indices(indices, bound_of(m, extent));
  m.add(source, m.dtype());
  return m.call(Need::moderate, Precision::exact, fmt::format("scatter_add(%0, {}, %1, %2)", d),
                [=](const auto& x) { return scatter_add(x[0], d, x[1], x[2]); });
}

std::optional<Call> make_masked_fill(Maker& m) {
  Shape mask = m.shape();
  if (m.dim() > 0 && m.chance(30)) mask[m.below(m.dim())] = 1;
  if (m.dim() > 0 && m.chance(30)) mask.erase(0);
  m.add(mask, DType::boolean);
  const int value = m.below(3);
  return m.call(Need::nothing, Precision::moves, fmt::format("masked_fill(%0, %1, {})", value),
                [=](const auto& x) { return masked_fill(x[0], x[1], value); });
}

std::optional<Call> make_one_hot(Maker& m) {
  if (!is_integral(m.dtype()) || m.dim() > 3) return std::nullopt;
  if (m.first().largest > 8) return std::nullopt;
  const std::int64_t classes = 2 + m.below(8);
  return m.call(Need::exact, Precision::moves, fmt::format("one_hot(%0, {})", classes),
                [=](const auto& x) { return one_hot(x[0], classes); });
}

std::optional<Call> make_sort(Maker& m) {
  if (m.dim() == 0 || (is_complex(m.dtype()) && !m.chance(3))) return std::nullopt;
  const std::int64_t d = m.any_dim();
  const bool descending = m.chance(50);
  if (m.chance(30)) {
    return m.call(Need::exact, Precision::moves, fmt::format("argsort(%0, {}, {})", d, descending),
                  [=](const auto& x) { return argsort(x[0], d, descending); });
  }
  return m.call(Need::exact, Precision::moves, fmt::format("sort(%0, {}, {})", d, descending),
                [=](const auto& x) { return sort(x[0], d, descending); });
}

std::optional<Call> make_topk(Maker& m) {
  if (m.dim() == 0 || is_complex(m.dtype())) return std::nullopt;
  const std::int64_t d = m.any_dim(), extent = m.shape()[from_front(m, d)];
  const std::int64_t k = m.below(static_cast<int>(extent) + (m.chance(5) ? 2 : 1));
  const bool largest = m.chance(50);
  return m.call(Need::exact, Precision::moves, fmt::format("topk(%0, {}, {}, {})", k, d, largest),
                [=](const auto& x) { return topk(x[0], k, d, largest); });
}

}  // namespace

std::vector<ProgramOperator> indexing_operators() {
  return {{"index_select", 4, make_index_select},
          {"gather", 4, make_gather},
          {"scatter_add", 4, make_scatter_add},
          {"masked_fill", 3, make_masked_fill},
          {"one_hot", 2, make_one_hot},
          {"sort", 5, make_sort},
          {"topk", 4, make_topk}};
}

}  // namespace dtensor::testing
