// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What operators should give, in plain C++ on one process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "dtensor/core/extents.hpp"

namespace dtensor::testing {

/// A row-major array of doubles.
struct Array {
  Shape shape;
  std::vector<double> values;

  explicit Array(const Shape& s, double value = 0)
      : shape(s), values(static_cast<std::size_t>(s.product()), value) {}

  double& at(const Extents& index) { return values[offset(index)]; }
  double at(const Extents& index) const { return values[offset(index)]; }

 private:
  std::size_t offset(const Extents& index) const {
    std::int64_t o = 0;
    for (int d = 0; d < shape.size(); ++d) o = o * shape[d] + index[d];
    return static_cast<std::size_t>(o);
  }
};

/// Calls `f(index)` for every index of a shape, the last dimension fastest.
template <class F>
void for_each_index(const Shape& shape, const F& f) {
  Extents index = Extents::filled(shape.size(), 0);
  for (std::int64_t n = shape.product(); n > 0; --n) {
    f(index);
    for (int d = shape.size() - 1; d >= 0 && ++index[d] == shape[d]; --d) index[d] = 0;
  }
}

/// Numbers that are small, signed, not integers and all different from 0; the same for one seed.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15ull + 1) {}
  std::uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }
  int below(int bound) { return static_cast<int>((next() >> 11) % static_cast<unsigned>(bound)); }
  double operator()() {
    const double magnitude = 0.25 + 0.125 * below(31);
    return next() & 4096 ? magnitude : -magnitude;
  }
  Array array(const Shape& shape) {
    Array a(shape);
    for (double& v : a.values) v = (*this)();
    return a;
  }

 private:
  std::uint64_t state_;
};

/// The operator with these dimensions ("mk,kn->mn"; an extent of 1 may stand for any): the sum of
/// `f` over the letters that are missing in the output. Empty when the shapes do not fit.
inline std::optional<Array> evaluate(const std::vector<std::string>& inputs,
                                     const std::string& output, const std::vector<Array>& arrays,
                                     const std::function<double(const std::vector<double>&)>& f) {
  std::map<char, std::int64_t> extents;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    for (int d = 0; d < arrays[i].shape.size(); ++d) {
      const std::int64_t extent = arrays[i].shape[d];
      auto [known, first] = extents.emplace(inputs[i][static_cast<std::size_t>(d)], extent);
      if (first || known->second == extent || extent == 1) continue;
      if (known->second != 1) return std::nullopt;
      known->second = extent;
    }
  }
  Shape all, result;
  std::string letters;
  for (const auto& [letter, extent] : extents) {
    letters += letter;
    all.push_back(extent);
  }
  for (char c : output) result.push_back(c == '1' ? 1 : extents.at(c));
  Array out(result);
  for_each_index(all, [&](const Extents& index) {
    const auto position = [&](char c) { return index[static_cast<int>(letters.find(c))]; };
    std::vector<double> values;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      Extents at;
      for (int d = 0; d < arrays[i].shape.size(); ++d) {
        at.push_back(arrays[i].shape[d] == 1 ? 0
                                             : position(inputs[i][static_cast<std::size_t>(d)]));
      }
      values.push_back(arrays[i].at(at));
    }
    Extents at;
    for (char c : output) at.push_back(c == '1' ? 0 : position(c));
    out.at(at) += f(values);
  });
  return out;
}

}  // namespace dtensor::testing
