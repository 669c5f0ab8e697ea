// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of square float64 matrices, beside one product of the local parts where nothing has to
// be communicated, and beside ScaLAPACK's pdgemm where that was found.
#include <dtensor/dtensor.hpp>

#include <KokkosBlas3_gemm.hpp>
#include <cstdio>
#include <stdexcept>

#include "support/program.hpp"
#include "support/report.hpp"
#include "support/timing.hpp"
#ifdef DTENSOR_HAVE_SCALAPACK
#include "support/scalapack.hpp"
#endif

namespace {

using namespace dtensor;

struct Options : perf::Options {
  std::int64_t size = 2048;
  int block = 128;  // of pdgemm
};

// Small integers: every sum is exact, whatever its order.
double a_element(std::int64_t i, std::int64_t j) {
  return static_cast<double>((i * 7 + j * 3) % 11 - 5);
}
double b_element(std::int64_t i, std::int64_t j) {
  return static_cast<double>((i * 5 + j * 2) % 13 - 6);
}

struct Product {
  std::string name;
  Shape mesh;
  Placements a, b, result;
  bool communicates = false;
};

std::vector<Product> products() {
  const std::int64_t n = Runtime::size();
  const Placement r = Replicate(), s0 = Shard(0), s1 = Shard(1);
  std::vector<Product> list{{"S0 x R", {n}, {s0}, {r}, {s0}},
                            {"R x S1", {n}, {r}, {s1}, {s1}},
                            {"S1 x S0", {n}, {s1}, {s0}, {Partial()}}};
  if (n >= 4 && n % 2 == 0) {
    const Shape square{2, n / 2};
    list.push_back({"[S0,R] x [R,S1]", square, {s0, r}, {r, s1}, {s0, s1}});
    list.push_back({"[S0,S1] x [S0,S1]", square, {s0, s1}, {s0, s1}, {s0, s1}, true});
  }
  return list;
}

template <class Element>
DTensor make(std::int64_t size, const DeviceMesh& mesh, const Placements& placements,
             const Element& element) {
  std::vector<double> values(static_cast<std::size_t>(size * size));
  for (std::int64_t i = 0; i < size; ++i) {
    for (std::int64_t j = 0; j < size; ++j) {
      values[static_cast<std::size_t>(i * size + j)] = element(i, j);
    }
  }
  return distribute_tensor(Tensor::from_vector(values, {size, size}), mesh, placements,
                           std::nullopt);
}

void require_equal(bool equal, const std::string& name) {
  int all = equal;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (!all) throw std::runtime_error(name + ": the two results differ");
}

// KokkosBlas::gemm on what this rank has, into memory that is there already.
class LocalGemm {
 public:
  LocalGemm(const Tensor& a, const Tensor& b)
      : a_(a), b_(b), c_(Tensor::empty({a.shape()[0], b.shape()[1]}, DType::float64)) {}
  void operator()() const {
    using View = Kokkos::View<double**, Kokkos::LayoutRight, DeviceMemory,
                              Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    const View a = a_.view<double**, Kokkos::LayoutRight>();
    const View b = b_.view<double**, Kokkos::LayoutRight>();
    const View c = c_.view<double**, Kokkos::LayoutRight>();
    KokkosBlas::gemm("N", "N", 1.0, a, b, 0.0, c);
    fence(c_.device(), "perf_matmul");
  }
  const Tensor& result() const { return c_; }

 private:
  Tensor a_, b_, c_;
};

void measure(const Product& product, const Options& options, perf::Report& report) {
  const DeviceMesh mesh(product.mesh);
  const DTensor a = make(options.size, mesh, product.a, a_element);
  const DTensor b = make(options.size, mesh, product.b, b_element);
  const auto multiply = [&] {
    const DTensor c = matmul(a, b);
    fence(mesh.device(), "perf_matmul");
    return c;
  };
  const DTensor c = multiply();
  if (c.placements() != product.result) {
    throw std::runtime_error(product.name + ": gave " + to_string(c.placements()));
  }
  if (!product.communicates) {
    const LocalGemm gemm(a.to_local(), b.to_local());
    gemm();
    require_equal(gemm.result().to_vector<double>() == c.to_local().to_vector<double>(),
                  product.name);
    const perf::Comparison t = perf::compare(options.min_time, multiply, gemm);
    report.add({product.name + ", local", t.seconds, "KokkosBlas::gemm of the local parts",
                t.reference_seconds, 1.05});
  }
#ifdef DTENSOR_HAVE_SCALAPACK
  const bool flat = mesh.dim() == 1;
  perf::Pdgemm pdgemm(static_cast<int>(options.size), static_cast<int>(mesh.size(0)),
                      flat ? 1 : static_cast<int>(mesh.size(1)), options.block, a_element,
                      b_element);
  pdgemm();
  const std::vector<double> whole = c.full_tensor().to_vector<double>();
  require_equal(pdgemm.equals([&](int i, int j) {
    return whole[static_cast<std::size_t>(i * options.size + j)];
  }),
                product.name);
  const perf::Comparison t = perf::compare(options.min_time, multiply, pdgemm);
  report.add({product.name, t.seconds, "pdgemm", t.reference_seconds, 1.0});
#endif
}

void run(const Options& options) {
  perf::Report report;
  for (const Product& product : products()) {
    if (options.selects(product.name)) measure(product, options, report);
  }
#ifndef DTENSOR_HAVE_SCALAPACK
  if (Runtime::rank() == 0) std::puts("Rows beside pdgemm are left out: ScaLAPACK was not found.");
#endif
  report.write(options.json);
}

}  // namespace

int main(int argc, char** argv) {
  return dtensor::perf::main_with(
      argc, argv, "Times products of matrices beside local products and beside ScaLAPACK.",
      Options(), run, [](CLI::App& app, Options& o) {
        app.add_option("--size", o.size, "Rows and columns of the matrices")
            ->check(CLI::PositiveNumber)
            ->capture_default_str();
        app.add_option("--block", o.block, "Rows and columns of the blocks of pdgemm")
            ->check(CLI::PositiveNumber)
            ->capture_default_str();
      });
}
