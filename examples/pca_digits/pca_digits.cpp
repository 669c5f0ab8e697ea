// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Principal components of 1797 handwritten digits: the eight largest eigenvalues of the covariance
// matrix of their 64 pixels, by subspace iteration on distributed tensors.
//
//   mpirun -n 4 pca_digits --save-halfway DIR   runs to the end, leaving a checkpoint of the middle
//   mpirun -n 3 pca_digits --restart DIR        finishes from that checkpoint, on any number of
//   ranks
//
// Every value is compared with the known one; a wrong value makes the exit status 1.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <iostream>

#include "digits.hpp"
#include "dtensor/dtensor.hpp"
#include "small_linalg.hpp"

namespace {

using namespace dtensor;

constexpr std::int64_t columns = 16;  // of the subspace: more than wanted converges faster
constexpr std::int64_t iterations = 40;

bool on_rank_0() { return Runtime::rank() == 0; }

void print(const std::string& text) {
  if (on_rank_0()) std::cout << text << std::flush;
}

// A 2 x n/2 mesh where the number of ranks allows, else n x 1.
DeviceMesh make_mesh() {
  const int n = Runtime::size();
  return n % 2 == 0 ? DeviceMesh({2, n / 2}, {"rows", "columns"})
                    : DeviceMesh({n, 1}, {"rows", "columns"});
}

const Placements replicated{Replicate(), Replicate()};
const Placements blocks{Shard(0), Shard(1)};

struct Check {
  bool ok = true;

  void compare(const char* what, double value, double known, double tolerance) {
    const double error = std::abs(value - known) / std::abs(known);
    const bool right = error <= tolerance;  // false for NaN too
    ok = ok && right;
    if (on_rank_0()) {
      std::printf("  %-22s %18.10f %18.10f %10.1e  %s\n", what, value, known, error,
                  right ? "ok" : "WRONG");
    }
  }
  static void header(const char* title) {
    if (on_rank_0()) {
      std::printf("%s\n  %-22s %18s %18s %10s\n", title, "", "value", "known", "rel. error");
    }
  }
};

struct State {
  DTensor covariance;  // 64 x 64
  DTensor basis;       // 64 x columns, orthonormal
  std::int64_t iteration = 0;
};

// Reads the data on rank 0, spreads its rows and forms the covariance matrix of the pixels.
State start(const std::string& data, const DeviceMesh& mesh, Check& check) {
  const Shape shape{digits::rows, digits::pixels};
  Tensor pixels;
  if (on_rank_0()) {
    pixels = Tensor::from_vector(digits::read(data), shape);
  }
  const DTensor x = distribute_tensor(pixels, mesh, {Shard(0), Shard(0)});
  print("The images, rows sharded over all ranks:\n" + visualize_sharding(x));

  Check::header("\nData");
  check.compare("sum of all pixels", sum(x).full_tensor().item<double>(), digits::pixel_sum, 1e-12);
  check.compare("Frobenius norm", sqrt(sum(x * x)).full_tensor().item<double>(),
                digits::frobenius_norm, 1e-12);

  const DTensor centered = x - mean(x, {0}, true);
  DTensor covariance =
      matmul(transpose(centered, 0, 1), centered) / static_cast<double>(digits::rows - 1);
  covariance = covariance.redistribute(blocks);
  print("\nThe covariance matrix, in blocks:\n" + visualize_sharding(covariance));

  // Any start that is not orthogonal to the leading eigenvectors will do.
  std::vector<double> basis(digits::pixels * columns);
  for (std::size_t i = 0; i < basis.size(); ++i)
    basis[i] = std::sin(1.0 + static_cast<double>(i * i));
  orthonormalize(basis, digits::pixels, columns);
  const Tensor dense = Tensor::from_vector(basis, {digits::pixels, columns});
  return {covariance, distribute_tensor(dense, mesh, replicated, std::nullopt), 0};
}

// One step: multiply, orthonormalize.
void iterate(State& state) {
  const DTensor product = matmul(state.covariance, state.basis);
  const Tensor whole = product.full_tensor();
  std::vector<double> basis = whole.to_vector<double>();
  orthonormalize(basis, digits::pixels, columns);
  state.basis = distribute_tensor(Tensor::from_vector(basis, whole.shape()),
                                  state.covariance.device_mesh(), replicated, std::nullopt);
  ++state.iteration;
}

// Eigenvalues of the covariance matrix within the subspace (Rayleigh-Ritz).
std::vector<double> ritz_values(const State& state) {
  const DTensor projected =
      matmul(transpose(state.basis, 0, 1), matmul(state.covariance, state.basis));
  return symmetric_eigenvalues(projected.full_tensor().to_vector<double>(), columns);
}

// The digits next to the program in the build tree, unless told otherwise.
struct Options {
  std::string data = PCA_DIGITS_DATA;
  std::string save_halfway;
  std::string restart;
};

bool run(const Options& options) {
  const DeviceMesh mesh = make_mesh();
  print(to_string(mesh) + "\n\n");
  CommDebugMode comm;
  Check check;
  State state;
  if (options.restart.empty()) {
    state = start(options.data, mesh, check);
  } else {
    const std::string halfway = options.restart + "/halfway";
    state = {checkpoint::load(halfway, "covariance", mesh, blocks),
             checkpoint::load(halfway, "basis", mesh, replicated),
             std::get<std::int64_t>(checkpoint::attributes(halfway).at("iteration"))};
    print("Restarted after iteration " + std::to_string(state.iteration) +
          ". The covariance matrix is now here:\n" + visualize_sharding(state.covariance));
  }

  Check::header("\nCovariance");
  const Tensor whole = state.covariance.full_tensor();
  const std::vector<double> c = whole.to_vector<double>();
  double trace = 0;
  for (std::size_t i = 0; i < digits::pixels; ++i) trace += c[i * digits::pixels + i];
  check.compare("trace", trace, digits::trace, 1e-12);

  while (state.iteration < iterations) {
    iterate(state);
    if (state.iteration == iterations / 2 && !options.save_halfway.empty()) {
      checkpoint::save(options.save_halfway + "/halfway",
                       {{"covariance", state.covariance}, {"basis", state.basis}},
                       {{"iteration", state.iteration}});
      print("\nSaved a checkpoint after iteration " + std::to_string(state.iteration) + ".\n");
    }
  }

  const std::vector<double> values = ritz_values(state);
  Check::header("\nLargest eigenvalues");
  for (std::size_t i = 0; i < std::size(digits::eigenvalues); ++i) {
    const std::string name = "eigenvalue " + std::to_string(i + 1);
    check.compare(name.c_str(), values[i], digits::eigenvalues[i], 1e-8);
  }

  const DTensor found =
      distribute_tensor(Tensor::from_vector(values, {columns}), mesh, replicated, std::nullopt);
  if (!options.save_halfway.empty()) {
    checkpoint::save(options.save_halfway + "/final", {{"eigenvalues", found}});
  }
  if (!options.restart.empty()) {
    const DTensor before =
        checkpoint::load(options.restart + "/final", "eigenvalues", mesh, replicated);
    const auto known = before.to_local().to_vector<double>();
    Check::header("\nAgainst the run that was not interrupted");
    for (std::size_t i = 0; i < std::size(digits::eigenvalues); ++i) {
      const std::string name = "eigenvalue " + std::to_string(i + 1);
      check.compare(name.c_str(), values[i], known[i], 1e-10);
    }
  }
  print("\nWhat rank 0 communicated:\n" + comm.to_string());
  print(check.ok ? "\nAll values match.\n" : "\nSome values are WRONG.\n");
  return check.ok;
}

}  // namespace

int main(int argc, char** argv) {
  dtensor::Runtime runtime(argc, argv);
  CLI::App app("Principal components of handwritten digits on distributed tensors");
  Options options;
  app.add_option("--data", options.data, "the digits, a gzipped table of comma-separated numbers");
  auto* save = app.add_option("--save-halfway", options.save_halfway,
                              "directory for checkpoints of the middle and the end");
  app.add_option("--restart", options.restart, "directory to restart from")->excludes(save);
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options) ? 0 : 1;
  } catch (const std::exception& error) {
    print(std::string(error.what()) + "\n");
    return 1;
  }
}
