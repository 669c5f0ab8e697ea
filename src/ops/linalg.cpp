// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/linalg.hpp"

#include <fmt/format.h>

#include "contraction.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/einsum.hpp"
#include "dtensor/ops/local/matmul.hpp"
#include "dtensor/ops/promotion.hpp"

namespace dtensor::detail {

namespace {

[[noreturn]] void throw_shapes(const char* name, const Shape& a, const Shape& b,
                               const char* expected) {
  throw ValueError(name, fmt::format("shapes {} and {}", to_string(a), to_string(b)), expected);
}

template <class T>
void check_ranks(const char* name, const T& a, const T& b, int rank, const char* expected) {
  if (a.dim() != rank || b.dim() != rank) throw_shapes(name, a.shape(), b.shape(), expected);
}

constexpr const char* matrices = "matrices (m, k) and (k, n) with equal k";

template <class T>
T product(const char* name, const T& a, const T& b) {
  static const Contraction flat[2][2] = {{{"k", "k", ""}, {"k", "kn", "n"}},
                                         {{"mk", "k", "m"}, {"mk", "kn", "mn"}}};
  static constexpr const char* batched[2][2] = {{"", "k,...kn->...n"},
                                                {"...mk,k->...m", "...mk,...kn->...mn"}};
  common_dtype(name, a.dtype(), b.dtype());
  const Shape &x = a.shape(), &y = b.shape();
  const bool fits = x.size() > 0 && y.size() > 0 && x[x.size() - 1] == y[std::max(y.size() - 2, 0)];
  bool broadcasts = fits;
  for (int d = 3; fits && d <= std::min(x.size(), y.size()); ++d) {
    const std::int64_t m = x[x.size() - d], n = y[y.size() - d];
    broadcasts &= m == n || m == 1 || n == 1;
  }
  if (!broadcasts) {
    throw_shapes(name, x, y,
                 "matrices or vectors, (..., m, k) and (..., k, n), with equal k and other "
                 "dimensions that can be broadcast");
  }
  const int i = x.size() > 1, j = y.size() > 1;
  if (x.size() <= 2 && y.size() <= 2) return contract(name, flat[i][j], a, b);
  return einsum(name, batched[i][j], std::vector<T>{a, b});
}

template <class T>
T batch_product(const T& a, const T& b) {
  static const Contraction contraction("bmk", "bkn", "bmn");
  constexpr const char* expected = "batches of matrices (b, m, k) and (b, k, n) with equal b and k";
  common_dtype("bmm", a.dtype(), b.dtype());
  check_ranks("bmm", a, b, 3, expected);
  if (a.shape()[0] != b.shape()[0] || a.shape()[2] != b.shape()[1]) {
    throw_shapes("bmm", a.shape(), b.shape(), expected);
  }
  return contract("bmm", contraction, a, b);
}

template <class T>
T inner_product(const T& a, const T& b) {
  check_ranks("dot", a, b, 1, "vectors of equal length");
  return product("dot", a, b);
}

template <class T>
T outer_product(const T& a, const T& b) {
  static const Contraction contraction("m", "n", "mn");
  common_dtype("outer", a.dtype(), b.dtype());
  check_ranks("outer", a, b, 1, "two vectors");
  return contract("outer", contraction, a, b);
}

template <class T>
T diagonal_sum(const T& a) {
  static const Reordering sum("a", "");
  if (a.dim() != 2 || a.shape()[0] != a.shape()[1]) {
    throw ValueError("trace", fmt::format("shape {}", to_string(a.shape())), "a square matrix");
  }
  return reorder("trace", sum, diagonal("trace", a, 0, 1));
}

bool is_equal(const Scalar& number, double value) {
  const auto z = number.to<Kokkos::complex<double>>();
  return z.real() == value && z.imag() == 0;
}
bool is_zero(const Scalar& number) { return is_equal(number, 0); }

void check_addmm(const Shape& bias, DType bias_dtype, const Shape& a, DType a_dtype, const Shape& b,
                 DType b_dtype, const Scalar& beta, const Scalar& alpha) {
  const DType dtype = common_dtype("addmm", common_dtype("addmm", a_dtype, b_dtype), bias_dtype);
  for (const Scalar& factor : {beta, alpha}) {
    if (is_zero(factor) || is_equal(factor, 1)) continue;
    if (common_dtype("addmm", dtype, factor) == dtype) continue;
    throw TypeError(
        "addmm",
        fmt::format("the factor {} for tensors of {}", to_string(factor), to_string(dtype)),
        "factors that the tensors' scalar type can hold");
  }
  if (a.size() != 2 || b.size() != 2 || a[1] != b[0]) throw_shapes("addmm", a, b, matrices);
  const Shape product{a[0], b[1]};
  bool fits = bias.size() <= 2;
  for (int d = 1; fits && d <= bias.size(); ++d) {
    const std::int64_t extent = bias[bias.size() - d];
    fits = extent == 1 || extent == product[2 - d];
  }
  if (!fits) {
    throw_shapes("addmm", bias, product, "a bias that can be broadcast to the product's shape");
  }
}

// The dimension of a bias that runs along one of the product, if it has more than one element.
std::optional<int> dim_along(const Shape& bias, const Shape& product, int dim) {
  const int d = dim - (product.size() - bias.size());
  if (d < 0 || bias[d] != product[dim]) return std::nullopt;
  return d;
}

// Where the bias has to be for each rank to add to its part of the product.
Layout bias_layout(const Layout& bias, const Layout& product) {
  Placements placements;
  ShardOrder order;
  const auto shards = [&](int dim) {
    return std::any_of(placements.begin(), placements.end(),
                       [dim](const Placement& p) { return p.is_shard(dim); });
  };
  for (const Placement& p : product.placements()) {
    const auto dim =
        p.is_shard() ? dim_along(bias.shape(), product.shape(), p.dim()) : std::nullopt;
    placements.push_back(dim ? p.with_dim(*dim) : p.is_shard() ? Placement(Replicate()) : p);
  }
  for (const auto& [dim, mesh_dims] : product.shard_order()) {
    if (const auto d = dim_along(bias.shape(), product.shape(), dim))
      order.emplace_back(*d, mesh_dims);
  }
  // Contributions to a sum: each rank may add just the part of the bias that it has.
  for (int m = 0; m < product.grid()->dim(); ++m) {
    const Placement& has = bias.placement(m);
    if (product.placement(m).is_partial(ReduceOp::sum) && has.is_shard() && !shards(has.dim())) {
      placements[static_cast<std::size_t>(m)] = has;
    }
  }
  return Layout(bias.shape(), product.grid(), std::move(placements), order);
}

// What this rank has of a bias and of a product: the tensor, and the indices of each dimension.
struct Part {
  Tensor local;
  std::vector<IndexSet> indices;

  explicit Part(const Tensor& whole) : local(whole) {
    for (std::int64_t extent : whole.shape()) indices.emplace_back(0, extent);
  }
  Part(const Tensor& part, const Layout& layout, const Extents& coordinate) : local(part) {
    for (int d = 0; d < layout.shape().size(); ++d) {
      indices.push_back(layout.index_set(coordinate, d));
    }
  }
};

// Writes the bias into the product, and zero where this rank has no part of it.
void write_bias(const Part& bias, const Shape& bias_shape, const Part& product,
                const Shape& product_shape) {
  std::vector<Overlap> runs[2];
  Extents strides;
  std::int64_t written = 1;
  for (int d = 0; d < 2; ++d) {
    const IndexSet& indices = product.indices[static_cast<std::size_t>(d)];
    const int own = d - (2 - bias_shape.size());
    if (const auto dim = dim_along(bias_shape, product_shape, d)) {
      runs[d] = intersect(indices, bias.indices[static_cast<std::size_t>(*dim)]);
      strides.push_back(bias.local.strides()[*dim]);
    } else {
      // One element for all.
      if (own < 0 || bias.local.shape()[own] > 0) runs[d] = {{0, 0, indices.size()}};
      strides.push_back(0);
    }
    std::int64_t length = 0;
    for (const Overlap& run : runs[d]) length += run.length;
    written *= length;
  }
  if (written < product.local.numel()) product.local.fill(0);
  if (written == 0) return;
  for (const Overlap& row : runs[0]) {
    for (const Overlap& column : runs[1]) {
      product.local.narrow(0, row.first, row.length)
          .narrow(1, column.first, column.length)
          .copy_from(bias.local.as_strided(
              {row.length, column.length}, strides,
              bias.local.storage_offset() + row.second * strides[0] + column.second * strides[1]));
    }
  }
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) { return product("matmul", a, b); }
DTensor matmul(const DTensor& a, const DTensor& b) { return product("matmul", a, b); }

Tensor mm(const Tensor& a, const Tensor& b) {
  check_ranks("mm", a, b, 2, matrices);
  return product("mm", a, b);
}
DTensor mm(const DTensor& a, const DTensor& b) {
  check_ranks("mm", a, b, 2, matrices);
  return product("mm", a, b);
}

Tensor bmm(const Tensor& a, const Tensor& b) { return batch_product(a, b); }
DTensor bmm(const DTensor& a, const DTensor& b) { return batch_product(a, b); }
Tensor dot(const Tensor& a, const Tensor& b) { return inner_product(a, b); }
DTensor dot(const DTensor& a, const DTensor& b) { return inner_product(a, b); }
Tensor outer(const Tensor& a, const Tensor& b) { return outer_product(a, b); }
DTensor outer(const DTensor& a, const DTensor& b) { return outer_product(a, b); }
Tensor trace(const Tensor& a) { return diagonal_sum(a); }
DTensor trace(const DTensor& a) { return diagonal_sum(a); }

Tensor addmm(const Tensor& bias, const Tensor& a, const Tensor& b, const Scalar& beta,
             const Scalar& alpha) {
  check_addmm(bias.shape(), bias.dtype(), a.shape(), a.dtype(), b.shape(), b.dtype(), beta, alpha);
  check_same_memory("addmm", a, b);
  check_same_memory("addmm", a, bias);
  const Part result(Tensor::empty({a.shape()[0], b.shape()[1]}, a.dtype(), a.device()));
  if (!is_zero(beta)) write_bias(Part(bias), bias.shape(), result, result.local.shape());
  gemm(alpha, a, b, beta, result.local);
  return result.local;
}

DTensor addmm(const DTensor& bias, const DTensor& a, const DTensor& b, const Scalar& beta,
              const Scalar& alpha) {
  static const Rule rule("mk,kn->mn", in_each());
  check_addmm(bias.shape(), bias.dtype(), a.shape(), a.dtype(), b.shape(), b.dtype(), beta, alpha);
  if (!(bias.device_mesh() == a.device_mesh())) {
    throw LayoutError(
        "addmm",
        fmt::format("inputs on {} and on {}", to_string(bias.device_mesh()),
                    to_string(a.device_mesh())),
        "inputs on one mesh; redistribute(mesh, placements) moves a tensor to another");
  }
  const Operation operation{"addmm", rule, a.dtype()};
  const Prepared ready = prepare(operation, {a, b});
  const bool adds = !is_zero(beta);
  const DTensor placed =
      adds ? redistribute(bias, bias.device_mesh(), bias_layout(bias.layout(), ready.output), true,
                          "addmm", "the bias follows the placement of the product")
           : bias;
  return wrap(operation, a.device_mesh(), ready.output, [&] {
    const Extents& coordinate = *a.device_mesh().coordinate();
    const Tensor &x = ready.inputs[0].to_local(), &y = ready.inputs[1].to_local();
    const Part result(Tensor::empty({x.shape()[0], y.shape()[1]}, a.dtype(), x.device()),
                      ready.output, coordinate);
    if (adds) {
      write_bias(Part(placed.to_local(), placed.layout(), coordinate), bias.shape(), result,
                 ready.output.shape());
    }
    gemm(alpha, x, y, beta, result.local);
    return result.local;
  });
}

}  // namespace dtensor::detail
