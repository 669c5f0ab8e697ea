// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The loop of every random kernel: over the elements that a rank holds, in runs that are
/// consecutive in the whole tensor, so that all words of a block are used.
#pragma once

#include <algorithm>
#include <type_traits>

#include "dtensor/random/random.hpp"
#include "host_batch.hpp"

namespace dtensor {

/// Draws from `distribution`, which makes `per_block` numbers of type `Value` of each block, and
/// gives `sink` each local position with its number.
template <class Distribution, class Sink>
struct Draw {
  using Value = typename Distribution::Value;
  static constexpr int per_block = Distribution::per_block;

  RandomBlocks blocks;
  Distribution distribution;
  Sink sink;

  /// On the host: `count` elements from position `local`, the first being number `first`.
  void run(std::int64_t local, std::uint64_t first, std::int64_t count) const {
    BlockBatch batch;
    Value values[BlockBatch::capacity * per_block];
    while (count > 0) {
      const auto skip = static_cast<std::int64_t>(first % per_block);
      const int drawn = static_cast<int>(
          std::min<std::int64_t>(BlockBatch::capacity, (skip + count + per_block - 1) / per_block));
      const std::int64_t used = std::min(drawn * std::int64_t{per_block} - skip, count);
      batch.draw(blocks, first / per_block, drawn);
      batch.transform(distribution, drawn, values);
      for (std::int64_t i = 0; i < used; ++i) sink(local + i, values[skip + i]);
      local += used;
      first += static_cast<std::uint64_t>(used);
      count -= used;
    }
  }

  /// On a device: elements `begin` to `end - 1` of one block; `local` is that of `begin`.
  KOKKOS_INLINE_FUNCTION void part(std::int64_t local, std::uint64_t block, int begin,
                                   int end) const {
    Value values[per_block];
    distribution(blocks[block], values);
    for (int i = begin; i < end; ++i) sink(local + i - begin, values[i]);
  }
};

/// The runs of one interval of the last dimension: one per row of the others.
template <class Memory>
struct Runs {
  GlobalIndex<Memory> row_number;
  std::int64_t pitch, local_pitch;    ///< from row to row, in the whole and in the part
  std::int64_t begin, length, start;  ///< the interval, and where it starts in a row of the part
};

/// Cuts long runs so that every thread of the host has work.
template <class D>
struct DrawPiece {
  static constexpr std::int64_t grain = std::int64_t{1} << 16;
  D draw;
  Runs<Kokkos::HostSpace> runs;

  std::int64_t pieces() const { return (runs.length + grain - 1) / grain; }
  void operator()(const std::int64_t item) const {
    const std::int64_t row = item / pieces(), shift = item % pieces() * grain;
    draw.run(row * runs.local_pitch + runs.start + shift,
             static_cast<std::uint64_t>(runs.row_number(row) * runs.pitch + runs.begin + shift),
             std::min(grain, runs.length - shift));
  }
};

/// One block per thread of a device.
template <class D, class Memory>
struct DrawBlock {
  D draw;
  Runs<Memory> runs;
  // A run may begin and end within a block.
  std::int64_t blocks = runs.length / D::per_block + 2;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t item) const {
    constexpr std::int64_t per_block = D::per_block;
    const std::int64_t row = item / blocks;
    const std::int64_t first = runs.row_number(row) * runs.pitch + runs.begin;
    const std::int64_t end = first + runs.length;
    const std::int64_t block = first / per_block + item % blocks;
    const std::int64_t base = block * per_block;
    const std::int64_t from = base > first ? base : first;
    const std::int64_t to = base + per_block < end ? base + per_block : end;
    if (from >= to) return;
    draw.part(row * runs.local_pitch + runs.start + from - first, static_cast<std::uint64_t>(block),
              static_cast<int>(from - base), static_cast<int>(to - base));
  }
};

/// Calls `draw` for all elements of a part.
/// \tparam by_block  as on a device, also where the memory is the host's
template <class Execution, bool by_block, class D>
void for_each_run(const char* label, const detail::Part& part, const D& draw) {
  if (part.local.numel() == 0) return;
  using Memory = typename Execution::memory_space;
  using Policy = Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>;
  // The last dimension is made of runs; the others are rows.
  const int last = part.shape.size() - 1;
  Shape outer_shape;
  for (int d = 0; d < last; ++d) outer_shape.push_back(part.shape[d]);
  Runs<Memory> runs{{outer_shape, {part.sets.begin(), part.sets.end() - 1}},
                    part.shape[last],
                    part.sets.back().size(),
                    0,
                    0,
                    0};
  const std::int64_t rows = runs.row_number.size();
  for (const Interval& interval : part.sets.back().intervals()) {
    runs.begin = interval.begin;
    runs.length = interval.length();
    if constexpr (by_block) {
      const DrawBlock<D, Memory> body{draw, runs};
      Kokkos::parallel_for(label, Policy(0, rows * body.blocks), body);
    } else {
      const DrawPiece<D> body{draw, runs};
      Kokkos::parallel_for(label, Policy(0, rows * body.pieces()), body);
    }
    runs.start += runs.length;
  }
}

/// Draws for all elements of a part, in the memory where it is.
template <class Distribution, class Sink>
void draw(const char* label, const detail::Part& part, const RandomBlocks& blocks,
          const Distribution& distribution, const Sink& sink) {
  const Draw<Distribution, Sink> d{blocks, distribution, sink};
  dispatch_space(part.local.device(), [&]<class Execution>() {
    constexpr bool on_host = std::is_same_v<typename Execution::memory_space, Kokkos::HostSpace>;
    for_each_run<Execution, !on_host>(label, part, d);
  });
}

/// Calls `write` with memory for the elements of a part in row-major order: its own, or one that
/// is copied to it afterwards. Throws `ValueError` where elements share memory, which would keep
/// one of their numbers only.
template <class Write>
void write_contiguous(const char* function, const detail::Part& part, const Write& write) {
  check_injective(function, part.whole, part.strides);
  detail::Part dense = part;
  if (!part.local.is_contiguous()) {
    dense.local = Tensor::empty(part.local.shape(), part.local.dtype(), part.local.device());
  }
  write(dense);
  if (!part.local.is_contiguous()) part.local.copy_from(dense.local);
}

/// Words as they are.
struct Words {
  using Value = std::uint32_t;
  static constexpr int per_block = 4;
  KOKKOS_INLINE_FUNCTION void operator()(const PhiloxBlock& block, Value* values) const {
    for (int i = 0; i < 4; ++i) values[i] = block.word[i];
  }
};

/// Stores numbers as they come.
template <class T>
struct Store {
  T* out;
  KOKKOS_INLINE_FUNCTION void operator()(std::int64_t i, const T& value) const { out[i] = value; }
};

/// Throws `TypeError` unless the type is floating, or complex where that is allowed.
void require_fractional(const char* function, DType dtype, bool complex_too);

/// Throws `TypeError` unless the type is an integer, `ValueError` unless it holds both numbers.
void require_holds(const char* function, DType dtype, std::int64_t lowest, std::int64_t highest);

/// Throws `ValueError` unless `p` is a probability.
void require_probability(const char* function, double p);

}  // namespace dtensor
