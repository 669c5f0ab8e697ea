// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators that pick elements, under every kind of placement of all inputs, against one process.
#include <gtest/gtest.h>

#include <limits>

#include "dtensor/ops/indexing.hpp"
#include "dtensor/ops/shape.hpp"
#include "ops/distributed_reference.hpp"
#include "ops/errors.hpp"
#include "ops/layouts.hpp"

namespace dtensor {
namespace {

using testing::Array;
using testing::Communication;
using testing::error_of;
using testing::flat_mesh;
using testing::for_each_index;
using testing::layouts;
using testing::Numbers;
using testing::place;
using testing::square_mesh;
using testing::thrown;

// Whole numbers below a bound, so that contributions to them add up exactly.
Array indices(Numbers& numbers, const Shape& shape, std::int64_t bound) {
  Array a(shape);
  for (double& v : a.values) v = numbers.below(static_cast<int>(bound));
  return a;
}

DTensor place_as(const Array& global, const DeviceMesh& mesh, const Layout& layout, DType dtype) {
  const DTensor x = place(global, mesh, layout);
  return DTensor(mesh, layout, x.to_local().to(dtype));
}

// Without contributions: those of numbers of another kind are not meaningful.
std::vector<Layout> whole_layouts(const Shape& shape, const DeviceMesh& mesh, Numbers& numbers) {
  auto list = layouts(shape, mesh, numbers, 8);
  std::erase_if(list, [](const Layout& l) { return l.has_partial(); });
  return list;
}

struct Case {
  Shape shape, index;
  int dim;
};

Array expected_select(const Array& x, int dim, const Array& index) {
  Shape shape = x.shape;
  shape[dim] = index.shape[0];
  Array y(shape);
  for_each_index(shape, [&](const Extents& i) {
    Extents from = i;
    from[dim] = static_cast<std::int64_t>(index.at({i[dim]}));
    y.at(i) = x.at(from);
  });
  return y;
}
Array expected_gather(const Array& x, int dim, const Array& index) {
  Array y(index.shape);
  for_each_index(index.shape, [&](const Extents& i) {
    Extents from = i;
    from[dim] = static_cast<std::int64_t>(index.at(i));
    y.at(i) = x.at(from);
  });
  return y;
}
Array expected_scatter(const Array& x, int dim, const Array& index, const Array& src) {
  Array y = x;
  for_each_index(index.shape, [&](const Extents& i) {
    Extents to = i;
    to[dim] = static_cast<std::int64_t>(index.at(i));
    y.at(to) += src.at(i);
  });
  return y;
}

const std::vector<Case> select_cases{{{5, 7}, {9}, 0}, {{5, 7}, {4}, 1}, {{3, 4, 5}, {6}, 1},
                                     {{13}, {20}, 0},  {{5, 7}, {0}, 0}, {{2, 0}, {3}, 0}};
const std::vector<Case> gather_cases{{{5, 7}, {9, 7}, 0},       {{5, 7}, {3, 4}, 1},
                                     {{3, 4, 5}, {3, 6, 5}, 1}, {{13}, {20}, 0},
                                     {{5, 7}, {2, 5}, 0},       {{5, 7}, {0, 5}, 0}};

void check_select(const DeviceMesh& mesh) {
  Numbers numbers(31);
  for (const Case& c : select_cases) {
    const Array x = numbers.array(c.shape), index = indices(numbers, c.index, c.shape[c.dim]);
    const Array y = expected_select(x, c.dim, index);
    for (const Layout& lx : layouts(c.shape, mesh, numbers)) {
      for (const Layout& li : whole_layouts(c.index, mesh, numbers)) {
        const DTensor result =
            index_select(place(x, mesh, lx), c.dim, place_as(index, mesh, li, DType::int32));
        ASSERT_LT(error_of(result, y), 1e-12)
            << to_string(lx) << " at " << to_string(li) << " gave " << to_string(result.layout());
      }
    }
  }
}
TEST(IndexSelect, OneMeshDimension) { check_select(flat_mesh()); }
TEST(IndexSelect, TwoMeshDimensions) { check_select(square_mesh()); }

void check_gather(const DeviceMesh& mesh) {
  Numbers numbers(32);
  for (const Case& c : gather_cases) {
    const Array x = numbers.array(c.shape), index = indices(numbers, c.index, c.shape[c.dim]);
    const Array src = numbers.array(c.index);
    const Array y = expected_gather(x, c.dim, index);
    const Array z = expected_scatter(x, c.dim, index, src);
    for (const Layout& lx : layouts(c.shape, mesh, numbers, 8)) {
      const auto indexed = whole_layouts(c.index, mesh, numbers);
      for (const Layout& li : indexed) {
        if (numbers.below(3) == 0) continue;  // a sample
        const DTensor dx = place(x, mesh, lx), di = place_as(index, mesh, li, DType::int64);
        const DTensor result = gather(dx, c.dim, di);
        ASSERT_LT(error_of(result, y), 1e-12)
            << to_string(lx) << " at " << to_string(li) << " gave " << to_string(result.layout());
        const auto sources = layouts(c.index, mesh, numbers, 4);
        const Layout& ls =
            sources[static_cast<std::size_t>(numbers.below(static_cast<int>(sources.size())))];
        const DTensor sum = scatter_add(dx, c.dim, di, place(src, mesh, ls));
        ASSERT_LT(error_of(sum, z), 1e-12) << to_string(lx) << " at " << to_string(li) << " plus "
                                           << to_string(ls) << " gave " << to_string(sum.layout());
        if (&li != &indexed.front()) continue;
        ASSERT_LT(error_of(dx, x), 1e-12);  // untouched
      }
    }
  }
}
TEST(Gather, OneMeshDimension) { check_gather(flat_mesh()); }
TEST(Gather, TwoMeshDimensions) { check_gather(square_mesh()); }

TEST(Indexing, LocalTensorsOfEveryType) {
  Numbers numbers(33);
  for (int d = 0; d < dtype_count; ++d) {
    const auto dtype = static_cast<DType>(d);
    const auto as_array = [&](const Tensor& t) {
      Array a(t.shape());
      a.values = t.to(DType::float64).to_vector<double>();
      return a;
    };
    const Tensor x = Tensor::from_vector(indices(numbers, {4, 5}, 20).values, {4, 5}).to(dtype);
    const Tensor src = Tensor::from_vector(indices(numbers, {3, 6}, 4).values, {3, 6}).to(dtype);
    const Array i1 = indices(numbers, {7}, 5), i2 = indices(numbers, {3, 6}, 5);
    const Tensor t1 = Tensor::from_vector(i1.values, {7}).to(DType::uint8);
    const Tensor t2 = Tensor::from_vector(i2.values, {3, 6}).to(DType::int16);
    EXPECT_EQ(as_array(index_select(x, -1, t1)).values, expected_select(as_array(x), 1, i1).values);
    EXPECT_EQ(as_array(gather(x, 1, t2)).values, expected_gather(as_array(x), 1, i2).values);
    Array z = expected_scatter(as_array(x), 1, i2, as_array(src));
    if (dtype == DType::boolean) {
      for (double& v : z.values) v = v != 0;
    }
    EXPECT_EQ(as_array(scatter_add(x, 1, t2, src)).values, z.values) << to_string(dtype);
    const Tensor mask =
        Tensor::from_vector(std::vector<std::uint8_t>{1, 0, 0, 1}, {4, 1}).to(DType::boolean);
    Array filled = as_array(x);
    for_each_index({4, 5}, [&](const Extents& i) {
      if (i[0] % 3 == 0) filled.at(i) = 1;
    });
    EXPECT_EQ(
        as_array(masked_fill(x, mask, dtype == DType::boolean ? Scalar(true) : Scalar(1))).values,
        filled.values);
  }
  // Of a transposed tensor.
  const Tensor t =
      transpose(Tensor::from_vector(std::vector<double>{1, 2, 3, 4, 5, 6}, {2, 3}), 0, 1);
  const Tensor at = Tensor::from_vector(std::vector<std::int64_t>{2, 0}, {2});
  EXPECT_EQ(index_select(t, 0, at).to_vector<double>(), (std::vector<double>{3, 6, 1, 4}));
}

void check_masked_fill(const DeviceMesh& mesh) {
  Numbers numbers(34);
  for (const auto& [shape, mask_shape] : std::vector<std::pair<Shape, Shape>>{
           {{5, 7}, {5, 7}}, {{5, 7}, {7}}, {{5, 1}, {1, 6}}, {{4}, {3, 4}}}) {
    const Array x = numbers.array(shape), mask = indices(numbers, mask_shape, 2);
    for (double value : {0.0, -3.0}) {
      const Array y = *testing::evaluate(
          {shape.size() == 2 ? "ab" : "b", mask_shape.size() == 2 ? "ab" : "b"}, "ab", {x, mask},
          [&](const std::vector<double>& v) { return v[1] != 0 ? value : v[0]; });
      for (const Layout& lx : layouts(shape, mesh, numbers)) {
        for (const Layout& lm : whole_layouts(mask_shape, mesh, numbers)) {
          const DTensor result =
              masked_fill(place(x, mesh, lx), place_as(mask, mesh, lm, DType::boolean), value);
          ASSERT_LT(error_of(result, y), 1e-12) << to_string(lx) << " and " << to_string(lm);
        }
      }
    }
  }
}
TEST(MaskedFill, OneMeshDimension) { check_masked_fill(flat_mesh()); }
TEST(MaskedFill, TwoMeshDimensions) { check_masked_fill(square_mesh()); }

void check_one_hot(const DeviceMesh& mesh) {
  Numbers numbers(35);
  for (const Shape& shape : {Shape{5}, Shape{3, 4}, Shape{}, Shape{0}}) {
    Array index = indices(numbers, shape, 6);
    for (std::int64_t classes : {7, -1}) {
      std::int64_t count = classes;
      if (classes < 0) {
        count = 0;
        for (double v : index.values) count = std::max(count, static_cast<std::int64_t>(v) + 1);
      }
      Shape result = shape;
      result.push_back(count);
      Array y(result);
      for_each_index(shape, [&](const Extents& i) {
        Extents at = i;
        at.push_back(static_cast<std::int64_t>(index.at(i)));
        y.at(at) = 1;
      });
      for (const Layout& layout : whole_layouts(shape, mesh, numbers)) {
        const Communication communication;
        const DTensor hot = one_hot(place_as(index, mesh, layout, DType::int16), classes);
        EXPECT_EQ(communication.count, classes < 0 && mesh.size() > 1 ? 1 : 0);
        EXPECT_EQ(hot.dtype(), DType::int64);
        EXPECT_EQ(hot.placements(), layout.placements());
        ASSERT_EQ(error_of(hot, y), 0) << to_string(layout);
      }
    }
  }
}
TEST(OneHot, OneMeshDimension) { check_one_hot(flat_mesh()); }
TEST(OneHot, TwoMeshDimensions) { check_one_hot(square_mesh()); }

// Nothing moves where an index and its part are on one rank; no gathering along a sharded
// dimension.
TEST(Indexing, Communication) {
  const DeviceMesh mesh = flat_mesh();
  const std::int64_t n = mesh.size();
  Numbers numbers(36);
  const Array x = numbers.array({4 * n, 3 * n}), index = indices(numbers, {2 * n}, 3 * n);
  const Array index2 = indices(numbers, {4 * n, 2 * n}, 3 * n);
  const Placement R = Replicate(), S0 = Shard(0), S1 = Shard(1);
  const auto at = [&](const Array& a, const Placement& p) {
    return place_as(a, mesh, Layout(a.shape, mesh.grid(), {p}), DType::int64);
  };
  const auto events = [&](const auto& f, const std::string& placement) {
    const Communication communication;
    const DTensor result = f();
    EXPECT_TRUE(n == 1 || to_string(result.placements()) == placement) << to_string(result);
    return communication.count;
  };
  const DTensor rows = place(x, mesh, Placements{S0}), columns = place(x, mesh, Placements{S1});
  const DTensor partial = place(x, mesh, Placements{Partial()});
  const DTensor whole = place(x, mesh, Placements{R});
  EXPECT_EQ(events([&] { return index_select(rows, 1, at(index, R)); }, "[S(0)]"), 0);
  EXPECT_EQ(events([&] { return index_select(whole, 1, at(index, S0)); }, "[S(1)]"), 0);
  EXPECT_EQ(events([&] { return index_select(partial, 1, at(index, R)); }, "[P]"), 0);
  EXPECT_EQ(events([&] { return gather(rows, 1, at(index2, S0)); }, "[S(0)]"), 0);
  EXPECT_EQ(events([&] { return gather(whole, 1, at(index2, S1)); }, "[S(1)]"), 0);
  EXPECT_EQ(events([&] { return gather(columns, 1, at(index2, R)); }, "[P]"), 0);
  // Sharded indices are not gathered where lines can be exchanged.
  EXPECT_LE(events([&] { return gather(columns, 1, at(index2, S0)); }, "[S(0)]"), 1);
  EXPECT_LE(events([&] { return gather(columns, 1, at(index2, S1)); }, "[S(0)]"), 2);
  const Array src = numbers.array({4 * n, 2 * n});
  EXPECT_EQ(
      events([&] { return scatter_add(rows, 1, at(index2, S0), place(src, mesh, Placements{S0})); },
             "[S(0)]"),
      0);
  EXPECT_EQ(
      events(
          [&] { return scatter_add(columns, 1, at(index2, R), place(src, mesh, Placements{R})); },
          "[S(1)]"),
      0);
  EXPECT_EQ(events(
                [&] {
                  return scatter_add(partial, 1, at(index2, R),
                                     place(src, mesh, Placements{Partial()}));
                },
                "[P]"),
            0);
  if (n == 1) return;
  // The selected columns: each is sent to the one rank that gets it.
  class Bytes : public Observer {
   public:
    Bytes() { add_observer(*this); }
    ~Bytes() override { remove_observer(*this); }
    void on_event(const Event& event) override { sent += event.bytes_sent; }
    std::int64_t sent = 0;
  };
  const DTensor everywhere = at(index, R);
  const Bytes bytes;
  EXPECT_EQ(events([&] { return index_select(columns, 1, everywhere); }, "[S(1)]"), 1);
  std::int64_t expected = 0;
  for (std::int64_t i = 0; i < 2 * n; ++i) {
    const auto owner = static_cast<std::int64_t>(index.at({i})) / 3;
    if (owner == mesh.local_rank(0) && i / 2 != owner) expected += 4 * n * 8;
  }
  EXPECT_EQ(bytes.sent, expected);
}

TEST(Indexing, ErrorsOnEveryRank) {
  const DeviceMesh mesh = flat_mesh();
  const std::int64_t n = mesh.size();
  Numbers numbers(37);
  const DTensor x = place(numbers.array({5, 7}), mesh, Placements{Shard(0)});
  Array bad({2 * n});
  bad.at({2 * n - 1}) = 7;
  const auto at = [&](const Array& a, const Placement& p, DType dtype = DType::int64) {
    return place_as(a, mesh, Layout(a.shape, mesh.grid(), {p}), dtype);
  };
  for (const Placement& p : {Placement(Replicate()), Placement(Shard(0))}) {
    try {
      index_select(x, 1, at(bad, p));
      FAIL();
    } catch (const IndexError& e) {
      EXPECT_EQ(e.function(), "index_select");
      EXPECT_EQ(e.given(), "index 7 for dimension 1 of a tensor of shape (5, 7)");
    }
    Array negative({5, n});
    negative.at({3, n - 1}) = -1;
    EXPECT_THROW(gather(x, 1, at(negative, p)), IndexError);
    EXPECT_THROW(scatter_add(x, 1, at(negative, p), at(negative, p, DType::float64)), IndexError);
    EXPECT_EQ(thrown(ErrorKind::index, [&] { one_hot(at(negative, p)); }),
              "one_hot: index -1 for as many classes as needed; expected an index of 0 or more");
    EXPECT_EQ(thrown(ErrorKind::index, [&] { one_hot(at(bad, p), 7); }),
              "one_hot: index 7 for 7 classes; expected an index from 0 to 6");
    EXPECT_NE(thrown(ErrorKind::index, [&] { one_hot(at(bad, p), 0); })
                  .find("for 0 classes; expected no indices"),
              std::string::npos);
    EXPECT_EQ(one_hot(at(bad, p), 8).shape(), (Shape{2 * n, 8}));
  }
  const Array zeros({5, 7});
  EXPECT_THROW(index_select(x, 2, at(Array({2}), Replicate())), IndexError);
  EXPECT_THROW(index_select(x, 0, at(zeros, Replicate())), ValueError);
  EXPECT_THROW(index_select(x, 0, at(Array({2}), Replicate(), DType::float32)), TypeError);
  EXPECT_THROW(gather(x, 0, at(Array({2, 8}), Replicate())), ValueError);
  EXPECT_THROW(gather(x, 0, at(Array({2}), Replicate())), ValueError);
  EXPECT_THROW(
      scatter_add(x, 0, at(zeros, Replicate()), at(Array({4, 7}), Replicate(), DType::float64)),
      ValueError);
  EXPECT_THROW(scatter_add(x, 0, at(zeros, Replicate()), at(zeros, Replicate(), DType::float32)),
               TypeError);
  EXPECT_THROW(masked_fill(x, at(zeros, Replicate()), 1), TypeError);
  EXPECT_THROW(masked_fill(x, at(Array({5, 6}), Replicate(), DType::boolean), 1), ValueError);
  EXPECT_THROW(
      masked_fill(at(zeros, Replicate(), DType::int8), at(zeros, Replicate(), DType::boolean), 1.5),
      TypeError);
  EXPECT_THROW(one_hot(at(zeros, Replicate()), -2), ValueError);
  EXPECT_THROW(one_hot(x), TypeError);
  EXPECT_THROW(index_select(x, 0, Tensor::zeros({2}, DType::int64)), TypeError);
  EXPECT_THROW(gather(x, 0, Tensor::zeros({5, 7}, DType::int64)), TypeError);
  EXPECT_THROW(masked_fill(x, Tensor::zeros({5, 7}, DType::boolean), 1), TypeError);
  EXPECT_THROW(scatter_add(x, 0, at(zeros, Replicate()), Tensor::zeros({5, 7}, DType::float64)),
               TypeError);
}

TEST(OneHot, LargeArguments) {
  const DeviceMesh mesh = flat_mesh();
  const std::int64_t high = std::numeric_limits<std::int64_t>::max();
  const auto check = [&](const auto& one, const auto& nine) {
    for (std::int64_t classes : {std::int64_t{-1}, high}) {
      EXPECT_NE(
          thrown(ErrorKind::value, [&] { one_hot(one, classes); }).find("one_hot: shape (2, 9"),
          std::string::npos);
    }
    EXPECT_EQ(thrown(ErrorKind::value, [&] { one_hot(nine, 2); }),
              "one_hot: 9 dimensions; expected at most 8");
  };
  const Tensor index = Tensor::from_vector(std::vector<std::int64_t>{0, high - 1}, {2});
  const Tensor eight = Tensor::zeros({1, 1, 1, 1, 1, 1, 1, 1}, DType::int64);
  check(index, eight);
  Tensor highest = index.clone();
  highest.narrow(0, 1, 1).fill(high);
  EXPECT_THROW(one_hot(highest), ValueError);
  for (const Placement& p : Placements{Replicate(), Shard(0)}) {
    check(distribute_tensor(index, mesh, {p}), distribute_tensor(eight, mesh, {p}));
    EXPECT_THROW(one_hot(distribute_tensor(highest, mesh, {p})), ValueError);
  }
}

TEST(MaskedFill, BoolTakesZeroAndOne) {
  const DeviceMesh mesh = flat_mesh();
  const Tensor x = Tensor::full({3}, false, DType::boolean),
               mask = Tensor::full({3}, true, DType::boolean);
  const auto ones = [](const Tensor& t) { return t.to(DType::float64).to_vector<double>(); };
  EXPECT_EQ(ones(masked_fill(x, mask, 1)), (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(ones(masked_fill(mask, mask, 0)), (std::vector<double>{0, 0, 0}));
  const DTensor dx = distribute_tensor(x, mesh, {Shard(0)});
  EXPECT_EQ(ones(masked_fill(dx, distribute_tensor(mask, mesh, {Shard(0)}), 1).full_tensor()),
            (std::vector<double>{1, 1, 1}));
  EXPECT_EQ(thrown(ErrorKind::type, [&] { masked_fill(x, mask, 2); }),
            "masked_fill: 2 for a tensor of bool; expected false, true, 0 or 1");
  EXPECT_THROW(masked_fill(x, mask, 1.0), TypeError);
}

TEST(Indexing, RanksOutsideOfTheMesh) {
  if (Runtime::size() < 3) return;
  const DeviceMesh mesh = DeviceMesh::from_ranks({2, 0}, {2});
  const Tensor x = Tensor::full({6, 4}, 2, DType::float64),
               index = Tensor::zeros({3}, DType::int64);
  const DTensor dx = distribute_tensor(x, mesh, {Shard(0)}, std::nullopt);
  const DTensor di = distribute_tensor(index, mesh, {Shard(0)}, std::nullopt);
  const DTensor i2 =
      distribute_tensor(Tensor::zeros({6, 4}, DType::int64), mesh, {Shard(1)}, std::nullopt);
  for (const DTensor& y :
       {index_select(dx, 0, di), gather(dx, 0, i2), scatter_add(dx, 0, i2, dx)}) {
    EXPECT_EQ(y.full_tensor().numel(), mesh.is_member() ? y.numel() : 0);
  }
  EXPECT_EQ(one_hot(di, 4).shape(), (Shape{3, 4}));
  if (mesh.is_member()) {
    EXPECT_EQ(one_hot(di).shape(), (Shape{3, 1}));
  } else {
    EXPECT_THROW(one_hot(di), StateError);
  }
}

}  // namespace
}  // namespace dtensor
