// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/triangle.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "diagonal.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/ops/view_rule.hpp"
#include "local/triangle.hpp"
#include "shape_primitives.hpp"

namespace dtensor {

namespace detail {

Diagonal diagonal_of(std::int64_t rows, std::int64_t columns, std::int64_t offset) {
  // No further than the corners, which also keeps the arithmetic in range.
  const std::int64_t o = std::clamp(offset, -rows, columns);
  const std::int64_t row = std::max<std::int64_t>(-o, 0), column = std::max<std::int64_t>(o, 0);
  return {row, column, std::max<std::int64_t>(std::min(rows - row, columns - column), 0)};
}

std::vector<DiagonalPiece> diagonal_pieces(const Diagonal& diagonal, const IndexSet& rows,
                                           const IndexSet& columns) {
  std::vector<DiagonalPiece> pieces;
  std::int64_t row_at = 0;
  for (const Interval& r : rows.intervals()) {
    std::int64_t column_at = 0;
    for (const Interval& c : columns.intervals()) {
      const std::int64_t begin =
          std::max<std::int64_t>({r.begin - diagonal.row, c.begin - diagonal.column, 0});
      const std::int64_t end =
          std::min({r.end - diagonal.row, c.end - diagonal.column, diagonal.length});
      if (begin < end) {
        pieces.push_back({begin, row_at + begin + diagonal.row - r.begin,
                          column_at + begin + diagonal.column - c.begin, end - begin});
      }
      column_at += c.length();
    }
    row_at += r.length();
  }
  return pieces;
}

Tensor diagonal_view(const Tensor& a, int dim1, int dim2, const DiagonalPiece& piece) {
  Shape shape;
  Extents strides;
  for (int d = 0; d < a.dim(); ++d) {
    if (d == dim1 || d == dim2) continue;
    shape.push_back(a.shape()[d]);
    strides.push_back(a.strides()[d]);
  }
  shape.push_back(piece.length);
  strides.push_back(a.strides()[dim1] + a.strides()[dim2]);
  std::int64_t offset = a.storage_offset();
  if (piece.length > 0) offset += piece.row * a.strides()[dim1] + piece.column * a.strides()[dim2];
  return a.as_strided(shape, strides, offset);
}

namespace {

Tensor triangle_part(const char*, const Tensor& a, bool lower, std::int64_t diagonal) {
  Tensor result = Tensor::empty(a.shape(), a.dtype(), a.device());
  copy_triangle(result, a, lower, diagonal);
  fence(a.device(), "dtensor::triangle");
  return result;
}

DTensor triangle_part(const char*, const DTensor& a, bool lower, std::int64_t diagonal) {
  return assemble(a, a.layout(), a.dtype(), [&] {
    const Tensor& local = a.to_local();
    const Extents& self = *a.device_mesh().coordinate();
    const IndexSet rows = a.layout().index_set(self, a.dim() - 2);
    const IndexSet columns = a.layout().index_set(self, a.dim() - 1);
    Tensor result = Tensor::empty(local.shape(), a.dtype(), local.device());
    // Inside of a box a step in a dimension is a step of the global index.
    std::int64_t row_at = 0;
    for (const Interval& r : rows.intervals()) {
      std::int64_t column_at = 0;
      for (const Interval& c : columns.intervals()) {
        const auto box = [&](const Tensor& t) {
          return t.narrow(-2, row_at, r.length()).narrow(-1, column_at, c.length());
        };
        copy_triangle(box(result), box(local), lower, diagonal + r.begin - c.begin);
        column_at += c.length();
      }
      row_at += r.length();
    }
    fence(local.device(), "dtensor::triangle");
    return result;
  });
}

Tensor diagonal_part(const Tensor& a, const Diagonal& diagonal, int dim1, int dim2) {
  return diagonal_view(a, dim1, dim2, {0, diagonal.row, diagonal.column, diagonal.length});
}

// The layout without `dim1` and `dim2`, the mesh dimensions that split these replicated, and a last
// dimension of `length`.
Layout without_matrix(const Layout& layout, int dim1, int dim2, std::int64_t length,
                      const Placement& instead) {
  Shape shape;
  std::vector<int> to(static_cast<std::size_t>(layout.shape().size()), -1);
  for (int d = 0; d < layout.shape().size(); ++d) {
    if (d == dim1 || d == dim2) continue;
    to[static_cast<std::size_t>(d)] = shape.size();
    shape.push_back(layout.shape()[d]);
  }
  shape.push_back(length);
  Placements placements = layout.placements();
  for (Placement& p : placements) {
    if (!p.is_shard()) continue;
    const int d = to[static_cast<std::size_t>(p.dim())];
    p = d < 0 ? instead : p.with_dim(d);
  }
  ShardOrder order;
  for (const auto& [d, mesh_dims] : layout.shard_order()) {
    if (to[static_cast<std::size_t>(d)] >= 0) {
      order.emplace_back(to[static_cast<std::size_t>(d)], mesh_dims);
    }
  }
  return Layout(shape, layout.grid(), placements, order);
}

// The layout in which each rank has the diagonal's elements of its rows or columns, when the ranks
// split only one of them.
std::optional<Layout> sharded_diagonal(const Layout& layout, const Diagonal& diagonal, int dim1,
                                       int dim2) {
  const bool by_rows = layout.split_by(dim2).empty();
  if (!by_rows && !layout.split_by(dim1).empty()) return std::nullopt;
  const int dim = by_rows ? dim1 : dim2;
  const std::int64_t start = by_rows ? diagonal.row : diagonal.column;
  const auto cut = mapped_layout(layout, dim, diagonal.length, [&](const IndexSet& set) {
    return dtensor::sliced(set, start, 1, diagonal.length);
  });
  if (!cut) return std::nullopt;
  // The sharded dimension becomes the last one.
  const Layout base = without_matrix(layout, dim1, dim2, diagonal.length, Replicate());
  Placements placements = base.placements();
  const int last = base.shape().size() - 1;
  for (int m : cut->split_by(dim)) {
    placements[static_cast<std::size_t>(m)] = cut->placement(m).with_dim(last);
  }
  ShardOrder order = base.shard_order();
  if (!cut->split_by(dim).empty()) order.emplace_back(last, cut->split_by(dim));
  return base.with_placements(placements, order);
}

DTensor diagonal_part(const DTensor& a, const Diagonal& diagonal, int dim1, int dim2) {
  const auto sharded = sharded_diagonal(a.layout(), diagonal, dim1, dim2);
  const DTensor x = sharded ? a : with_partials("diagonal", a, [](ReduceOp op) {
    return op == ReduceOp::sum || op == ReduceOp::avg;
  });
  const Layout to =
      sharded ? *sharded : without_matrix(x.layout(), dim1, dim2, diagonal.length, Partial());
  Extents strides;
  for (int d = 0; d < a.dim(); ++d) {
    if (d != dim1 && d != dim2) strides.push_back(a.stride()[d]);
  }
  strides.push_back(a.stride()[dim1] + a.stride()[dim2]);
  return assemble(
      x, to, a.dtype(),
      [&] {
        const Extents& self = *a.device_mesh().coordinate();
        const Tensor& local = x.to_local();
        const auto pieces = diagonal_pieces(diagonal, x.layout().index_set(self, dim1),
                                            x.layout().index_set(self, dim2));
        if (sharded && pieces.empty()) return diagonal_view(local, dim1, dim2, {0, 0, 0, 0});
        if (sharded && pieces.size() == 1) return diagonal_view(local, dim1, dim2, pieces[0]);
        const Shape shape = to.local_shape(self);
        const Tensor result = Tensor::zeros(shape, a.dtype(), local.device());
        std::int64_t position = 0;
        for (const DiagonalPiece& p : pieces) {
          result.narrow(-1, sharded ? position : p.first, p.length)
              .copy_from(diagonal_view(local, dim1, dim2, p));
          position += p.length;
        }
        return result;
      },
      sharded ? std::optional(strides) : std::nullopt);
}

}  // namespace

}  // namespace detail

namespace {

template <class T>
T triangle(const char* function, const T& a, bool lower, std::int64_t diagonal) {
  if (a.dim() < 2) {
    throw ValueError(function, "a tensor of shape " + to_string(a.shape()),
                     "two dimensions or more");
  }
  const std::int64_t rows = a.shape()[a.dim() - 2], columns = a.shape()[a.dim() - 1];
  return detail::triangle_part(function, a, lower, std::clamp(diagonal, -rows - 1, columns + 1));
}

}  // namespace

template <AnyTensor T>
T tril(const T& a, std::int64_t diagonal) {
  return triangle("tril", a, true, diagonal);
}

template <AnyTensor T>
T triu(const T& a, std::int64_t diagonal) {
  return triangle("triu", a, false, diagonal);
}

template <AnyTensor T>
T diagonal(const T& a, std::int64_t offset, std::int64_t dim1, std::int64_t dim2) {
  const int d1 = normalize_dim("diagonal", dim1, a.dim());
  const int d2 = normalize_dim("diagonal", dim2, a.dim());
  if (d1 == d2) {
    throw ValueError("diagonal", fmt::format("dimensions {} and {}", dim1, dim2),
                     "two different dimensions");
  }
  return detail::diagonal_part(a, detail::diagonal_of(a.shape()[d1], a.shape()[d2], offset), d1,
                               d2);
}

#define DTENSOR_INSTANTIATE(T)             \
  template T tril(const T&, std::int64_t); \
  template T triu(const T&, std::int64_t); \
  template T diagonal(const T&, std::int64_t, std::int64_t, std::int64_t);
DTENSOR_INSTANTIATE(Tensor)
DTENSOR_INSTANTIATE(DTensor)
#undef DTENSOR_INSTANTIATE

}  // namespace dtensor
