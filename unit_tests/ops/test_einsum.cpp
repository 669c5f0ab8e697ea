// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// einsum under all placements, against one process.
#include <gtest/gtest.h>

#include "dtensor/ops/ops.hpp"
#include "ops/distributed_reference.hpp"
#include "ops/errors.hpp"
#include "ops/layouts.hpp"

namespace dtensor {
namespace {

using namespace testing;

struct Case {
  const char* subscripts;
  std::vector<std::string> letters;  // with "..." written out
  std::string output;
  std::vector<Shape> shapes;
};

const std::vector<Case>& cases() {
  static const std::vector<Case> list{
      {"mk,kn->mn", {"mk", "kn"}, "mn", {{5, 7}, {7, 4}}},
      {"mk , kn -> nm", {"mk", "kn"}, "nm", {{5, 7}, {7, 4}}},
      {"bmk,bkn->bmn", {"bmk", "bkn"}, "bmn", {{3, 5, 2}, {3, 2, 4}}},
      {"abcd,abcd->abcd", {"abcd", "abcd"}, "abcd", {{2, 3, 4, 2}, {2, 3, 4, 2}}},
      {"Km,nK", {"Km", "nK"}, "mn", {{5, 3}, {4, 5}}},
      {"ii->i", {"ii"}, "i", {{5, 5}}},
      {"ii", {"ii"}, "", {{7, 7}}},
      {"iij->ji", {"iij"}, "ji", {{4, 4, 3}}},
      {"iji->j", {"iji"}, "j", {{5, 3, 5}}},
      {"iii->i", {"iii"}, "i", {{4, 4, 4}}},
      {"ij->ji", {"ij"}, "ji", {{4, 6}}},
      {"ij->", {"ij"}, "", {{4, 6}}},
      {"cab", {"cab"}, "abc", {{4, 2, 3}}},
      {"...->...", {"ab"}, "ab", {{4, 3}}},
      {"...ij->...ji", {"aij"}, "aji", {{2, 4, 3}}},
      {"i...->...", {"iab"}, "ab", {{4, 2, 3}}},
      {"...mk,...kn->...mn", {"amk", "akn"}, "amn", {{1, 5, 2}, {3, 2, 4}}},
      {"...k,k...->...", {"abk", "kb"}, "ab", {{2, 3, 5}, {5, 3}}},
      {"ij,ij->i", {"ij", "ij"}, "i", {{4, 1}, {4, 6}}},
      {"ij,jk->k", {"ij", "jk"}, "k", {{5, 4}, {4, 3}}},
      {"ii,ij->j", {"ii", "ij"}, "j", {{4, 4}, {4, 3}}},
      {"a,b->ba", {"a", "b"}, "ba", {{3}, {5}}},
      {"bi,bj->ibj", {"bi", "bj"}, "ibj", {{3, 4}, {3, 2}}},
      {",ij->ij", {"", "ij"}, "ij", {{}, {2, 3}}},
      {"mk,kn->mn", {"mk", "kn"}, "mn", {{5, 0}, {0, 4}}},
      {"mk,kn->mn", {"mk", "kn"}, "mn", {{0, 3}, {3, 4}}},
      {"bmk,bkn->mn", {"bmk", "bkn"}, "mn", {{3, 5, 2}, {3, 2, 4}}},
      {"ij,jk,kl->il", {"ij", "jk", "kl"}, "il", {{3, 6}, {6, 2}, {2, 5}}},
      {"i,j,k->kji", {"i", "j", "k"}, "kji", {{3}, {2}, {4}}},
      {"bij,bjk,bk->bi", {"bij", "bjk", "bk"}, "bi", {{2, 3, 4}, {2, 4, 5}, {2, 5}}},
      {"ab,bc,cd,da->", {"ab", "bc", "cd", "da"}, "", {{3, 4}, {4, 2}, {2, 5}, {5, 3}}}};
  return list;
}

double product(const std::vector<double>& v) {
  double p = 1;
  for (double x : v) p *= x;
  return p;
}

TEST(Einsum, LocalTensors) {
  Numbers numbers(31);
  for (const Case& c : cases()) {
    std::vector<Array> arrays;
    std::vector<Tensor> tensors, others;
    for (const Shape& shape : c.shapes) {
      arrays.push_back(numbers.array(shape));
      tensors.push_back(Tensor::from_vector(arrays.back().values, shape));
      // The same values with the dimensions in memory in the other order.
      std::vector<std::int64_t> reversed;
      for (int d = shape.size() - 1; d >= 0; --d) reversed.push_back(d);
      others.push_back(tensors.back().permute(reversed).contiguous().permute(reversed));
    }
    const Array expected = *evaluate(c.letters, c.output, arrays, product);
    for (const auto& operands : {tensors, others}) {
      const Tensor result = einsum(c.subscripts, operands);
      ASSERT_EQ(result.shape(), expected.shape) << c.subscripts;
      const auto values = result.to_vector<double>();
      for (std::size_t i = 0; i < values.size(); ++i) {
        ASSERT_NEAR(values[i], expected.values[i], 1e-11) << c.subscripts;
      }
    }
  }
}

void check(const DeviceMesh& mesh) {
  Numbers numbers(32);
  for (const Case& c : cases()) {
    std::vector<Array> arrays;
    std::vector<std::vector<Layout>> choices;
    std::size_t combinations = 1;
    for (const Shape& shape : c.shapes) {
      arrays.push_back(numbers.array(shape));
      choices.push_back(layouts(shape, mesh, numbers));
      combinations *= choices.back().size();
    }
    const Array expected = *evaluate(c.letters, c.output, arrays, product);
    // All combinations of few; of many, a sample.
    const std::size_t step = combinations / 25 + 1;
    for (std::size_t i = 0; i < combinations; i += step) {
      std::vector<DTensor> operands;
      std::string text = c.subscripts;
      std::size_t rest = i;
      for (std::size_t k = 0; k < arrays.size(); ++k) {
        const Layout& layout = choices[k][rest % choices[k].size()];
        rest /= choices[k].size();
        operands.push_back(place(arrays[k], mesh, layout));
        text += " " + to_string(layout);
      }
      const DTensor result = einsum(c.subscripts, operands);
      ASSERT_LT(error_of(result, expected), 1e-11)
          << text << " gave " << to_string(result.placements());
    }
  }
}

TEST(Einsum, OnOneMeshDimension) { check(flat_mesh()); }
TEST(Einsum, OnTwoMeshDimensions) { check(square_mesh()); }

TEST(Einsum, MoreOperandsThanAreSearchedExhaustively) {
  const DeviceMesh mesh = flat_mesh();
  Numbers numbers(33);
  std::vector<DTensor> operands;
  std::string subscripts;
  const std::int64_t extents[] = {2, 3, 1, 2, 3, 2, 1, 2, 3, 2};
  Array expected({2, 2});
  for (int i = 0; i < 9; ++i) {
    const Array a = numbers.array({extents[i], extents[i + 1]});
    operands.push_back(place(a, mesh, Placements{Shard(i % 2)}));
    subscripts +=
        std::string(i ? "," : "") + static_cast<char>('a' + i) + static_cast<char>('b' + i);
    expected = i ? *evaluate({"mk", "kn"}, "mn", {expected, a}, product) : a;
  }
  double scale = 1;
  for (double v : expected.values) scale = std::max(scale, std::abs(v));
  EXPECT_LT(error_of(einsum(subscripts, operands), expected), 1e-11 * scale);
}

// Every placement on one mesh dimension that needs no communication, and no other.
TEST(Einsum, EveryLegalPlacementIsFoundAndNoOther) {
  const DeviceMesh mesh = flat_mesh();
  if (mesh.size() == 1) return;
  const Case* equations[] = {&cases()[0], &cases()[2], &cases()[3]};
  Numbers numbers(34);
  for (const Case* c : equations) {
    const Shape &x = c->shapes[0], &y = c->shapes[1];
    const Array a = numbers.array(x), b = numbers.array(y);
    const auto sharded = [](int dims) {
      Placements list{Replicate(), Partial()};
      for (int d = 0; d < dims; ++d) list.push_back(Shard(d));
      return list;
    };
    for (const Placement& p : sharded(x.size())) {
      for (const Placement& q : sharded(y.size())) {
        const DTensor dx = place(a, mesh, Placements{p}), dy = place(b, mesh, Placements{q});
        const Communication communication;
        const DTensor result = einsum(c->subscripts, dx, dy);
        const auto letter = [](const Placement& placement, const std::string& letters) {
          return placement.is_shard()     ? letters[static_cast<std::size_t>(placement.dim())]
                 : placement.is_partial() ? 'P'
                                          : 'R';
        };
        const char l = letter(p, c->letters[0]), m = letter(q, c->letters[1]);
        const auto lacks = [&](int i, char dim) {
          return c->letters[static_cast<std::size_t>(i)].find(dim) == std::string::npos;
        };
        // Replicated values may be taken as any shard of themselves.
        const bool legal = (l == 'R' && m == 'R') || (l == 'P' && m == 'R') ||
                           (l == 'R' && m == 'P') || (p.is_shard() && l == m) ||
                           (p.is_shard() && m == 'R') || (l == 'R' && q.is_shard());
        const std::string text = std::string(c->subscripts) + " " + l + m;
        EXPECT_EQ(communication.count == 0, legal) << text;
        const std::string out = to_string(result.placements());
        if (legal) {
          const char dim = p.is_shard() ? l : q.is_shard() ? m : l == 'P' || m == 'P' ? 'P' : 'R';
          const auto at = c->output.find(dim);
          const Placement expected = dim == 'R' ? Placement(Replicate())
                                     : dim == 'P' || at == std::string::npos
                                         ? Placement(Partial())
                                         : Placement(Shard(static_cast<int>(at)));
          EXPECT_EQ(out, to_string(Placements{expected})) << text;
        }
        EXPECT_FALSE(legal && lacks(0, l) && p.is_shard());
      }
    }
  }
}

// The diagonal of a sharded matrix is taken where it is, whichever dimension is sharded.
TEST(Einsum, ADiagonalNeedsNoCommunication) {
  const DeviceMesh mesh = flat_mesh();
  Numbers numbers(35);
  const Array a = numbers.array({7, 7});
  Array expected({7});
  for (std::int64_t i = 0; i < 7; ++i) expected.at({i}) = a.at({i, i});
  for (const Placement& p : {Placement(Shard(0)), Placement(Shard(1, uneven(7, mesh.size()))),
                             Placement(StridedShard(1, 2)), Placement(Partial())}) {
    const DTensor x = place(a, mesh, Placements{p});
    const auto diagonal = [&] {
      const Communication communication;
      const DTensor result = einsum("ii->i", x);
      EXPECT_EQ(communication.count, 0) << to_string(p);
      return result;
    }();
    if (mesh.size() > 1) {
      EXPECT_EQ(diagonal.placements()[0].is_shard(), p.is_shard()) << to_string(p);
    }
    EXPECT_LT(error_of(diagonal, expected), 1e-13);
  }
}

// (200, 2) (2, 200) (200, 1): from the right, no intermediate result is large.
TEST(Einsum, TheOrderOfMultiplicationsIsTheCheapest) {
  const DeviceMesh mesh = flat_mesh();
  const DTensor a = place(Array({200, 2}, 0.5), mesh, Placements{Replicate()});
  const DTensor b = place(Array({2, 200}, 0.25), mesh, Placements{Replicate()});
  const DTensor c = place(Array({200, 1}, 2), mesh, Placements{Replicate()});
  reset_memory_peak();
  const std::int64_t before = memory_statistics().in_use;
  const DTensor result = einsum("ij,jk,kl->il", a, b, c);
  EXPECT_EQ(error_of(result, Array({200, 1}, 200 * 0.5)), 0);
  // No (200, 200) intermediate result.
  EXPECT_LT(memory_statistics().peak - before, 200 * 200 * 8);
}

TEST(Einsum, Errors) {
  const Tensor a = Tensor::zeros({2, 3}, DType::float64);
  const auto value = [&](const char* subscripts, const std::vector<Tensor>& operands) {
    return thrown(ErrorKind::value, [&] { einsum(subscripts, operands); });
  };
  EXPECT_NE(value("ij,jk->ik", {a, a}).find("3 and 2"), std::string::npos);
  EXPECT_NE(value("ij", {a, a}).find("operands"), std::string::npos);
  EXPECT_NE(value("ij,jk", {a}).find("operands"), std::string::npos);
  EXPECT_NE(value("ijk", {a}).find("a letter for each dimension"), std::string::npos);
  EXPECT_NE(value("i", {a}).find("a letter for each dimension"), std::string::npos);
  EXPECT_NE(value("ii", {a}).find("diagonal"), std::string::npos);
  EXPECT_NE(value("ij->ik", {a}).find("after \"->\""), std::string::npos);
  EXPECT_NE(value("ij->ii", {a}).find("twice"), std::string::npos);
  EXPECT_NE(value("i1", {a}).find("letters"), std::string::npos);
  EXPECT_NE(value("......ij", {a}).find("letter"), std::string::npos);
  EXPECT_NE(value("ij->i->j", {a}).find("letters"), std::string::npos);
  EXPECT_NE(value("", {}).find("at least one"), std::string::npos);
  const Tensor wide = Tensor::zeros({1, 1, 1, 1, 1}, DType::float64);
  EXPECT_NE(value("abcde,fghij->abcdefghij", {wide, wide}).find("8"), std::string::npos);
  EXPECT_THROW(einsum("ij,ij", a, a.to(DType::float32)), TypeError);
  const DeviceMesh mesh = flat_mesh();
  const DTensor d = place(Array({2, 3}), mesh, Placements{Shard(0)});
  EXPECT_THROW(einsum("ij,ij", d, a), TypeError);
  EXPECT_NE(thrown(ErrorKind::value, [&] { einsum("ij,jk", d, d); }).find("3 and 2"),
            std::string::npos);
}

}  // namespace
}  // namespace dtensor
