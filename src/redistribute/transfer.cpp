// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/redistribute/transfer.hpp"

#include <algorithm>

namespace dtensor {

namespace {

std::int64_t length(const std::vector<Overlap>& runs) {
  std::int64_t sum = 0;
  for (const Overlap& o : runs) sum += o.length;
  return sum;
}

// The part of consecutive runs from position `begin` to `end` of their concatenation.
std::vector<Overlap> cut(const std::vector<Overlap>& runs, std::int64_t begin, std::int64_t end) {
  std::vector<Overlap> result;
  std::int64_t position = 0;
  for (const Overlap& o : runs) {
    const std::int64_t from = std::max<std::int64_t>(begin - position, 0);
    const std::int64_t to = std::min(end - position, o.length);
    if (from < to) result.push_back({o.first + from, o.second + from, to - from});
    position += o.length;
    if (position >= end) break;
  }
  return result;
}

void slice_from(const Transfer& transfer, std::size_t dim, std::int64_t max_elements,
                std::vector<Transfer>& result) {
  if (transfer.elements <= max_elements || dim == transfer.runs.size()) {
    if (!transfer.empty()) result.push_back(transfer);
    return;
  }
  const std::int64_t extent = length(transfer.runs[dim]);
  const std::int64_t step = std::max<std::int64_t>(max_elements / (transfer.elements / extent), 1);
  for (std::int64_t begin = 0; begin < extent; begin += step) {
    Transfer part = transfer;
    part.runs[dim] = cut(transfer.runs[dim], begin, std::min(begin + step, extent));
    part.count();
    slice_from(part, dim + 1, max_elements, result);
  }
}

}  // namespace

void Transfer::count() noexcept {
  elements = 1;
  for (const auto& r : runs) elements *= length(r);
}

std::vector<Transfer> slice(const Transfer& transfer, std::int64_t max_elements) {
  std::vector<Transfer> result;
  slice_from(transfer, 0, std::max<std::int64_t>(max_elements, 1), result);
  return result;
}

bool is_block(const Transfer& transfer, const Shape& local_shape) {
  // From the last dimension on: full dimensions, then one partial run, then single positions.
  bool full = true;
  for (int d = local_shape.size() - 1; d >= 0; --d) {
    const auto& runs = transfer.runs[static_cast<std::size_t>(d)];
    if (runs.size() != 1) return false;
    if (!full && runs[0].length != 1) return false;
    full = full && runs[0].length == local_shape[d];
  }
  return true;
}

}  // namespace dtensor
