// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators that move elements along one dimension: where each index of the result comes from is
// said by a few segments, and every rank gets just what it needs and lacks, in one round.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "exchange.hpp"

namespace dtensor::detail {

/// Indices `to`, `to + 1`, ... (`length` of them) of the result are the source's indices `from`,
/// `from + step`, ...
struct Segment {
  std::int64_t to, from, length;
  std::int64_t step = 1;
};
using Segments = std::vector<Segment>;

/// The same for positions in two local tensors.
struct Run {
  std::int64_t to, from, length, step;
};

/// What a rank that holds `result` gets from one that holds `source`.
std::vector<Run> runs(const IndexSet& source, const IndexSet& result, const Segments& segments);

/// Copies runs along dimension `dim` from one local tensor to another.
void copy_runs(const Tensor& to, const Tensor& from, int dim, const std::vector<Run>& runs);

/// The indices of a dimension that a mesh coordinate holds.
using HeldBy = std::function<IndexSet(const Extents&)>;

/// Moves from one or several tensors into one.
class Rearrangement {
 public:
  /// A tensor that takes part.
  struct Side {
    Tensor local;               ///< this rank's part
    Layout layout;              ///< for the event stream and the comparison of all ranks
    std::vector<int> split_by;  ///< mesh dimensions along which ranks hold different indices
    HeldBy set;
  };
  /// \param dim  of the local tensors; these have equal extents otherwise
  Rearrangement(const DeviceMesh& mesh, Side result, int dim)
      : mesh_(mesh), result_(std::move(result)), dim_(dim), exchange_(mesh) {}

  void add(const Side& source, const Segments& segments);
  /// Collective over the mesh if any rank lacks something, local otherwise.
  void run(const char* operation, const char* reason);

 private:
  struct Arrival {
    Tensor packed;
    std::vector<Run> runs;  // from positions in `packed`
  };
  DeviceMesh mesh_;
  Side result_;
  int dim_;
  std::optional<Layout> source_;
  Exchange exchange_;
  std::vector<Arrival> arrivals_;
  Hash what_;
  bool communicates_ = false;
};

}  // namespace dtensor::detail
