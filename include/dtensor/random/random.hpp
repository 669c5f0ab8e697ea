// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Random tensors, on `Tensor` and `DTensor` alike, after `torch.rand` and its kin.
///
/// What an element becomes depends on the generator's state and on the element's row-major position
/// in the whole tensor: any mesh, any placements, any number of ranks and every backend give the
/// same bits. Replicas are equal, shards do not repeat one another, and nothing but `multinomial`
/// over sharded categories communicates. Every call takes one offset of the generator, on every
/// rank alike.
///
/// All of these throw `LayoutError` for a Partial tensor, since random contributions make up no
/// number of the distribution; `TypeError` for a scalar type that the function does not take;
/// `StateError` when the generator's stream is used up. The generator has not advanced then, but
/// by `multinomial`.
#pragma once

#include <cstdint>
#include <optional>

#include "dtensor/distributed/factories.hpp"
#include "dtensor/ops/any_tensor.hpp"
#include "dtensor/random/generator.hpp"
#include "dtensor/random/global_index.hpp"

namespace dtensor {

namespace detail {
/// What this process holds of a tensor, and which elements of the whole those are.
struct Part {
  Tensor local;
  Shape shape;                 ///< of the whole; dimensions held wholly are one with the one before
  std::vector<IndexSet> sets;  ///< per such dimension
  Shape whole = {};            ///< shape and strides of the whole, alike on every rank
  Extents strides = {};
};
/// Throws `LayoutError` naming `function` for a Partial tensor.
Part part_of(const char* function, const Tensor& tensor);
Part part_of(const char* function, const DTensor& tensor);
/// Uninitialized, of the shape and in the place of `like`.
Tensor empty_like(const Tensor& like, DType dtype);
DTensor empty_like(const DTensor& like, DType dtype);

void uniform(const char* function, const Part& out, const Scalar& low, const Scalar& high,
             Generator& generator);
void normal(const char* function, const Part& out, const Scalar& mean, double std,
            Generator& generator);
void exponential(const Part& out, double rate, Generator& generator);
void bernoulli(const Part& out, double p, Generator& generator);
void bernoulli(const Part& out, const Part& probabilities, Generator& generator);
void randint(const Part& out, std::int64_t low, std::int64_t high, Generator& generator);
void randperm(const Part& out, std::int64_t n, Generator& generator);
/// Throws for another type than `dropout` takes, and unless `p` is a probability.
void require_dropout(const Part& in, double p);
void dropout(const Part& out, const Part& in, double p, Generator& generator);
}  // namespace detail

// ---- new tensors --------------------------------------------------------------------------------
// A DTensor's `mesh` is the current `MeshScope`'s when left out. Throw `LayoutError` when
// placements do not fit, `ValueError` for a bad shape. Local.

/// Uniform on [0, 1), never 1. Floating or complex (then both parts).
Tensor rand(const Shape& shape, DType dtype, DeviceKind device = DeviceKind::device,
            Generator& generator = default_generator());
DTensor rand(const Shape& shape, const DeviceMesh& mesh, const Placements& placements,
             DType dtype = DType::float64, Generator& generator = default_generator());
DTensor rand(const Shape& shape, const FactoryOptions& options = {},
             Generator& generator = default_generator());

/// Normal of mean 0 and variance 1. Floating or complex (then each part has variance 1/2).
Tensor randn(const Shape& shape, DType dtype, DeviceKind device = DeviceKind::device,
             Generator& generator = default_generator());
DTensor randn(const Shape& shape, const DeviceMesh& mesh, const Placements& placements,
              DType dtype = DType::float64, Generator& generator = default_generator());
DTensor randn(const Shape& shape, const FactoryOptions& options = {},
              Generator& generator = default_generator());

/// Integers from `low` to `high - 1`, all equally likely. Throws `ValueError` unless `low < high`
/// and the scalar type holds both `low` and `high - 1`.
Tensor randint(std::int64_t low, std::int64_t high, const Shape& shape, DType dtype,
               DeviceKind device = DeviceKind::device, Generator& generator = default_generator());
DTensor randint(std::int64_t low, std::int64_t high, const Shape& shape, const DeviceMesh& mesh,
                const Placements& placements, DType dtype = DType::int64,
                Generator& generator = default_generator());

/// The integers from 0 to `n - 1` in random order. Each rank computes its own part, in constant
/// memory beside it: a keyed bijection of the position; see docs/random.md for what permutations
/// there are. Throws `ValueError` for a negative `n` or one that the scalar type does not hold.
Tensor randperm(std::int64_t n, DType dtype, DeviceKind device = DeviceKind::device,
                Generator& generator = default_generator());
DTensor randperm(std::int64_t n, const DeviceMesh& mesh, const Placements& placements,
                 DType dtype = DType::int64, Generator& generator = default_generator());

/// As `rand` and `randn`, of the shape, scalar type and layout of `like`.
template <AnyTensor T>
T rand_like(const T& like, Generator& generator = default_generator()) {
  detail::part_of("rand_like", like);
  const T out = detail::empty_like(like, like.dtype());
  detail::uniform("rand_like", detail::part_of("rand_like", out), 0, 1, generator);
  return out;
}
template <AnyTensor T>
T randn_like(const T& like, Generator& generator = default_generator()) {
  detail::part_of("randn_like", like);
  const T out = detail::empty_like(like, like.dtype());
  detail::normal("randn_like", detail::part_of("randn_like", out), 0, 1, generator);
  return out;
}

// ---- in place -----------------------------------------------------------------------------------
// They overwrite every element of `x` and return it. Throw `ValueError` for an argument that is not
// finite in the tensor's type, or complex where that is real; and where elements of this process's
// part share memory, as in an expanded tensor (the generator has advanced then, as on other ranks).
// Local.

/// Uniform on [low, high), never `high` unless the two are equal in the tensor's type. Floating or
/// complex, then each part between those of the bounds. Throws `ValueError` unless `low <= high`
/// and their difference is finite in the tensor's type.
template <AnyTensor T>
T uniform_(const T& x, const Scalar& low = 0, const Scalar& high = 1,
           Generator& generator = default_generator()) {
  detail::uniform("uniform_", detail::part_of("uniform_", x), low, high, generator);
  return x;
}
/// Normal of that mean and standard deviation. Floating or complex; a complex number's parts share
/// the variance. Throws `ValueError` for a negative deviation.
template <AnyTensor T>
T normal_(const T& x, const Scalar& mean = 0, double std = 1,
          Generator& generator = default_generator()) {
  detail::normal("normal_", detail::part_of("normal_", x), mean, std, generator);
  return x;
}
/// Exponential of mean `1 / rate`, above 0 but for what rounds to it. Floating. Throws `ValueError`
/// unless `rate` is positive and its inverse finite in the tensor's type.
template <AnyTensor T>
T exponential_(const T& x, double rate = 1, Generator& generator = default_generator()) {
  detail::exponential(detail::part_of("exponential_", x), rate, generator);
  return x;
}
/// 1 with probability `p` (rounded up to a multiple of 2^-32), else 0, in any scalar type. Throws
/// `ValueError` unless 0 <= p <= 1.
template <AnyTensor T>
T bernoulli_(const T& x, double p = 0.5, Generator& generator = default_generator()) {
  detail::bernoulli(detail::part_of("bernoulli_", x), p, generator);
  return x;
}

// ---- from a tensor ------------------------------------------------------------------------------

/// 1 with the probability that the element of `probabilities` says, else 0, in its type and layout.
/// Floating. An element below 0 or not a number gives 0, one above 1 gives 1. Local.
template <AnyTensor T>
T bernoulli(const T& probabilities, Generator& generator = default_generator()) {
  const detail::Part in = detail::part_of("bernoulli", probabilities);
  const T out = detail::empty_like(probabilities, probabilities.dtype());
  detail::bernoulli(detail::part_of("bernoulli", out), in, generator);
  return out;
}

/// Each element becomes 0 with probability `p` (rounded up to a multiple of 2^-32) and is divided
/// by `1 - p` otherwise. Floating or complex. Without `training` the input itself, and the
/// generator does not advance. Throws `ValueError` unless 0 <= p <= 1. Local.
template <AnyTensor T>
T dropout(const T& x, double p = 0.5, bool training = true,
          Generator& generator = default_generator()) {
  const detail::Part in = detail::part_of("dropout", x);
  detail::require_dropout(in, p);
  if (!training) return x;
  const T out = detail::empty_like(x, x.dtype());
  detail::dropout(detail::part_of("dropout", out), in, p, generator);
  return out;
}

/// Draws categories: a row of `num_samples` category numbers (int64) for each row of `weights`, or
/// for all of them when there is one dimension. Weights need not add up to 1. With replacement they
/// are rounded to multiples of 2^-52 of the largest of their row (of 2^-62 times the number of
/// categories, rounded up to a power of two, where these are more than 2^10), so that smaller ones
/// than half of it count as 0; without, every positive weight counts. Floating.
///
/// \param weights      (categories) or (rows, categories)
/// \param replacement  whether a category can be drawn more than once in a row
///
/// The result has the layout of the rows, and is replicated where the categories are sharded. Over
/// sharded categories there travel, per row, the sums of each rank's weights and the result;
/// without replacement each rank's `num_samples` candidates. Throws on every rank `ValueError` for
/// another number of dimensions, a negative or infinite weight or one that is not a number, a row
/// of zeros, `num_samples` below 1 or, without replacement, beyond the number of positive weights;
/// `MismatchError` where ranks give different arguments or generators. The generator advances even
/// when it throws (but for a `StateError`), since ranks outside of the mesh do not learn of it.
/// Collective over the mesh where it is sharded, local otherwise.
Tensor multinomial(const Tensor& weights, std::int64_t num_samples, bool replacement = false,
                   Generator& generator = default_generator());
DTensor multinomial(const DTensor& weights, std::int64_t num_samples, bool replacement = false,
                    Generator& generator = default_generator());

}  // namespace dtensor
