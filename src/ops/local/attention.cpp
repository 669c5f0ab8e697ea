// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention with a running maximum (Milakov, Gimelshein 2018; Dao et al. 2022).
#include <vector>

#include "learning.hpp"
#include "limits.hpp"
#include "reduction_loop.hpp"
#include "reduction_types.hpp"
#include "run_table.hpp"

namespace dtensor {

namespace {

template <class T>
struct Attention {
  using A = accumulate_t<T>;
  T* out;
  const T* query;
  const T* key;
  const T* value;
  A* sums;  // device: one per element of the result
  std::int64_t queries, keys, depth, width;
  A scale;
  bool causal;
  Runs rows;

  // Keys that a query sees.
  KOKKOS_INLINE_FUNCTION std::int64_t visible(std::int64_t i) const {
    if (!causal) return keys;
    const std::int64_t last = rows.index(i) + 1;
    return last < keys ? last : keys;
  }
};

// Host: a block of queries, against one block of keys after the other.
template <class T>
struct AttentionBlock {
  using A = accumulate_t<T>;
  static constexpr std::int64_t query_block = 32, key_block = 64;
  Attention<T> task;

  std::int64_t blocks() const { return (task.queries + query_block - 1) / query_block; }

  void operator()(const std::int64_t item) const {
    const std::int64_t batch = item / blocks(), first = item % blocks() * query_block;
    const std::int64_t rows = std::min(query_block, task.queries - first);
    const std::int64_t depth = task.depth, width = task.width;
    const T* const query = task.query + (batch * task.queries + first) * depth;
    const T* const key = task.key + batch * task.keys * depth;
    const T* const value = task.value + batch * task.keys * width;
    std::vector<A> memory(static_cast<std::size_t>(query_block * (depth + width + 2) +
                                                   key_block * (depth + width + 1)));
    A* const q = memory.data();               // scaled
    A* const sums = q + query_block * depth;  // of weighted values
    A* const max = sums + query_block * width;
    A* const total = max + query_block;
    A* const keys = total + query_block;  // transposed
    A* const values = keys + key_block * depth;
    A* const weights = values + key_block * width;  // of one query
    for (std::int64_t i = 0; i < rows * depth; ++i) q[i] = scalar_cast<A>(query[i]) * task.scale;
    for (std::int64_t i = 0; i < rows; ++i) max[i] = -limits::infinity<A>;

    const std::int64_t seen = task.visible(first + rows - 1);
    for (std::int64_t begin = 0; begin < seen; begin += key_block) {
      const std::int64_t count = std::min(key_block, seen - begin);
      for (std::int64_t j = 0; j < count; ++j) {
        for (std::int64_t e = 0; e < depth; ++e) {
          keys[e * key_block + j] = scalar_cast<A>(key[(begin + j) * depth + e]);
        }
      }
      for (std::int64_t j = 0; j < count * width; ++j) {
        values[j] = scalar_cast<A>(value[begin * width + j]);
      }
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::int64_t n = std::min(count, task.visible(first + i) - begin);
        if (n <= 0) continue;
        multiply(weights, q + i * depth, keys, key_block, depth, n, A(0));
        A top = max[i];
        for (std::int64_t j = 0; j < n; ++j) {
          top = (weights[j] > top) | is_nan(weights[j]) ? weights[j] : top;
        }
        if (top == -limits::infinity<A>) continue;  // no weight so far
        const A shrink = max[i] == top ? A(1) : exponential(max[i] - top);
        A sum = 0;
        for (std::int64_t j = 0; j < n; ++j) sum += weights[j] = exponential(weights[j] - top);
        total[i] = total[i] * shrink + sum;
        max[i] = top;
        multiply(sums + i * width, weights, values, width, n, width, shrink);
      }
    }
    T* const o = task.out + (batch * task.queries + first) * width;
    for (std::int64_t i = 0; i < rows; ++i) {
      for (std::int64_t f = 0; f < width; ++f) {
        o[i * width + f] = scalar_cast<T>(sums[i * width + f] / total[i]);
      }
    }
  }

 private:
  // out[j] = out[j] * keep + the sum over k of a[k] * b[k][j].
  static void multiply(A* KOKKOS_RESTRICT out, const A* a, const A* b, std::int64_t b_stride,
                       std::int64_t depth, std::int64_t count, A keep) {
    if (keep == 0) {
      for (std::int64_t j = 0; j < count; ++j) out[j] = 0;
    } else if (keep != 1) {
      for (std::int64_t j = 0; j < count; ++j) out[j] *= keep;
    }
    std::int64_t k = 0;
    for (; k + 4 <= depth; k += 4) {
      const A a0 = a[k], a1 = a[k + 1], a2 = a[k + 2], a3 = a[k + 3];
      const A* const b0 = b + k * b_stride;
      const A* const b1 = b0 + b_stride;
      const A* const b2 = b1 + b_stride;
      const A* const b3 = b2 + b_stride;
      for (std::int64_t j = 0; j < count; ++j) {
        out[j] += (a0 * b0[j] + a1 * b1[j]) + (a2 * b2[j] + a3 * b3[j]);
      }
    }
    for (; k < depth; ++k) {
      for (std::int64_t j = 0; j < count; ++j) out[j] += a[k] * b[k * b_stride + j];
    }
  }
};

// Device: one thread per query.
template <class T>
struct AttentionRow {
  using A = accumulate_t<T>;
  Attention<T> task;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t item) const {
    const std::int64_t batch = item / task.queries, width = task.width;
    const T* const query = task.query + item * task.depth;
    A* const sums = task.sums + item * width;
    for (std::int64_t f = 0; f < width; ++f) sums[f] = 0;
    A max = -limits::infinity<A>, total = 0;
    const std::int64_t seen = task.visible(item % task.queries);
    for (std::int64_t j = 0; j < seen; ++j) {
      const T* const key = task.key + (batch * task.keys + j) * task.depth;
      const T* const value = task.value + (batch * task.keys + j) * width;
      A score = 0;
      for (std::int64_t e = 0; e < task.depth; ++e) {
        score += scalar_cast<A>(query[e]) * scalar_cast<A>(key[e]);
      }
      score *= task.scale;
      const A top = (score > max) | is_nan(score) ? score : max;
      if (top == -limits::infinity<A>) continue;  // no weight so far
      const A shrink = max == top ? A(1) : exponential(max - top);
      const A weight = exponential(score - top);
      total = total * shrink + weight;
      for (std::int64_t f = 0; f < width; ++f) {
        sums[f] = sums[f] * shrink + weight * scalar_cast<A>(value[f]);
      }
      max = top;
    }
    for (std::int64_t f = 0; f < width; ++f) {
      task.out[item * width + f] = scalar_cast<T>(sums[f] / total);
    }
  }
};

}  // namespace

namespace detail {

Tensor local_attention(const Tensor& query, const Tensor& key, const Tensor& value, double scale,
                       bool causal, const IndexSet& rows) {
  const Tensor q = query.contiguous(), k = key.contiguous(), v = value.contiguous();
  const int n = q.dim();
  Shape shape = q.shape();
  shape[n - 1] = v.shape()[n - 1];
  Tensor out = Tensor::empty(shape, q.dtype(), q.device());
  if (out.numel() == 0) return out;
  const RunTable table(rows, q.device());
  const std::int64_t queries = shape[n - 2], width = shape[n - 1];
  const std::int64_t batches = out.numel() / queries / width;
  with_floating_dtype(q.dtype(), [&]<class T>() {
    using A = accumulate_t<T>;
    Attention<T> task{static_cast<T*>(out.data()),
                      static_cast<const T*>(q.data()),
                      static_cast<const T*>(k.data()),
                      static_cast<const T*>(v.data()),
                      nullptr,
                      queries,
                      k.shape()[n - 2],
                      q.shape()[n - 1],
                      width,
                      static_cast<A>(scale),
                      causal,
                      table.runs()};
    dispatch_space(q.device(), [&]<class Execution>() {
      if constexpr (works_by_row<Execution>) {
        const AttentionBlock<T> block{task};
        for_items<Execution>("dtensor::attention", batches * block.blocks(), block);
      } else {
        const Tensor sums = Tensor::empty(out.shape(), dtype_of<A>, q.device());
        task.sums = static_cast<A*>(sums.data());
        for_items<Execution>("dtensor::attention", batches * queries, AttentionRow<T>{task});
        fence(q.device(), "dtensor::attention");
      }
    });
  });
  fence(q.device(), "dtensor::attention");  // before copies go
  return out;
}

}  // namespace detail
}  // namespace dtensor
