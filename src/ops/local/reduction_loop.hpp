// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// One way to run every reduction over dimensions of a local tensor.
///
/// A reduction is a struct with
///
///     Value, State                    what is read, what is carried
///     State identity()                of no elements
///     void join(State&, State)        the second one follows the first
///     void store(result, State)       writes result number `result`
///
/// and either `State load(Value)`, where the State is one number, and perhaps
///
///     void join_numbers(State&, State)  a faster `join` where neither is NaN
///
/// or, where the State is more,
///
///     void add(State&, Value, index)  one element; `index` counts the reduced ones
///     void row(State&, const Value*, count, index)     host: elements side by side of one result
///     struct Block                    host: many results at once, see `ScalarBlock`
#pragma once

#include <type_traits>

#include "dtensor/core/tensor.hpp"
#include "dtensor/ops/dims.hpp"
#include "strided_loop.hpp"

namespace dtensor {

/// Where a reduction reads and writes. Kept dimensions walk the results (operand 0, numbered in
/// row-major order) and the input (operand 1), reduced dimensions the input, in memory order.
struct Reduction {
  Shape shape;  ///< of the result
  StridedLoop<2> kept;
  StridedLoop<1> reduced;
};

inline Reduction make_reduction(const Tensor& in, DimSet dims, bool keepdim) {
  Reduction r;
  Extents kept_extents, kept_strides, reduced_extents, reduced_strides;
  for (int d = 0; d < in.dim(); ++d) {
    const bool reduced = dims.test(static_cast<std::size_t>(d));
    (reduced ? reduced_extents : kept_extents).push_back(in.shape()[d]);
    (reduced ? reduced_strides : kept_strides).push_back(in.strides()[d]);
    if (!reduced || keepdim) r.shape.push_back(reduced ? 1 : in.shape()[d]);
  }
  r.kept = make_loop<2>(kept_extents, {row_major_strides(kept_extents), kept_strides});
  r.reduced = make_loop<1>(reduced_extents, {reduced_strides});
  return r;
}

/// Independent partial results, which vector units and pipelines need.
inline constexpr int lanes = 16;

template <class Op>
inline constexpr bool is_scalar_reduction = requires(const Op& op, typename Op::Value v) {
  op.load(v);
};

// Where elements are loaded as they are: converting them twice would cost more than it saves.
template <class Op>
inline constexpr bool has_join_numbers = false;
template <class Op>
requires std::is_same_v<typename Op::State, typename Op::Value> &&
    requires(const Op& op, typename Op::State s) {
  op.join_numbers(s, s);
}
inline constexpr bool has_join_numbers<Op> = true;

/// Reduces up to `chunk_size` elements in independent parts.
inline constexpr std::int64_t chunk_size = 1024;
template <class Op>
typename Op::State reduce_chunk(const Op& op, const typename Op::Value* x, std::int64_t count) {
  if (count < lanes) {
    typename Op::State total = op.identity();
    for (std::int64_t i = 0; i < count; ++i) op.join(total, op.load(x[i]));
    return total;
  }
  typename Op::State partial[lanes];
  for (int k = 0; k < lanes; ++k) partial[k] = op.identity();
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (int k = 0; k < lanes; ++k) op.join(partial[k], op.load(x[i + k]));
  }
  for (int width = lanes / 2; width > 0; width /= 2) {
    for (int k = 0; k < width; ++k) op.join(partial[k], partial[k + width]);
  }
  for (; i < count; ++i) op.join(partial[0], op.load(x[i]));
  return partial[0];
}

/// The same with `join_numbers`; a sum beside it tells whether there may be a NaN. Returns false
/// where there may.
template <class Op>
bool reduce_numbers(const Op& op, const typename Op::Value* x, std::int64_t count,
                    typename Op::State& total) {
  using State = typename Op::State;
  constexpr int parts = 6;  // twice as many registers
  State partial[parts], sums[parts] = {};
  for (int k = 0; k < parts; ++k) partial[k] = op.identity();
  const auto join = [&](int k, const State& value) {
    op.join_numbers(partial[k], value);
    sums[k] += value;
  };
  std::int64_t i = 0;
  for (; i + parts <= count; i += parts) {
    for (int k = 0; k < parts; ++k) join(k, op.load(x[i + k]));
  }
  for (; i < count; ++i) join(0, op.load(x[i]));
  for (int k = 1; k < parts; ++k) {
    op.join_numbers(partial[0], partial[k]);
    sums[0] += sums[k];
  }
  total = partial[0];
  return sums[0] == sums[0];
}

/// Reduces a dense row to one number. Halves are reduced by themselves, so that rounding errors
/// grow with the logarithm of the length.
template <class Op>
typename Op::State reduce_row(const Op& op, const typename Op::Value* x, std::int64_t count) {
  typename Op::State state;
  if (count > chunk_size) {
    const std::int64_t half = count / 2 / lanes * lanes;
    state = reduce_row(op, x, half);
    op.join(state, reduce_row(op, x + half, count - half));
    return state;
  }
  if constexpr (has_join_numbers<Op>) {
    if (reduce_numbers(op, x, count, state)) return state;
  }
  return reduce_chunk(op, x, count);
}

/// Results that lie side by side, reduced together so that the input is read along its rows.
template <class Op>
struct ScalarBlock {
  using Value = typename Op::Value;
  using State = typename Op::State;
  static constexpr std::int64_t width = 1024;

  State total[width];

  void start(const Op& op, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) total[i] = op.identity();
  }
  /// Adds `rows` dense rows of `count` elements, `row_stride` apart, the first one of which is the
  /// reduced element `index`. Rows are few: they are reduced by themselves, which bounds rounding
  /// errors.
  void rows(const Op& op, const Value* x, std::int64_t rows, std::int64_t row_stride,
            std::int64_t count, std::int64_t /*index*/) {
    State partial[width];
    if constexpr (has_join_numbers<Op>) {
      if (!reduce<true>(op, x, rows, row_stride, count, partial)) {
        reduce<false>(op, x, rows, row_stride, count, partial);
      }
    } else {
      reduce<false>(op, x, rows, row_stride, count, partial);
    }
    for (std::int64_t i = 0; i < count; ++i) op.join(total[i], partial[i]);
  }
  State state(std::int64_t i) const { return total[i]; }

 private:
  // With `join_numbers`: returns false where there may be a NaN.
  template <bool Numbers>
  static bool reduce(const Op& op, const Value* x, std::int64_t rows, std::int64_t row_stride,
                     std::int64_t count, State* KOKKOS_RESTRICT partial) {
    State sums[Numbers ? width : 1];
    for (std::int64_t i = 0; i < count; ++i) {
      partial[i] = op.identity();
      if constexpr (Numbers) sums[i] = 0;
    }
    const auto join = [&](State& a, const State& b) {
      if constexpr (Numbers) {
        op.join_numbers(a, b);
      } else {
        op.join(a, b);
      }
    };
    std::int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      const Value* const a = x + r * row_stride;
      const Value* const b = a + row_stride;
      const Value* const c = b + row_stride;
      const Value* const d = c + row_stride;
      for (std::int64_t i = 0; i < count; ++i) {
        State first = op.load(a[i]), second = op.load(b[i]);
        const State third = op.load(c[i]), fourth = op.load(d[i]);
        if constexpr (Numbers) sums[i] += (first + second) + (third + fourth);
        join(first, third);
        join(second, fourth);
        join(first, second);
        join(partial[i], first);
      }
    }
    for (; r < rows; ++r) {
      const Value* const a = x + r * row_stride;
      for (std::int64_t i = 0; i < count; ++i) {
        const State value = op.load(a[i]);
        if constexpr (Numbers) sums[i] += value;
        join(partial[i], value);
      }
    }
    bool exact = true;
    if constexpr (Numbers) {
      for (std::int64_t i = 0; i < count; ++i) exact &= sums[i] == sums[i];
    }
    return exact;
  }
};

namespace detail {

template <class Op, bool IsScalar = is_scalar_reduction<Op>>
struct BlockOf {
  using type = ScalarBlock<Op>;
};
template <class Op>
struct BlockOf<Op, false> {
  using type = typename Op::Block;
};

/// States of pieces of the reduced elements, `pieces` per result; without scratch, one piece whose
/// state is the result.
template <class Op>
struct PieceStates {
  Op op;
  typename Op::State* scratch;
  std::int64_t pieces;

  KOKKOS_INLINE_FUNCTION void put(std::int64_t result, std::int64_t piece,
                                  const typename Op::State& state) const {
    if (scratch) {
      scratch[result * pieces + piece] = state;
    } else {
      op.store(result, state);
    }
  }
};

/// Joins groups of neighbouring states; the last step stores the results.
template <class Op>
struct JoinStates {
  static constexpr std::int64_t group = 16;
  Op op;
  const typename Op::State* from;
  typename Op::State* to;  // null to store
  std::int64_t pieces, groups;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t item) const {
    const std::int64_t result = item / groups, g = item % groups;
    const std::int64_t begin = g * group;
    const std::int64_t end = begin + group < pieces ? begin + group : pieces;
    typename Op::State state = from[result * pieces + begin];
    for (std::int64_t p = begin + 1; p < end; ++p) op.join(state, from[result * pieces + p]);
    if (to) {
      to[item] = state;
    } else {
      op.store(result, state);
    }
  }
};

/// Device: one thread per piece of a result. Neighbouring threads read neighbouring elements.
template <class Op>
struct ReduceElements {
  PieceStates<Op> states;
  const typename Op::Value* in;
  StridedLoop<2> kept;
  StridedLoop<1> reduced;
  bool results_side_by_side;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t item) const {
    const Op& op = states.op;
    const std::int64_t k = results_side_by_side ? item % kept.count : item / states.pieces;
    const std::int64_t piece = results_side_by_side ? item / kept.count : item % states.pieces;
    const PerOperand<2> base = kept.locate(kept.rank, k);
    typename Op::State state = op.identity();
    for (std::int64_t r = piece; r < reduced.count; r += states.pieces) {
      const typename Op::Value& x = in[base[1] + reduced.locate(reduced.rank, r)[0]];
      if constexpr (is_scalar_reduction<Op>) {
        op.join(state, op.load(x));
      } else {
        op.add(state, x, r);
      }
    }
    states.put(base[0], piece, state);
  }
};

/// Results without elements.
template <class Op>
struct StoreIdentity {
  Op op;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t result) const {
    op.store(result, op.identity());
  }
};

/// Host: the elements of a result lie side by side. A work item is a run of results, or a piece of
/// one.
template <class Op>
struct ReduceAlongRows {
  static constexpr std::int64_t results_per_item = 64;
  static constexpr std::int64_t piece = std::int64_t{1} << 16;
  PieceStates<Op> states;
  const typename Op::Value* in;
  StridedLoop<2> kept;
  StridedLoop<1> reduced;

  std::int64_t runs() const { return (kept.row() + results_per_item - 1) / results_per_item; }
  std::int64_t items() const { return kept.count / kept.row() * runs() * states.pieces; }

  void operator()(const std::int64_t item) const {
    const std::int64_t p = item % states.pieces, run = item / states.pieces;
    const std::int64_t first = run % runs() * results_per_item;
    const std::int64_t count = std::min(results_per_item, kept.row() - first);
    const PerOperand<2> base = kept.locate(kept.rank - 1, run / runs());
    const PerOperand<2> step = kept.stride[kept.rank - 1];
    const std::int64_t begin = states.pieces == 1 ? 0 : p * piece;
    const std::int64_t end =
        states.pieces == 1 ? reduced.count : std::min(begin + piece, reduced.count);
    for (std::int64_t k = first; k < first + count; ++k) {
      states.put(base[0] + k * step[0], p, reduce(in + base[1] + k * step[1], begin, end));
    }
  }

 private:
  typename Op::State reduce(const typename Op::Value* x, std::int64_t begin,
                            std::int64_t end) const {
    const int last = reduced.rank - 1;
    const std::int64_t row = reduced.row(), stride = reduced.stride[last][0];
    typename Op::State state = states.op.identity();
    for (std::int64_t i = begin; i < end;) {
      const std::int64_t column = i % row;
      std::int64_t count = std::min(row - column, end - i);
      const typename Op::Value* const from =
          x + (last == 0 ? 0 : reduced.locate(last, i / row)[0]) + column * stride;
      if (stride == 1 || count == 1) {
        add_row(state, from, count, i);
      } else {
        typename Op::Value dense[dense_count];
        count = std::min(count, dense_count);
        for (std::int64_t k = 0; k < count; ++k) dense[k] = from[k * stride];
        add_row(state, dense, count, i);
      }
      i += count;
    }
    return state;
  }

  void add_row(typename Op::State& state, const typename Op::Value* x, std::int64_t count,
               std::int64_t index) const {
    if constexpr (is_scalar_reduction<Op>) {
      states.op.join(state, reduce_row(states.op, x, count));
    } else {
      states.op.row(state, x, count, index);
    }
  }

  static constexpr std::int64_t dense_count = 1024;
};

/// Host: results lie side by side. A work item is a block of results, or a piece of its rows.
template <class Op>
struct ReduceAcrossRows {
  using Block = typename BlockOf<Op>::type;
  static constexpr std::int64_t rows_at_once = 64;
  PieceStates<Op> states;
  const typename Op::Value* in;
  StridedLoop<2> kept;
  StridedLoop<1> reduced;

  std::int64_t blocks() const { return (kept.row() + Block::width - 1) / Block::width; }
  std::int64_t items() const { return kept.count / kept.row() * blocks() * states.pieces; }
  static std::int64_t piece(std::int64_t row) {
    return std::max(4 * rows_at_once, (std::int64_t{1} << 20) / std::min(row, Block::width));
  }

  void operator()(const std::int64_t item) const {
    const Op& op = states.op;
    const std::int64_t p = item % states.pieces, block = item / states.pieces;
    const PerOperand<2> base = kept.locate(kept.rank - 1, block / blocks());
    const PerOperand<2> step = kept.stride[kept.rank - 1];
    const std::int64_t first = block % blocks() * Block::width;
    const std::int64_t count = std::min(Block::width, kept.row() - first);
    const std::int64_t begin = states.pieces == 1 ? 0 : p * piece(kept.row());
    const std::int64_t end =
        states.pieces == 1 ? reduced.count : std::min(begin + piece(kept.row()), reduced.count);
    const int last = reduced.rank - 1;
    Block results;
    results.start(op, count);
    for (std::int64_t r = begin; r < end;) {
      const std::int64_t at = r % reduced.row(), row_stride = reduced.stride[last][0];
      std::int64_t rows = std::min({rows_at_once, reduced.row() - at, end - r});
      const typename Op::Value* const from =
          in + base[1] + first * step[1] + at * row_stride +
          (last == 0 ? 0 : reduced.locate(last, r / reduced.row())[0]);
      if (step[1] == 1 || count == 1) {
        results.rows(op, from, rows, row_stride, count, r);
      } else {
        typename Op::Value dense[4][Block::width];
        rows = std::min(rows, std::int64_t{4});
        for (std::int64_t k = 0; k < rows; ++k) {
          for (std::int64_t i = 0; i < count; ++i) {
            dense[k][i] = from[k * row_stride + i * step[1]];
          }
        }
        results.rows(op, dense[0], rows, Block::width, count, r);
      }
      r += rows;
    }
    for (std::int64_t i = 0; i < count; ++i) {
      states.put(base[0] + (first + i) * step[0], p, results.state(i));
    }
  }
};

template <class Execution, class F>
void for_items(const char* label, std::int64_t items, const F& f) {
  using Policy = Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>;
  Kokkos::parallel_for(label, Policy(0, items), f);
}

template <class Execution, class Op>
void join_pieces(const Op& op, const typename Op::State* from, std::int64_t results,
                 std::int64_t pieces, DeviceKind device) {
  using State = typename Op::State;
  std::vector<Tensor> kept;
  while (true) {
    const std::int64_t groups = (pieces + JoinStates<Op>::group - 1) / JoinStates<Op>::group;
    State* to = nullptr;
    if (groups > 1) {
      kept.push_back(
          Tensor::empty({results * groups * std::int64_t{sizeof(State)}}, DType::uint8, device));
      to = static_cast<State*>(kept.back().data());
    }
    for_items<Execution>("dtensor::reduce_pieces", results * groups,
                         JoinStates<Op>{op, from, to, pieces, groups});
    if (groups == 1) break;
    from = to;
    pieces = groups;
  }
  fence(device, "dtensor::reduce");  // before the scratch memory goes
}

template <class Execution, class Op>
void reduce(const Reduction& r, const typename Op::Value* in, const Op& op, DeviceKind device) {
  using State = typename Op::State;
  if (r.kept.count == 0) return;
  if (r.reduced.count == 0) {
    return for_items<Execution>("dtensor::reduce_nothing", r.kept.count, StoreIdentity<Op>{op});
  }
  const std::int64_t reduced_stride = r.reduced.stride[r.reduced.rank - 1][0];
  const std::int64_t kept_stride = r.kept.stride[r.kept.rank - 1][1];
  const bool along_rows = r.kept.row() == 1 || reduced_stride <= kept_stride;
  // Enough work items for all threads where there are few results. The number depends on nothing
  // but the shape, and so does the result.
  std::int64_t pieces = 1;
  if constexpr (!works_by_row<Execution>) {
    constexpr std::int64_t threads = std::int64_t{1} << 17;
    pieces = std::clamp(threads / r.kept.count, std::int64_t{1}, (r.reduced.count + 31) / 32);
  } else if (along_rows) {
    const std::int64_t piece = ReduceAlongRows<Op>::piece;
    if (r.kept.count < 256) pieces = (r.reduced.count + piece - 1) / piece;
  } else {
    const std::int64_t piece = ReduceAcrossRows<Op>::piece(r.kept.row());
    if (r.kept.count < 256 * 1024) pieces = (r.reduced.count + piece - 1) / piece;
  }
  Tensor scratch;
  PieceStates<Op> states{op, nullptr, pieces};
  if (pieces > 1) {
    scratch =
        Tensor::empty({r.kept.count * pieces * std::int64_t{sizeof(State)}}, DType::uint8, device);
    states.scratch = static_cast<State*>(scratch.data());
  }
  if constexpr (!works_by_row<Execution>) {
    for_items<Execution>("dtensor::reduce", r.kept.count * pieces,
                         ReduceElements<Op>{states, in, r.kept, r.reduced, !along_rows});
  } else if (along_rows) {
    const ReduceAlongRows<Op> task{states, in, r.kept, r.reduced};
    for_items<Execution>("dtensor::reduce_rows", task.items(), task);
  } else {
    const ReduceAcrossRows<Op> task{states, in, r.kept, r.reduced};
    for_items<Execution>("dtensor::reduce_columns", task.items(), task);
  }
  if (pieces > 1) {
    join_pieces<Execution>(op, states.scratch, r.kept.count, pieces, device);
  }
}

}  // namespace detail

/// Runs a reduction of `in`, whose scalar type is the operation's.
template <class Op>
void run_reduction(const Reduction& r, const Tensor& in, const Op& op) {
  const auto* const data = static_cast<const typename Op::Value*>(in.data());
  dispatch_space(in.device(),
                 [&]<class Execution>() { detail::reduce<Execution>(r, data, op, in.device()); });
}

}  // namespace dtensor
