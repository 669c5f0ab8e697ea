// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operators of shapes on both kinds of tensors, under every kind of placement, against one process.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <functional>
#include <limits>

#include "dtensor/distributed/factories.hpp"
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
using testing::uneven;

using Dims = std::vector<std::int64_t>;
// From an index of the result to one of the input; empty for a new element.
using Origin = std::function<Extents(const Extents&)>;

struct Case {
  std::string name;
  Shape shape;
  std::function<Tensor(const Tensor&)> local;
  std::function<DTensor(const DTensor&)> global;
  Shape result;
  Origin origin;
  double fill = 0;
};

#define DTENSOR_CASE(text, shape, expression, result, ...)                          \
  Case {                                                                            \
    text, shape, [](const Tensor& x) -> Tensor { return expression; },              \
        [](const DTensor& x) -> DTensor { return expression; }, result, __VA_ARGS__ \
  }

std::int64_t linear(const Extents& index, const Shape& shape) {
  std::int64_t n = 0;
  for (int d = 0; d < index.size(); ++d) n = n * shape[d] + index[d];
  return n;
}
Extents unlinear(std::int64_t n, const Shape& shape) {
  Extents index = shape;
  for (int d = shape.size() - 1; d >= 0; --d) {
    index[d] = n % shape[d];
    n /= shape[d];
  }
  return index;
}
// The same elements in the same order.
Origin regrouped(const Shape& from, const Shape& to) {
  return [=](const Extents& i) { return unlinear(linear(i, to), from); };
}
Origin at(std::function<void(Extents&)> change) {
  return [=](const Extents& i) {
    Extents o = i;
    change(o);
    return o;
  };
}

std::vector<Case> cases() {
  const Shape s{5, 7}, t{4, 6, 3};
  const auto shift = [](int d, std::int64_t by, std::int64_t n) {
    return at([=](Extents& i) { i[d] = ((i[d] - by) % n + n) % n; });
  };
  return {
      DTENSOR_CASE("reshape", s, reshape(x, {7, 5}), (Shape{7, 5}), regrouped(s, {7, 5})),
      DTENSOR_CASE("reshape -1", t, reshape(x, {8, -1}), (Shape{8, 9}), regrouped(t, {8, 9})),
      DTENSOR_CASE("reshape 12, 6", t, reshape(x, {12, 6}), (Shape{12, 6}), regrouped(t, {12, 6})),
      DTENSOR_CASE("reshape 2,2,3,2,3", t, reshape(x, {2, 2, 3, 2, 3}), (Shape{2, 2, 3, 2, 3}),
                   regrouped(t, {2, 2, 3, 2, 3})),
      DTENSOR_CASE("reshape of none", (Shape{0, 4}), reshape(x, {2, 0}), (Shape{2, 0}),
                   regrouped({0, 4}, {2, 0})),
      DTENSOR_CASE("flatten", t, flatten(x), (Shape{72}), regrouped(t, {72})),
      DTENSOR_CASE("flatten 1", t, flatten(x, 1), (Shape{4, 18}), regrouped(t, {4, 18})),
      DTENSOR_CASE("flatten 0 1", t, flatten(x, 0, -2), (Shape{24, 3}), regrouped(t, {24, 3})),
      DTENSOR_CASE("flatten of 0-d", (Shape{}), flatten(x), (Shape{1}), regrouped({}, {1})),
      DTENSOR_CASE("flatten transposed", s, flatten(transpose(x, 0, 1)), (Shape{35}),
                   ([](const Extents& i) {
                     return Extents{i[0] % 5, i[0] / 5};
                   })),
      DTENSOR_CASE("permute", t, permute(x, {2, -3, 1}), (Shape{3, 4, 6}), ([](const Extents& i) {
                     return Extents{i[1], i[2], i[0]};
                   })),
      DTENSOR_CASE("movedim", t, movedim(x, {0}, {2}), (Shape{6, 3, 4}), ([](const Extents& i) {
                     return Extents{i[2], i[0], i[1]};
                   })),
      DTENSOR_CASE("movedim 2", t, movedim(x, {2, 0}, {0, 1}), (Shape{3, 4, 6}),
                   ([](const Extents& i) {
                     return Extents{i[1], i[2], i[0]};
                   })),
      DTENSOR_CASE("unsqueeze", s, unsqueeze(x, 1), (Shape{5, 1, 7}), ([](const Extents& i) {
                     return Extents{i[0], i[2]};
                   })),
      DTENSOR_CASE("unsqueeze -1", s, unsqueeze(x, -1), (Shape{5, 7, 1}), ([](const Extents& i) {
                     return Extents{i[0], i[1]};
                   })),
      DTENSOR_CASE("squeeze", (Shape{1, 5, 1, 3}), squeeze(x), (Shape{5, 3}),
                   ([](const Extents& i) {
                     return Extents{0, i[0], 0, i[1]};
                   })),
      DTENSOR_CASE("squeeze 2", (Shape{1, 5, 1, 3}), squeeze(x, 2), (Shape{1, 5, 3}),
                   ([](const Extents& i) {
                     return Extents{i[0], i[1], 0, i[2]};
                   })),
      DTENSOR_CASE("squeeze to 0-d", (Shape{1, 1}), squeeze(x), (Shape{}),
                   [](const Extents&) {
                     return Extents{0, 0};
                   }),
      DTENSOR_CASE("expand", (Shape{3, 1}), expand(x, {2, 3, 4}), (Shape{2, 3, 4}),
                   ([](const Extents& i) {
                     return Extents{i[1], 0};
                   })),
      DTENSOR_CASE("expand flatten", (Shape{3, 1}), flatten(expand(x, {-1, 4})), (Shape{12}),
                   ([](const Extents& i) {
                     return Extents{i[0] / 4, 0};
                   })),
      DTENSOR_CASE("narrow", s, narrow(x, 1, 2, 4), (Shape{5, 4}),
                   at([](Extents& i) { i[1] += 2; })),
      DTENSOR_CASE("narrow both", s, narrow(narrow(x, 0, 1, 3), 1, -3, 2), (Shape{3, 2}),
                   at([](Extents& i) {
                     i[0] += 1;
                     i[1] += 4;
                   })),
      DTENSOR_CASE("narrow to none", s, narrow(x, 0, 5, 0), (Shape{0, 7}), at([](Extents&) {})),
      DTENSOR_CASE("slice", s, slice(x, 1, 1, -1, 2), (Shape{5, 3}),
                   at([](Extents& i) { i[1] = 1 + 2 * i[1]; })),
      DTENSOR_CASE("slice 3", (Shape{17}), slice(x, 0, 1, 100, 3), (Shape{6}),
                   at([](Extents& i) { i[0] = 1 + 3 * i[0]; })),
      DTENSOR_CASE("slice of a slice", (Shape{17}), slice(slice(x, 0, 1, 100, 2), 0, 2, 8, 3),
                   (Shape{2}), at([](Extents& i) { i[0] = 5 + 6 * i[0]; })),
      DTENSOR_CASE("select 0", s, select(x, 0, 3), (Shape{7}), ([](const Extents& i) {
                     return Extents{3, i[0]};
                   })),
      DTENSOR_CASE("select -1", t, select(x, 1, -1), (Shape{4, 3}), ([](const Extents& i) {
                     return Extents{i[0], 5, i[1]};
                   })),
      DTENSOR_CASE("select to 0-d", (Shape{5}), select(x, 0, 2), (Shape{}),
                   [](const Extents&) { return Extents{2}; }),
      DTENSOR_CASE("split", s, split(x, 3, 1)[1], (Shape{5, 3}), at([](Extents& i) { i[1] += 3; })),
      DTENSOR_CASE("split sizes", s, split(x, Dims{2, 0, 3})[2], (Shape{3, 7}),
                   at([](Extents& i) { i[0] += 2; })),
      DTENSOR_CASE("chunk", s, chunk(x, 3, 1).back(), (Shape{5, 1}),
                   at([](Extents& i) { i[1] += 6; })),
      DTENSOR_CASE("repeat", s, repeat(x, {2, 3, 1}), (Shape{2, 15, 7}), ([](const Extents& i) {
                     return Extents{i[1] % 5, i[2]};
                   })),
      DTENSOR_CASE("repeat 2", s, repeat(x, {2, 3}), (Shape{10, 21}), ([](const Extents& i) {
                     return Extents{i[0] % 5, i[1] % 7};
                   })),
      DTENSOR_CASE("repeat 0", s, repeat(x, {2, 0}), (Shape{10, 0}), at([](Extents&) {})),
      DTENSOR_CASE("cat 0", s, cat({x, narrow(x, 0, 1, 3), x}), (Shape{13, 7}),
                   ([](const Extents& i) {
                     return Extents{i[0] < 5 ? i[0] : i[0] < 8 ? i[0] - 4 : i[0] - 8, i[1]};
                   })),
      DTENSOR_CASE("cat -1", s, cat({narrow(x, 1, 2, 2), x}, -1), (Shape{5, 9}),
                   ([](const Extents& i) {
                     return Extents{i[0], i[1] < 2 ? i[1] + 2 : i[1] - 2};
                   })),
      DTENSOR_CASE("stack 1", s, stack({x, flip(x, {0})}, 1), (Shape{5, 2, 7}),
                   ([](const Extents& i) {
                     return Extents{i[1] == 0 ? i[0] : 4 - i[0], i[2]};
                   })),
      DTENSOR_CASE("flip", s, flip(x, {0, -1}), s, at([](Extents& i) {
                     i[0] = 4 - i[0];
                     i[1] = 6 - i[1];
                   })),
      DTENSOR_CASE("flip of 1", (Shape{1, 3}), flip(x, {0}), (Shape{1, 3}), at([](Extents&) {})),
      DTENSOR_CASE("roll 1", s, roll(x, {3}, {1}), s, shift(1, 3, 7)),
      DTENSOR_CASE("roll 0 and 1", s, roll(x, {-2, 15}, {0, 1}), s,
                   ([shift](const Extents& i) { return shift(1, 15, 7)(shift(0, -2, 5)(i)); })),
      DTENSOR_CASE("roll all", s, roll(x, {9}), s,
                   ([s](const Extents& i) { return unlinear((linear(i, s) - 9 + 35) % 35, s); })),
      DTENSOR_CASE("pad", s, pad(x, {1, 2}), (Shape{5, 10}), ([](const Extents& i) {
                     return i[1] < 1 || i[1] > 7 ? Extents{} : Extents{i[0], i[1] - 1};
                   })),
      DTENSOR_CASE("pad -2", s, pad(x, {0, -3, 4, 1}, -2), (Shape{10, 4}), ([](const Extents& i) {
                     return i[0] < 4 || i[0] > 8 ? Extents{} : Extents{i[0] - 4, i[1]};
                   }),
                   -2.0),
      DTENSOR_CASE("pad cut", s, pad(x, {0, 0, -1, -2}), (Shape{2, 7}),
                   at([](Extents& i) { i[0] += 1; })),
      DTENSOR_CASE(
          "pad none", (Shape{0, 2}), pad(x, {0, 0, 2, 1}, 1), (Shape{3, 2}),
          [](const Extents&) { return Extents{}; }, 1.0),
  };
}

Array expected(const Array& x, const Case& c) {
  Array result(c.result, c.fill);
  for_each_index(c.result, [&](const Extents& i) {
    const Extents origin = c.origin(i);
    if (origin.size() == x.shape.size()) result.at(i) = x.at(origin);
  });
  return result;
}

TEST(Shape, LocalTensors) {
  Numbers numbers(1);
  for (const Case& c : cases()) {
    const Array x = numbers.array(c.shape);
    const Tensor result = c.local(Tensor::from_vector(x.values, x.shape));
    EXPECT_EQ(result.shape(), c.result) << c.name;
    EXPECT_EQ(result.to_vector<double>(), expected(x, c).values) << c.name;
    // Of each element size.
    for (DType dtype : {DType::complex128, DType::float32, DType::bfloat16, DType::int8}) {
      const Tensor converted = c.local(Tensor::from_vector(x.values, x.shape).to(dtype));
      EXPECT_EQ(converted.to(DType::float64).to_vector<double>(),
                Tensor::from_vector(expected(x, c).values, c.result)
                    .to(dtype)
                    .to(DType::float64)
                    .to_vector<double>())
          << c.name << " " << to_string(dtype);
    }
  }
}

void check(const DeviceMesh& mesh) {
  Numbers numbers(2);
  for (const Case& c : cases()) {
    const Array x = numbers.array(c.shape);
    const Array y = expected(x, c);
    for (const Layout& layout : layouts(c.shape, mesh, numbers)) {
      const DTensor dx = place(x, mesh, layout);
      const DTensor result = c.global(dx);
      ASSERT_LT(error_of(result, y), 1e-12)
          << c.name << " of " << to_string(layout) << " gave " << to_string(result.placements());
    }
  }
}
TEST(Shape, OneMeshDimension) { check(flat_mesh()); }
TEST(Shape, TwoMeshDimensions) { check(square_mesh()); }

// Views never communicate, and share memory.
TEST(Shape, ViewsShareMemoryAndDoNotCommunicate) {
  const DeviceMesh mesh = flat_mesh();
  Numbers numbers(4);
  const Array x = numbers.array({5, 6});
  for (const Layout& layout : layouts({5, 6}, mesh, numbers)) {
    const DTensor dx = place(x, mesh, layout);
    const auto quiet = [&](const char* name, const DTensor& y, int events) {
      EXPECT_EQ(events, 0) << name << " of " << to_string(layout);
      EXPECT_EQ(y.to_local().storage(), dx.to_local().storage())
          << name << " of " << to_string(layout);
    };
    const Communication communication;
    // Where no placements describe a part of a strided shard, it is moved.
    const bool strided = layout.placement(0).is_shard() && layout.placement(0).split_factor() > 1;
    quiet("permute", permute(dx, {1, 0}), communication.count);
    quiet("unsqueeze", unsqueeze(dx, 1), communication.count);
    quiet("squeeze", squeeze(unsqueeze(dx, 0)), communication.count);
    quiet("expand", expand(dx, {3, 5, 6}), communication.count);
    quiet("view", view(dx, {1, 5, 6}), communication.count);
    if (strided) continue;
    if (!layout.placement(0).is_shard(1)) quiet("view", view(dx, {30}), communication.count);
    quiet("narrow", narrow(dx, 0, 1, 3), communication.count);
    quiet("narrow", narrow(dx, 1, 1, 4), communication.count);
    quiet("select", select(dx, 0, 2), communication.count);
    quiet("select", select(dx, 1, 5), communication.count);
    quiet("split", split(dx, 2)[1], communication.count);
    quiet("chunk", chunk(dx, 2, 1)[1], communication.count);
    quiet("slice", slice(dx, 0, 1, 5, 2), communication.count);
    quiet("slice", slice(dx, 1, 0, 6, 3), communication.count);
    // Written through the view.
    if (dx.layout().has_partial()) continue;
    narrow(dx, 0, 1, 3).to_local().fill(9);
    Array y = x;
    for_each_index({3, 6}, [&](const Extents& i) { y.at({i[0] + 1, i[1]}) = 9; });
    EXPECT_EQ(error_of(dx, y), 0);
  }
}

TEST(Shape, ViewThrowsWhereElementsWouldMove) {
  const DeviceMesh mesh = flat_mesh();
  const DTensor x = place(Numbers(5).array({12, 8}), mesh, Placements{Shard(1)});
  if (mesh.size() == 1) {
    EXPECT_EQ(view(x, {16, 6}).shape(), (Shape{16, 6}));
    return;
  }
  const Communication communication;
  try {
    view(x, {16, 6});
    FAIL();
  } catch (const LayoutError& e) {
    EXPECT_EQ(e.function(), "view");
    EXPECT_NE(std::string(e.what()).find("reshape"), std::string::npos) << e.what();
    EXPECT_NE(e.given().find("[S(1)]"), std::string::npos);
    EXPECT_EQ(e.expected().find("[S(1)]"), std::string::npos);
  }
  EXPECT_EQ(communication.count, 0);
  const DTensor y = reshape(x, {16, 6});
  EXPECT_EQ(communication.count, 1);
  EXPECT_EQ(communication.operation, "reshape");
  EXPECT_EQ(to_string(y.placements()), "[S(0)]");
  const DTensor t = transpose(place(Numbers(5).array({6, 4}), mesh, Placements{Shard(0)}), 0, 1);
  EXPECT_THROW(view(t, {24}), Error);
}

// What moves is not more than what is needed: bytes that all ranks send.
TEST(Shape, MovesNoMoreThanNeeded) {
  const DeviceMesh mesh = flat_mesh();
  const std::int64_t n = mesh.size();
  if (n == 1) return;
  class Bytes : public Observer {
   public:
    Bytes() { add_observer(*this); }
    ~Bytes() override { remove_observer(*this); }
    void on_event(const Event& event) override { sent += event.bytes_sent; }
    std::int64_t sent = 0;
  };
  const DTensor x = place(Numbers(6).array({4 * n, 3}), mesh, Placements{Shard(0)});
  const auto bytes = [&](const auto& f) {
    const Bytes observer;
    const Communication communication;
    f();
    EXPECT_EQ(communication.count, 1);
    return observer.sent;
  };
  EXPECT_EQ(bytes([&] { roll(x, {1}, {0}); }), 1 * 3 * 8);
  EXPECT_EQ(bytes([&] { roll(x, {-3}, {0}); }), 3 * 3 * 8);
  const bool middle = n % 2 == 1 && mesh.local_rank(0) == n / 2;
  EXPECT_EQ(bytes([&] { flip(x, {0}); }), middle ? 0 : 4 * 3 * 8);
  const Communication none;
  roll(x, {2}, {1});
  flip(x, {1});
  pad(x, {3, 1});
  repeat(x, {2, 2});
  cat({x, x}, 1);
  stack({x, x});
  slice(x, 0, 1, 100, 2);
  EXPECT_EQ(none.count, 0);
}

// The positions that a rank has of such a slice are not evenly spaced.
TEST(Shape, SliceOfStridedShards) {
  if (Runtime::size() < 2) return;
  const DeviceMesh mesh = DeviceMesh::from_ranks({0, 1}, {2});
  Array x({12});
  for (std::int64_t i = 0; i < 12; ++i) x.at({i}) = static_cast<double>(i);
  if (!mesh.is_member()) return;
  const Communication communication;
  const DTensor y = slice(place(x, mesh, Placements{StridedShard(0, 2)}), 0, 0, 12, 2);
  EXPECT_EQ(communication.count, 0);
  EXPECT_EQ(to_string(y.placements()), "[SS(0,2)]");
  Array even({6});
  for (std::int64_t i = 0; i < 6; ++i) even.at({i}) = static_cast<double>(2 * i);
  EXPECT_EQ(error_of(y, even), 0);
}

// No placement describes these indices of a strided shard, so that they are moved.
TEST(Shape, NarrowOfStridedShards) {
  const DeviceMesh mesh = flat_mesh();
  if (mesh.size() == 1) return;
  const Array x = Numbers(18).array({4 * mesh.size()});
  const DTensor dx = place(x, mesh, Placements{StridedShard(0, 2)});
  const Communication communication;
  const DTensor y = narrow(dx, 0, 1, 2 * mesh.size());
  EXPECT_EQ(communication.count, 1);
  EXPECT_EQ(y.placements(), dx.placements());
  EXPECT_NE(y.to_local().storage(), dx.to_local().storage());
  EXPECT_EQ(y.full_tensor().to_vector<double>(),
            std::vector<double>(x.values.begin() + 1, x.values.begin() + 1 + 2 * mesh.size()));
}

// Row O16 of the known cases.
TEST(Shape, StackKeepsTheShards) {
  const DeviceMesh mesh = flat_mesh();
  const DTensor x = place(Numbers(7).array({8, 8}), mesh, Placements{Shard(1)});
  for (std::int64_t dim : {0, 1}) {
    const DTensor y = stack({x, x}, dim);
    EXPECT_EQ(to_string(y.placements()), "[S(2)]");
    EXPECT_EQ(y.shape(), dim == 0 ? (Shape{2, 8, 8}) : (Shape{8, 2, 8}));
  }
}

TEST(Shape, PlacementsOfResults) {
  const DeviceMesh mesh = flat_mesh();
  if (mesh.size() != 4) return;
  const DTensor x = place(Numbers(8).array({8, 6}), mesh, Placements{Shard(0)});
  EXPECT_EQ(to_string(narrow(x, 0, 1, 4).placements()), "[S(0,[1, 2, 1, 0])]");
  EXPECT_EQ(to_string(select(x, 0, 5).placements()), "[S(0,[0, 0, 6, 0])]");
  EXPECT_EQ(to_string(repeat(x, {3, 1}).placements()), "[SS(0,3)]");
  EXPECT_EQ(to_string(slice(x, 0, 0, 8, 2).placements()), "[S(0)]");
  EXPECT_EQ(to_string(cat({x, x}).placements()), "[S(0)]");
  const DTensor p = place(Numbers(8).array({8, 6}), mesh, Placements{Partial()});
  EXPECT_EQ(to_string(pad(p, {1, 1}).placements()), "[P]");
  EXPECT_EQ(to_string(pad(p, {1, 1}, 2).placements()), "[R]");
  EXPECT_EQ(to_string(cat({p, p}).placements()), "[P]");
  EXPECT_EQ(to_string(cat({x, p}).placements()), "[S(0)]");
  EXPECT_EQ(to_string(cat({p, x}).placements()), "[S(0)]");
  // Where it takes the least, whichever comes first.
  const DTensor r = place(Numbers(8).array({8, 6}), mesh, Placements{Replicate()});
  EXPECT_EQ(to_string(cat({r, x}, 1).placements()), "[S(0)]");
  EXPECT_EQ(to_string(cat({x, r}, 1).placements()), "[S(0)]");
}

// Cat of inputs that are placed differently.
TEST(Shape, CatOfAnyPlacements) {
  for (const DeviceMesh& mesh : {flat_mesh(), square_mesh()}) {
    Numbers numbers(9);
    const Array x = numbers.array({5, 3}), y = numbers.array({4, 3});
    Array both({9, 3});
    for_each_index(both.shape, [&](const Extents& i) {
      both.at(i) = i[0] < 5 ? x.at(i) : y.at({i[0] - 5, i[1]});
    });
    for (const Layout& lx : layouts(x.shape, mesh, numbers, 8)) {
      for (const Layout& ly : layouts(y.shape, mesh, numbers, 8)) {
        const DTensor result = cat({place(x, mesh, lx), place(y, mesh, ly)});
        ASSERT_LT(error_of(result, both), 1e-12) << to_string(lx) << " and " << to_string(ly);
      }
    }
  }
}

TEST(Shape, RanksThatDifferAllThrow) {
  const DeviceMesh mesh = flat_mesh();
  if (mesh.size() == 1) return;
  const DTensor x = place(Numbers(12).array({12, 6}), mesh, Placements{Shard(0)});
  EXPECT_THROW(roll(x, {1 + mesh.local_rank(0)}, {0}), MismatchError);
  EXPECT_EQ(roll(x, {2}, {0}).shape(), x.shape());
}

TEST(Shape, RanksOutsideOfTheMesh) {
  if (Runtime::size() < 3) return;
  const DeviceMesh mesh = DeviceMesh::from_ranks({2, 0}, {2});
  const Array x = Numbers(10).array({5, 6});
  const DTensor dx = mesh.is_member() ? place(x, mesh, Placements{Shard(0)})
                                      : distribute_tensor(Tensor::from_vector(x.values, x.shape),
                                                          mesh, {Shard(0)}, std::nullopt);
  for (const DTensor& y : {flip(dx, {0}), roll(dx, {2}, {0}), reshape(dx, {6, 5}),
                           narrow(dx, 0, 1, 3), pad(dx, {0, 0, 1, 1}), cat({dx, dx}),
                           select(dx, 0, 1), expand(dx, {2, 5, 6}), repeat(dx, {2, 2})}) {
    const Tensor full = y.full_tensor();
    EXPECT_EQ(full.numel(), mesh.is_member() ? y.numel() : 0);
  }
}

constexpr std::int64_t huge = std::numeric_limits<std::int64_t>::max();

// Numbers far beyond the extents: what Python's slices give, or the operator's own error.
template <class T>
void check_large_arguments(const T& x) {
  const auto values = [](const T& t) {
    if constexpr (std::is_same_v<T, Tensor>) {
      return t.template to_vector<double>();
    } else {
      return t.full_tensor().template to_vector<double>();
    }
  };
  for (std::int64_t step : {std::int64_t{8}, std::int64_t{1} << 61, huge}) {
    EXPECT_EQ(values(slice(x, 0, 0, 8, step)), values(narrow(x, 0, 0, 1))) << step;
    EXPECT_EQ(values(slice(x, 1, -1, huge, step)), values(narrow(x, 1, 7, 1))) << step;
    EXPECT_EQ(values(slice(x, 1, 3, 3, step)), std::vector<double>()) << step;
  }
  EXPECT_EQ(values(slice(x, 0, -huge - 1, huge)), values(x));
  EXPECT_EQ(values(slice(x, 0, 4, -huge - 1)), std::vector<double>());
  EXPECT_EQ(values(roll(x, {-huge - 1}, {0})), values(x));
  EXPECT_EQ(split(x, huge).size(), 1u);
  EXPECT_EQ(chunk(x, huge).size(), 8u);
  EXPECT_EQ(values(repeat(narrow(x, 0, 0, 0), {std::int64_t{1} << 40, 1})), std::vector<double>());
  EXPECT_EQ(repeat(narrow(x, 0, 0, 0), {std::int64_t{1} << 40, 1}).shape(), (Shape{0, 8}));
  EXPECT_EQ(repeat(x, {std::int64_t{1} << 40, 0}).shape(), (Shape{std::int64_t{1} << 43, 0}));
  const auto refused = [](const char* function, const auto& f) {
    try {
      f();
      ADD_FAILURE() << function;
    } catch (const ValueError& e) {
      EXPECT_EQ(e.function(), function) << e.what();
    }
  };
  refused("pad", [&] { pad(x, {huge, huge}); });
  refused("pad", [&] { pad(x, {huge, -huge}); });
  refused("pad", [&] { pad(x, {-huge - 1, 0}); });
  refused("pad", [&] { pad(x, {std::int64_t{1} << 60, 0}); });
  refused("repeat", [&] { repeat(x, {std::int64_t{1} << 62, 1}); });
  refused("repeat", [&] { repeat(x, {std::int64_t{1} << 32, std::int64_t{1} << 32}); });
  refused("expand", [&] { expand(x, {std::int64_t{1} << 60, 8, 8}); });
  refused("view", [&] { view(x, {std::int64_t{1} << 32, std::int64_t{1} << 32}); });
  const T none = narrow(x, 0, 0, 0);
  refused("unflatten", [&] {
    unflatten(reshape(none, {std::int64_t{1} << 40, 0}), 1, {1 << 30, 0});
  });
  const T wide = expand(narrow(x, 0, 0, 1), {std::int64_t{1} << 55, 8});
  refused("cat", [&] { cat(std::vector<T>(4, wide)); });
  refused("stack", [&] { stack(std::vector<T>(4, wide)); });
  // Nine dimensions.
  const T eight = reshape(x, {2, 2, 2, 2, 2, 2, 1, 1});
  const std::vector<std::int64_t> nine{1, 2, 2, 2, 2, 2, 2, 1, 1};
  refused("reshape", [&] { reshape(x, {1, 2, 2, 2, 2, 2, 2, 1, 1}); });
  refused("reshape", [&] { reshape(x, nine); });
  refused("view", [&] { view(x, nine); });
  refused("expand", [&] { expand(eight, nine); });
  refused("unflatten", [&] { unflatten(x, 0, nine); });
  refused("unflatten", [&] { unflatten(eight, 0, {2, 1}); });
  refused("unsqueeze", [&] { unsqueeze(eight, 0); });
  refused("stack", [&] { stack({eight, eight}); });
  refused("repeat", [&] { repeat(x, nine); });
}
TEST(Shape, LargeArguments) {
  const DeviceMesh mesh = flat_mesh();
  const Array x = Numbers(13).array({8, 8});
  check_large_arguments(Tensor::from_vector(x.values, x.shape));
  for (const Placement& p : Placements{Replicate(), Shard(0), Shard(1), StridedShard(0, 2)}) {
    check_large_arguments(place(x, mesh, Placements{p}));
  }
}

// What is not called a view has memory of its own, also where nothing changes.
TEST(Shape, CopiesShareNothing) {
  const DeviceMesh mesh = flat_mesh();
  const Array x = Numbers(14).array({4, 6});
  const auto check = [&](const auto& a, const auto& storage) {
    int i = 0;
    for (const auto& y : {roll(a, {0}, {0}), roll(a, {8, -6}, {0, 1}), roll(a, {0}), roll(a, {24}),
                          repeat(a, {1, 1}), repeat(a, {1, 1, 1}), pad(a, {}), pad(a, {0, 0, 0, 0}),
                          flip(a, {}), cat({a}), stack({a})}) {
      EXPECT_NE(storage(y), storage(a)) << i++;
    }
  };
  check(Tensor::from_vector(x.values, x.shape), [](const Tensor& t) { return t.storage(); });
  Numbers numbers(15);
  for (const Layout& layout : layouts(x.shape, mesh, numbers)) {
    check(place(x, mesh, layout), [](const DTensor& t) { return t.to_local().storage(); });
  }
}

// Memory in proportion to the result, not to the number of repetitions.
TEST(Shape, RepeatTakesNoMoreThanItMakes) {
  const DeviceMesh mesh = flat_mesh();
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
  };
  const std::int64_t times = std::int64_t{1} << 23;
  const auto before = peak();
  const Tensor one = Tensor::full({1}, 3, DType::int8);
  const Tensor many = repeat(one, {times});
  EXPECT_EQ(narrow(many, 0, times - 1, 1).item<std::int8_t>(), 3);
  for (const Placement& p : Placements{Replicate(), Shard(0)}) {
    const DTensor x = distribute_tensor(one, mesh, {p});
    EXPECT_EQ(repeat(x, {times}).shape(), Shape{times});
  }
  // Where placements do not describe the repetitions, as even shards.
  const Array three = Numbers(16).array({3});
  const DTensor y = repeat(place(three, mesh, Placements{Shard(0, uneven(3, mesh.size()))}),
                           {std::int64_t{1} << 20});
  const Tensor end = slice(y, 0, -3).full_tensor();
  EXPECT_EQ(end.to_vector<double>(), three.values);
  EXPECT_LT(peak() - before, 160);  // MB
}
TEST(Shape, RepeatOfAnyPlacements) {
  Numbers numbers(17);
  for (const DeviceMesh& mesh : {flat_mesh(), square_mesh()}) {
    for (std::int64_t n : {1, 2, 5, 8}) {
      const Array x = numbers.array({n});
      for (std::int64_t times : {2, 3, 7, 40}) {
        Array y({n * times});
        for_each_index(y.shape, [&](const Extents& i) { y.at(i) = x.at({i[0] % n}); });
        for (const Layout& layout : layouts(x.shape, mesh, numbers)) {
          const DTensor result = repeat(place(x, mesh, layout), {times});
          ASSERT_LT(error_of(result, y), 1e-12)
              << times << " times " << to_string(layout) << " gave " << to_string(result.layout());
        }
      }
    }
  }
}

// Whether a view moves nothing does not depend on how many rows there are.
TEST(Shape, ViewsOfManyRows) {
  const std::int64_t n = Runtime::size();
  if (n == 1) return;
  const auto check = [&](const DTensor& x, const Placements& flat) {
    const Communication communication;
    const DTensor y = view(x, {-1});
    EXPECT_EQ(to_string(y.placements()), to_string(flat));
    EXPECT_EQ(view(y, x.shape()).placements(), x.placements());
    EXPECT_EQ(communication.count, 0);
  };
  for (std::int64_t rows : {8, 9001, 60001}) {
    check(empty({rows, 2 * n}, flat_mesh(), {Shard(1)}, DType::int8), {StridedShard(0, rows)});
  }
  if (n % 2 != 0 || n == 2) return;
  const Shape shape{20002, 2 * n};
  check(empty(shape, square_mesh(), {Shard(0), Shard(1)}, DType::int8),
        {Shard(0), StridedShard(0, 10001)});
  check(empty(shape, square_mesh(), {Shard(1), Shard(1)}, DType::int8),
        {StridedShard(0, 20002), StridedShard(0, 20002)});
}

TEST(Shape, PadsBoolWithZeroAndOne) {
  const DeviceMesh mesh = flat_mesh();
  const Tensor x = Tensor::full({2}, true, DType::boolean);
  const DTensor dx = distribute_tensor(x, mesh, {Shard(0)});
  const auto counted = [](const Tensor& t) { return t.to(DType::int8).to_vector<std::int8_t>(); };
  for (const Scalar& value : {Scalar(0), Scalar(1), Scalar(true)}) {
    const auto v = value.to<std::int8_t>();
    EXPECT_EQ(counted(pad(x, {1, 0}, value)), (std::vector<std::int8_t>{v, 1, 1}));
    EXPECT_EQ(counted(pad(dx, {1, 0}, value).full_tensor()), (std::vector<std::int8_t>{v, 1, 1}));
  }
  EXPECT_EQ(counted(pad(x, {0, 1})), (std::vector<std::int8_t>{1, 1, 0}));
  EXPECT_THROW(pad(x, {1, 0}, 2), TypeError);
  EXPECT_THROW(pad(dx, {1, 0}, 1.0), TypeError);
  EXPECT_THROW(pad(x.to(DType::int8), {1, 0}, 300), ValueError);
}

// Braces are sizes, also around one number.
TEST(Shape, SplitIntoSizes) {
  const Tensor x = Tensor::zeros({10}, DType::float64);
  EXPECT_EQ(split(x, 5).size(), 2u);
  EXPECT_EQ(split(x, {10}).size(), 1u);
  EXPECT_EQ(split(x, {3, 7}).size(), 2u);
  EXPECT_THROW(split(x, {5}), ValueError);
  const DTensor dx = distribute_tensor(x, flat_mesh(), {Shard(0)});
  EXPECT_EQ(split(dx, {10}).size(), 1u);
  EXPECT_THROW(split(dx, {5}), ValueError);
}

TEST(Shape, Errors) {
  const DeviceMesh mesh = flat_mesh();
  const DTensor x = place(Numbers(11).array({5, 6}), mesh, Placements{Shard(0)});
  const Communication communication;
  EXPECT_THROW(view(x, {4, 7}), ValueError);
  EXPECT_THROW(view(x, {-1, -1}), ValueError);
  EXPECT_THROW(view(x, {-2, 15}), ValueError);
  EXPECT_THROW(reshape(x, {0, -1}), ValueError);
  EXPECT_THROW(flatten(x, 1, 0), ValueError);
  EXPECT_THROW(flatten(x, 2), IndexError);
  EXPECT_THROW(flatten(reshape(Tensor::zeros({1}, DType::float64), {}), 0, 1), IndexError);
  EXPECT_THROW(unflatten(x, 1, {4, 2}), ValueError);
  EXPECT_THROW(permute(x, {0}), ValueError);
  EXPECT_THROW(permute(x, {0, 0}), ValueError);
  EXPECT_THROW(movedim(x, {0, 1}, {0}), ValueError);
  EXPECT_THROW(expand(x, {5, 7}), ValueError);
  EXPECT_THROW(expand(x, {6}), ValueError);
  EXPECT_THROW(narrow(x, 0, 3, 3), IndexError);
  EXPECT_THROW(narrow(x, 0, -6, 1), IndexError);
  EXPECT_THROW(slice(x, 0, 0, 5, 0), ValueError);
  EXPECT_THROW(select(x, 1, 6), IndexError);
  EXPECT_EQ(thrown(ErrorKind::index, [&] { select(narrow(x, 0, 0, 0), 0, 0); }),
            "select: index 0 of dimension 0 with extent 0; expected a dimension that is not empty");
  EXPECT_THROW(split(x, 0), ValueError);
  EXPECT_THROW(split(x, Dims{2, 2}), ValueError);
  EXPECT_THROW(chunk(x, 0), ValueError);
  EXPECT_THROW(repeat(x, {2}), ValueError);
  EXPECT_THROW(repeat(x, {2, -1}), ValueError);
  EXPECT_THROW(cat(std::vector<DTensor>{}), ValueError);
  EXPECT_THROW(cat({x, transpose(x, 0, 1)}), ValueError);
  EXPECT_THROW(cat({x, DTensor(mesh, x.layout(), x.to_local().to(DType::int8))}), TypeError);
  EXPECT_THROW(stack({x, narrow(x, 0, 0, 4)}), ValueError);
  EXPECT_THROW(flip(x, {0, 0}), ValueError);
  EXPECT_THROW(roll(x, {1, 2}, {0}), ValueError);
  EXPECT_THROW(pad(x, {1}), ValueError);
  EXPECT_THROW(pad(x, {-4, -4}), ValueError);
  EXPECT_EQ(communication.count, 0);
}

}  // namespace
}  // namespace dtensor
