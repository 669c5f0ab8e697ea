// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/redistribute/program.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_map>

#include "dtensor/redistribute/geometry.hpp"

namespace dtensor {

namespace {

// Messages go in the order (slice, distance between the ranks), on both sides. The earliest
// pending message in that order is always one that its sender and its receiver have reached, so
// bounded windows cannot deadlock.
struct Order {
  std::size_t slice;
  std::size_t distance;
  friend auto operator<=>(const Order&, const Order&) = default;
};

template <class T>
void sort_by_order(std::vector<std::pair<Order, T>>& items, std::vector<T>& sorted) {
  std::stable_sort(items.begin(), items.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& item : items) sorted.push_back(std::move(item.second));
}

class Compiler {
 public:
  Compiler(Program& program, const std::vector<int>& participants, int rank)
      : program_(program), size_(participants.size()), rank_(rank) {
    for (std::size_t i = 0; i < participants.size(); ++i) {
      index_[participants[i]] = static_cast<int>(i);
    }
    program_.self = index_.at(rank);
    element_size_ = size_of(program_.plan->dtype());
  }

  void exchange(const Step& step, Stage& stage) {
    stage.reduces = !step.reduced.empty();
    for (int m : step.reduced) stage.group *= step.from.grid()->size(m);
    stage.op = step.op;
    stage.divisor = step.divisor;
    stage.scale = step.scale;
    if (const auto to = step.to.grid()->coordinate_of(rank_)) {
      for (int m : step.masked) {
        if ((*to)[m] != 0) stage.identity = step.to.placement(m).reduce_op();
      }
      for (int m : step.shards) stage.identity = step.to.placement(m).reduce_op();
    }
    std::vector<std::pair<Order, Send>> sends;
    for (const Outgoing& out : outgoing(step, rank_)) {
      const auto slices = cut(out.transfer, stage.input_shape, out.destination_shape, stage);
      const int peer = index_.at(out.rank);
      for (std::size_t i = 0; i < slices.size(); ++i) {
        sends.push_back({{i, distance(program_.self, peer)}, {peer, slices[i]}});
      }
    }
    std::vector<std::pair<Order, Receive>> receives;
    for (const Region& region : incoming(step, rank_)) {
      std::vector<int> peers;
      for (int contributor : region.contributors) peers.push_back(index_.at(contributor));
      const bool own = peers.size() == 1 && peers[0] == program_.self;
      const auto slices =
          own ? slice(region.transfer, program_.limits.chunk_bytes / element_size_)
              : cut(region.transfer, region.source_shape, stage.output_shape, stage);
      for (std::size_t i = 0; i < slices.size(); ++i)
        add_piece(stage, slices[i], peers, i, receives);
    }
    sort_by_order(sends, stage.sends);
    sort_by_order(receives, stage.receives);
  }

  // The group's ranks, this one's index among them, and the range of elements of each.
  void all_reduce(const Step& step, Stage& reduce, Stage& gather) {
    const ProcessGrid& grid = *step.from.grid();
    const Extents own = *grid.coordinate_of(rank_);
    std::vector<int> group;
    int index = 0;
    const ProcessGrid sub = grid.slice(step.reduced, own);
    for (int r : sub.ranks()) {
      if (r == rank_) index = static_cast<int>(group.size());
      group.push_back(index_.at(r));
    }
    const std::int64_t n = reduce.input_shape.product();
    const Shape flat{n};
    for (Stage* stage : {&reduce, &gather}) stage->input_shape = stage->output_shape = flat;
    reduce.reduces = true;
    reduce.group = static_cast<std::int64_t>(group.size());
    reduce.op = step.op;
    reduce.divisor = step.divisor;
    const auto range = [&](int member) {
      Transfer t;
      const IndexSet set =
          IndexSet(0, n).split(Shard(0), member, static_cast<std::int64_t>(group.size()));
      t.runs.emplace_back();
      if (!set.empty()) t.runs[0].push_back({set.first(0), set.first(0), set.size()});
      t.count();
      return t;
    };
    std::vector<std::pair<Order, Send>> reduce_sends, gather_sends;
    std::vector<std::pair<Order, Receive>> reduce_receives, gather_receives;
    for (std::size_t k = 0; k < group.size(); ++k) {
      const int peer = group[k];
      const bool self = static_cast<int>(k) == index;
      const auto reduce_slices = cut(range(static_cast<int>(k)), flat, flat, reduce);
      for (std::size_t i = 0; i < reduce_slices.size(); ++i) {
        if (self) {
          add_piece(reduce, reduce_slices[i], group, i, reduce_receives);
        } else {
          reduce_sends.push_back({{i, distance(program_.self, peer)}, {peer, reduce_slices[i]}});
        }
      }
      if (self) continue;
      const auto own_slices = cut(range(index), flat, flat, gather);
      for (std::size_t i = 0; i < own_slices.size(); ++i) {
        gather_sends.push_back({{i, distance(program_.self, peer)}, {peer, own_slices[i]}});
      }
      const auto slices = cut(range(static_cast<int>(k)), flat, flat, gather);
      for (std::size_t i = 0; i < slices.size(); ++i) {
        add_piece(gather, slices[i], {peer}, i, gather_receives);
      }
    }
    sort_by_order(reduce_sends, reduce.sends);
    sort_by_order(reduce_receives, reduce.receives);
    sort_by_order(gather_sends, gather.sends);
    sort_by_order(gather_receives, gather.receives);
  }

  struct Scratch {
    std::int64_t most = 0;            // that a stage holds at once
    std::vector<std::int64_t> least;  // blocks that it has to hold at once
  };

  Scratch scratch(const Stage& stage) const {
    std::int64_t sent = 0, largest_sent = 0;
    for (const Send& s : stage.sends) {
      if (is_block(s.transfer, stage.input_shape)) continue;
      sent += bytes(s.transfer);
      largest_sent = std::max(largest_sent, bytes(s.transfer));
    }
    std::int64_t received = 0, largest_received = 0;
    std::map<std::size_t, std::vector<std::int64_t>> per_slice;
    std::vector<std::int64_t> least;
    for (const Piece& p : stage.pieces) received += piece_scratch(p, stage);
    for (const Receive& r : stage.receives) {
      const Piece& p = stage.pieces[r.piece];
      std::vector<std::int64_t>& slice = per_slice[stage.reduces ? r.slice : 0];
      if (stage.reduces) {
        // The contributions, and once for a piece this rank's own and the result.
        slice.insert(slice.end(), r.slot == 0 ? 3 : 1, bytes(p.transfer));
      } else if (slice.empty() || slice[0] < piece_scratch(p, stage)) {
        slice = {piece_scratch(p, stage)};
      }
      const std::int64_t sum = std::accumulate(slice.begin(), slice.end(), std::int64_t{0});
      if (sum > largest_received) {
        largest_received = sum;
        least = slice;
      }
    }
    least.push_back(largest_sent);
    // The pool rounds sizes up by at most an eighth.
    const std::int64_t total =
        std::min(sent, program_.limits.window_bytes + largest_sent) +
        std::min(received, program_.limits.window_bytes + 2 * largest_received);
    return {total + total / 8 +
                128 * static_cast<std::int64_t>(stage.sends.size() + stage.pieces.size()),
            std::move(least)};
  }

  // The contributions and the packed result.
  std::int64_t piece_scratch(const Piece& piece, const Stage& stage) const {
    if (stage.reduces) {
      return bytes(piece.transfer) * (static_cast<std::int64_t>(piece.contributors.size()) + 1);
    }
    return is_block(piece.transfer, stage.output_shape) ? 0 : bytes(piece.transfer);
  }

  std::int64_t bytes(const Transfer& t) const { return t.elements * element_size_; }

 private:
  std::size_t distance(int from, int to) const {
    return (static_cast<std::size_t>(to) + size_ - static_cast<std::size_t>(from)) % size_;
  }

  // Both ends cut a transfer alike: they know each other's local shapes. One slice of all
  // contributions to a reduction is held at once, so its messages are smaller the more there are.
  std::vector<Transfer> cut(const Transfer& transfer, const Shape& source_shape,
                            const Shape& destination_shape, const Stage& stage) const {
    const MessageLimits& limits = program_.limits;
    std::int64_t limit = limits.chunk_bytes;
    if (stage.reduces) {
      limit = std::max(2 * limits.chunk_bytes / stage.group, limits.min_message_bytes);
    } else if (is_block(transfer, source_shape) && is_block(transfer, destination_shape)) {
      limit = limits.max_message_bytes;
    }
    return slice(transfer, limit / element_size_);
  }

  void add_piece(Stage& stage, const Transfer& transfer, const std::vector<int>& peers,
                 std::size_t slice_index, std::vector<std::pair<Order, Receive>>& receives) {
    for (std::size_t slot = 0; slot < peers.size(); ++slot) {
      if (peers[slot] == program_.self) continue;
      receives.push_back({{slice_index, distance(peers[slot], program_.self)},
                          {peers[slot], stage.pieces.size(), slot, slice_index}});
    }
    stage.pieces.push_back({transfer, peers, stage.contributions});
    stage.contributions += peers.size();
  }

  Program& program_;
  std::size_t size_;
  int rank_;
  std::unordered_map<int, int> index_;
  std::int64_t element_size_;
};

}  // namespace

Shape local_shape_on(const Layout& layout, int rank) {
  if (const auto coordinate = layout.grid()->coordinate_of(rank)) {
    return layout.local_shape(*coordinate);
  }
  return Extents::filled(std::max(layout.shape().size(), 1), 0);
}

Program compile(std::shared_ptr<const Plan> plan, const std::vector<int>& participants, int rank,
                const MessageLimits& limits) {
  Program program;
  program.limits = limits;
  program.plan = std::move(plan);
  Compiler compiler(program, participants, rank);
  const auto& steps = program.plan->steps();
  program.buffer_shapes.push_back(local_shape_on(program.plan->source(), rank));
  std::int64_t intermediate = 0, peak = 0;  // what steps make is there from the start
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Step& step = steps[i];
    program.buffer_shapes.push_back(local_shape_on(step.to, rank));
    Stage stage;
    stage.step = i;
    stage.tag = 2 * static_cast<int>(i);
    stage.input = i;
    stage.output = i + 1;
    stage.input_shape = program.buffer_shapes[i];
    stage.output_shape = program.buffer_shapes[i + 1];
    if (step.kind == Step::Kind::exchange) {
      compiler.exchange(step, stage);
      program.stages.push_back(std::move(stage));
    } else if (step.from.grid()->position_of(rank)) {
      Stage gather = stage;
      gather.input = gather.output;
      ++gather.tag;
      compiler.all_reduce(step, stage, gather);
      program.stages.push_back(std::move(stage));
      program.stages.push_back(std::move(gather));
    }
    if (i + 1 < steps.size()) {
      intermediate += program.buffer_shapes.back().product() * size_of(program.plan->dtype());
    }
  }
  for (const Stage& s : program.stages) {
    auto scratch = compiler.scratch(s);
    peak = std::max(peak, scratch.most);
    const auto sum = [](const std::vector<std::int64_t>& blocks) {
      return std::accumulate(blocks.begin(), blocks.end(), std::int64_t{0});
    };
    if (sum(scratch.least) > sum(program.min_scratch)) {
      program.min_scratch = std::move(scratch.least);
    }
  }
  program.peak_scratch_bytes = intermediate + peak;
  program.step_bytes_sent.resize(steps.size());
  for (const Stage& s : program.stages) {
    for (const Send& send : s.sends)
      program.step_bytes_sent[s.step] += compiler.bytes(send.transfer);
  }
  for (std::int64_t sent : program.step_bytes_sent) program.bytes_sent += sent;
  return program;
}

}  // namespace dtensor
