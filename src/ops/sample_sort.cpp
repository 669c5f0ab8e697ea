// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A sample sort (Frazer, McKellar 1970; with regular samples, Shi, Schaeffer 1992) of all lines at
// once: splitters from samples of all ranks, one bucket of every line per rank, and from there to
// the ranks that hold the positions. Pairs are all different, so that the buckets are of similar
// size however many equal values there are.
#include "sample_sort.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "dtensor/comm/communication_scope.hpp"
#include "dtensor/ops/view_rule.hpp"
#include "exchange.hpp"
#include "local/indexing.hpp"

namespace dtensor::detail {

namespace {

using Counts = std::vector<std::int64_t>;

class SampleSort {
 public:
  SampleSort(const DeviceMesh& mesh, const Layout& layout, int dim, DType dtype,
             const PairOrder& order, std::int64_t lines)
      : mesh_(mesh),
        layout_(layout),
        dim_(dim),
        dtype_(dtype),
        order_(order),
        lines_(lines),
        group_(coordinates_along(*mesh.grid(), layout.split_by(dim), *mesh.coordinate())) {
    self_ = static_cast<std::size_t>(std::find(group_.begin(), group_.end(), *mesh.coordinate()) -
                                     group_.begin());
  }

  Tensor run(const Tensor& pairs) {
    const Tensor splitters = choose_splitters(gather(sample(pairs), "samples of all ranks"));
    const Counts before = count_before(pairs, splitters, order_).to_vector<std::int64_t>();
    // The size of each bucket of each line on each rank.
    Counts own;
    for (std::int64_t line = 0; line < lines_; ++line) {
      std::int64_t begin = 0;
      for (std::size_t b = 0; b < ranks(); ++b) {
        const std::int64_t end = b + 1 == ranks()
                                     ? pairs.shape()[1]
                                     : before[static_cast<std::size_t>(line) * (ranks() - 1) + b];
        own.push_back(end - begin);
        begin = end;
      }
    }
    const auto all = gather(
        Tensor::from_vector(own, {lines_, static_cast<std::int64_t>(ranks()), 1}, mesh_.device()),
        "sizes of the buckets of all ranks");
    sizes_.clear();
    for (const Tensor& t : all) sizes_.push_back(t.to_vector<std::int64_t>());
    return distribute(collect(pairs, own));
  }

 private:
  std::size_t ranks() const { return group_.size(); }
  std::int64_t peer(std::size_t member) const { return mesh_.grid()->position_at(group_[member]); }
  std::int64_t size(std::size_t member, std::int64_t line, std::size_t bucket) const {
    return sizes_[member][static_cast<std::size_t>(line) * ranks() + bucket];
  }
  Tensor none(std::int64_t count) const {
    return Tensor::empty({count, 2}, DType::int64, mesh_.device());
  }

  void carry_out(Exchange& exchange, const char* reason,
                 Collective collective = Collective::all_to_all) {
    auto error =
        announce_exchange("sort", reason, exchange.bytes_sent(), layout_, layout_, collective);
    Hash what;
    what.add(layout_.hash());
    what.add(static_cast<std::uint64_t>(dtype_));
    what.add(static_cast<std::uint64_t>(dim_));
    what.add(order_.flip);
    auto agreement = agreed_ && !communication_limited()
                         ? nullptr
                         : start_agreement(mesh_, "sort", what,
                                           fmt::format("{} {} along dimension {}",
                                                       to_string(dtype_), to_string(layout_), dim_),
                                           std::move(error));
    exchange.run(what.value(), std::move(agreement));
    agreed_ = true;
  }

  // The same tensor of every rank.
  std::vector<Tensor> gather(const Tensor& own, const char* reason) {
    Exchange exchange(mesh_);
    std::vector<Tensor> all(ranks(), own);
    for (std::size_t r = 0; r < ranks(); ++r) {
      if (r == self_) continue;
      all[r] = Tensor::empty(own.shape(), own.dtype(), own.device());
      exchange.send(peer(r), own);
      exchange.receive(peer(r), all[r]);
    }
    carry_out(exchange, reason, Collective::all_gather);
    return all;
  }

  // As many pairs of each line as there are ranks, evenly spaced.
  Tensor sample(const Tensor& pairs) const {
    const std::int64_t n = pairs.shape()[1], count = static_cast<std::int64_t>(ranks());
    if (n == 0) {
      // An index that no element has.
      return Tensor::full({lines_, count, 2}, -1, DType::int64, mesh_.device());
    }
    Counts positions;
    for (std::int64_t i = 0; i < count; ++i) positions.push_back((2 * i + 1) * n / (2 * count));
    return select_indices(pairs, 1, Tensor::from_vector(positions, {count}, mesh_.device()));
  }

  // (lines, ranks - 1, 2): where the buckets of each line begin but for the first.
  Tensor choose_splitters(const std::vector<Tensor>& samples) const {
    std::vector<std::vector<std::int64_t>> texts;
    for (const Tensor& s : samples) texts.push_back(s.to_vector<std::int64_t>());
    const std::size_t count = ranks();
    std::vector<std::int64_t> chosen;
    for (std::int64_t line = 0; line < lines_; ++line) {
      std::vector<Pair> all;
      for (const auto& text : texts) {
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t at = 2 * (static_cast<std::size_t>(line) * count + i);
          if (text[at + 1] < 0) continue;
          all.push_back({static_cast<std::uint64_t>(text[at]), text[at + 1]});
        }
      }
      std::sort(all.begin(), all.end(),
                [&](const Pair& a, const Pair& b) { return order_.less(a, b); });
      for (std::size_t b = 1; b < count; ++b) {
        const Pair& p = all[b * all.size() / count];
        chosen.push_back(static_cast<std::int64_t>(p.bits));
        chosen.push_back(p.index);
      }
    }
    return Tensor::from_vector(chosen, {lines_, static_cast<std::int64_t>(count) - 1, 2},
                               mesh_.device());
  }

  // This rank's bucket of each line, sorted.
  std::vector<Tensor> collect(const Tensor& pairs, const Counts& own) {
    Exchange exchange(mesh_);
    // Line by line in one message.
    std::vector<Tensor> arrived;
    Counts begin(static_cast<std::size_t>(lines_), 0);
    for (std::size_t b = 0; b < ranks(); ++b) {
      std::int64_t outgoing = 0, incoming = 0;
      for (std::int64_t line = 0; line < lines_; ++line) {
        outgoing += own[static_cast<std::size_t>(line) * ranks() + b];
        incoming += size(b, line, self_);
      }
      const Tensor packed = none(outgoing);
      std::int64_t at = 0;
      for (std::int64_t line = 0; line < lines_; ++line) {
        const std::int64_t count = own[static_cast<std::size_t>(line) * ranks() + b];
        std::int64_t& first = begin[static_cast<std::size_t>(line)];
        packed.narrow(0, at, count).copy_from(row(pairs, line).narrow(0, first, count));
        at += count;
        first += count;
      }
      arrived.push_back(b == self_ ? packed : none(incoming));
      exchange.send(peer(b), packed);
      exchange.receive(peer(b), arrived.back());
    }
    carry_out(exchange, "each rank sorts a range of values");
    std::vector<Tensor> buckets;
    Counts taken(ranks(), 0);
    for (std::int64_t line = 0; line < lines_; ++line) {
      std::int64_t total = 0;
      for (std::size_t r = 0; r < ranks(); ++r) total += size(r, line, self_);
      const Tensor bucket = none(total);
      std::int64_t at = 0;
      for (std::size_t r = 0; r < ranks(); ++r) {
        const std::int64_t count = size(r, line, self_);
        bucket.narrow(0, at, count).copy_from(arrived[r].narrow(0, taken[r], count));
        taken[r] += count;
        at += count;
      }
      sort_pairs(bucket.reshape({1, total, 2}), order_);
      buckets.push_back(bucket);
    }
    return buckets;
  }

  static Tensor row(const Tensor& pairs, std::int64_t line) {
    return pairs.narrow(0, line, 1).reshape({pairs.shape()[1], 2});
  }

  // From buckets to the ranks that hold the positions.
  Tensor distribute(const std::vector<Tensor>& buckets) {
    // Where each bucket of each line begins in the sorted line.
    std::vector<Counts> begins(ranks() + 1, Counts(static_cast<std::size_t>(lines_), 0));
    for (std::size_t b = 0; b < ranks(); ++b) {
      for (std::int64_t line = 0; line < lines_; ++line) {
        const auto l = static_cast<std::size_t>(line);
        begins[b + 1][l] = begins[b][l];
        for (std::size_t r = 0; r < ranks(); ++r) begins[b + 1][l] += size(r, line, b);
      }
    }
    // Runs of positions in a bucket and on a rank.
    const auto overlaps = [&](std::size_t bucket, std::size_t member, std::int64_t line) {
      const auto l = static_cast<std::size_t>(line);
      return intersect(IndexSet(begins[bucket][l], begins[bucket + 1][l]),
                       layout_.index_set(group_[member], dim_));
    };
    const auto length = [](const std::vector<Overlap>& runs) {
      std::int64_t sum = 0;
      for (const Overlap& o : runs) sum += o.length;
      return sum;
    };
    Exchange exchange(mesh_);
    std::vector<Tensor> arrived;
    for (std::size_t r = 0; r < ranks(); ++r) {
      std::int64_t outgoing = 0, incoming = 0;
      for (std::int64_t line = 0; line < lines_; ++line) {
        outgoing += length(overlaps(self_, r, line));
        incoming += length(overlaps(r, self_, line));
      }
      const Tensor packed = none(outgoing);
      std::int64_t at = 0;
      for (std::int64_t line = 0; line < lines_; ++line) {
        for (const Overlap& o : overlaps(self_, r, line)) {
          packed.narrow(0, at, o.length)
              .copy_from(buckets[static_cast<std::size_t>(line)].narrow(0, o.first, o.length));
          at += o.length;
        }
      }
      arrived.push_back(r == self_ ? packed : none(incoming));
      exchange.send(peer(r), packed);
      exchange.receive(peer(r), arrived.back());
    }
    carry_out(exchange, "sorted elements go to the ranks that hold their positions");
    const std::int64_t extent = layout_.index_set(group_[self_], dim_).size();
    const Tensor result = Tensor::empty({lines_, extent, 2}, DType::int64, mesh_.device());
    for (std::size_t r = 0; r < ranks(); ++r) {
      std::int64_t at = 0;
      for (std::int64_t line = 0; line < lines_; ++line) {
        for (const Overlap& o : overlaps(r, self_, line)) {
          row(result, line)
              .narrow(0, o.second, o.length)
              .copy_from(arrived[r].narrow(0, at, o.length));
          at += o.length;
        }
      }
    }
    return result;
  }

  const DeviceMesh& mesh_;
  const Layout& layout_;
  int dim_;
  DType dtype_;
  PairOrder order_;
  std::int64_t lines_;
  std::vector<Extents> group_;  // the ranks that share the lines
  std::size_t self_ = 0;
  std::vector<Counts> sizes_;  // of each rank: of each line, of each bucket
  bool agreed_ = false;
};

}  // namespace

Tensor sample_sort(const Tensor& pairs, const DeviceMesh& mesh, const Layout& layout, int dim,
                   DType dtype, const PairOrder& order) {
  return SampleSort(mesh, layout, dim, dtype, order, pairs.shape()[0]).run(pairs);
}

}  // namespace dtensor::detail
