// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a repeated operator costs beside its kernel: the library's call on small shards, and the
// bare kernel on the local views that writes into a new local tensor. With --loop, one of the two
// runs alone, for a tool that counts instructions. Also how long a decision takes that is not yet
// cached.
#include <dtensor/comm/runtime.hpp>
#include <dtensor/distributed/factories.hpp>
#include <dtensor/ops/decision.hpp>
#include <dtensor/ops/ops.hpp>

#include <KokkosBlas3_gemm.hpp>
#include <cstdio>
#include <functional>
#include <memory>

#include "support/program.hpp"
#include "support/report.hpp"
#include "support/timing.hpp"

namespace {

using namespace dtensor;

struct Options : perf::Options {
  std::string loop;
  int calls = 1000;
};

using Matrix = Kokkos::View<double**, Kokkos::LayoutRight, DeviceMemory,
                            Kokkos::MemoryTraits<Kokkos::Unmanaged>>;

struct AddRows {
  Matrix a, b, c;
  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    for (std::size_t j = 0; j < c.extent(1); ++j) c(i, j) = a(i, j) + b(i, j);
  }
};

Matrix view(const Tensor& t) { return t.view<double**, Kokkos::LayoutRight>(); }

// What is timed with, and without, the library.
struct Pair {
  std::function<void(int calls)> library, bare;
};

Pair add_pair(const DTensor& a, const DTensor& b) {
  const auto library = [a, b](int calls) {
    for (int i = 0; i < calls; ++i) add(a, b);
    fence(a.device_mesh().device(), "dtensor::perf");
  };
  const auto bare = [a, b](int calls) {
    const Tensor &x = a.to_local(), &y = b.to_local();
    for (int i = 0; i < calls; ++i) {
      const Tensor out = Tensor::empty(x.shape(), DType::float64);
      Kokkos::parallel_for("add",
                           Kokkos::RangePolicy<Kokkos::IndexType<std::int64_t>>(0, out.shape()[0]),
                           AddRows{view(x), view(y), view(out)});
    }
    fence(a.device_mesh().device(), "dtensor::perf");
  };
  return {library, bare};
}

Pair matmul_pair(const DTensor& a, const DTensor& b) {
  const auto library = [a, b](int calls) {
    for (int i = 0; i < calls; ++i) matmul(a, b);
    fence(a.device_mesh().device(), "dtensor::perf");
  };
  const auto bare = [a, b](int calls) {
    const Tensor &x = a.to_local(), &y = b.to_local();
    for (int i = 0; i < calls; ++i) {
      const Tensor out = Tensor::empty(Shape{x.shape()[0], y.shape()[1]}, DType::float64);
      KokkosBlas::gemm("N", "N", 1.0, view(x), view(y), 0.0, view(out));
    }
    fence(a.device_mesh().device(), "dtensor::perf");
  };
  return {library, bare};
}

// Microseconds of the slowest of all decisions about the given inputs, each made for the first
// time.
double slowest_decision(const Rule& rule, const std::vector<Shape>& shapes) {
  std::vector<int> ranks(8);
  for (int r = 0; r < 8; ++r) ranks[static_cast<std::size_t>(r)] = r;
  const auto grid = std::make_shared<const ProcessGrid>(Shape{2, 2, 2}, ranks);
  std::vector<Placements> choices;
  const Placements one{Replicate(), Shard(0), Shard(1), Partial()};
  for (const Placement& a : one) {
    for (const Placement& b : one) {
      for (const Placement& c : one) choices.push_back({a, b, c});
    }
  }
  double slowest = 0;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    std::vector<Layout> inputs;
    for (std::size_t k = 0; k < shapes.size(); ++k) {
      inputs.emplace_back(shapes[k], grid, choices[(i * (2 * k + 1) + 7 * k) % choices.size()]);
    }
    const std::vector<DType> dtypes(shapes.size(), DType::float64);
    std::vector<double> times;
    for (int repeat = 0; repeat < 5; ++repeat) {
      const double start = MPI_Wtime();
      decide("perf_dispatch", rule, inputs, dtypes, DType::float64);
      times.push_back(MPI_Wtime() - start);
    }
    slowest = std::max(slowest, perf::median(times));
  }
  return slowest;
}

void run(const Options& options) {
  const DeviceMesh mesh({Runtime::size()});
  const std::int64_t n = 16;
  const DTensor a = ones({n, n}, mesh, {Shard(0)}), b = ones({n, n}, mesh, {Shard(0)}),
                whole = ones({n, n}, mesh, {Replicate()});
  const Pair adds = add_pair(a, b), products = matmul_pair(a, whole);
  if (!options.loop.empty()) {
    const Pair& pair = options.loop.starts_with("add") ? adds : products;
    (options.loop.ends_with("bare") ? pair.bare : pair.library)(options.calls);
    return;
  }
  perf::Report report;
  const auto measure = [&](const std::string& name, const Pair& pair) {
    if (!options.selects(name)) return;
    constexpr int calls = 2000;
    const perf::Comparison c = perf::compare(
        options.min_time, [&] { pair.library(calls); }, [&] { pair.bare(calls); });
    report.add({name, c.seconds / calls, "bare kernel", c.reference_seconds / calls, std::nullopt});
    report.add({name + ", above it", (c.seconds - c.reference_seconds) / calls,
                "the figure itself, in microseconds", 1e-6, 1.0});
  };
  measure("add 16x16", adds);
  measure("matmul 16x16", products);
  const auto decision = [&](const std::string& name, const Rule& rule,
                            const std::vector<Shape>& shapes, double goal) {
    if (!options.selects(name)) return;
    report.add(
        {name, slowest_decision(rule, shapes), "the figure itself, in microseconds", 1e-6, goal});
  };
  const PartialPasses in_each_of_two = in_each();
  decision("decision, matmul on 2x2x2", Rule("mk,kn->mn", in_each_of_two), {{64, 48}, {48, 32}},
           200);
  decision("decision, 3 inputs on 2x2x2",
           Rule::pointwise({2, 2, 2}, {linear_in({0}), linear_in({0, 1})}),
           {{64, 48}, {64, 48}, {64, 48}}, 1000);
  report.write(options.json);
}

}  // namespace

int main(int argc, char** argv) {
  return dtensor::perf::main_with(
      argc, argv, "Times what operators cost beside their kernels.", Options(), run,
      [](CLI::App& app, Options& o) {
        app.add_option("--loop", o.loop, "Run only this loop and time nothing")
            ->check(CLI::IsMember({"add", "add-bare", "matmul", "matmul-bare"}));
        app.add_option("--calls", o.calls, "Calls of --loop")->capture_default_str();
      });
}
