// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The one function behind all pointwise operators on local tensors.
#pragma once

#include <array>
#include <initializer_list>

#include "dtensor/core/scalar.hpp"
#include "dtensor/core/tensor.hpp"
#include "dtensor/ops/pointwise_table.hpp"

namespace dtensor::detail {

/// A tensor, that outlives the call, or a number.
template <class T>
struct Operand {
  const T* tensor = nullptr;
  Scalar number = 0;

  Operand() = default;
  Operand(const T& t) : tensor(&t) {}
  Operand(const Scalar& n) : number(n) {}
};

/// The operands of an operator, at most four.
template <class T>
class Operands {
 public:
  Operands() = default;
  Operands(std::initializer_list<Operand<T>> list) {
    for (const Operand<T>& operand : list) push_back(operand);
  }
  void push_back(const Operand<T>& operand) { at_[static_cast<std::size_t>(size_++)] = operand; }
  int size() const noexcept { return size_; }
  const Operand<T>* begin() const noexcept { return at_.data(); }
  const Operand<T>* end() const noexcept { return at_.data() + size_; }
  const Operand<T>& operator[](int i) const noexcept { return at_[static_cast<std::size_t>(i)]; }

 private:
  std::array<Operand<T>, 4> at_;
  int size_ = 0;
};

/// Applies an operator. The result is row-major. Throws `TypeError` for a scalar type that the
/// operator does not take and for tensors in different memory, `ValueError` for shapes that do not
/// fit and for an integer that its tensor's type cannot hold. Local.
/// \param name  the operator that the program called; that of `op` when null
Tensor pointwise(PointwiseOp op, const Operands<Tensor>& operands, const char* name = nullptr);

/// The same into the first operand. Throws `TypeError` too when the result has another scalar type,
/// `ValueError` when it has another shape or when elements of the first operand share memory.
void pointwise_in_place(PointwiseOp op, const Operands<Tensor>& operands,
                        const char* name = nullptr);

}  // namespace dtensor::detail
