// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// All of DTensor.
#pragma once

#include "dtensor/checkpoint/checkpoint.hpp"
#include "dtensor/comm/communication_scope.hpp"
#include "dtensor/comm/device_mesh.hpp"
#include "dtensor/comm/events.hpp"
#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"
#include "dtensor/core/tensor.hpp"
#include "dtensor/core/version.hpp"
#include "dtensor/debug/comm_debug_mode.hpp"
#include "dtensor/debug/visualize_sharding.hpp"
#include "dtensor/distributed/dtensor.hpp"
#include "dtensor/distributed/factories.hpp"
#include "dtensor/experimental/custom_operator.hpp"
#include "dtensor/experimental/implicit_replication.hpp"
#include "dtensor/experimental/local_map.hpp"
#include "dtensor/experimental/register_sharding.hpp"
#include "dtensor/layout/layout.hpp"
#include "dtensor/layout/placement.hpp"
#include "dtensor/ops/ops.hpp"
#include "dtensor/random/random.hpp"
#include "dtensor/redistribute/plan.hpp"
