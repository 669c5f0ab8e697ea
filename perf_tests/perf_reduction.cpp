// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions and what is made of them beside hand-written Kokkos kernels on the same memory.
#include <Kokkos_Core.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/ops/ops.hpp"
#include "support/program.hpp"
#include "support/report.hpp"
#include "support/timing.hpp"

namespace {

using namespace dtensor;

using Execution = HostExecution;
using Policy = Kokkos::RangePolicy<Execution, Kokkos::IndexType<std::int64_t>>;
using Matrix = Kokkos::View<double**, Kokkos::LayoutRight, Kokkos::HostSpace,
                            Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
using Vector = Kokkos::View<double*, Kokkos::LayoutRight, Kokkos::HostSpace,
                            Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

// As one writes it who knows that a sum needs independent parts to be fast.
constexpr int parts = 8;

template <class Join>
double reduce_row(const double* x, std::int64_t n, double start, const Join& join) {
  double partial[parts];
  for (double& p : partial) p = start;
  for (std::int64_t i = 0; i < n; i += parts) {
    for (int k = 0; k < parts; ++k) partial[k] = join(partial[k], x[i + k]);
  }
  for (int k = 1; k < parts; ++k) partial[0] = join(partial[0], partial[k]);
  return partial[0];
}

double plus(double a, double b) { return a + b; }
double larger(double a, double b) { return a > b ? a : b; }
// As the library's maximum, which is NaN where an element is.
double larger_or_nan(double a, double b) { return (b > a) | (b != b) ? b : a; }

double sum_by_hand(const Matrix& x) {
  double total = 0;
  Kokkos::parallel_reduce(
      "sum", Policy(0, static_cast<std::int64_t>(x.extent(0))),
      [=](const std::int64_t r, double& s) {
        s += reduce_row(&x(r, 0), static_cast<std::int64_t>(x.extent(1)), 0, plus);
      },
      total);
  return total;
}

template <class Join>
double max_by_hand(const Matrix& x, const Join& join) {
  double top = 0;
  constexpr double lowest = -std::numeric_limits<double>::infinity();
  Kokkos::parallel_reduce(
      "max", Policy(0, static_cast<std::int64_t>(x.extent(0))),
      [=](const std::int64_t r, double& m) {
        m = join(m, reduce_row(&x(r, 0), static_cast<std::int64_t>(x.extent(1)), lowest, join));
      },
      Kokkos::Max<double>(top));
  return top;
}

void sum_rows_by_hand(const Matrix& x, const Vector& out) {
  Kokkos::parallel_for(
      "rows", Policy(0, static_cast<std::int64_t>(x.extent(0))), [=](const std::int64_t r) {
        out(r) = reduce_row(&x(r, 0), static_cast<std::int64_t>(x.extent(1)), 0, plus);
      });
}

// Whole rows are added to a block of columns that stays in cache.
void sum_columns_by_hand(const Matrix& x, const Vector& out) {
  constexpr std::int64_t block = 1024;
  const auto rows = static_cast<std::int64_t>(x.extent(0));
  const auto columns = static_cast<std::int64_t>(x.extent(1));
  Kokkos::parallel_for(
      "columns", Policy(0, (columns + block - 1) / block), [=](const std::int64_t b) {
        const std::int64_t begin = b * block, end = std::min(columns, begin + block);
        double* const o = out.data();
        for (std::int64_t c = begin; c < end; ++c) o[c] = 0;
        for (std::int64_t r = 0; r < rows; ++r) {
          const double* const row = &x(r, 0);
          for (std::int64_t c = begin; c < end; ++c) o[c] += row[c];
        }
      });
}

void softmax_by_hand(const Matrix& x, const Matrix& out) {
  Kokkos::parallel_for(
      "softmax", Policy(0, static_cast<std::int64_t>(x.extent(0))), [=](const std::int64_t r) {
        const auto n = static_cast<std::int64_t>(x.extent(1));
        const double* const row = &x(r, 0);
        double* const o = &out(r, 0);
        const double top = reduce_row(row, n, -std::numeric_limits<double>::infinity(), larger);
        double sum = 0;
        for (std::int64_t i = 0; i < n; ++i) sum += o[i] = std::exp(row[i] - top);
        const double factor = 1 / sum;
        for (std::int64_t i = 0; i < n; ++i) o[i] *= factor;
      });
}

struct Row {
  const char* name;
  std::function<Tensor(const DTensor&)> library;
  std::function<Tensor(const Matrix&)> by_hand;  // results from the same pool of memory
  bool has_goal = true;
};

Tensor number(double value) { return Tensor::full({}, value, DType::float64, DeviceKind::host); }
Tensor vector(std::int64_t n) { return Tensor::empty({n}, DType::float64, DeviceKind::host); }
Vector view(const Tensor& t) { return Vector(t.data_as<double>(), t.shape()[0]); }

const std::vector<Row>& rows() {
  static const std::vector<Row> list{
      {"sum", [](const DTensor& x) { return sum(x).to_local(); },
       [](const Matrix& x) { return number(sum_by_hand(x)); }},
      {"sum over dim 0", [](const DTensor& x) { return sum(x, 0).to_local(); },
       [](const Matrix& x) {
         const Tensor out = vector(static_cast<std::int64_t>(x.extent(1)));
         sum_columns_by_hand(x, view(out));
         return out;
       }},
      {"sum over dim 1", [](const DTensor& x) { return sum(x, 1).to_local(); },
       [](const Matrix& x) {
         const Tensor out = vector(static_cast<std::int64_t>(x.extent(0)));
         sum_rows_by_hand(x, view(out));
         return out;
       }},
      {"max", [](const DTensor& x) { return max(x).to_local(); },
       [](const Matrix& x) {
         return number(max_by_hand(x, [](double a, double b) { return larger_or_nan(a, b); }));
       }},
      // What it costs to look for NaN.
      {"max, but for NaN", [](const DTensor& x) { return max(x).to_local(); },
       [](const Matrix& x) {
         return number(max_by_hand(x, [](double a, double b) { return larger(a, b); }));
       },
       false},
      {"softmax", [](const DTensor& x) { return softmax(x, 1).to_local(); },
       [](const Matrix& x) {
         const Tensor out = Tensor::empty(
             {static_cast<std::int64_t>(x.extent(0)), static_cast<std::int64_t>(x.extent(1))},
             DType::float64, DeviceKind::host);
         softmax_by_hand(x, Matrix(out.data_as<double>(), x.extent(0), x.extent(1)));
         return out;
       }}};
  return list;
}

void measure(const Row& row, const Shape& local, std::int64_t bytes, const std::string& name,
             const perf::Options& options, perf::Report& report) {
  const DeviceMesh mesh(Shape{Runtime::size()}, {}, DeviceKind::host);
  std::vector<double> values(static_cast<std::size_t>(local.product()));
  // Multiples of 1/8: sums are exact in any order.
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(static_cast<int>(i * 7919 % 1009) - 500) / 8;
  }
  const Tensor part = Tensor::from_vector(values, local, DeviceKind::host);
  const DTensor x(mesh, Layout({local[0] * Runtime::size(), local[1]}, mesh.grid(), {Shard(0)}),
                  part);
  const Matrix matrix(part.data_as<double>(), static_cast<std::size_t>(local[0]),
                      static_cast<std::size_t>(local[1]));
  const auto difference = [&] {
    const auto a = row.library(x).to_vector<double>(), b = row.by_hand(matrix).to_vector<double>();
    double d = a.size() == b.size() ? 0 : 1;
    for (std::size_t i = 0; i < a.size() && d < 1; ++i) d = std::max(d, std::abs(a[i] - b[i]));
    return d;
  };
  if (!(difference() < 1e-12)) throw std::runtime_error(name + ": the two results differ");
  const perf::Comparison c = perf::compare(
      options.min_time, [&] { row.library(x); }, [&] { row.by_hand(matrix); });
  report.add({name, c.seconds, "Kokkos by hand", c.reference_seconds,
              bytes >= 64 << 20 && row.has_goal ? std::optional(1.11) : std::nullopt});
}

void run(const perf::Options& options) {
  struct Size {
    const char* name;
    Shape local;
  };
  perf::Report report;
  for (const Size& size :
       {Size{"64 KB", {64, 128}}, Size{"1 MB", {256, 512}}, Size{"64 MB", {8192, 1024}}}) {
    for (const Row& row : rows()) {
      const std::string name = std::string(row.name) + ", " + size.name;
      if (!options.selects(name)) continue;
      measure(row, size.local, size.local.product() * 8, name, options, report);
    }
  }
  report.write(options.json);
}

}  // namespace

int main(int argc, char** argv) {
  return dtensor::perf::main_with(argc, argv,
                                  "Times reductions beside hand-written Kokkos kernels.", run);
}
