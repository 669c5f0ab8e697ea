// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Filling a sharded tensor beside a Kokkos kernel that draws the same distribution from Kokkos's
// own XorShift64 pool. Both write to touched memory of the same pool, on every rank at once.
#include <dtensor/comm/events.hpp>
#include <dtensor/comm/runtime.hpp>
#include <dtensor/random/random.hpp>

#include <Kokkos_Random.hpp>
#include <cstdio>

#include "support/program.hpp"
#include "support/report.hpp"
#include "support/timing.hpp"

namespace {

using namespace dtensor;
using Pool = Kokkos::Random_XorShift64_Pool<HostExecution>;

struct DrawUniform {
  template <class T, class Generator>
  KOKKOS_INLINE_FUNCTION static T draw(Generator& generator) {
    return Kokkos::rand<Generator, T>::draw(generator);
  }
};
struct DrawNormal {
  template <class T, class Generator>
  KOKKOS_INLINE_FUNCTION static T draw(Generator& generator) {
    return static_cast<T>(generator.normal());
  }
};

// A state of the pool for every 1024 elements: taking one for each would be slower.
template <class T, class Distribution>
void fill_by_kokkos(const Pool& pool, T* out, std::int64_t count) {
  constexpr std::int64_t piece = 1024;
  Kokkos::parallel_for(
      "perf::kokkos_random",
      Kokkos::RangePolicy<HostExecution>(0, static_cast<std::size_t>((count + piece - 1) / piece)),
      KOKKOS_LAMBDA(const std::int64_t p) {
        auto generator = pool.get_state();
        const std::int64_t end = p * piece + piece < count ? p * piece + piece : count;
        for (std::int64_t i = p * piece; i < end; ++i) {
          out[i] = Distribution::template draw<T>(generator);
        }
        pool.free_state(generator);
      });
  fence(DeviceKind::host, "perf::kokkos_random");
}

class CountBytes : public Observer {
 public:
  CountBytes() { add_observer(*this); }
  ~CountBytes() override { remove_observer(*this); }
  void on_event(const Event& event) override {
    if (event.collective != Collective::none) bytes += event.bytes_sent;
  }
  std::int64_t bytes = 0;
};

template <class T, class Distribution, class Fill>
void measure(const std::string& name, std::optional<double> goal, const Fill& fill,
             const perf::Options& options, perf::Report& report) {
  if (!options.selects(name)) return;
  const std::int64_t count = (64 << 20) / static_cast<std::int64_t>(sizeof(T));
  const DeviceMesh mesh({Runtime::size()}, {}, DeviceKind::host);
  const DTensor tensor = zeros({Runtime::size() * count}, mesh, {Shard(0)}, dtype_of<T>);
  const Tensor reference = Tensor::zeros({count}, dtype_of<T>, DeviceKind::host);
  const Pool pool(1);
  Generator generator(1);
  const perf::Comparison c = perf::compare(
      options.min_time,
      [&] {
        fill(tensor, generator);
        fence(DeviceKind::host, "perf::dtensor_random");
      },
      [&] { fill_by_kokkos<T, Distribution>(pool, reference.data_as<T>(), count); });
  report.add({name, c.seconds, "a kernel with Random_XorShift64_Pool", c.reference_seconds, goal});
}

void run(const perf::Options& options) {
  perf::Report report;
  CountBytes communicated;
  const auto uniform = [](const DTensor& x, Generator& g) { uniform_(x, 0, 1, g); };
  const auto normal = [](const DTensor& x, Generator& g) { normal_(x, 0, 1, g); };
  measure<float, DrawUniform>("uniform float32, 64 MB", 1 / 0.8, uniform, options, report);
  measure<float, DrawNormal>("normal float32, 64 MB", 1 / 0.6, normal, options, report);
  measure<double, DrawUniform>("uniform float64, 64 MB", std::nullopt, uniform, options, report);
  measure<double, DrawNormal>("normal float64, 64 MB", std::nullopt, normal, options, report);
  const std::string bytes = "bytes communicated";
  if (options.selects(bytes)) {
    report.add(
        {bytes, static_cast<double>(communicated.bytes), "the figure itself, in bytes", 1.0, 0.0});
  }
  report.write(options.json);
}

}  // namespace

int main(int argc, char** argv) {
  return dtensor::perf::main_with(argc, argv, "Times random fills beside Kokkos's own generator.",
                                  run);
}
