// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/core/scalar.hpp"

#include <fmt/format.h>

namespace dtensor {

std::string to_string(const Scalar& scalar) {
  switch (scalar.kind()) {
    case Scalar::Kind::boolean:
      return scalar.to<bool>() ? "true" : "false";
    case Scalar::Kind::integer:
      return fmt::format("{}", scalar.to<std::int64_t>());
    case Scalar::Kind::floating:
      return fmt::format("{}", scalar.to<double>());
    case Scalar::Kind::complex:
      break;
  }
  const auto z = scalar.to<Kokkos::complex<double>>();
  return fmt::format("({}{:+}i)", z.real(), z.imag());
}

}  // namespace dtensor
