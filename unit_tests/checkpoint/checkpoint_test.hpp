// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "dtensor/checkpoint/checkpoint.hpp"
#include "dtensor/comm/runtime.hpp"
#include "dtensor/distributed/factories.hpp"

namespace dtensor::testing {

namespace fs = std::filesystem;
using checkpoint::Tensors;

/// What element `i` (row-major) of a tensor is: different for neighbours, signed where the type is,
/// and exact in every scalar type.
template <class T>
T element(std::int64_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return (i * i + i / 3) % 3 == 0;
  } else if constexpr (dtype_of<T> == DType::complex128 || dtype_of<T> == DType::complex64) {
    using Real = typename T::value_type;
    return T(static_cast<Real>(i) * Real(0.5) - 3, static_cast<Real>(7 - 2 * i));
  } else if constexpr (dtype_of<T> == DType::uint8) {
    return static_cast<T>(i * 37 % 251);
  } else {
    return T(static_cast<float>(i * 37 % 199 - 99));
  }
}

/// The global tensor on this rank.
inline Tensor whole(const Shape& shape, DType dtype) {
  const Tensor t = Tensor::empty(shape, dtype, DeviceKind::host);
  dispatch_dtype(dtype, [&]<class T>() {
    auto* data = static_cast<T*>(t.data());
    for (std::int64_t i = 0; i < t.numel(); ++i) data[i] = element<T>(i);
  });
  return t.to(DeviceKind::device);
}

inline DTensor make(const Shape& shape, DType dtype, const DeviceMesh& mesh,
                    const Placements& placements) {
  return distribute_tensor(whole(shape, dtype), mesh, placements, std::nullopt);
}

inline bool same_bytes(const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  const Tensor x = a.to(DeviceKind::host).contiguous(), y = b.to(DeviceKind::host).contiguous();
  const auto bytes = static_cast<std::size_t>(x.numel() * size_of(x.dtype()));
  return bytes == 0 || std::memcmp(x.data(), y.data(), bytes) == 0;
}

/// That a tensor holds `element` everywhere: cut out of the whole by the boxes that the layout
/// says.
inline ::testing::AssertionResult holds_elements(const DTensor& tensor) {
  const Tensor expected = whole(tensor.shape(), tensor.dtype());
  if (tensor.device_mesh().is_member() && !same_bytes(tensor.full_tensor(), expected)) {
    return ::testing::AssertionFailure() << "full_tensor of " << to_string(tensor);
  }
  const DTensor part =
      distribute_tensor(expected, tensor.device_mesh(), tensor.placements(), std::nullopt);
  if (!same_bytes(tensor.to_local(), part.to_local())) {
    return ::testing::AssertionFailure() << "local part of " << to_string(tensor);
  }
  return ::testing::AssertionSuccess();
}

/// A directory for the files of one test, the same on all ranks.
class CheckpointTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[4096] = {};
    if (Runtime::rank() == 0) {
      const std::string pattern =
          (fs::temp_directory_path() / "dtensor_checkpoint_XXXXXX").string();
      std::strncpy(name, pattern.c_str(), sizeof name - 1);
      ASSERT_NE(mkdtemp(name), nullptr);
    }
    MPI_Bcast(name, sizeof name, MPI_CHAR, 0, MPI_COMM_WORLD);
    root_ = name;
  }
  void TearDown() override {
    barrier();
    if (Runtime::rank() == 0) fs::remove_all(root_);
  }

  static void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
  std::string path(const std::string& name) const { return (fs::path(root_) / name).string(); }

  /// Runs `f` on rank 0 between two barriers.
  template <class F>
  static void on_rank_0(F&& f) {
    barrier();
    if (Runtime::rank() == 0) f();
    barrier();
  }
  /// Names in the directory of the test.
  std::vector<std::string> entries() const {
    std::vector<std::string> names;
    for (const auto& e : fs::directory_iterator(root_)) names.push_back(e.path().filename());
    return names;
  }

  static DeviceMesh world() { return DeviceMesh(Shape{Runtime::size()}); }

 private:
  std::string root_;
};

}  // namespace dtensor::testing
