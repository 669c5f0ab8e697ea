// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>

/// Three float and three double numbers of every four words.
void fused_values(const std::uint32_t* words, int count, float* single, double* twice);

/// Products and sums that a compiler does fuse here.
void fused_sums(const float* numbers, int count, float* out);
