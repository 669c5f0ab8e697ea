// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/core/dtype.hpp"

#include <fmt/format.h>

#include "dtensor/core/error.hpp"

namespace dtensor {

namespace {
constexpr const char* names[dtype_count] = {"float64",    "float32",   "float16", "bfloat16",
                                            "complex128", "complex64", "int64",   "int32",
                                            "int16",      "int8",      "uint8",   "bool"};
}

const char* to_string(DType dtype) noexcept { return names[static_cast<int>(dtype)]; }

DType dtype_from_string(const std::string& name) {
  for (int i = 0; i < dtype_count; ++i) {
    if (name == names[i]) return static_cast<DType>(i);
  }
  throw ValueError("dtype_from_string", fmt::format("\"{}\"", name),
                   fmt::format("one of {}", fmt::join(names, ", ")));
}

}  // namespace dtensor
