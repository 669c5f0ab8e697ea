// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/layout/process_grid.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtensor/core/error.hpp"
#include "dtensor/layout/hash.hpp"

namespace dtensor {

ProcessGrid::ProcessGrid(const Shape& shape, std::vector<int> ranks, std::vector<std::string> names)
    : shape_(shape), ranks_(std::move(ranks)), names_(std::move(names)) {
  const char* const function = "DeviceMesh";
  for (std::int64_t extent : shape_) {
    if (extent < 1) {
      throw ValueError(function, fmt::format("mesh shape {}", to_string(shape_)),
                       "extents of 1 or more");
    }
  }
  if (shape_.empty()) {
    throw ValueError(function, "a mesh without dimensions", "at least one mesh dimension");
  }
  if (checked_element_count(function, shape_) != size()) {
    throw ValueError(function, fmt::format("mesh shape {} for {} ranks", to_string(shape_), size()),
                     "as many ranks as the mesh has places");
  }
  std::vector<int> sorted = ranks_;
  std::sort(sorted.begin(), sorted.end());
  if (sorted.front() < 0) {
    throw ValueError(function, fmt::format("rank {}", sorted.front()), "ranks of 0 or more");
  }
  if (auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    throw ValueError(function, fmt::format("rank {} twice", *twice), "every rank at most once");
  }
  if (!names_.empty() && static_cast<int>(names_.size()) != dim()) {
    throw ValueError(function,
                     fmt::format("{} names ({}) for {} mesh dimensions", names_.size(),
                                 fmt::join(names_, ", "), dim()),
                     "one name per mesh dimension, or none");
  }
  std::vector<std::string> sorted_names = names_;
  std::sort(sorted_names.begin(), sorted_names.end());
  if (auto twice = std::adjacent_find(sorted_names.begin(), sorted_names.end());
      twice != sorted_names.end()) {
    throw ValueError(function, fmt::format("mesh dimension name \"{}\" twice", *twice),
                     "a different name for each mesh dimension");
  }
  consecutive_ = ranks_ == sorted && sorted.back() - sorted.front() + 1 == size();
  Hash h;
  h.add_range(shape_);
  h.add_range(ranks_);
  for (const auto& name : names_) h.add(std::hash<std::string>{}(name));
  hash_ = h.value();
}

std::optional<std::int64_t> ProcessGrid::position_of(int rank) const noexcept {
  if (consecutive_) {
    const std::int64_t position = rank - ranks_.front();
    if (position < 0 || position >= size()) return std::nullopt;
    return position;
  }
  const auto it = std::find(ranks_.begin(), ranks_.end(), rank);
  if (it == ranks_.end()) return std::nullopt;
  return it - ranks_.begin();
}

std::optional<Extents> ProcessGrid::coordinate_of(int rank) const {
  const auto position = position_of(rank);
  if (!position) return std::nullopt;
  return coordinate_at(*position);
}

Extents ProcessGrid::coordinate_at(std::int64_t position) const {
  Extents coordinate = shape_;
  for (int d = dim() - 1; d >= 0; --d) {
    coordinate[d] = position % shape_[d];
    position /= shape_[d];
  }
  return coordinate;
}

std::int64_t ProcessGrid::position_at(const Extents& coordinate) const noexcept {
  std::int64_t position = 0;
  for (int d = 0; d < dim(); ++d) position = position * shape_[d] + coordinate[d];
  return position;
}

int ProcessGrid::dim_of(const std::string& name) const {
  const auto it = std::find(names_.begin(), names_.end(), name);
  if (it == names_.end()) {
    throw ValueError("DeviceMesh", fmt::format("mesh dimension \"{}\"", name),
                     names_.empty() ? std::string("a mesh with named dimensions")
                                    : fmt::format("one of {}", fmt::join(names_, ", ")));
  }
  return static_cast<int>(it - names_.begin());
}

ProcessGrid ProcessGrid::slice(const std::vector<int>& mesh_dims, const Extents& coordinate) const {
  Shape shape;
  std::vector<std::string> names;
  for (int d : mesh_dims) {
    shape.push_back(shape_[d]);
    if (!names_.empty()) names.push_back(names_[static_cast<std::size_t>(d)]);
  }
  std::vector<int> ranks;
  const std::int64_t count = shape.product();
  for (std::int64_t i = 0; i < count; ++i) {
    Extents c = coordinate;
    std::int64_t rest = i;
    for (int d = shape.size() - 1; d >= 0; --d) {
      c[mesh_dims[static_cast<std::size_t>(d)]] = rest % shape[d];
      rest /= shape[d];
    }
    ranks.push_back(rank_at(position_at(c)));
  }
  return ProcessGrid(shape, std::move(ranks), std::move(names));
}

ProcessGrid ProcessGrid::flatten(const std::string& name) const {
  std::vector<std::string> names;
  if (!name.empty()) names.push_back(name);
  return ProcessGrid(Shape{size()}, ranks_, std::move(names));
}

std::string to_string(const ProcessGrid& grid) {
  std::string text = "(";
  for (int d = 0; d < grid.dim(); ++d) {
    if (d > 0) text += ", ";
    if (!grid.names().empty()) text += grid.names()[static_cast<std::size_t>(d)] + "=";
    text += fmt::format("{}", grid.size(d));
  }
  const auto& r = grid.ranks();
  if (r.size() > 16) return fmt::format("{}) of {} ranks from {}", text, r.size(), r.front());
  return fmt::format("{}) of ranks [{}]", text, fmt::join(r, ", "));
}

}  // namespace dtensor
