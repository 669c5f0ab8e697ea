// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `ImplicitReplicationScope`, after `torch.distributed.tensor.experimental.implicit_replication`.
#pragma once

#include "dtensor/ops/any_tensor.hpp"

namespace dtensor::experimental {

/// While the object lives, operators of this thread that are given a `Tensor` together with a
/// `DTensor` take the `Tensor` as replicated on the DTensor's mesh, without a copy; outside of any
/// scope that is a `TypeError`. The program vouches for equal values on all ranks: nothing is
/// compared or sent for that, and what an operator writes to a `Tensor` in place arrives in it.
/// Scopes may be nested. Throws `TypeError` for a tensor that is not in the
/// mesh's memory.
class ImplicitReplicationScope {
 public:
  ImplicitReplicationScope() noexcept { detail::add_implicit_replication(1); }
  ~ImplicitReplicationScope() { detail::add_implicit_replication(-1); }
  ImplicitReplicationScope(const ImplicitReplicationScope&) = delete;
  ImplicitReplicationScope& operator=(const ImplicitReplicationScope&) = delete;
};

}  // namespace dtensor::experimental
