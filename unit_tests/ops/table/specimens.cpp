// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ops/table/specimens.hpp"

#include <utility>

#include "dtensor/ops/ops.hpp"
#include "dtensor/ops/pointwise_table.hpp"
#include "dtensor/random/random.hpp"

namespace dtensor::testing {

namespace {

using Given = const std::vector<DTensor>&;
constexpr DType float64 = DType::float64, int64 = DType::int64, boolean = DType::boolean;

std::vector<DTensor> results(const DTensor& t) { return {t}; }
std::vector<DTensor> results(std::vector<DTensor> t) { return t; }
std::vector<DTensor> results(const ValuesAndIndices<DTensor>& t) { return {t.values, t.indices}; }
std::vector<DTensor> results(const QR<DTensor>& t) { return {t.q, t.r}; }
std::vector<DTensor> results(bool) { return {}; }

Plain numbers(const Shape& shape, DType dtype = float64) { return small_numbers(shape, dtype, 3); }
Plain matrix(DType dtype = float64) { return numbers({8, 8}, dtype); }
Plain below(const Shape& shape, std::int64_t bound) {
  return indices_below(shape, int64, bound, 7);
}
Plain constant(const Shape& shape, double value) {
  Plain p(shape, float64);
  for (Number& v : p.values) v = value;
  return p;
}
// With an inverse, and a factor of Cholesky.
Plain definite() {
  Plain p = constant({8, 8}, 1);
  for (std::size_t i = 0; i < 8; ++i) p.values[i * 9] = 16;
  return p;
}

// Adds specimens of one section.
class Section {
 public:
  explicit Section(const char* name) : name_(name) {}

  template <class F>
  void add(std::string call, std::vector<Plain> operands, F run) {
    list_.push_back(
        {name_, std::move(call), std::move(operands), [run](Given x) { return results(run(x)); }});
  }
  std::vector<Specimen> take() { return std::move(list_); }

 private:
  const char* name_;
  std::vector<Specimen> list_;
};

std::vector<Specimen> pointwise_specimens() {
  Section s("Element by element");
  for (const PointwiseRow& row : pointwise_table()) {
    const PointwiseOp op = row.op;
    const Plain x = matrix((row.kinds & kinds::floating) != 0 ? float64 : int64);
    using Operands = detail::Operands<DTensor>;
    const auto with = [op](const Operands& operands) { return detail::pointwise(op, operands); };
    const std::string name = row.name;
    if (op == PointwiseOp::where) {
      s.add("where(x, y, z)", {matrix(boolean), x, x}, [=](Given t) {
        return with(Operands{t[0], t[1], t[2]});
      });
      s.add("where(x, y, 0)", {matrix(boolean), x}, [=](Given t) {
        return with(Operands{t[0], t[1], Scalar(0)});
      });
      s.add("where(x, y, 2)", {matrix(boolean), x}, [=](Given t) {
        return with(Operands{t[0], t[1], Scalar(2)});
      });
      continue;
    }
    switch (row.arity) {
      case 1:
        s.add(name + "(x)", {x}, [=](Given t) { return with(Operands{t[0]}); });
        break;
      case 2:
        s.add(name + "(x, y)", {x, x}, [=](Given t) { return with(Operands{t[0], t[1]}); });
        s.add(name + "(x, 2)", {x}, [=](Given t) { return with(Operands{t[0], Scalar(2)}); });
        s.add(name + "(2, x)", {x}, [=](Given t) { return with(Operands{Scalar(2), t[0]}); });
        break;
      case 3:
        s.add(name + "(x, y, z)", {x, x, x}, [=](Given t) {
          return with(Operands{t[0], t[1], t[2]});
        });
        break;
      default:
        s.add(name + "(x, y, z)", {x, x, x}, [=](Given t) {
          return with(Operands{t[0], t[1], t[2], Scalar(1)});
        });
    }
  }
  const Plain x = matrix();
  s.add("mul(x, -2)", {x}, [](Given t) { return mul(t[0], -2); });
  s.add("clamp(x, -1, 1)", {x}, [](Given t) { return clamp(t[0], -1, 1); });
  s.add("lerp(x, y, 0.5)", {x, x}, [](Given t) { return lerp(t[0], t[1], 0.5); });
  s.add("to(x, float32)", {x}, [](Given t) { return to(t[0], DType::float32); });
  s.add("to(x, int64)", {x}, [](Given t) { return to(t[0], int64); });
  s.add("to(x, float64)", {matrix(int64)}, [](Given t) { return to(t[0], float64); });
  s.add("fill_(x, 2)", {x}, [](Given t) { return fill_(t[0], 2); });
  s.add("copy_(x, y)", {x, x}, [](Given t) { return copy_(t[0], t[1]); });
  s.add("add_(x, y)", {x, x}, [](Given t) { return add_(t[0], t[1]); });
  s.add("mul_(x, y)", {x, x}, [](Given t) { return mul_(t[0], t[1]); });
  return s.take();
}

std::vector<Specimen> reduction_specimens() {
  Section s("Reductions and scans");
  const Plain x = matrix();
  for (int dims = 0; dims < 2; ++dims) {
    const Dims d = dims == 0 ? Dims(all_dims) : Dims(0);
    const std::string x_and_dims = dims == 0 ? "(x)" : "(x, 0)";
    s.add("sum" + x_and_dims, {x}, [=](Given t) { return sum(t[0], d); });
    s.add("mean" + x_and_dims, {x}, [=](Given t) { return mean(t[0], d); });
    s.add("prod" + x_and_dims, {x}, [=](Given t) { return prod(t[0], d); });
    s.add("amax" + x_and_dims, {x}, [=](Given t) { return amax(t[0], d); });
    s.add("amin" + x_and_dims, {x}, [=](Given t) { return amin(t[0], d); });
    s.add("any" + x_and_dims, {x}, [=](Given t) { return any(t[0], d); });
    s.add("all" + x_and_dims, {x}, [=](Given t) { return all(t[0], d); });
    s.add("count_nonzero" + x_and_dims, {x}, [=](Given t) { return count_nonzero(t[0], d); });
    s.add("logsumexp" + x_and_dims, {x}, [=](Given t) { return logsumexp(t[0], d); });
    s.add("var" + x_and_dims, {x}, [=](Given t) { return var(t[0], d); });
    s.add("stddev" + x_and_dims, {x}, [=](Given t) { return stddev(t[0], d); });
    const std::string after_p = dims == 0 ? ")" : ", 0)";
    s.add("norm(x, 1" + after_p, {x}, [=](Given t) { return norm(t[0], 1, d); });
    s.add("norm(x, 2" + after_p, {x}, [=](Given t) { return norm(t[0], 2, d); });
    s.add("norm(x, infinity" + after_p, {x},
          [=](Given t) { return norm(t[0], std::numeric_limits<double>::infinity(), d); });
  }
  s.add("max(x)", {x}, [](Given t) { return max(t[0]); });
  s.add("min(x)", {x}, [](Given t) { return min(t[0]); });
  s.add("max(x, 0)", {x}, [](Given t) { return max(t[0], 0); });
  s.add("min(x, 0)", {x}, [](Given t) { return min(t[0], 0); });
  s.add("argmax(x)", {x}, [](Given t) { return argmax(t[0]); });
  s.add("argmin(x)", {x}, [](Given t) { return argmin(t[0]); });
  s.add("argmax(x, 0)", {x}, [](Given t) { return argmax(t[0], 0); });
  s.add("argmin(x, 0)", {x}, [](Given t) { return argmin(t[0], 0); });
  s.add("cumsum(x, 0)", {x}, [](Given t) { return cumsum(t[0], 0); });
  s.add("cumprod(x, 0)", {x}, [](Given t) { return cumprod(t[0], 0); });
  s.add("equal(x, y)", {x, x}, [](Given t) { return equal(t[0], t[1]); });
  s.add("allclose(x, y)", {x, x}, [](Given t) { return allclose(t[0], t[1]); });
  return s.take();
}

std::vector<Specimen> matrix_specimens() {
  Section s("Linear algebra");
  const Plain x = matrix(), v = numbers({8}), batch = numbers({4, 8, 8});
  s.add("matmul(x, y)", {x, x}, [](Given t) { return matmul(t[0], t[1]); });
  s.add("mm(x, y)", {x, x}, [](Given t) { return mm(t[0], t[1]); });
  s.add("matmul(x, y)", {x, v}, [](Given t) { return matmul(t[0], t[1]); });
  s.add("matmul(x, y)", {batch, x}, [](Given t) { return matmul(t[0], t[1]); });
  s.add("bmm(x, y)", {batch, batch}, [](Given t) { return bmm(t[0], t[1]); });
  s.add("addmm(x, y, z)", {x, x, x}, [](Given t) { return addmm(t[0], t[1], t[2]); });
  s.add("einsum(\"bij,bjk->bik\", x, y)", {batch, batch},
        [](Given t) { return einsum("bij,bjk->bik", t[0], t[1]); });
  s.add("addmm(x, y, z)", {v, x, x}, [](Given t) { return addmm(t[0], t[1], t[2]); });
  s.add("dot(x, y)", {v, v}, [](Given t) { return dot(t[0], t[1]); });
  s.add("outer(x, y)", {v, v}, [](Given t) { return outer(t[0], t[1]); });
  s.add("trace(x)", {x}, [](Given t) { return trace(t[0]); });
  s.add("tril(x)", {x}, [](Given t) { return tril(t[0]); });
  s.add("triu(x)", {x}, [](Given t) { return triu(t[0]); });
  s.add("diagonal(x)", {x}, [](Given t) { return diagonal(t[0]); });
  s.add("cholesky(x)", {definite()}, [](Given t) { return cholesky(t[0]); });
  s.add("qr(x)", {numbers({32, 4})}, [](Given t) { return qr(t[0]); });
  s.add("solve_triangular(x, y)", {definite(), x},
        [](Given t) { return solve_triangular(t[0], t[1]); });
  s.add("solve(x, y)", {definite(), x}, [](Given t) { return solve(t[0], t[1]); });
  return s.take();
}

std::vector<Specimen> shape_specimens() {
  Section s("Shapes, indices and order");
  const Plain x = matrix();
  s.add("view(x, {64})", {x}, [](Given t) { return view(t[0], {64}); });
  s.add("flatten(x)", {x}, [](Given t) { return flatten(t[0]); });
  s.add("reshape(x, {64})", {x}, [](Given t) { return reshape(t[0], {64}); });
  s.add("view(x, {2, 4, 8})", {x}, [](Given t) { return view(t[0], {2, 4, 8}); });
  s.add("unflatten(x, 0, {2, 4})", {x}, [](Given t) { return unflatten(t[0], 0, {2, 4}); });
  s.add("permute(x, {1, 0})", {x}, [](Given t) { return permute(t[0], {1, 0}); });
  s.add("transpose(x, 0, 1)", {x}, [](Given t) { return transpose(t[0], 0, 1); });
  s.add("movedim(x, {0}, {1})", {x}, [](Given t) { return movedim(t[0], {0}, {1}); });
  s.add("squeeze(x)", {numbers({8, 1})}, [](Given t) { return squeeze(t[0]); });
  s.add("unsqueeze(x, 0)", {x}, [](Given t) { return unsqueeze(t[0], 0); });
  s.add("expand(x, {4, 8, 8})", {x}, [](Given t) { return expand(t[0], {4, 8, 8}); });
  s.add("narrow(x, 0, 1, 4)", {x}, [](Given t) { return narrow(t[0], 0, 1, 4); });
  s.add("slice(x, 0, 1, 7, 2)", {x}, [](Given t) { return slice(t[0], 0, 1, 7, 2); });
  s.add("split(x, 4)", {x}, [](Given t) { return split(t[0], 4); });
  s.add("chunk(x, 2)", {x}, [](Given t) { return chunk(t[0], 2); });
  s.add("select(x, 0, 3)", {x}, [](Given t) { return select(t[0], 0, 3); });
  s.add("repeat(x, {2, 1})", {x}, [](Given t) { return repeat(t[0], {2, 1}); });
  s.add("cat({x, y})", {x, x}, [](Given t) { return cat({t[0], t[1]}); });
  s.add("stack({x, y})", {x, x}, [](Given t) { return stack({t[0], t[1]}); });
  s.add("flip(x, {0})", {x}, [](Given t) { return flip(t[0], {0}); });
  s.add("roll(x, {1}, {0})", {x}, [](Given t) { return roll(t[0], {1}, {0}); });
  s.add("pad(x, {0, 0, 1, 1})", {x}, [](Given t) { return pad(t[0], {0, 0, 1, 1}); });
  s.add("index_select(x, 0, y)", {x, below({4}, 8)},
        [](Given t) { return index_select(t[0], 0, t[1]); });
  s.add("gather(x, 0, y)", {x, below({8, 8}, 8)}, [](Given t) { return gather(t[0], 0, t[1]); });
  s.add("scatter_add(x, 0, y, z)", {x, below({8, 8}, 8), x},
        [](Given t) { return scatter_add(t[0], 0, t[1], t[2]); });
  s.add("masked_fill(x, y, 2)", {x, matrix(boolean)},
        [](Given t) { return masked_fill(t[0], t[1], 2); });
  s.add("masked_fill(x, y, 0)", {x, matrix(boolean)},
        [](Given t) { return masked_fill(t[0], t[1], 0); });
  s.add("one_hot(x, 8)", {below({8}, 8)}, [](Given t) { return one_hot(t[0], 8); });
  s.add("sort(x, 0)", {x}, [](Given t) { return sort(t[0], 0); });
  s.add("argsort(x, 0)", {x}, [](Given t) { return argsort(t[0], 0); });
  s.add("sort(x)", {numbers({64})}, [](Given t) { return sort(t[0]); });
  s.add("topk(x, 2, 0)", {x}, [](Given t) { return topk(t[0], 2, 0); });
  return s.take();
}

std::vector<Specimen> learning_specimens() {
  Section s("Learning and random numbers");
  const Plain x = matrix(), ones = constant({8}, 1), sequence = numbers({2, 8, 4});
  s.add("softmax(x, 1)", {x}, [](Given t) { return softmax(t[0], 1); });
  s.add("log_softmax(x, 1)", {x}, [](Given t) { return log_softmax(t[0], 1); });
  s.add("layer_norm(x, {8}, y, z)", {x, ones, ones},
        [](Given t) { return layer_norm(t[0], {8}, t[1], t[2]); });
  s.add("rms_norm(x, {8}, y)", {x, ones}, [](Given t) { return rms_norm(t[0], {8}, t[1]); });
  s.add("embedding(x, y)", {below({8}, 8), x}, [](Given t) { return embedding(t[0], t[1]); });
  for (const LossReduction reduction : {LossReduction::none, LossReduction::mean}) {
    const std::string mode = reduction == LossReduction::none ? ", none)" : ")";
    s.add("cross_entropy(x, y" + mode, {x, below({8}, 8)},
          [=](Given t) { return cross_entropy(t[0], t[1], {.reduction = reduction}); });
    s.add("nll_loss(x, y" + mode, {x, below({8}, 8)},
          [=](Given t) { return nll_loss(t[0], t[1], {.reduction = reduction}); });
    s.add("mse_loss(x, y" + mode, {x, x}, [=](Given t) { return mse_loss(t[0], t[1], reduction); });
  }
  for (const bool causal : {false, true}) {
    s.add(std::string("scaled_dot_product_attention(x, y, z") + (causal ? ", causal)" : ")"),
          {sequence, sequence, sequence}, [=](Given t) {
            return scaled_dot_product_attention(t[0], t[1], t[2], {.causal = causal});
          });
  }
  s.add("uniform_(x)", {x}, [](Given t) { return uniform_(t[0]); });
  s.add("normal_(x)", {x}, [](Given t) { return normal_(t[0]); });
  s.add("exponential_(x)", {x}, [](Given t) { return exponential_(t[0]); });
  s.add("bernoulli_(x)", {x}, [](Given t) { return bernoulli_(t[0]); });
  s.add("rand_like(x)", {x}, [](Given t) { return rand_like(t[0]); });
  s.add("randn_like(x)", {x}, [](Given t) { return randn_like(t[0]); });
  s.add("bernoulli(x)", {constant({8, 8}, 0.5)}, [](Given t) { return bernoulli(t[0]); });
  s.add("dropout(x)", {x}, [](Given t) { return dropout(t[0]); });
  s.add("multinomial(x, 4)", {constant({8, 8}, 1)}, [](Given t) { return multinomial(t[0], 4); });
  return s.take();
}

}  // namespace

std::vector<Specimen> specimens() {
  std::vector<Specimen> all;
  for (auto& part : {pointwise_specimens(), reduction_specimens(), matrix_specimens(),
                     shape_specimens(), learning_specimens()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace dtensor::testing
