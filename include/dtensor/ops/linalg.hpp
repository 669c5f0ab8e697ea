// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Linear algebra on `Tensor` and `DTensor`.
#pragma once

#include "dtensor/ops/any_tensor.hpp"
#include "dtensor/ops/local/matmul.hpp"

namespace dtensor {

/// Products of matrices and vectors. Where both inputs are sharded along the summed dimension, the
/// result is Partial, without communication.
DTensor matmul(const DTensor& a, const DTensor& b);

template <class A, class B>
requires detail::Mixed<A, B> DTensor matmul(const A&, const B&) { detail::throw_mixed("matmul"); }

}  // namespace dtensor
