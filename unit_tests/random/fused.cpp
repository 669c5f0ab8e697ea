// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The transforms once more, compiled for fused multiply-add with all contraction allowed. Under
// another name, so that the linker does not take one version for both.
#include "fused.hpp"

#include <Kokkos_Core.hpp>
#include <cmath>
#include <cstdint>

#define dtensor dtensor_fused
#include "dtensor/random/transforms.hpp"
#undef dtensor

using namespace dtensor_fused::detail;

void fused_values(const std::uint32_t* words, int count, float* single, double* twice) {
  for (int i = 0; i < count; ++i) {
    const std::uint32_t* w = words + 4 * i;
    single[3 * i] = normal_pair(w[0], w[1]).first;
    single[3 * i + 1] = normal_pair(w[2], w[3]).second;
    single[3 * i + 2] = minus_log_unit(w[0]);
    twice[3 * i] = normal_pair(w[0], w[1], w[2], w[3]).first;
    twice[3 * i + 1] = normal_pair(w[2], w[3], w[0], w[1]).second;
    twice[3 * i + 2] = minus_log_unit(w[0], w[1]);
  }
}

void fused_sums(const float* numbers, int count, float* out) {
  for (int i = 0; i < count; ++i) {
    out[i] = numbers[i] * numbers[count - 1 - i] + numbers[(i * 7 + 1) % count];
  }
}
