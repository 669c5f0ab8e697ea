// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// A short list of 64-bit numbers, one per tensor or mesh dimension: extents, strides, offsets,
/// coordinates. It lives on the stack; its capacity is the highest rank of a `Kokkos::View`.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace dtensor {

/// The highest number of dimensions of a tensor, as of a `Kokkos::View`.
inline constexpr int max_rank = 8;

/// Fixed-capacity list of 64-bit numbers, one per dimension. Throws `ValueError` beyond `max_rank`.
class Extents {
 public:
  constexpr Extents() = default;
  Extents(std::initializer_list<std::int64_t> values) { assign(values.begin(), values.end()); }
  Extents(const std::vector<std::int64_t>& values) { assign(values.begin(), values.end()); }
  /// `count` times the same value.
  static Extents filled(int count, std::int64_t value) {
    Extents e;
    for (int i = 0; i < count; ++i) e.push_back(value);
    return e;
  }

  int size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  std::int64_t operator[](int i) const noexcept { return values_[i]; }
  std::int64_t& operator[](int i) noexcept { return values_[i]; }
  const std::int64_t* begin() const noexcept { return values_; }
  const std::int64_t* end() const noexcept { return values_ + size_; }
  std::int64_t* begin() noexcept { return values_; }
  std::int64_t* end() noexcept { return values_ + size_; }
  const std::int64_t* data() const noexcept { return values_; }
  void push_back(std::int64_t value) {
    if (size_ == max_rank) throw_too_long(size_ + 1);
    values_[size_++] = value;
  }
  void erase(int i) noexcept {
    std::copy(values_ + i + 1, values_ + size_, values_ + i);
    --size_;
  }

  /// Product of all values: the number of elements of a shape. 1 for no dimensions.
  std::int64_t product() const noexcept {
    std::int64_t p = 1;
    for (std::int64_t v : *this) p *= v;
    return p;
  }

  friend bool operator==(const Extents& a, const Extents& b) noexcept {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  template <class It>
  void assign(It first, It last) {
    const auto count = static_cast<long>(last - first);
    if (count > max_rank) throw_too_long(count);
    std::copy(first, last, values_);
    size_ = static_cast<int>(count);
  }
  [[noreturn]] static void throw_too_long(long count);

  std::int64_t values_[max_rank] = {};
  int size_ = 0;
};

/// Extents of a tensor, in elements.
using Shape = Extents;

/// "(4, 5)", "(4,)" for one dimension, "()" for none.
std::string to_string(const Extents& extents);

/// Strides in elements of a dense tensor whose last dimension varies fastest.
Extents row_major_strides(const Shape& shape);

/// Sorts a few dimensions, stably and without taking memory as `std::stable_sort` does.
template <class Less>
void sort_dims(int* dims, int count, const Less& less) {
  for (int i = 1; i < count; ++i) {
    const int d = dims[i];
    int at = i;
    for (; at > 0 && less(d, dims[at - 1]); --at) dims[at] = dims[at - 1];
    dims[at] = d;
  }
}

/// Whether no two elements share memory, as far as strides that grow with the extents say it.
bool is_injective(const Shape& shape, const Extents& strides);
/// Throws `ValueError` naming `function` unless it is so: what is written has to be.
void check_injective(const char* function, const Shape& shape, const Extents& strides);

/// Turns a dimension counted from the end (-1 is the last) into one counted from the front.
/// Throws `IndexError` naming `function` when it is out of range.
int normalize_dim(const char* function, std::int64_t dim, int rank);

/// The number of elements of a shape. Throws `ValueError` naming `function` when an extent is
/// negative or a size in bytes, where extents of zero count as one, exceeds 64 bits.
std::int64_t checked_element_count(const char* function, const Shape& shape);

}  // namespace dtensor
