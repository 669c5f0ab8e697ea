// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Uses the library before its time and after it. Each scenario expects errors, not crashes, and
// leaves DTensors behind with static lifetime.
#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/distributed/factories.hpp"

namespace {

using namespace dtensor;

// Destroyed after `main`, when MPI and Kokkos are down.
std::vector<DTensor> kept_dtensors;
std::vector<Tensor> kept_tensors;
std::vector<DeviceMesh> kept_meshes;

bool failed = false;

void check(bool condition, const char* what) {
  if (condition) return;
  std::printf("failed: %s\n", what);
  failed = true;
}

/// `f` throws a `StateError` that contains all of `parts`.
template <class F>
void expect_state_error(const char* what, const std::vector<std::string>& parts, F&& f) {
  try {
    f();
    std::printf("failed: %s did not throw\n", what);
    failed = true;
  } catch (const StateError& e) {
    for (const std::string& part : parts) {
      if (std::string(e.what()).find(part) != std::string::npos) continue;
      std::printf("failed: %s: \"%s\" is not in: %s\n", what, part.c_str(), e.what());
      failed = true;
    }
  } catch (const std::exception& e) {
    std::printf("failed: %s threw: %s\n", what, e.what());
    failed = true;
  }
}

int own_rank = 0;

void start_mpi(int level = MPI_THREAD_FUNNELED) {
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, level, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
}

/// A mesh of all ranks and DTensors on it, kept beyond the end.
DTensor make_and_keep(int n) {
  const DeviceMesh mesh({Runtime::size()});
  const DTensor x = ones({n, n}, mesh, {Shard(0)});
  kept_meshes.push_back(mesh);
  kept_dtensors.push_back(x);
  kept_tensors.push_back(x.to_local());
  kept_tensors.push_back(Tensor::from_view(Kokkos::View<double*, Kokkos::HostSpace>("test", 10)));
  return x;
}

void expect_kokkos_down() {
  for (const Tensor& t : kept_tensors) {
    expect_state_error("data after Kokkos", {"Kokkos::finalize"}, [&] { t.data(); });
    expect_state_error("fill after Kokkos", {"Kokkos::finalize"}, [&] { t.fill(1); });
    expect_state_error("clone after Kokkos", {"Kokkos::finalize"}, [&] { t.clone(); });
    check(t.dim() > 0, "a shape can still be asked for");
  }
  expect_state_error("a new tensor", {"Kokkos::finalize"},
                     [] { Tensor::zeros({3}, DType::float64); });
}

void expect_mpi_down() {
  expect_state_error("a new mesh", {"MPI_Finalize"}, [] { DeviceMesh(Shape{1}); });
  expect_state_error("rank", {"MPI_Finalize"}, [] { Runtime::rank(); });
  for (const DeviceMesh& m : kept_meshes) {
    expect_state_error("handle", {"MPI_Finalize"}, [&] { m.communicator()->handle(); });
  }
  check(MpiCommunicator::live_count() == 0, "communicators are freed by MPI_Finalize");
}

void before_start() {
  expect_state_error("mesh", {"MPI_Init_thread"}, [] { DeviceMesh(Shape{1}); });
  expect_state_error("from_ranks", {"MPI_Init_thread"}, [] { DeviceMesh::from_ranks({0}, {1}); });
  expect_state_error("tensor", {"Kokkos::initialize"}, [] { Tensor::zeros({3}, DType::float64); });
  expect_state_error("rank", {"MPI_Init_thread"}, [] { Runtime::rank(); });
  expect_state_error("no mesh", {"MeshScope"}, [] { zeros({3}); });
  start_mpi();
  MPI_Finalize();
}

void before_kokkos() {
  start_mpi();
  {
    const DeviceMesh mesh({Runtime::size()});
    expect_state_error("tensor", {"Kokkos::initialize"},
                       [] { Tensor::zeros({3}, DType::float64); });
    expect_state_error("factory", {"Kokkos::initialize"}, [&] { zeros({3}, mesh, {Shard(0)}); });
    double data[3] = {};
    expect_state_error("blob", {"Kokkos::initialize"}, [&] {
      Tensor::from_blob(data, {3}, {1}, DType::float64, DeviceKind::host);
    });
  }
  MPI_Finalize();
}

void thread_level() {
  start_mpi(MPI_THREAD_SINGLE);
  int level = 0;
  MPI_Query_thread(&level);
  const std::vector<std::string> both{"MPI_THREAD_SINGLE", "MPI_THREAD_FUNNELED"};
  if (level == MPI_THREAD_SINGLE) {
    expect_state_error("mesh", both, [] { DeviceMesh(Shape{1}); });
    expect_state_error("runtime", both, [] { const Runtime runtime; });
    check(!Kokkos::is_initialized(), "nothing was started");
  }
  MPI_Finalize();
}

void after_kokkos() {
  start_mpi();
  Kokkos::initialize();
  const DTensor x = make_and_keep(12);
  Kokkos::finalize();
  expect_kokkos_down();
  expect_state_error("redistribute", {"Kokkos::finalize"}, [&] { x.redistribute({Shard(1)}); });
  expect_state_error("full_tensor", {"Kokkos::finalize"}, [&] { x.full_tensor(); });
  expect_state_error("from_local", {"Kokkos::finalize"}, [&] {
    distribute_tensor(kept_tensors[0], kept_meshes[0], {Shard(0)}, std::nullopt).full_tensor();
  });
  MPI_Finalize();
  expect_mpi_down();
}

void after_mpi() {
  start_mpi();
  Kokkos::initialize();
  const DTensor x = make_and_keep(12);
  const int size = Runtime::size();
  MPI_Finalize();
  expect_mpi_down();
  check(x.to_local().numel() > 0, "local data can still be read");
  if (size > 1) {
    expect_state_error("redistribute", {"MPI_Finalize"}, [&] { x.redistribute({Shard(1)}); });
    expect_state_error("full_tensor", {"MPI_Finalize"}, [&] { x.full_tensor(); });
    expect_state_error("distribute_tensor", {"MPI_Finalize"},
                       [&] { distribute_tensor(kept_tensors[0], kept_meshes[0], {Shard(0)}); });
    expect_state_error("from_local", {"MPI_Finalize"},
                       [&] { from_local(kept_tensors[0], kept_meshes[0], {Shard(0)}); });
  }
  Kokkos::finalize();
  expect_kokkos_down();
}

/// Starts moves that nobody waits for, small and large.
void start_moves() {
  RedistributeOptions options;
  options.async_op = true;
  for (int n : {12, 1500}) {
    const DTensor x = make_and_keep(n);
    for (const Placement& to : Placements{Shard(1), Replicate()}) {
      kept_dtensors.push_back(x.redistribute({to}, options));
    }
  }
}

void pending_at_kokkos() {
  start_mpi();
  Kokkos::initialize();
  start_moves();
  Kokkos::finalize();
  expect_kokkos_down();
  MPI_Finalize();
}

void pending_at_mpi() {
  start_mpi();
  Kokkos::initialize();
  start_moves();
  MPI_Finalize();
  expect_mpi_down();
  Kokkos::finalize();
  expect_kokkos_down();
}

void mesh_gone() {
  start_mpi();
  Kokkos::initialize();
  {
    DTensor x;
    {
      const DeviceMesh mesh({Runtime::size()}, {"only"});
      x = ones({5, 3}, mesh, {Shard(0)});
    }
    check(x.full_tensor().to_vector<double>() == std::vector<double>(15, 1.0), "full_tensor");
    kept_dtensors.push_back(x.redistribute({Shard(1)}));
  }
  const int size = Runtime::size();
  MPI_Finalize();
  if (size > 1) {
    expect_state_error("redistribute", {"MPI_Finalize"},
                       [] { kept_dtensors[0].redistribute({Shard(0)}); });
  }
  Kokkos::finalize();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string scenario = argc > 1 ? argv[1] : "";
  const struct {
    const char* name;
    void (*run)();
  } scenarios[] = {{"before_start", before_start},     {"before_kokkos", before_kokkos},
                   {"thread_level", thread_level},     {"after_kokkos", after_kokkos},
                   {"after_mpi", after_mpi},           {"pending_at_kokkos", pending_at_kokkos},
                   {"pending_at_mpi", pending_at_mpi}, {"mesh_gone", mesh_gone}};
  for (const auto& s : scenarios) {
    if (scenario != s.name) continue;
    s.run();
    if (failed) return EXIT_FAILURE;
    if (own_rank == 0) std::printf("scenario %s went well\n", s.name);
    return EXIT_SUCCESS;
  }
  std::printf("unknown scenario \"%s\"\n", scenario.c_str());
  return EXIT_FAILURE;
}
