// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/core/tensor.hpp"

#include <fmt/format.h>

#include <cstdint>

#include "dtensor/core/strided_copy.hpp"

namespace dtensor {

namespace {

StridedBox box(const Tensor& t) { return {t.data(), t.strides()}; }

// Elements from the first to the last one of a view, both included; zero without elements. Checks
// the geometry on behalf of `function`.
std::int64_t checked_span(const char* function, const Shape& shape, const Extents& strides) {
  const auto fail = [&](const char* expected) {
    throw ValueError(function,
                     fmt::format("shape {} and strides {}", to_string(shape), to_string(strides)),
                     expected);
  };
  if (shape.size() != strides.size()) fail("one stride per dimension");
  if (checked_element_count(function, shape) == 0) return 0;
  std::int64_t span = 1, step = 0;
  for (int d = 0; d < shape.size(); ++d) {
    if (strides[d] < 0) fail("strides of zero or more");
    if (__builtin_mul_overflow(shape[d] - 1, strides[d], &step) ||
        __builtin_add_overflow(span, step, &span) || span > INT64_MAX / 16) {
      fail("a span in bytes below 2^63");
    }
  }
  return span;
}

// Copies the raw bytes of a dense block between memory spaces.
void copy_between_spaces(const Tensor& to, const Tensor& from) {
  if constexpr (!device_is_host) {
    using Host =
        Kokkos::View<unsigned char*, Kokkos::HostSpace, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    using Device =
        Kokkos::View<unsigned char*, DeviceMemory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
    const auto bytes = static_cast<std::size_t>(from.numel() * size_of(from.dtype()));
    auto* const t = static_cast<unsigned char*>(to.data());
    auto* const f = static_cast<unsigned char*>(from.data());
    if (to.device() == DeviceKind::host) {
      Kokkos::deep_copy(Host(t, bytes), Device(f, bytes));
    } else {
      Kokkos::deep_copy(Device(t, bytes), Host(f, bytes));
    }
  } else {
    copy_strided(box(to), box(from), from.shape(), size_of(from.dtype()), DeviceKind::host);
  }
}

}  // namespace

Tensor::Tensor(State state) : state_(std::make_shared<const State>(std::move(state))) {}

Tensor Tensor::empty(const Shape& shape, DType dtype, DeviceKind device) {
  const std::int64_t count = checked_element_count("Tensor::empty", shape);
  return Tensor({Storage::allocate(count * size_of(dtype), device), shape, row_major_strides(shape),
                 0, dtype});
}

Tensor Tensor::zeros(const Shape& shape, DType dtype, DeviceKind device) {
  return full(shape, 0, dtype, device);
}

Tensor Tensor::full(const Shape& shape, const Scalar& value, DType dtype, DeviceKind device) {
  Tensor t = empty(shape, dtype, device);
  t.fill(value);
  return t;
}

Tensor Tensor::from_blob(void* data, const Shape& shape, const Extents& strides, DType dtype,
                         DeviceKind device, std::shared_ptr<void> owner) {
  const std::int64_t span = checked_span("Tensor::from_blob", shape, strides);
  if (data == nullptr && shape.product() > 0) {
    throw ValueError("Tensor::from_blob",
                     fmt::format("a null pointer for shape {}", to_string(shape)),
                     "a pointer to the first element");
  }
  return Tensor({Storage::wrap(data, span * size_of(dtype), device, std::move(owner)), shape,
                 strides, 0, dtype});
}

bool Tensor::is_contiguous() const {
  const State& s = state();
  std::int64_t expected = 1;
  for (int d = s.shape.size() - 1; d >= 0; --d) {
    if (s.shape[d] == 0) return true;
    if (s.shape[d] != 1 && s.strides[d] != expected) return false;
    expected *= s.shape[d];
  }
  return true;
}

Tensor Tensor::clone() const {
  Tensor copy = empty(shape(), dtype(), device());
  copy.copy_from(*this);
  return copy;
}

Tensor Tensor::contiguous() const { return is_contiguous() ? *this : clone(); }

Tensor Tensor::to(DType dtype) const {
  if (dtype == this->dtype()) return *this;
  Tensor converted = empty(shape(), dtype, device());
  converted.copy_from(*this);
  return converted;
}

Tensor Tensor::to(DeviceKind device) const {
  if (device == this->device()) return *this;
  Tensor copy = empty(shape(), dtype(), device);
  copy.copy_from(*this);
  return copy;
}

void Tensor::copy_from(const Tensor& source) const {
  if (shape() != source.shape()) {
    throw ValueError("Tensor::copy_from",
                     fmt::format("a source of shape {} for a tensor of shape {}",
                                 to_string(source.shape()), to_string(shape())),
                     "equal shapes");
  }
  check_injective("Tensor::copy_from", shape(), strides());
  if (numel() == 0) return;
  if (overlaps(source)) return copy_from(source.clone());
  if (device() == source.device() || device_is_host) {
    convert_strided(box(*this), dtype(), box(source), source.dtype(), shape(), device());
    fence(device(), "dtensor::copy_from");
    return;
  }
  // Across spaces only dense blocks of one scalar type travel; reorder and convert at the ends.
  const Tensor dense = source.to(dtype()).contiguous();
  if (is_contiguous()) return copy_between_spaces(*this, dense);
  const Tensor landed = empty(shape(), dtype(), device());
  copy_between_spaces(landed, dense);
  copy_from(landed);
}

bool Tensor::overlaps(const Tensor& other) const {
  if (numel() == 0 || other.numel() == 0) return false;
  const auto span = [](const Tensor& t) {
    const auto* const begin = static_cast<const unsigned char*>(t.data());
    std::int64_t last = 0;
    for (int d = 0; d < t.dim(); ++d) last += (t.shape()[d] - 1) * t.strides()[d];
    return std::pair(begin, begin + (last + 1) * size_of(t.dtype()));
  };
  const auto [a, a_end] = span(*this);
  const auto [b, b_end] = span(other);
  if (a_end <= b || b_end <= a) return false;
  return !(a == b && dtype() == other.dtype() && shape() == other.shape() &&
           strides() == other.strides());
}

void Tensor::fill(const Scalar& value) const {
  check_holds("fill", dtype(), value);
  if (numel() > 0) fill_strided(box(*this), dtype(), shape(), value, device());
}

Tensor Tensor::transpose(std::int64_t dim0, std::int64_t dim1) const {
  const int a = normalize_dim("Tensor::transpose", dim0, dim());
  const int b = normalize_dim("Tensor::transpose", dim1, dim());
  State s = state();
  std::swap(s.shape[a], s.shape[b]);
  std::swap(s.strides[a], s.strides[b]);
  return Tensor(std::move(s));
}

Tensor Tensor::permute(const std::vector<std::int64_t>& dims) const {
  const State& old = state();
  const auto fail = [&] {
    throw ValueError("Tensor::permute", fmt::format("dimensions ({})", fmt::join(dims, ", ")),
                     fmt::format("each of the {} dimensions once", dim()));
  };
  if (static_cast<int>(dims.size()) != dim()) fail();
  State s = old;
  bool seen[max_rank] = {};
  for (int d = 0; d < dim(); ++d) {
    const int from = normalize_dim("Tensor::permute", dims[static_cast<std::size_t>(d)], dim());
    if (seen[from]) fail();
    seen[from] = true;
    s.shape[d] = old.shape[from];
    s.strides[d] = old.strides[from];
  }
  return Tensor(std::move(s));
}

Tensor Tensor::narrow(std::int64_t dim, std::int64_t start, std::int64_t length) const {
  State s = state();
  const int d = normalize_dim("Tensor::narrow", dim, s.shape.size());
  if (start < 0 || length < 0 || start > s.shape[d] - length) {
    throw IndexError("Tensor::narrow",
                     fmt::format("{} elements from {} of dimension {} with extent {}", length,
                                 start, d, s.shape[d]),
                     "a range inside the dimension");
  }
  s.shape[d] = length;
  s.offset += start * s.strides[d];
  return Tensor(std::move(s));
}

Tensor Tensor::reshape(const Shape& shape) const {
  if (checked_element_count("Tensor::reshape", shape) != numel()) {
    throw ValueError("Tensor::reshape",
                     fmt::format("shape {} for a tensor of shape {}", to_string(shape),
                                 to_string(this->shape())),
                     "the same number of elements");
  }
  State s = contiguous().state();
  s.shape = shape;
  s.strides = row_major_strides(shape);
  return Tensor(std::move(s));
}

Tensor Tensor::as_strided(const Shape& shape, const Extents& strides, std::int64_t offset) const {
  State s = state();
  const std::int64_t span = checked_span("Tensor::as_strided", shape, strides);
  if (span > 0 && (offset < 0 || offset > s.storage->bytes() / size_of(s.dtype) - span)) {
    throw IndexError("Tensor::as_strided",
                     fmt::format("{} elements from element {} of a storage of {} bytes", span,
                                 offset, s.storage->bytes()),
                     "elements inside the storage");
  }
  s.shape = shape;
  s.strides = strides;
  s.offset = offset;
  return Tensor(std::move(s));
}

void Tensor::throw_undefined() {
  throw StateError("Tensor", "an undefined tensor", "a tensor made by a factory function");
}

void Tensor::require_view(DType dtype, int rank, bool space_fits, const char* space) const {
  if (dtype == this->dtype() && rank == dim() && space_fits) return;
  throw TypeError("Tensor::view",
                  fmt::format("element type {}, {} dimensions{}{} for {}", to_string(dtype), rank,
                              *space ? ", memory space " : "", space, to_string(*this)),
                  "the tensor's own scalar type, number of dimensions and memory space");
}

void Tensor::throw_layout(const char* layout) const {
  throw ValueError("Tensor::view",
                   fmt::format("Kokkos::{} for shape {} with strides {}", layout,
                               to_string(shape()), to_string(strides())),
                   "strides of that layout, or Kokkos::LayoutStride");
}

std::string to_string(const Tensor& tensor) {
  if (!tensor.defined()) return "Tensor(undefined)";
  return fmt::format("Tensor({}, {}, {})", to_string(tensor.dtype()), to_string(tensor.shape()),
                     to_string(tensor.device()));
}

}  // namespace dtensor
