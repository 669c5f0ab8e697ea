// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Functions of neural networks against plain loops, on one process and under every placement.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "dtensor/ops/ops.hpp"
#include "ops/distributed_reference.hpp"
#include "ops/errors.hpp"
#include "ops/layouts.hpp"

namespace dtensor {
namespace {

using namespace testing;  // the references

constexpr DType floating_dtypes[] = {DType::float64, DType::float32, DType::float16,
                                     DType::bfloat16};

double tolerance(DType dtype) {
  if (dtype == DType::float16) return 2e-3;
  if (dtype == DType::bfloat16) return 1.6e-2;
  return dtype == DType::float32 ? 2e-6 : 1e-13;
}

Tensor tensor(const Array& a, DType dtype = DType::float64) {
  return Tensor::from_vector(a.values, a.shape).to(dtype);
}

double distance(const Tensor& t, const Array& expected) {
  if (t.shape() != expected.shape) return INFINITY;
  const auto values = t.to(DType::float64).to_vector<double>();
  double error = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double d =
        std::abs(values[i] - expected.values[i]) / std::max(1.0, std::abs(expected.values[i]));
    error = d <= error ? error : d;  // keeps NaN
  }
  return error;
}

DTensor with_dtype(const DTensor& t, DType dtype) {
  return DTensor(t.device_mesh(), t.layout(), t.to_local().to(dtype));
}

std::vector<Layout> whole_layouts(const Shape& shape, const DeviceMesh& mesh, Numbers& numbers,
                                  std::size_t sample = 12) {
  std::vector<Layout> result = layouts(shape, mesh, numbers, sample);
  std::erase_if(result, [](const Layout& l) { return l.has_partial(); });
  return result;
}

// ---- softmax

Array reference_softmax(const Array& a, int dim, bool log) {
  Array out = a;
  for_each_index(a.shape, [&](const Extents& index) {
    double max = -INFINITY, sum = 0;
    Extents at = index;
    for (at[dim] = 0; at[dim] < a.shape[dim]; ++at[dim]) max = std::max(max, a.at(at));
    for (at[dim] = 0; at[dim] < a.shape[dim]; ++at[dim]) sum += std::exp(a.at(at) - max);
    const double x = a.at(index) - max;
    out.at(index) = log ? x - std::log(sum) : std::exp(x) / sum;
  });
  return out;
}

TEST(Softmax, EveryTypeAndStride) {
  Numbers numbers(41);
  for (const DType dtype : floating_dtypes) {
    for (const Shape& shape : {Shape{3, 5, 4}, Shape{2, 500}, Shape{200, 40}, Shape{7}}) {
      const Array a = numbers.array(shape);
      const Tensor dense = tensor(a, dtype);
      const Tensor strided = dense.transpose(0, -1).contiguous().transpose(0, -1);
      for (int dim = 0; dim < shape.size(); ++dim) {
        for (const bool log : {false, true}) {
          const Array expected = reference_softmax(a, dim, log);
          const auto apply = [&](const Tensor& t) {
            return log ? log_softmax(t, dim - shape.size()) : softmax(t, dim);
          };
          const double tol = tolerance(dtype) * (log ? 4 : 1);
          EXPECT_LT(distance(apply(dense), expected), tol) << to_string(dense) << dim;
          EXPECT_LT(distance(apply(strided), expected), tol) << to_string(dense) << dim;
        }
      }
    }
  }
  EXPECT_EQ(softmax(Tensor::zeros({2, 0}, DType::float64), 1).numel(), 0);
  EXPECT_EQ(softmax(Tensor::full({4}, 3, DType::int32), 0).to_vector<double>()[2], 0.25);
  const Tensor large = Tensor::full({1000}, 1e4, DType::float64);
  EXPECT_NEAR(softmax(large, 0).to_vector<double>()[0], 1e-3, 1e-17);
  EXPECT_NE(thrown(ErrorKind::type, [] { softmax(Tensor::zeros({2}, DType::complex64), 0); })
                .find("complex64"),
            std::string::npos);
  EXPECT_NE(thrown(ErrorKind::index, [&] { log_softmax(large, 1); }).find("log_softmax"),
            std::string::npos);
}

TEST(Softmax, EveryPlacement) {
  Numbers numbers(42);
  for (const DeviceMesh& mesh : {flat_mesh(), square_mesh()}) {
    for (const Shape& shape : {Shape{5, 7}, Shape{4, 3, 2}, Shape{13}, Shape{2, 3}}) {
      Array a = numbers.array(shape);
      a.values[1] = -INFINITY;  // a masked element
      for (const Layout& layout : whole_layouts(shape, mesh, numbers, 24)) {
        const DTensor x = place(a, mesh, layout);
        for (int dim = 0; dim < shape.size(); ++dim) {
          const DTensor s = softmax(x, dim), l = log_softmax(x, dim);
          ASSERT_LT(error_of(s, reference_softmax(a, dim, false)), 1e-13)
              << to_string(layout) << dim;
          const auto logs = l.full_tensor().to_vector<double>();
          const Array expected = reference_softmax(a, dim, true);
          for (std::size_t i = 0; i < logs.size(); ++i) {
            if (std::isinf(expected.values[i])) {
              ASSERT_EQ(logs[i], expected.values[i]);
            } else {
              ASSERT_NEAR(logs[i], expected.values[i], 1e-13);
            }
          }
        }
      }
    }
  }
}

// Case O7: no communication unless the dimension is the sharded one, then two numbers per line.
TEST(Softmax, CommunicatesNoElements) {
  const DeviceMesh mesh = flat_mesh();
  const std::int64_t n = mesh.size();
  const Shape shape{8, 12, 16};
  const Array a = Numbers(43).array(shape);
  for (int sharded = 0; sharded < 3; ++sharded) {
    const DTensor x = place(a, mesh, Placements{Shard(sharded)});
    for (int dim = 0; dim < 3; ++dim) {
      Communication traffic;
      const DTensor s = softmax(x, dim);
      EXPECT_TRUE(s.placements()[0] == Shard(sharded));
      EXPECT_EQ(traffic.count == 0, dim != sharded || n == 1);
      EXPECT_LE(traffic.bytes, (n - 1) * 2 * 8 * shape.product() / shape[dim]);
      EXPECT_LT(error_of(s, reference_softmax(a, dim, false)), 1e-13);
    }
  }
  const DTensor partial = place(a, mesh, Placements{Partial()});
  EXPECT_LT(error_of(softmax(partial, 1), reference_softmax(a, 1, false)), 1e-12);
}

// ---- normalization

// Over the last `k` dimensions.
Array reference_normalize(const Array& a, int k, const Array* weight, const Array* bias, double eps,
                          bool centered) {
  std::int64_t length = 1;
  for (int d = a.shape.size() - k; d < a.shape.size(); ++d) length *= a.shape[d];
  Array out = a;
  for (std::size_t row = 0; row < a.values.size(); row += static_cast<std::size_t>(length)) {
    double mean = 0, square = 0;
    const auto n = static_cast<std::size_t>(length);
    for (std::size_t i = 0; i < n; ++i) mean += a.values[row + i] / static_cast<double>(length);
    if (!centered) mean = 0;
    for (std::size_t i = 0; i < n; ++i) {
      square += (a.values[row + i] - mean) * (a.values[row + i] - mean);
    }
    for (std::size_t i = 0; i < n; ++i) {
      double y = (a.values[row + i] - mean) / std::sqrt(square / static_cast<double>(length) + eps);
      if (weight) y *= weight->values[i];
      if (bias) y += bias->values[i];
      out.values[row + i] = y;
    }
  }
  return out;
}

Shape last_of(const Shape& shape, int k) {
  Shape result;
  for (int d = shape.size() - k; d < shape.size(); ++d) result.push_back(shape[d]);
  return result;
}

TEST(Normalization, EveryType) {
  Numbers numbers(44);
  for (const DType dtype : floating_dtypes) {
    for (const Shape& shape : {Shape{3, 5, 4}, Shape{2, 1000}, Shape{7}}) {
      const Array a = numbers.array(shape);
      for (int k = 1; k <= shape.size(); ++k) {
        const Shape last = last_of(shape, k);
        const Array w = numbers.array(last), b = numbers.array(last);
        const Tensor x = tensor(a, dtype), tw = tensor(w, dtype), tb = tensor(b, dtype);
        const Tensor strided = x.transpose(0, -1).contiguous().transpose(0, -1);
        const double tol = 4 * tolerance(dtype);
        EXPECT_LT(
            distance(layer_norm(x, last), reference_normalize(a, k, nullptr, nullptr, 1e-5, true)),
            tol);
        EXPECT_LT(distance(layer_norm(strided, last, {tw}, {tb}, 0.5),
                           reference_normalize(a, k, &w, &b, 0.5, true)),
                  tol);
        EXPECT_LT(distance(layer_norm(x, last, std::nullopt, {tb}),
                           reference_normalize(a, k, nullptr, &b, 1e-5, true)),
                  tol);
        EXPECT_LT(distance(rms_norm(x, last, {tw}, 0.25),
                           reference_normalize(a, k, &w, nullptr, 0.25, false)),
                  tol);
        EXPECT_LT(
            distance(rms_norm(x, last), reference_normalize(a, k, nullptr, nullptr, 1e-6, false)),
            tol);
      }
    }
  }
  // A mean that is large beside the deviations.
  Array far({1, 1000});
  for (std::size_t i = 0; i < 1000; ++i) far.values[i] = 1e8 + static_cast<double>(i % 2);
  EXPECT_NEAR(layer_norm(tensor(far), {1000}, {}, {}, 0).to_vector<double>()[1], 1, 1e-6);
}

TEST(Normalization, EveryPlacement) {
  Numbers numbers(45);
  for (const DeviceMesh& mesh : {flat_mesh(), square_mesh()}) {
    for (const Shape& shape : {Shape{5, 7}, Shape{4, 3, 2}, Shape{13}}) {
      const Array a = numbers.array(shape);
      for (int k = 1; k <= shape.size(); ++k) {
        const Shape last = last_of(shape, k);
        const Array w = numbers.array(last), b = numbers.array(last);
        for (const Layout& layout : layouts(shape, mesh, numbers, 8)) {
          const DTensor x = place(a, mesh, layout);
          const std::vector<Layout> weights = layouts(last, mesh, numbers, 5);
          for (int i = 0; i < 2; ++i) {
            const Layout& of_weight =
                weights[static_cast<std::size_t>(numbers.below(static_cast<int>(weights.size())))];
            const DTensor dw = place(w, mesh, of_weight), db = place(b, mesh, of_weight);
            ASSERT_LT(error_of(layer_norm(x, last, {dw}, {db}),
                               reference_normalize(a, k, &w, &b, 1e-5, true)),
                      1e-10)
                << to_string(layout) << to_string(of_weight);
            ASSERT_LT(error_of(rms_norm(x, last, {dw}),
                               reference_normalize(a, k, &w, nullptr, 1e-6, false)),
                      1e-10)
                << to_string(layout);
          }
          ASSERT_LT(error_of(layer_norm(x, last),
                             reference_normalize(a, k, nullptr, nullptr, 1e-5, true)),
                    1e-10);
        }
      }
    }
  }
}

// Case O9, and what travels otherwise.
TEST(Normalization, CommunicatesNoElements) {
  const DeviceMesh mesh = flat_mesh();
  const std::int64_t n = mesh.size();
  const Array a = Numbers(46).array({20, 5, 10});
  const Array w = Numbers(47).array({5, 10});
  const DTensor dw = place(w, mesh, Placements{Replicate()});
  for (int d = 0; d < 3; ++d) {
    const DTensor x = place(a, mesh, Placements{Shard(d)});
    {
      Communication traffic;
      const DTensor y = layer_norm(x, {5, 10}, {dw}, {dw});
      EXPECT_TRUE(n == 1 || y.placements()[0] == Shard(d));
      EXPECT_EQ(traffic.count == 0, d == 0 || n == 1);
      EXPECT_LE(traffic.bytes, (n - 1) * 2 * 20 * 8);
    }
    Communication traffic;
    const DTensor y = rms_norm(x, {5, 10}, {dw});
    EXPECT_EQ(traffic.count == 0, d == 0 || n == 1);
    EXPECT_LE(traffic.bytes, (n - 1) * 20 * 8);
  }
}

TEST(Normalization, Errors) {
  const Tensor x = Tensor::zeros({4, 3}, DType::float64), w = Tensor::zeros({4}, DType::float64);
  EXPECT_NE(thrown(ErrorKind::value, [&] { layer_norm(x, {4}); }).find("(4, 3)"),
            std::string::npos);
  EXPECT_NE(thrown(ErrorKind::value, [&] { layer_norm(x, Shape{}); }), "");
  EXPECT_NE(thrown(ErrorKind::value, [&] { layer_norm(x, {3}, {w}); }).find("(4,)"),
            std::string::npos);
  EXPECT_NE(
      thrown(ErrorKind::type, [&] { rms_norm(x, {3}, {w.to(DType::float32)}); }).find("float32"),
      std::string::npos);
  EXPECT_NE(thrown(ErrorKind::type, [&] { rms_norm(x.to(DType::int64), {3}); }).find("int64"),
            std::string::npos);
}

// ---- embedding

Array reference_embedding(const Array& indices, const Array& weight) {
  Shape shape = indices.shape;
  shape.push_back(weight.shape[1]);
  Array out(shape);
  std::size_t k = 0;
  for (double i : indices.values) {
    for (std::int64_t c = 0; c < weight.shape[1]; ++c) {
      out.values[k++] = weight.at({static_cast<std::int64_t>(i), c});
    }
  }
  return out;
}

Array random_integers(const Shape& shape, int bound, std::uint64_t seed) {
  Numbers numbers(seed);
  Array a(shape);
  for (double& v : a.values) v = numbers.below(bound);
  return a;
}

TEST(Embedding, EveryPlacement) {
  Numbers numbers(48);
  for (const DeviceMesh& mesh : {flat_mesh(), square_mesh()}) {
    for (const Shape& shape : {Shape{9}, Shape{3, 4}, Shape{}, Shape{0}}) {
      const Array indices = random_integers(shape, 11, 49), weight = numbers.array({11, 3});
      const Array expected = reference_embedding(indices, weight);
      EXPECT_EQ(distance(embedding(tensor(indices, DType::int32), tensor(weight)), expected), 0);
      for (const Layout& li : whole_layouts(shape, mesh, numbers)) {
        const DTensor di = with_dtype(place(indices, mesh, li), DType::int64);
        for (const Layout& lw : layouts(weight.shape, mesh, numbers, 6)) {
          const DTensor result = embedding(di, place(weight, mesh, lw));
          ASSERT_LT(error_of(result, expected), 1e-12) << to_string(li) << to_string(lw);
        }
      }
    }
  }
}

// Case O13: sharded columns stay, sharded rows give contributions.
TEST(Embedding, NothingIsCommunicated) {
  const DeviceMesh mesh = flat_mesh();
  const std::int64_t n = mesh.size();
  const Array weight = Numbers(50).array({10, 6}), other = Numbers(51).array({7, 6});
  const Array indices = random_integers({8}, 10, 52), others = random_integers({8}, 7, 53);
  const auto whole = [&](const Array& a) {
    return with_dtype(place(a, mesh, Placements{Replicate()}), DType::int64);
  };
  Communication traffic;
  const DTensor columns = embedding(whole(indices), place(weight, mesh, Placements{Shard(1)}));
  EXPECT_TRUE(columns.placements()[0] == Shard(1));
  const DTensor a = embedding(whole(indices), place(weight, mesh, Placements{Shard(0)}));
  const DTensor b = embedding(whole(others), place(other, mesh, Placements{Shard(0)}));
  EXPECT_TRUE(n == 1 || a.placements()[0].is_partial(ReduceOp::sum));
  const DTensor c = embedding(whole(indices), place(weight, mesh, Placements{Partial()}));
  EXPECT_TRUE(c.placements()[0].is_partial());
  EXPECT_EQ(traffic.count, 0);
  const Tensor full = a.full_tensor();
  EXPECT_EQ(traffic.count, n == 1 ? 0 : 1);
  EXPECT_EQ(n == 1 ? Collective::all_reduce : traffic.collective, Collective::all_reduce);
  EXPECT_EQ(distance(full, reference_embedding(indices, weight)), 0);
  EXPECT_EQ(error_of(b, reference_embedding(others, other)), 0);
  EXPECT_EQ(error_of(columns, reference_embedding(indices, weight)), 0);
}

TEST(Embedding, IndicesOutOfRange) {
  const Tensor weight = Tensor::zeros({5, 2}, DType::float32);
  const Tensor bad = Tensor::from_vector(std::vector<std::int64_t>{1, 5, -1}, {3});
  EXPECT_NE(thrown(ErrorKind::index, [&] { embedding(bad, weight); }).find("-1"),
            std::string::npos);
  EXPECT_NE(
      thrown(ErrorKind::index, [&] { embedding(bad.narrow(0, 0, 2), weight); }).find("index 5"),
      std::string::npos);
  EXPECT_NE(thrown(ErrorKind::type, [&] { embedding(weight, weight); }).find("float32"),
            std::string::npos);
  EXPECT_NE(thrown(ErrorKind::type, [&] { embedding(bad, bad.reshape({3, 1})); }), "");
  EXPECT_NE(thrown(ErrorKind::value, [&] { embedding(bad, weight.reshape({10})); }), "");
  const DeviceMesh mesh = flat_mesh();
  const DTensor indices(mesh, Layout({3}, mesh.grid(), {Replicate()}), bad.to(mesh.device()));
  const DTensor rows = place(Array({5, 2}, 1), mesh, Placements{Shard(0)});
  const auto values = embedding(indices, rows).full_tensor().to_vector<double>();
  EXPECT_EQ(values[0], 1);
  for (std::size_t i = 2; i < 6; ++i) EXPECT_TRUE(std::isnan(values[i])) << i;
  EXPECT_NE(thrown(ErrorKind::type, [&] { embedding(bad, rows); }).find("distribute_tensor"),
            std::string::npos);
}

// ---- losses

struct Loss {
  Array each;
  double sum = 0, weights = 0;
};

Loss reference_loss(const Array& a, const Array& target, const Array* weight, double ignore,
                    bool logits) {
  Loss loss{Array(target.shape)};
  const int c = a.shape.size() == 1 ? 0 : 1;
  const Array log = logits ? reference_softmax(a, c, true) : a;
  for_each_index(target.shape, [&](const Extents& index) {
    const double t = target.at(index);
    if (t == ignore) return;
    Extents at;
    for (int d = 0, k = 0; d < a.shape.size(); ++d) {
      at.push_back(d == c ? static_cast<std::int64_t>(t) : index[k++]);
    }
    const double w = weight ? weight->at({static_cast<std::int64_t>(t)}) : 1;
    loss.each.at(index) = -w * log.at(at);
    loss.sum += loss.each.at(index);
    loss.weights += w;
  });
  return loss;
}

template <class T>
std::vector<ClassLossOptions<T>> loss_options(const T& weight) {
  std::vector<ClassLossOptions<T>> list;
  for (const LossReduction r : {LossReduction::none, LossReduction::sum, LossReduction::mean}) {
    ClassLossOptions<T> o;
    o.reduction = r;
    list.push_back(o);
    o.ignore_index = 2;
    list.push_back(o);
    o.weight = weight;
    list.push_back(o);
    o.ignore_index.reset();
    list.push_back(o);
  }
  return list;
}

template <class T>
Array expected_loss(const Array& a, const Array& target, const Array& weight,
                    const ClassLossOptions<T>& o, bool logits) {
  const Loss loss =
      reference_loss(a, target, o.weight ? &weight : nullptr, o.ignore_index ? 2 : -1, logits);
  if (o.reduction == LossReduction::none) return loss.each;
  return Array({}, o.reduction == LossReduction::sum ? loss.sum : loss.sum / loss.weights);
}

Array positive(Array a) {
  for (double& v : a.values) v = std::abs(v);
  return a;
}

TEST(ClassLoss, EveryType) {
  Numbers numbers(54);
  for (const DType dtype : floating_dtypes) {
    for (const Shape& shape : {Shape{9, 6}, Shape{4, 6, 5}, Shape{6}}) {
      Shape targets = shape;
      targets.erase(shape.size() == 1 ? 0 : 1);
      const Array a = numbers.array(shape), w = positive(numbers.array({6}));
      const Array t = random_integers(targets, 6, shape.size() == 1 ? 57 : 55);
      for (const auto& o : loss_options(tensor(w, dtype))) {
        if (shape.size() == 1 && t.values[0] == 2) continue;
        const double tol = 8 * tolerance(dtype);
        EXPECT_LT(distance(cross_entropy(tensor(a, dtype), tensor(t, DType::int32), o),
                           expected_loss(a, t, w, o, true)),
                  tol);
        EXPECT_LT(distance(nll_loss(tensor(a, dtype), tensor(t, DType::int64), o),
                           expected_loss(a, t, w, o, false)),
                  tol);
      }
    }
  }
}

TEST(ClassLoss, EveryPlacement) {
  Numbers numbers(56);
  std::size_t next = 0;
  for (const DeviceMesh& mesh : {flat_mesh(), square_mesh()}) {
    for (const Shape& shape : {Shape{7, 5}, Shape{3, 5, 4}}) {
      Shape targets = shape;
      targets.erase(1);
      const Array a = numbers.array(shape), w = positive(numbers.array({5}));
      const Array t = random_integers(targets, 5, 58);
      for (const Layout& la : layouts(shape, mesh, numbers, 10)) {
        const DTensor x = place(a, mesh, la);
        for (const Layout& lt : whole_layouts(targets, mesh, numbers, 2)) {
          const DTensor dt = with_dtype(place(t, mesh, lt), DType::int64);
          const Layout lw = layouts(w.shape, mesh, numbers, 1).front();
          // A third of the options each time.
          const auto options = loss_options(place(w, mesh, lw));
          for (std::size_t i = next++ % 3; i < options.size(); i += 3) {
            const auto& o = options[i];
            ASSERT_LT(error_of(cross_entropy(x, dt, o), expected_loss(a, t, w, o, true)), 1e-11)
                << to_string(la) << to_string(lt);
            ASSERT_LT(error_of(nll_loss(x, dt, o), expected_loss(a, t, w, o, false)), 1e-11)
                << to_string(la) << to_string(lt);
          }
        }
      }
    }
  }
}

// Case O8.
TEST(ClassLoss, CommunicatesNoElements) {
  const DeviceMesh mesh = flat_mesh();
  const std::int64_t n = mesh.size();
  for (const Shape& shape : {Shape{8, 16}, Shape{8, 16, 12}}) {
    Shape targets = shape;
    targets.erase(1);
    const Array a = Numbers(59).array(shape), t = random_integers(targets, 16, 60);
    for (int d = 0; d < shape.size(); ++d) {
      const DTensor x = place(a, mesh, Placements{Shard(d)});
      const Placement same = d == 1 ? Placement(Replicate()) : Shard(d == 0 ? 0 : d - 1);
      const DTensor dt = with_dtype(place(t, mesh, Placements{same}), DType::int64);
      Communication traffic;
      const DTensor none = cross_entropy(x, dt, {.reduction = LossReduction::none});
      const int each = d == 1 && n > 1 ? 1 : 0;
      EXPECT_EQ(traffic.count, each);
      EXPECT_LE(traffic.bytes, (n - 1) * 2 * 8 * targets.product());
      EXPECT_TRUE(n == 1 ||
                  (d == 1 ? none.placements()[0].is_partial() : none.placements()[0] == same));
      const DTensor mean = cross_entropy(x, dt);
      EXPECT_EQ(traffic.count, 2 * each);
      EXPECT_TRUE(n == 1 || mean.placements()[0].is_partial(ReduceOp::sum));
      nll_loss(x, dt, {.reduction = LossReduction::sum});
      EXPECT_EQ(traffic.count, 2 * each);
      // The divisor.
      nll_loss(x, dt, {.ignore_index = 2});
      EXPECT_EQ(traffic.count, 2 * each + (n > 1));
    }
  }
}

TEST(ClassLoss, TargetsThatAreNoClass) {
  const Tensor x = Tensor::zeros({3, 4}, DType::float64);
  const Tensor t = Tensor::from_vector(std::vector<std::int64_t>{1, 4, -100}, {3});
  const auto each = cross_entropy(x, t, {.reduction = LossReduction::none}).to_vector<double>();
  EXPECT_NEAR(each[0], std::log(4), 1e-15);
  EXPECT_TRUE(std::isnan(each[1]) && std::isnan(each[2]));
  EXPECT_EQ(nll_loss(x, t, {.ignore_index = -100, .reduction = LossReduction::none})
                .to_vector<double>()[2],
            0);
  EXPECT_NE(thrown(ErrorKind::value, [&] { cross_entropy(x, t.narrow(0, 0, 2)); })
                .find("(3, 4) and (2,)"),
            std::string::npos);
  EXPECT_NE(thrown(ErrorKind::type, [&] { nll_loss(x, x.narrow(1, 0, 1).reshape({3})); })
                .find("targets of float64"),
            std::string::npos);
  EXPECT_NE(thrown(ErrorKind::value,
                   [&] { cross_entropy(x, t, {.weight = Tensor::zeros({3}, DType::float64)}); })
                .find("4 classes"),
            std::string::npos);
}

TEST(MeanSquare, EveryPlacement) {
  Numbers numbers(61);
  const Array a = numbers.array({5, 7}), b = numbers.array({5, 7});
  Array each({5, 7});
  double sum = 0;
  for (std::size_t i = 0; i < 35; ++i) {
    each.values[i] = (a.values[i] - b.values[i]) * (a.values[i] - b.values[i]);
    sum += each.values[i];
  }
  for (const DeviceMesh& mesh : {flat_mesh(), square_mesh()}) {
    for (const Layout& la : layouts(a.shape, mesh, numbers, 6)) {
      for (const Layout& lb : layouts(a.shape, mesh, numbers, 6)) {
        const DTensor x = place(a, mesh, la), y = place(b, mesh, lb);
        ASSERT_LT(error_of(mse_loss(x, y), Array({}, sum / 35)), 1e-12);
        ASSERT_LT(error_of(mse_loss(x, y, LossReduction::none), each), 1e-11);
        ASSERT_LT(error_of(mse_loss(x, y, LossReduction::sum), Array({}, sum)), 1e-12);
      }
    }
  }
  EXPECT_NE(thrown(ErrorKind::value, [&] { mse_loss(tensor(a), tensor(Array({7}))); }), "");
}

// Integers do not wrap around: they are numbers of float64 here.
TEST(MeanSquare, Integers) {
  const Tensor black = Tensor::full({4}, 0, DType::uint8),
               grey = Tensor::full({4}, 20, DType::uint8);
  EXPECT_EQ(mse_loss(black, grey).item<double>(), 400);
  EXPECT_EQ(mse_loss(Tensor::full({2}, 100, DType::int8), Tensor::full({2}, -100, DType::int8))
                .item<double>(),
            40000);
  EXPECT_EQ(
      mse_loss(grey, Tensor::full({4}, true, DType::boolean), LossReduction::sum).item<double>(),
      4 * 19 * 19);
  const DTensor x = distribute_tensor(black, flat_mesh(), {Shard(0)});
  const DTensor y = distribute_tensor(grey, flat_mesh(), {Replicate()});
  EXPECT_EQ(mse_loss(x, y).full_tensor().item<double>(), 400);
  EXPECT_NE(thrown(ErrorKind::type, [&] { mse_loss(black, Tensor::zeros({4}, DType::complex64)); })
                .find("mse_loss"),
            std::string::npos);
}

// ---- attention

Array reference_attention(const Array& q, const Array& k, const Array& v, double scale,
                          bool causal) {
  const int n = q.shape.size();
  Shape shape = q.shape;
  shape[n - 1] = v.shape[n - 1];
  Array out(shape);
  for_each_index(shape, [&](const Extents& index) {
    Extents at_q = index, at_k = index, at_v = index;
    const std::int64_t keys = causal ? std::min(k.shape[n - 2], index[n - 2] + 1) : k.shape[n - 2];
    std::vector<double> scores;
    double max = -INFINITY, sum = 0, value = 0;
    for (std::int64_t j = 0; j < keys; ++j) {
      double score = 0;
      at_k[n - 2] = j;
      for (std::int64_t e = 0; e < q.shape[n - 1]; ++e) {
        at_q[n - 1] = at_k[n - 1] = e;
        score += q.at(at_q) * k.at(at_k);
      }
      scores.push_back(score * scale);
      max = std::max(max, scores.back());
    }
    for (std::int64_t j = 0; j < keys; ++j) {
      at_v[n - 2] = j;
      const double w = std::exp(scores[static_cast<std::size_t>(j)] - max);
      sum += w;
      value += w * v.at(at_v);
    }
    out.at(index) = value / sum;
  });
  return out;
}

TEST(Attention, EveryTypeAndShapeOfWork) {
  Numbers numbers(62);
  struct Case {
    Shape q, k, v;
  };
  for (const Case& c :
       {Case{{2, 3, 5, 4}, {2, 3, 7, 4}, {2, 3, 7, 6}}, Case{{70, 5}, {150, 5}, {150, 3}},
        Case{{1, 33, 1}, {1, 65, 1}, {1, 65, 9}}}) {
    const Array q = numbers.array(c.q), k = numbers.array(c.k), v = numbers.array(c.v);
    for (const DType dtype : floating_dtypes) {
      const Tensor tq = tensor(q, dtype), tk = tensor(k, dtype), tv = tensor(v, dtype);
      for (const bool causal : {false, true}) {
        const double scale = 1 / std::sqrt(static_cast<double>(c.q[c.q.size() - 1]));
        EXPECT_LT(distance(scaled_dot_product_attention(tq, tk, tv, {.causal = causal}),
                           reference_attention(q, k, v, scale, causal)),
                  8 * tolerance(dtype))
            << to_string(tq);
        EXPECT_LT(
            distance(scaled_dot_product_attention(tq, tk, tv, {.causal = causal, .scale = -0.3}),
                     reference_attention(q, k, v, -0.3, causal)),
            8 * tolerance(dtype))
            << to_string(tq);
      }
    }
  }
}

// Keys that have no weight, before those that have.
TEST(Attention, ScoresOfMinusInfinity) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const std::int64_t keys : {2, 65, 200}) {
    std::vector<double> scores(static_cast<std::size_t>(keys), -infinity), values(scores.size(), 3);
    scores.back() = 1;
    values.back() = 7;
    const Tensor q = Tensor::full({1, 1}, 1, DType::float64);
    const Tensor k = Tensor::from_vector(scores, {keys, 1}),
                 v = Tensor::from_vector(values, {keys, 1});
    EXPECT_EQ(scaled_dot_product_attention(q, k, v).item<double>(), 7) << keys;
    k.fill(-infinity);
    EXPECT_TRUE(std::isnan(scaled_dot_product_attention(q, k, v).item<double>())) << keys;
  }
}

TEST(Attention, EveryPlacement) {
  Numbers numbers(63);
  for (const DeviceMesh& mesh : {flat_mesh(), square_mesh()}) {
    const Array q = numbers.array({3, 7, 4}), k = numbers.array({3, 6, 4}),
                v = numbers.array({3, 6, 5});
    const Array expected[] = {reference_attention(q, k, v, 0.5, false),
                              reference_attention(q, k, v, 0.5, true)};
    for (const Layout& lq : layouts(q.shape, mesh, numbers, 10)) {
      for (int i = 0; i < 3; ++i) {
        const auto pick = [&](const Shape& shape) {
          const auto list = layouts(shape, mesh, numbers, 4);
          return list[static_cast<std::size_t>(numbers.below(static_cast<int>(list.size())))];
        };
        const DTensor dq = place(q, mesh, lq), dk = place(k, mesh, pick(k.shape)),
                      dv = place(v, mesh, pick(v.shape));
        for (const bool causal : {false, true}) {
          const DTensor y = scaled_dot_product_attention(dq, dk, dv, {.causal = causal});
          ASSERT_LT(error_of(y, expected[causal]), 1e-11)
              << to_string(dq) << to_string(dk) << to_string(dv) << causal;
        }
      }
    }
  }
}

TEST(Attention, CommunicatesNothingWhereItNeedNot) {
  const DeviceMesh mesh = flat_mesh();
  const Array q = Numbers(64).array({6, 12, 4}), v = Numbers(65).array({6, 12, 8});
  const auto run = [&](const Placement& a, const Placement& b, const Placement& c,
                       const Placement& expected) {
    const DTensor dq = place(q, mesh, Placements{a}), dk = place(q, mesh, Placements{b}),
                  dv = place(v, mesh, Placements{c});
    const Communication communication;
    const DTensor y = scaled_dot_product_attention(dq, dk, dv, {.causal = true});
    EXPECT_EQ(communication.count, 0) << to_string(a);
    EXPECT_TRUE(mesh.size() == 1 || y.placements()[0] == expected) << to_string(y.placements());
  };
  run(Shard(0), Shard(0), Shard(0), Shard(0));
  run(Shard(1), Replicate(), Replicate(), Shard(1));
  run(Shard(1, uneven(12, mesh.size())), Replicate(), Replicate(),
      Shard(1, uneven(12, mesh.size())));
  run(StridedShard(1, 2), Replicate(), Replicate(), StridedShard(1, 2));
  run(Replicate(), Replicate(), Shard(2), Shard(2));
  run(Replicate(), Replicate(), Partial(), Partial());
  const Tensor t = tensor(q);
  EXPECT_NE(thrown(ErrorKind::value, [&] { scaled_dot_product_attention(t, t, t.narrow(0, 0, 2)); })
                .find("(6, 12, 4)"),
            std::string::npos);
  EXPECT_NE(
      thrown(ErrorKind::type, [&] { scaled_dot_product_attention(t, t.to(DType::float32), t); })
          .find("float32"),
      std::string::npos);
}

TEST(Learning, OutsideOfTheMesh) {
  const DeviceMesh mesh = DeviceMesh::from_ranks({0}, Shape{1});
  const Layout layout(Shape{4, 3}, mesh.grid(), {Shard(1)});
  const Shape local = mesh.is_member() ? Shape{4, 3} : Shape{0, 0};
  const DTensor x(mesh, layout, Tensor::full(local, 2.0, DType::float64, mesh.device()));
  const DTensor target(
      mesh, Layout(Shape{4}, mesh.grid(), {Replicate()}),
      Tensor::zeros(mesh.is_member() ? Shape{4} : Shape{0}, DType::int64, mesh.device()));
  EXPECT_EQ(softmax(x, 1).shape(), (Shape{4, 3}));
  EXPECT_EQ(layer_norm(x, {3}).shape(), (Shape{4, 3}));
  EXPECT_EQ(cross_entropy(x, target, {.ignore_index = 2}).dim(), 0);
  EXPECT_EQ(embedding(target, x).shape(), (Shape{4, 3}));
  EXPECT_EQ(scaled_dot_product_attention(x, x, x).shape(), (Shape{4, 3}));
}

}  // namespace
}  // namespace dtensor
