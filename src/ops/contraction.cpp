// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "contraction.hpp"

#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/local/matmul.hpp"
#include "dtensor/ops/local/reduction.hpp"
#include "dtensor/ops/pointwise.hpp"
#include "dtensor/ops/promotion.hpp"
#include "dtensor/ops/reduction.hpp"

namespace dtensor::detail {

namespace {

bool has(const std::string& letters, char letter) {
  return letters.find(letter) != std::string::npos;
}

int position(const std::string& letters, char letter) {
  return static_cast<int>(letters.find(letter));
}

// The tensor with its dimensions in the order of `to`. \param from its letters
Tensor reordered(const Tensor& t, const std::string& from, const std::string& to) {
  if (from == to) return t;
  std::vector<std::int64_t> order;
  for (char c : to) order.push_back(position(from, c));
  return t.permute(order);
}

// The tensor with each group of neighbouring dimensions merged into one: a view where the strides
// allow, else a copy. \param ends where the groups end
Tensor merged(const Tensor& t, std::initializer_list<std::size_t> ends) {
  std::size_t single = 0;
  for (std::size_t end : ends) single += end == single + 1;
  if (single == ends.size()) return t;
  Shape shape;
  Extents strides;
  bool is_view = true;
  int d = 0;
  for (std::size_t end : ends) {
    std::int64_t extent = 1, stride = 0;
    for (; d < static_cast<int>(end); ++d) {
      if (t.shape()[d] == 1) continue;
      is_view &= extent == 1 || stride == t.strides()[d] * t.shape()[d];
      extent *= t.shape()[d];
      stride = t.strides()[d];
    }
    shape.push_back(extent);
    strides.push_back(extent == 1 ? 1 : stride);
  }
  if (shape.product() == 0) return Tensor::empty(shape, t.dtype(), t.device());
  return is_view ? t.as_strided(shape, strides, t.storage_offset()) : t.reshape(shape);
}

// The tensor as one with the dimensions `to`, of extent 1 where it has none.
Tensor stretched(const Tensor& t, const std::string& from, const std::string& to) {
  Shape shape;
  Extents strides;
  for (char c : to) {
    const bool present = has(from, c);
    shape.push_back(present ? t.shape()[position(from, c)] : 1);
    strides.push_back(present ? t.strides()[position(from, c)] : 1);
  }
  return t.as_strided(shape, strides, t.storage_offset());
}

}  // namespace

Contraction::Contraction(std::string a_letters, std::string b_letters, std::string output_letters)
    : a(std::move(a_letters)),
      b(std::move(b_letters)),
      output(std::move(output_letters)),
      rule(a + "," + b + "->" + output, in_each()) {
  std::string only_a, only_b;
  for (char c : output) {
    const bool in_a = has(a, c), in_b = has(b, c);
    (in_a && in_b ? batch : in_a ? only_a : only_b) += c;
  }
  for (char c : a) {
    if (!has(output, c)) summed += c;
  }
  // The left factor's dimensions come first in the product.
  swapped = output == batch + only_b + only_a && !only_a.empty() && !only_b.empty();
  left = swapped ? only_b : only_a;
  right = swapped ? only_a : only_b;
}

Tensor contract(const char* name, const Contraction& e, const Tensor& a, const Tensor& b) {
  check_same_memory(name, a, b);
  if (e.summed.empty()) return mul(stretched(a, e.a, e.output), stretched(b, e.b, e.output));
  const Tensor& x = e.swapped ? b : a;
  const Tensor& y = e.swapped ? a : b;
  const Tensor first = reordered(x, e.swapped ? e.b : e.a, e.batch + e.left + e.summed);
  const Tensor second = reordered(y, e.swapped ? e.a : e.b, e.batch + e.summed + e.right);
  const std::size_t batch = e.batch.size(), left = e.left.size(), summed = e.summed.size();
  Shape shape;
  for (std::size_t d = 0; d < batch + left; ++d)
    shape.push_back(first.shape()[static_cast<int>(d)]);
  for (std::size_t d = 0; d < e.right.size(); ++d) {
    shape.push_back(second.shape()[static_cast<int>(batch + summed + d)]);
  }
  const Tensor product = Tensor::empty(shape, a.dtype(), a.device());
  // Without a batch the dimensions most often need no merging.
  const std::size_t right = e.right.size();
  if (batch == 0) {
    gemm(1, merged(first, {left, left + summed}), merged(second, {summed, summed + right}), 0,
         merged(product, {left, left + right}));
  } else {
    gemm(1, merged(first, {batch, batch + left, batch + left + summed}),
         merged(second, {batch, batch + summed, batch + summed + right}), 0,
         merged(product, {batch, batch + left, batch + left + right}));
  }
  return reordered(product, e.batch + e.left + e.right, e.output).contiguous();
}

DTensor contract(const char* name, const Contraction& e, const DTensor& a, const DTensor& b) {
  return dispatch({name, e.rule, a.dtype()}, {a, b},
                  [&](Locals x) { return contract(name, e, x[0], x[1]); });
}

Reordering::Reordering(const std::string& input, const std::string& output)
    : rule(input + "->" + output,
           input.size() == output.size() ? moves_elements() : in_the_only_input()),
      sums(input.size() != output.size()) {
  std::string left;
  for (std::size_t d = 0; d < input.size(); ++d) {
    summed[d] = !has(output, input[d]);
    if (!summed[d]) left += input[d];
  }
  for (char c : output) order.push_back(position(left, c));
}

Tensor reorder(const char*, const Reordering& r, const Tensor& a) {
  if (!r.sums) return a.permute(r.order);
  // Sums of narrow integers are made in int64 and wrap around here.
  return scaled_sum(a, r.summed, false, sum_dtype(a.dtype()), 1).to(a.dtype()).permute(r.order);
}

DTensor reorder(const char* name, const Reordering& r, const DTensor& a) {
  return dispatch({name, r.rule, a.dtype()}, {a}, [&](Locals x) { return reorder(name, r, x[0]); });
}

namespace {

// The elements of a block whose first indices in the two dimensions are equal.
Tensor diagonal_view(const Tensor& a, int kept, int dropped) {
  Shape shape = a.shape();
  Extents strides = a.strides();
  strides[kept] += strides[dropped];
  shape.erase(dropped);
  strides.erase(dropped);
  return a.as_strided(shape, strides, a.storage_offset());
}

}  // namespace

Tensor diagonal(const char*, const Tensor& a, int kept, int dropped) {
  return diagonal_view(a, kept, dropped);
}

DTensor diagonal(const char* name, const DTensor& a, int kept, int dropped) {
  // The sum over the dropped dimension of what is zero off the diagonal.
  std::string input = std::string("abcdefgh").substr(0, static_cast<std::size_t>(a.dim()));
  std::string output = input;
  // The result is sharded as the dimension that more mesh dimensions split.
  const bool follows_dropped =
      a.layout().split_by(dropped).size() > a.layout().split_by(kept).size();
  if (follows_dropped) {
    output[static_cast<std::size_t>(kept)] = input[static_cast<std::size_t>(dropped)];
  }
  output.erase(static_cast<std::size_t>(dropped), 1);
  const Rule rule(input + "->" + output, in_the_only_input());
  const Operation operation{name, rule, a.dtype()};
  const Prepared ready = prepare(operation, {a});
  const DTensor& source = ready.inputs[0];
  return wrap(operation, a.device_mesh(), ready.output, [&] {
    const Extents& coordinate = *a.device_mesh().coordinate();
    const Tensor& local = source.to_local();
    const Tensor result =
        Tensor::zeros(ready.output.local_shape(coordinate), a.dtype(), local.device());
    const int to = kept - (kept > dropped ? 1 : 0);
    for (const Overlap& run : intersect(source.layout().index_set(coordinate, kept),
                                        source.layout().index_set(coordinate, dropped))) {
      const Tensor block =
          local.narrow(kept, run.first, run.length).narrow(dropped, run.second, run.length);
      result.narrow(to, follows_dropped ? run.second : run.first, run.length)
          .copy_from(diagonal_view(block, kept, dropped));
    }
    return result;
  });
}

}  // namespace dtensor::detail
