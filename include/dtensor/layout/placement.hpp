// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Placements: what one mesh dimension does with a tensor. After `torch.distributed.tensor`
/// (https://docs.pytorch.org/docs/stable/distributed.tensor.html), with uneven shards added.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dtensor/core/dtype.hpp"

namespace dtensor {

/// How the values that the ranks of a Partial mesh dimension hold make up the logical value.
enum class ReduceOp : std::uint8_t { sum, avg, min, max, product, band, bor, bxor };

inline constexpr int reduce_op_count = 8;

/// "sum", "avg", ...
const char* to_string(ReduceOp op) noexcept;

/// Throws `TypeError` naming `function` unless `op` has a meaning for the scalar type: avg needs
/// floating or complex, min and max an order, band, bor and bxor integers or bool. On bool, sum and
/// max are "or", product and min are "and".
void check_reduce_op(const char* function, ReduceOp op, DType dtype);

/// One of `Shard`, `StridedShard`, `Replicate`, `Partial`. An immutable value.
class Placement {
 public:
  enum class Kind : std::uint8_t { shard, strided_shard, replicate, partial };

  Kind kind() const noexcept { return kind_; }
  /// Shard or StridedShard; with an argument, of that tensor dimension.
  bool is_shard() const noexcept { return kind_ <= Kind::strided_shard; }
  bool is_shard(int dim) const noexcept { return is_shard() && dim_ == dim; }
  bool is_replicate() const noexcept { return kind_ == Kind::replicate; }
  bool is_partial() const noexcept { return kind_ == Kind::partial; }
  bool is_partial(ReduceOp op) const noexcept { return is_partial() && op_ == op; }

  /// Tensor dimension of a shard; may be negative (from the end) until a layout normalizes it.
  int dim() const noexcept { return dim_; }
  /// Split factor of a StridedShard, 1 for a Shard.
  std::int64_t split_factor() const noexcept { return split_factor_; }
  /// Reduce operation of a Partial.
  ReduceOp reduce_op() const noexcept { return op_; }
  /// The given extent for each mesh coordinate, empty when the even split rule applies.
  const std::vector<std::int64_t>& extents() const noexcept;
  bool has_extents() const noexcept { return extents_ != nullptr; }

  /// The same shard of another tensor dimension.
  Placement with_dim(int dim) const;

  friend bool operator==(const Placement& a, const Placement& b) noexcept;

 protected:
  Placement(Kind kind, int dim, std::int64_t split_factor, ReduceOp op,
            std::shared_ptr<const std::vector<std::int64_t>> extents)
      : kind_(kind),
        op_(op),
        dim_(dim),
        split_factor_(split_factor),
        extents_(std::move(extents)) {}

 private:
  Kind kind_;
  ReduceOp op_;
  int dim_;
  std::int64_t split_factor_;
  std::shared_ptr<const std::vector<std::int64_t>> extents_;
};

/// The mesh dimension splits tensor dimension `dim` into consecutive pieces: all of the extent
/// ceil(n / size) but for the last ones, as `torch.chunk`; or of the extents given.
struct Shard : Placement {
  /// \param dim tensor dimension; negative counts from the end
  explicit Shard(int dim) : Placement(Kind::shard, dim, 1, ReduceOp::sum, nullptr) {}
  /// \param extents one extent for each coordinate of the mesh dimension; they must add up to what
  ///                is split. Throws `ValueError` for a negative one.
  Shard(int dim, std::vector<std::int64_t> extents);
};

/// The mesh dimension splits each of `split_factor` consecutive pieces of tensor dimension `dim`;
/// a coordinate holds its part of every piece.
struct StridedShard : Placement {
  /// Throws `ValueError` when `split_factor` is below 1.
  StridedShard(int dim, std::int64_t split_factor);
};

/// Every rank of the mesh dimension holds the same.
struct Replicate : Placement {
  Replicate() : Placement(Kind::replicate, 0, 1, ReduceOp::sum, nullptr) {}
};

/// Every rank of the mesh dimension holds a contribution; the logical value is their reduction.
struct Partial : Placement {
  explicit Partial(ReduceOp op = ReduceOp::sum) : Placement(Kind::partial, 0, 1, op, nullptr) {}
};

/// One placement per mesh dimension.
using Placements = std::vector<Placement>;

/// "S(0)", "S(0,[2, 6, 1, 4])", "SS(0,2)", "R", "P", "P(max)".
std::string to_string(const Placement& placement);
/// "[S(0), R]".
std::string to_string(const Placements& placements);

}  // namespace dtensor
