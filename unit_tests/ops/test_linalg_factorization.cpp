// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Factorizations and solutions under all placements, against their definitions and one process.
#include <gtest/gtest.h>

#include <algorithm>
#include <complex>

#include "dtensor/ops/ops.hpp"
#include "ops/distributed_reference.hpp"
#include "ops/errors.hpp"
#include "ops/layouts.hpp"

namespace dtensor {
namespace {

using namespace testing;

using Complex = std::complex<double>;

constexpr DType types[] = {DType::float64, DType::float32, DType::complex128, DType::complex64};

double tolerance(DType dtype) {
  return dtype == DType::float64 || dtype == DType::complex128 ? 1e-10 : 2e-3;
}

// A row-major matrix of complex numbers, of which all types are parts.
struct Matrix {
  std::int64_t rows, columns;
  std::vector<Complex> values;

  Matrix(std::int64_t m, std::int64_t n)
      : rows(m), columns(n), values(static_cast<std::size_t>(m * n)) {}
  Complex& at(std::int64_t i, std::int64_t j) {
    return values[static_cast<std::size_t>(i * columns + j)];
  }
  Complex at(std::int64_t i, std::int64_t j) const {
    return values[static_cast<std::size_t>(i * columns + j)];
  }
};

Matrix adjoint(const Matrix& a, bool conjugates = true) {
  Matrix b(a.columns, a.rows);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = 0; j < a.columns; ++j) {
      b.at(j, i) = conjugates ? std::conj(a.at(i, j)) : a.at(i, j);
    }
  }
  return b;
}

Matrix operator*(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t l = 0; l < a.columns; ++l) {
      for (std::int64_t j = 0; j < b.columns; ++j) c.at(i, j) += a.at(i, l) * b.at(l, j);
    }
  }
  return c;
}

double difference(const Matrix& a, const Matrix& b) {
  if (a.rows != b.rows || a.columns != b.columns) return INFINITY;
  double largest = 0, scale = 1;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    const double d = std::abs(a.values[i] - b.values[i]);
    largest = d <= largest ? largest : d;  // keeps NaN
    scale = std::max(scale, std::abs(b.values[i]));
  }
  return largest / scale;
}

Matrix identity(std::int64_t n) {
  Matrix a(n, n);
  for (std::int64_t i = 0; i < n; ++i) a.at(i, i) = 1;
  return a;
}

Matrix random(std::int64_t m, std::int64_t n, DType dtype, Numbers& numbers) {
  Matrix a(m, n);
  for (Complex& z : a.values) {
    const double real = numbers(), imaginary = numbers();
    z = is_complex(dtype) ? Complex(real, imaginary) : Complex(real);
  }
  return a;
}

// Positive definite; what is above the diagonal is nonsense that must not be read.
Matrix positive(std::int64_t n, DType dtype, Numbers& numbers) {
  const Matrix b = random(n, n, dtype, numbers);
  Matrix a = b * adjoint(b);
  for (std::int64_t i = 0; i < n; ++i) {
    a.at(i, i) = a.at(i, i).real() + 1;
    for (std::int64_t j = i + 1; j < n; ++j) a.at(i, j) = 77;
  }
  return a;
}

Matrix lower_of(const Matrix& a) {
  Matrix l = a;
  for (std::int64_t i = 0; i < a.rows; ++i) {
    for (std::int64_t j = i + 1; j < a.columns; ++j) l.at(i, j) = 0;
  }
  return l;
}

Matrix matrix_of(const Tensor& t) {
  const bool vector = t.dim() == 1;
  Matrix a(t.shape()[0], vector ? 1 : t.shape()[1]);
  const auto values = t.to(DType::complex128).to_vector<Kokkos::complex<double>>();
  for (std::size_t i = 0; i < values.size(); ++i) a.values[i] = values[i];
  return a;
}
Matrix matrix_of(const DTensor& t) { return matrix_of(t.full_tensor()); }

Tensor tensor_of(const Matrix& a, DType dtype) {
  std::vector<Kokkos::complex<double>> values(a.values.begin(), a.values.end());
  return Tensor::from_vector(values, {a.rows, a.columns}).to(dtype);
}

DTensor placed(const Matrix& a, DType dtype, const DeviceMesh& mesh, const Layout& layout) {
  Array real(layout.shape()), imaginary(layout.shape());
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    real.values[i] = a.values[i].real();
    imaginary.values[i] = a.values[i].imag();
  }
  Tensor local = place(real, mesh, layout).to_local().to(dtype);
  if (is_complex(dtype)) {
    local = local + place(imaginary, mesh, layout).to_local().to(dtype) * Complex(0, 1);
  }
  return DTensor(mesh, layout, local);
}

// Some layout whose contributions have a meaning for complex numbers.
Layout numeric_layout(const Shape& shape, const DeviceMesh& mesh, Numbers& numbers) {
  return any_layout(shape, mesh, numbers, {Partial(), Partial(ReduceOp::avg)});
}

std::vector<DeviceMesh> meshes() { return {flat_mesh(), square_mesh()}; }

TEST(Factorization, Cholesky) {
  Numbers numbers(51);
  for (DType dtype : types) {
    for (std::int64_t n : {0, 1, 7, 150}) {
      const Matrix a = positive(n, dtype, numbers);
      const Tensor factor = cholesky(tensor_of(a, dtype));
      ASSERT_EQ(factor.dtype(), dtype);
      const Matrix l = matrix_of(factor);
      EXPECT_LT(difference(lower_of(l * adjoint(l)), lower_of(a)), tolerance(dtype)) << n;
      EXPECT_EQ(difference(l, lower_of(l)), 0);
      for (std::int64_t i = 0; i < n; ++i) EXPECT_GT(l.at(i, i).real(), 0);
      for (const DeviceMesh& mesh : meshes()) {
        for (int i = 0; i < (n == 150 ? 2 : 6); ++i) {
          const Layout layout = numeric_layout({n, n}, mesh, numbers);
          const DTensor result = cholesky(placed(a, dtype, mesh, layout));
          ASSERT_LT(difference(matrix_of(result), l), tolerance(dtype)) << to_string(layout);
          for (int m = 0; m < mesh.dim(); ++m) {
            const bool reduced = layout.placement(m).is_partial();
            EXPECT_EQ(result.placements()[static_cast<std::size_t>(m)],
                      reduced ? Replicate() : layout.placement(m));
          }
        }
      }
    }
  }
}

TEST(Factorization, CholeskyOfWhatIsNotPositiveDefinite) {
  const DeviceMesh mesh = flat_mesh();
  for (std::int64_t bad : {std::int64_t{0}, std::int64_t{71}, std::int64_t{149}}) {
    for (double value : {-1.0, 0.0, std::nan("")}) {
      Matrix a = identity(150);
      a.at(bad, bad) = value;
      const std::string order = "order " + std::to_string(bad + 1) + " is";
      for (const Placement& p :
           {Placement(Replicate()), Placement(Shard(0)), Placement(Shard(1))}) {
        const DTensor x =
            placed(a, DType::float64, mesh, Layout({150, 150}, mesh.grid(), Placements{p}));
        const std::string text = thrown(ErrorKind::value, [&] { cholesky(x); });
        EXPECT_NE(text.find(order), std::string::npos) << text;
      }
    }
  }
}

TEST(Factorization, CholeskyOfAReplicatedMatrixIsLocalAndNoRankHoldsAShardedOne) {
  const DeviceMesh mesh = flat_mesh();
  Numbers numbers(52);
  const std::int64_t n = 384;
  const Matrix a = [&] {
    Matrix m = identity(n);
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < i; ++j) m.at(i, j) = numbers() / 1000;
    }
    return m;
  }();
  {
    const DTensor x =
        placed(a, DType::float64, mesh, Layout({n, n}, mesh.grid(), Placements{Replicate()}));
    const Communication communication;
    cholesky(x);
    EXPECT_EQ(communication.count, 0);
  }
  if (mesh.size() < 4) return;
  for (int dim : {0, 1}) {
    const DTensor x =
        placed(a, DType::float64, mesh, Layout({n, n}, mesh.grid(), Placements{Shard(dim)}));
    reset_memory_peak();
    const std::int64_t before = memory_statistics().in_use;
    cholesky(x);
    EXPECT_LT(memory_statistics().peak - before, n * n * 8);
  }
}

TEST(Factorization, QR) {
  Numbers numbers(53);
  for (DType dtype : types) {
    for (const Shape& shape :
         {Shape{40, 5}, Shape{7, 7}, Shape{3, 5}, Shape{9, 1}, Shape{0, 3}, Shape{4, 0}}) {
      const std::int64_t k = std::min(shape[0], shape[1]);
      const Matrix a = random(shape[0], shape[1], dtype, numbers);
      const auto check = [&](const auto& factors, const std::string& text) {
        const Matrix q = matrix_of(factors.q), r = matrix_of(factors.r);
        ASSERT_EQ(q.columns, k);
        ASSERT_EQ(r.rows, k);
        EXPECT_LT(difference(q * r, a), tolerance(dtype)) << text;
        EXPECT_LT(difference(adjoint(q) * q, identity(k)), tolerance(dtype)) << text;
        EXPECT_EQ(difference(adjoint(r), lower_of(adjoint(r))), 0) << text;
        for (std::int64_t i = 0; i < k; ++i) {
          EXPECT_GE(r.at(i, i).real(), 0) << text;
          EXPECT_EQ(r.at(i, i).imag(), 0) << text;
        }
      };
      const QR<Tensor> local = qr(tensor_of(a, dtype));
      ASSERT_EQ(local.q.dtype(), dtype);
      check(local, "local");
      for (const DeviceMesh& mesh : meshes()) {
        for (int i = 0; i < 8; ++i) {
          const Layout layout = numeric_layout(shape, mesh, numbers);
          const QR<DTensor> factors = qr(placed(a, dtype, mesh, layout));
          check(factors, to_string(layout));
          EXPECT_LT(difference(matrix_of(factors.r), matrix_of(local.r)), tolerance(dtype))
              << to_string(layout);
        }
      }
    }
  }
}

// Where a rank has fewer rows than there are columns, what fills up the stack must not be mistaken
// for rows.
TEST(Factorization, QROfAMatrixOfLowRank) {
  Numbers numbers(54);
  for (const DeviceMesh& mesh : meshes()) {
    const Matrix a = random(11, 2, DType::float64, numbers) * random(2, 6, DType::float64, numbers);
    Placements rows(static_cast<std::size_t>(mesh.dim()), Shard(0));
    const QR<DTensor> f = qr(placed(a, DType::float64, mesh, Layout({11, 6}, mesh.grid(), rows)));
    const Matrix q = matrix_of(f.q);
    EXPECT_LT(difference(q * matrix_of(f.r), a), 1e-12);
    EXPECT_LT(difference(adjoint(q) * q, identity(6)), 1e-12);
  }
}

TEST(Factorization, QROfShardedRowsGathersTheTriangularFactorsOnly) {
  const DeviceMesh mesh = flat_mesh();
  if (mesh.size() == 1) return;
  Numbers numbers(55);
  const DTensor x = placed(random(60, 4, DType::float64, numbers), DType::float64, mesh,
                           Layout({60, 4}, mesh.grid(), Placements{Shard(0)}));
  struct Bytes : Observer {
    Bytes() { add_observer(*this); }
    ~Bytes() override { remove_observer(*this); }
    void on_event(const Event& event) override { sent += event.bytes_sent; }
    std::int64_t sent = 0;
  } bytes;
  const Communication communication;
  const QR<DTensor> factors = qr(x);
  EXPECT_EQ(communication.count, 1);
  EXPECT_EQ(communication.collective, Collective::all_gather);
  EXPECT_LE(bytes.sent, (mesh.size() - 1) * 4 * 4 * 8);
  EXPECT_EQ(factors.q.placements(), x.placements());
}

// Dominated by its diagonal, so that the solution is well conditioned; the other triangle holds
// what must not be read.
Matrix triangular(std::int64_t n, bool upper, bool unit, DType dtype, Numbers& numbers) {
  Matrix a = random(n, n, dtype, numbers);
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      const bool inside = upper ? j > i : j < i;
      if (inside) a.at(i, j) /= static_cast<double>(4 * n);
      if (!inside && i != j) a.at(i, j) = 99;
    }
    a.at(i, i) += unit ? 55 : 6;
  }
  return a;
}

TEST(Factorization, TriangularSolve) {
  Numbers numbers(56);
  for (int choice = 0; choice < 12; ++choice) {
    TriangularOptions options;
    options.upper = choice & 1;
    options.unit_diagonal = choice & 2;
    options.op = static_cast<MatrixOp>(choice / 4);
    for (DType dtype : types) {
      for (std::int64_t n : {0, 1, 9, 130}) {
        // The large system in one type, the small ones in two for each choice.
        if (n == 130 ? dtype != DType::complex128 : (static_cast<int>(dtype) + choice) % 2)
          continue;
        const Matrix a = triangular(n, options.upper, options.unit_diagonal, dtype, numbers);
        Matrix used = options.upper ? adjoint(lower_of(adjoint(a))) : lower_of(a);
        for (std::int64_t i = 0; options.unit_diagonal && i < n; ++i) used.at(i, i) = 1;
        if (options.op != MatrixOp::none) used = adjoint(used, options.op == MatrixOp::adjoint);
        for (std::int64_t columns : {3, 1}) {
          const bool vector = columns == 1;
          const Matrix b = random(n, columns, dtype, numbers);
          const Shape shape = vector ? Shape{n} : Shape{n, columns};
          const Tensor right = tensor_of(b, dtype).reshape(shape);
          const Tensor x = solve_triangular(tensor_of(a, dtype), right, options);
          ASSERT_EQ(x.shape(), shape);
          ASSERT_LT(difference(used * matrix_of(x), b), tolerance(dtype)) << choice << " " << n;
          for (const DeviceMesh& mesh : meshes()) {
            const Layout la = numeric_layout({n, n}, mesh, numbers);
            const Layout lb = numeric_layout(shape, mesh, numbers);
            const DTensor result =
                solve_triangular(placed(a, dtype, mesh, la), placed(b, dtype, mesh, lb), options);
            ASSERT_EQ(result.shape(), shape);
            ASSERT_LT(difference(matrix_of(result), matrix_of(x)), tolerance(dtype))
                << choice << " " << to_string(la) << " " << to_string(lb);
          }
        }
      }
    }
  }
}

TEST(Factorization, Solve) {
  Numbers numbers(57);
  for (DType dtype : types) {
    for (std::int64_t n : {0, 1, 9, 40}) {
      Matrix a = random(n, n, dtype, numbers);
      // Without row interchanges this would divide by zero.
      if (n > 1) a.at(0, 0) = 0;
      for (std::int64_t i = 0; i < n; ++i) a.at(i, (i + 1) % n) += 20;
      for (std::int64_t columns : {5, 1}) {
        const Shape shape = columns == 1 ? Shape{n} : Shape{n, columns};
        const Matrix b = random(n, columns, dtype, numbers);
        const Tensor x = solve(tensor_of(a, dtype), tensor_of(b, dtype).reshape(shape));
        ASSERT_EQ(x.shape(), shape);
        ASSERT_LT(difference(a * matrix_of(x), b), tolerance(dtype)) << n;
        for (const DeviceMesh& mesh : meshes()) {
          for (int i = 0; i < 4; ++i) {
            const Layout la = numeric_layout({n, n}, mesh, numbers);
            const Layout lb = numeric_layout(shape, mesh, numbers);
            const DTensor result = solve(placed(a, dtype, mesh, la), placed(b, dtype, mesh, lb));
            ASSERT_LT(difference(matrix_of(result), matrix_of(x)), tolerance(dtype))
                << to_string(la) << " " << to_string(lb);
          }
        }
      }
    }
  }
}

TEST(Factorization, RightHandSidesAreSolvedWhereTheyAre) {
  const DeviceMesh mesh = flat_mesh();
  Numbers numbers(58);
  const Matrix a = triangular(6, false, false, DType::float64, numbers);
  const Matrix b = random(6, 5, DType::float64, numbers);
  const DTensor whole =
      placed(a, DType::float64, mesh, Layout({6, 6}, mesh.grid(), Placements{Replicate()}));
  for (const Placement& p : {Placement(Shard(1)), Placement(Shard(1, uneven(5, mesh.size()))),
                             Placement(Partial()), Placement(Replicate())}) {
    const DTensor right =
        placed(b, DType::float64, mesh, Layout({6, 5}, mesh.grid(), Placements{p}));
    const Communication communication;
    const DTensor x = solve(whole, right), y = solve_triangular(whole, right);
    EXPECT_EQ(communication.count, 0) << to_string(p);
    if (mesh.size() > 1) {
      EXPECT_EQ(x.placements(), Placements{p});
      EXPECT_EQ(y.placements(), Placements{p});
    }
  }
}

TEST(Factorization, SingularMatricesAreFoundOnAllRanks) {
  const DeviceMesh mesh = flat_mesh();
  Matrix a = identity(150);
  a.at(140, 140) = 0;
  const Matrix b = identity(150);
  for (const Placement& p : {Placement(Replicate()), Placement(Shard(0)), Placement(Shard(1))}) {
    const Layout layout({150, 150}, mesh.grid(), Placements{p});
    const DTensor x = placed(a, DType::float64, mesh, layout);
    const DTensor y = placed(b, DType::float64, mesh, layout);
    const std::string triangular_text = thrown(ErrorKind::value, [&] { solve_triangular(x, y); });
    EXPECT_NE(triangular_text.find("pivot 141 "), std::string::npos) << triangular_text;
    const std::string text = thrown(ErrorKind::value, [&] { solve(x, y); });
    EXPECT_NE(text.find("pivot 141 "), std::string::npos) << text;
    // The diagonal does not count.
    const DTensor z = solve_triangular(x, y, {false, MatrixOp::none, true});
    EXPECT_LT(difference(matrix_of(z), b), 1e-15);
  }
}

TEST(Factorization, ArgumentsStayAsTheyAre) {
  Numbers numbers(59);
  const Matrix a = positive(40, DType::float64, numbers),
               b = random(40, 3, DType::float64, numbers);
  const Tensor x = tensor_of(a, DType::float64), y = tensor_of(b, DType::float64);
  cholesky(x);
  qr(x);
  solve(x, y);
  solve_triangular(x, y);
  EXPECT_EQ(difference(matrix_of(x), a), 0);
  EXPECT_EQ(difference(matrix_of(y), b), 0);
  // Where the working distribution is what the argument has already.
  const DeviceMesh mesh = flat_mesh();
  const Layout rows({40, 40}, mesh.grid(), {StridedShard(0, 1)});
  const DTensor dx = placed(a, DType::float64, mesh, rows);
  const DTensor dy =
      placed(b, DType::float64, mesh, Layout({40, 3}, mesh.grid(), {StridedShard(0, 1)}));
  cholesky(dx);
  qr(dx);
  solve_triangular(dx, dy);
  EXPECT_EQ(difference(matrix_of(dx), a), 0);
  EXPECT_EQ(difference(matrix_of(dy), b), 0);
}

// All ranks but the first are in the mesh; that one makes the same calls.
TEST(Factorization, ARankOutsideOfTheMeshTakesNoPart) {
  if (Runtime::size() == 1) return;
  std::vector<int> ranks;
  for (int r = 1; r < Runtime::size(); ++r) ranks.push_back(r);
  const std::int64_t size = Runtime::size() - 1;
  const DeviceMesh mesh = DeviceMesh::from_ranks(ranks, Shape{1, size});
  Numbers numbers(60);
  const Matrix a = positive(40, DType::float64, numbers),
               b = random(40, 3, DType::float64, numbers);
  const auto placed_here = [&](const Matrix& m, const Placements& p) {
    const Layout layout({m.rows, m.columns}, mesh.grid(), p);
    if (mesh.is_member()) return placed(m, DType::float64, mesh, layout);
    return DTensor(mesh, layout, Tensor::empty({0, 0}, DType::float64, mesh.device()));
  };
  const DTensor x = placed_here(a, {Replicate(), Shard(0)});
  const DTensor y = placed_here(b, {Shard(1), Shard(0)});
  const DTensor factor = cholesky(x);
  const QR<DTensor> factors = qr(y);
  for (const DTensor& t : {factor, factors.q, factors.r, solve_triangular(factor, y), solve(x, y),
                           matmul(x, y), addmm(y, x, y), einsum("ii,ij->j", x, y)}) {
    // Every rank knows how the tensor is placed.
    const std::string text = to_string(t.layout());
    char other[256] = {};
    std::copy_n(text.begin(), std::min(text.size(), sizeof(other) - 1), other);
    MPI_Bcast(other, sizeof(other), MPI_CHAR, 1, MPI_COMM_WORLD);
    EXPECT_EQ(text, other);
    if (mesh.is_member()) continue;
    EXPECT_EQ(t.to_local().numel(), 0);
  }
  if (mesh.is_member()) {
    const Matrix l = matrix_of(factor);
    EXPECT_LT(difference(lower_of(l * adjoint(l)), lower_of(a)), 1e-10);
  }
}

TEST(Factorization, Errors) {
  const DeviceMesh mesh = flat_mesh();
  const DTensor a = place(Array({4, 3}), mesh, Placements{Shard(0)});
  const DTensor s = place(Array({4, 4}), mesh, Placements{Shard(0)});
  const DTensor v = place(Array({3}), mesh, Placements{Shard(0)});
  const DTensor i(mesh, s.layout(), s.to_local().to(DType::int32));
  EXPECT_NE(thrown(ErrorKind::value, [&] { cholesky(a); }).find("(4, 3)"), std::string::npos);
  EXPECT_NE(thrown(ErrorKind::value, [&] { qr(v); }).find("(3,)"), std::string::npos);
  EXPECT_NE(thrown(ErrorKind::value, [&] { solve(s, v); }).find("(4, 4) and (3,)"),
            std::string::npos);
  EXPECT_NE(thrown(ErrorKind::value, [&] { solve_triangular(a, v); }).find("(4, 3)"),
            std::string::npos);
  for (const std::string& text :
       {thrown(ErrorKind::type, [&] { cholesky(i); }), thrown(ErrorKind::type, [&] { qr(i); }),
        thrown(ErrorKind::type, [&] { solve(i, i); }),
        thrown(ErrorKind::type, [&] { solve_triangular(i, i); })}) {
    EXPECT_NE(text.find("int32"), std::string::npos) << text;
  }
  EXPECT_NE(thrown(ErrorKind::type, [&] { solve(s, i); }).find("float64 and int32"),
            std::string::npos);
  EXPECT_NE(thrown(ErrorKind::type, [&] { solve(s, v.to_local()); }).find("from_local"),
            std::string::npos);
}

}  // namespace
}  // namespace dtensor
