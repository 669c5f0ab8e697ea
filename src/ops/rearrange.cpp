// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rearrange.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "dtensor/core/strided_copy.hpp"
#include "dtensor/ops/view_rule.hpp"

namespace dtensor::detail {

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0); }

// For each interval of a set, the position of its first index.
std::vector<std::int64_t> positions(const IndexSet& set) {
  std::vector<std::int64_t> result;
  std::int64_t position = 0;
  for (const Interval& i : set.intervals()) {
    result.push_back(position);
    position += i.length();
  }
  return result;
}

// Steps from `from` on, in steps of `step`, until a value reaches `bound` or more (`step` > 0), or
// `bound` or less.
std::int64_t steps_to(std::int64_t from, std::int64_t step, std::int64_t bound) {
  return step > 0 ? ceil_div(bound - from, step) : ceil_div(from - bound, -step);
}

std::int64_t total(const std::vector<Run>& runs) {
  std::int64_t sum = 0;
  for (const Run& r : runs) sum += r.length;
  return sum;
}

// The runs' source elements one after the other.
Tensor pack(const Tensor& from, int dim, const std::vector<Run>& runs) {
  if (runs.size() == 1 && runs[0].step == 1) {
    return from.narrow(dim, runs[0].from, runs[0].length).contiguous();
  }
  Shape shape = from.shape();
  shape[dim] = total(runs);
  const Tensor packed = Tensor::empty(shape, from.dtype(), from.device());
  std::vector<Run> dense = runs;
  std::int64_t position = 0;
  for (Run& r : dense) {
    r.to = position;
    position += r.length;
  }
  copy_runs(packed, from, dim, dense);
  return packed;
}

}  // namespace

std::vector<Run> runs(const IndexSet& source, const IndexSet& result, const Segments& segments) {
  std::vector<Run> list;
  const auto source_at = positions(source), result_at = positions(result);
  const auto& from = source.intervals();
  const auto& to = result.intervals();
  const auto ends_after = [](const Interval& i, std::int64_t index) { return i.end <= index; };
  for (const Segment& s : segments) {
    auto t = std::lower_bound(to.begin(), to.end(), s.to, ends_after);
    for (; t != to.end() && t->begin < s.to + s.length; ++t) {
      // Steps `first` to `last - 1` of the segment are in this interval of the result.
      const std::int64_t first = std::max<std::int64_t>(t->begin - s.to, 0);
      const std::int64_t last = std::min(t->end - s.to, s.length);
      const std::int64_t lowest = s.from + s.step * (s.step > 0 ? first : last - 1);
      const std::int64_t highest = s.from + s.step * (s.step > 0 ? last - 1 : first);
      auto f = std::lower_bound(from.begin(), from.end(), lowest, ends_after);
      for (; f != from.end() && f->begin <= highest; ++f) {
        const std::int64_t enters = s.step > 0 ? f->begin : f->end - 1;
        const std::int64_t leaves = s.step > 0 ? f->end : f->begin - 1;
        const std::int64_t begin = std::max(first, steps_to(s.from, s.step, enters));
        const std::int64_t end = std::min(last, steps_to(s.from, s.step, leaves));
        if (begin >= end) continue;
        const auto ti = static_cast<std::size_t>(t - to.begin());
        const auto fi = static_cast<std::size_t>(f - from.begin());
        list.push_back({result_at[ti] + s.to + begin - t->begin,
                        source_at[fi] + s.from + s.step * begin - f->begin, end - begin, s.step});
      }
    }
  }
  return list;
}

void copy_runs(const Tensor& to, const Tensor& from, int dim, const std::vector<Run>& runs) {
  const std::int64_t size = size_of(to.dtype());
  const auto at = [&](const Tensor& t, std::int64_t position) {
    return static_cast<unsigned char*>(t.data()) + position * t.strides()[dim] * size;
  };
  if (to.numel() == 0 || from.numel() == 0) return;
  for (const Run& r : runs) {
    Shape extents = to.shape();
    extents[dim] = r.length;
    Extents strides = from.strides();
    strides[dim] *= r.step;
    copy_strided({at(to, r.to), to.strides()}, {at(from, r.from), strides}, extents, size,
                 to.device());
  }
}

void Rearrangement::add(const Side& source, const Segments& segments) {
  const ProcessGrid& grid = *mesh_.grid();
  const Extents& self = *mesh_.coordinate();
  if (!source_) source_ = source.layout;
  what_.add(source.layout.hash());
  for (const Segment& s : segments) {
    for (std::int64_t v : {s.to, s.from, s.length, s.step}) {
      what_.add(static_cast<std::uint64_t>(v));
    }
  }
  const IndexSet own = source.set(self), needed = result_.set(self);
  copy_runs(result_.local, source.local, dim_, runs(own, needed, segments));
  // Every rank does the same arithmetic: does each hold all that it needs?
  std::vector<int> all = source.split_by;
  for (int m : result_.split_by) {
    if (std::find(all.begin(), all.end(), m) == all.end()) all.push_back(m);
  }
  const IndexSet everything(0, source.layout.shape().product());
  const auto coordinates = coordinates_along(grid, all, self);
  const bool each_has_all =
      std::all_of(coordinates.begin(), coordinates.end(), [&](const Extents& c) {
        const IndexSet needs = result_.set(c);
        return total(runs(source.set(c), needs, segments)) ==
               total(runs(everything, needs, segments));
      });
  if (each_has_all) return;
  communicates_ = true;
  // Ranks that hold the same as this one serve others: each is served by one that differs from it
  // only along the mesh dimensions that split the source.
  for (const Extents& c : coordinates_along(grid, source.split_by, self)) {
    if (c == self) continue;
    const std::int64_t peer = grid.position_at(c);
    if (const auto given = runs(own, result_.set(c), segments); !given.empty()) {
      exchange_.send(peer, pack(source.local, dim_, given));
    }
    auto taken = runs(source.set(c), needed, segments);
    if (taken.empty()) continue;
    Shape shape = result_.local.shape();
    shape[dim_] = total(taken);
    const Tensor packed = Tensor::empty(shape, result_.local.dtype(), result_.local.device());
    exchange_.receive(peer, packed);
    std::int64_t position = 0;
    for (Run& r : taken) {
      r.from = position;
      r.step = 1;
      position += r.length;
    }
    arrivals_.push_back({packed, std::move(taken)});
  }
}

void Rearrangement::run(const char* operation, const char* reason) {
  const Tensor& result = result_.local;
  if (communicates_) {
    what_.add(result_.layout.hash());
    what_.add(static_cast<std::uint64_t>(result.dtype()));
    auto error =
        announce_exchange(operation, reason, exchange_.bytes_sent(), *source_, result_.layout);
    exchange_.run(what_.value(),
                  start_agreement(mesh_, operation, what_,
                                  fmt::format("{} {} from {}", to_string(result.dtype()),
                                              to_string(result_.layout), to_string(*source_)),
                                  std::move(error)));
    for (const Arrival& a : arrivals_) copy_runs(result, a.packed, dim_, a.runs);
  }
  fence(result.device(), "dtensor::rearrange");
}

}  // namespace dtensor::detail
