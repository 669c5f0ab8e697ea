// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `Tensor`: a dense strided array of dynamic scalar type in the memory of this process.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "dtensor/core/dtype.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/core/extents.hpp"
#include "dtensor/core/kokkos_compat.hpp"
#include "dtensor/core/scalar.hpp"
#include "dtensor/core/scalar_types.hpp"
#include "dtensor/core/storage.hpp"

namespace dtensor {

/// A cheap handle to shared state: copying a `Tensor` aliases it, `clone` copies its elements.
/// A default-constructed handle is undefined; everything but `defined` throws `StateError` on it.
/// All functions are local: none communicates.
class Tensor {
 public:
  Tensor() = default;

  /// Uninitialized, row-major. Throws `ValueError` for a negative extent or a size that overflows.
  static Tensor empty(const Shape& shape, DType dtype, DeviceKind device = DeviceKind::device);
  static Tensor zeros(const Shape& shape, DType dtype, DeviceKind device = DeviceKind::device);
  static Tensor full(const Shape& shape, const Scalar& value, DType dtype,
                     DeviceKind device = DeviceKind::device);
  /// Row-major copy of `values`, whose number must be the shape's. Throws `ValueError` otherwise.
  template <class T>
  static Tensor from_vector(const std::vector<T>& values, const Shape& shape,
                            DeviceKind device = DeviceKind::device);

  /// Views a Kokkos View of any layout and rank up to 8, without a copy. The View is kept alive.
  /// Elements must be one of the twelve scalar types.
  template <class ViewType>
  static Tensor from_view(const ViewType& view);

  /// Views memory owned by somebody else. \param strides in elements \param owner kept alive
  /// Throws `ValueError` for a negative extent or stride, or another number of strides.
  static Tensor from_blob(void* data, const Shape& shape, const Extents& strides, DType dtype,
                          DeviceKind device, std::shared_ptr<void> owner = nullptr);

  bool defined() const noexcept { return state_ != nullptr; }
  const Shape& shape() const { return state().shape; }
  /// Strides in elements.
  const Extents& strides() const { return state().strides; }
  int dim() const { return state().shape.size(); }
  std::int64_t numel() const { return state().shape.product(); }
  DType dtype() const { return state().dtype; }
  DeviceKind device() const { return state().storage->device(); }
  /// The memory behind this tensor, shared with every tensor that views it.
  const std::shared_ptr<Storage>& storage() const { return state().storage; }
  /// Whether the elements are dense with the last dimension varying fastest.
  bool is_contiguous() const;

  /// Pointer to the first element, in `device()` memory. Throws `StateError` after
  /// `Kokkos::finalize`.
  void* data() const {
    const State& s = state();
    return static_cast<unsigned char*>(s.storage->data()) + s.offset * size_of(s.dtype);
  }
  /// The same, typed. Throws `TypeError` when `T` is not the tensor's scalar type.
  template <class T>
  T* data_as() const;

  /// The elements as an unmanaged `Kokkos::View` without a copy, valid while a tensor holds the
  /// storage: `t.view<double**>()`, `t.view<float*, Kokkos::LayoutRight>()`.
  /// Throws `TypeError` when scalar type, number of dimensions or memory space differ, `ValueError`
  /// when the strides do not fit the asked layout (`Kokkos::LayoutStride` always fits).
  template <class DataType, class Layout = Kokkos::LayoutStride, class MemorySpace = DeviceMemory>
  Kokkos::View<DataType, Layout, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>> view() const;

  /// Row-major copy of the elements on the host.
  template <class T>
  std::vector<T> to_vector() const;
  /// The only element. Throws `ValueError` when there is not exactly one.
  template <class T>
  T item() const;

  Tensor clone() const;
  /// This tensor when it is contiguous, else a row-major copy.
  Tensor contiguous() const;
  /// This tensor when it has that scalar type, else a converted row-major copy.
  Tensor to(DType dtype) const;
  /// This tensor when it lives there, else a row-major copy in that memory.
  Tensor to(DeviceKind device) const;

  /// Overwrites the elements with those of a tensor of the same shape, converting scalar type and
  /// memory space. The two may overlap. Throws `ValueError` when the shapes differ or elements of
  /// this tensor share memory.
  void copy_from(const Tensor& source) const;
  /// Whether writing an element of this tensor may change another element of `other`: they share
  /// memory, and not element by element.
  bool overlaps(const Tensor& other) const;
  /// Overwrites every element. Throws `ValueError` for a number that the type cannot hold; cuts off
  /// a fraction.
  void fill(const Scalar& value) const;

  /// Views of the same memory.
  Tensor transpose(std::int64_t dim0, std::int64_t dim1) const;
  Tensor permute(const std::vector<std::int64_t>& dims) const;
  /// Elements `start` to `start + length` of one dimension.
  Tensor narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const;
  /// A dense tensor with another shape of the same number of elements; a view, or a copy where the
  /// strides do not allow one.
  Tensor reshape(const Shape& shape) const;
  /// A view with given geometry on the same storage. \param offset in elements from the storage's
  /// first. Throws `ValueError` for a negative stride, `IndexError` when it leaves the storage.
  Tensor as_strided(const Shape& shape, const Extents& strides, std::int64_t offset) const;
  /// Offset of the first element from the storage's first, in elements.
  std::int64_t storage_offset() const { return state().offset; }

 private:
  struct State {
    std::shared_ptr<Storage> storage;
    Shape shape;
    Extents strides;
    std::int64_t offset = 0;
    DType dtype = DType::float64;
  };

  explicit Tensor(State state);
  const State& state() const {
    if (!state_) throw_undefined();
    return *state_;
  }
  [[noreturn]] static void throw_undefined();
  void require_view(DType dtype, int rank, bool space_fits, const char* space) const;
  [[noreturn]] void throw_layout(const char* layout) const;

  std::shared_ptr<const State> state_;
};

/// "Tensor(float64, (3, 4), host)".
std::string to_string(const Tensor& tensor);

// ---------------------------------------------------------------------------------------------

template <class T>
Tensor Tensor::from_vector(const std::vector<T>& values, const Shape& shape, DeviceKind device) {
  if (static_cast<std::int64_t>(values.size()) !=
      checked_element_count("Tensor::from_vector", shape)) {
    throw ValueError("Tensor::from_vector",
                     std::to_string(values.size()) + " values for shape " + to_string(shape),
                     "as many values as the shape has elements");
  }
  Tensor host = empty(shape, dtype_of<T>, DeviceKind::host);
  auto* data = static_cast<T*>(host.data());
  for (std::size_t i = 0; i < values.size(); ++i) data[i] = values[i];
  return host.to(device);
}

template <class ViewType>
Tensor Tensor::from_view(const ViewType& view) {
  static_assert(Kokkos::is_view<ViewType>::value, "from_view takes a Kokkos::View");
  using Value = typename ViewType::non_const_value_type;
  Shape shape;
  Extents strides;
  for (unsigned d = 0; d < ViewType::rank; ++d) {
    shape.push_back(static_cast<std::int64_t>(view.extent(d)));
    strides.push_back(static_cast<std::int64_t>(view.stride(static_cast<int>(d))));
  }
  return from_blob(const_cast<Value*>(view.data()), shape, strides, dtype_of<Value>,
                   device_kind_of<typename ViewType::memory_space>(),
                   std::make_shared<ViewType>(view));
}

template <class T>
T* Tensor::data_as() const {
  require_view(dtype_of<T>, dim(), true, "");
  return static_cast<T*>(data());
}

template <class DataType, class Layout, class MemorySpace>
Kokkos::View<DataType, Layout, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>> Tensor::view()
    const {
  using Result =
      Kokkos::View<DataType, Layout, MemorySpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
  constexpr int rank = static_cast<int>(Result::rank);
  static_assert(static_cast<int>(Result::rank_dynamic) == rank,
                "use run-time extents: double**, not double[3]");
  const State& s = state();
  const bool space_fits = device_is_host || device_kind_of<MemorySpace>() == device();
  require_view(dtype_of<typename Result::value_type>, rank, space_fits, MemorySpace::name());
  auto* const pointer = static_cast<typename Result::value_type*>(data());
  if constexpr (std::is_same_v<Layout, Kokkos::LayoutStride>) {
    Kokkos::LayoutStride layout;
    for (int d = 0; d < rank; ++d) {
      layout.dimension[d] = static_cast<std::size_t>(s.shape[d]);
      layout.stride[d] = static_cast<std::size_t>(s.strides[d]);
    }
    return Result(pointer, layout);
  } else {
    static_assert(
        std::is_same_v<Layout, Kokkos::LayoutRight> || std::is_same_v<Layout, Kokkos::LayoutLeft>,
        "LayoutRight, LayoutLeft or LayoutStride");
    constexpr bool right = std::is_same_v<Layout, Kokkos::LayoutRight>;
    std::int64_t expected = 1;
    for (int i = 0; i < rank; ++i) {
      const int d = right ? rank - 1 - i : i;
      if (s.shape[d] != 1 && s.strides[d] != expected && s.shape.product() != 0) {
        throw_layout(right ? "LayoutRight" : "LayoutLeft");
      }
      expected *= s.shape[d];
    }
    Layout layout;
    for (int d = 0; d < rank; ++d) layout.dimension[d] = static_cast<std::size_t>(s.shape[d]);
    return Result(pointer, layout);
  }
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  require_view(dtype_of<T>, dim(), true, "");
  const Tensor host = to(DeviceKind::host).contiguous();
  fence(DeviceKind::host, "dtensor::to_vector");
  const auto* data = static_cast<const T*>(host.data());
  return std::vector<T>(data, data + host.numel());
}

template <class T>
T Tensor::item() const {
  if (numel() != 1) {
    throw ValueError("Tensor::item", "a tensor of shape " + to_string(shape()),
                     "exactly one element");
  }
  return static_cast<T>(to_vector<T>()[0]);
}

}  // namespace dtensor
