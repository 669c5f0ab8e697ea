// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ops/programs/operators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace dtensor::testing {

namespace {

bool is_narrow(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }
bool is_single(DType dtype) { return dtype == DType::float32 || dtype == DType::complex64; }
bool rounds(DType dtype) { return is_floating(dtype) || is_complex(dtype); }

// Whether numbers are so short that products and sums of some of them are exact, of contributions
// as well, that are longer.
bool is_short(Number v, DType dtype) {
  const double scale = is_single(dtype) ? 4 : 64, limit = is_single(dtype) ? 64 : 4096;
  const auto fits = [&](double x) {
    return std::abs(x) <= limit && std::round(x * scale) == x * scale;
  };
  return fits(v.real()) && fits(v.imag());
}

}  // namespace

Variable::Variable(const Tensor& t, bool is_exact, int exact_depth)
    : tensor(t), plain(t), exact(is_exact), depth(exact_depth) {
  const DType dtype = t.dtype();
  smallest = lowest = smallest_imaginary = std::numeric_limits<double>::infinity();
  if (rounds(dtype) && depth > (is_narrow(dtype) ? 0 : is_single(dtype) ? 2 : 4)) exact = false;
  for (Number v : plain.values) {
    const double size = std::abs(v);
    finite = finite && std::isfinite(size);
    smallest = std::min(smallest, size);
    if (std::isfinite(size)) largest = std::max(largest, size);
    lowest = std::min(lowest, v.real());
    smallest_imaginary = std::min(smallest_imaginary, std::abs(v.imag()));
    if (rounds(dtype) && !is_short(v, dtype)) exact = false;
  }
}

std::vector<std::int64_t> Maker::any_dims() {
  std::vector<std::int64_t> dims;
  for (int d = 0; d < dim(); ++d) {
    if (chance(50)) dims.push_back(chance(30) ? d - dim() : d);
  }
  if (chance(50)) std::reverse(dims.begin(), dims.end());
  return dims;
}

double Maker::number() {
  static constexpr double values[] = {2, -1, 0.5, 3, 0, -2, 1, -0.25, 1.5};
  return values[below(9)];
}

void Maker::add(const Shape& shape, DType dtype) {
  if (chance(60)) {
    std::vector<int> fitting;
    for (std::size_t i = 0; i < variables_.size(); ++i) {
      const Tensor& t = variables_[i].tensor;
      if (t.dtype() == dtype && t.shape() == shape) fitting.push_back(static_cast<int>(i));
    }
    if (!fitting.empty()) {
      arguments.push_back(
          {fitting[static_cast<std::size_t>(below(static_cast<int>(fitting.size())))], {}});
      return;
    }
  }
  arguments.push_back({-1, {shape, dtype, 0, numbers.next()}});
}

void Maker::add_indices(const Shape& shape, std::int64_t bound) {
  const DType dtype = chance(50) ? DType::int64 : DType::int32;
  arguments.push_back({-1, {shape, dtype, bound, numbers.next()}});
}

bool Maker::has(Need need) const {
  if (need == Need::nothing) return true;
  const bool nonzero = need == Need::away_from_zero || need == Need::exact_nonzero;
  const auto fits = [&](const Variable& v) {
    const DType dtype = v.tensor.dtype();
    const double limit = need == Need::small ? 5
                         : !rounds(dtype)    ? 1e6
                         : is_narrow(dtype)  ? 16
                                             : 1000;
    if (!v.finite || v.largest > limit) return false;
    if (nonzero && v.smallest < 0.25) return false;
    if (nonzero && is_complex(dtype) && v.smallest_imaginary < 0.125) return false;
    return v.exact || (need != Need::exact && need != Need::exact_nonzero);
  };
  for (const Argument& a : arguments) {
    if (a.variable >= 0) {
      if (!fits(variables_[static_cast<std::size_t>(a.variable)])) return false;
    } else if (nonzero && !fits(Variable(a.leaf.values().tensor(), true, 0))) {
      return false;
    }
  }
  return true;
}

const std::vector<ProgramOperator>& program_operators() {
  static const std::vector<ProgramOperator> all = [] {
    std::vector<ProgramOperator> list;
    for (const auto& part : {pointwise_operators(), reduction_operators(), shape_operators(),
                             matrix_operators(), indexing_operators()}) {
      list.insert(list.end(), part.begin(), part.end());
    }
    return list;
  }();
  return all;
}

std::string text_of(const std::vector<std::int64_t>& list) {
  return fmt::format("{{{}}}", fmt::join(list, ", "));
}
std::string text_of(const Shape& shape) {
  return text_of(std::vector<std::int64_t>(shape.begin(), shape.end()));
}

}  // namespace dtensor::testing
