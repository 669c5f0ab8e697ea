// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Tensors whose values follow from the index. Each rank makes its own part only, and the values do
/// not depend on the layout. Nothing communicates.
#pragma once

#include "dtensor/core/tensor.hpp"
#include "dtensor/distributed/factories.hpp"

namespace dtensor {

/// `start`, `start + step`, ... up to but not including `end`. Integers are exact, others are
/// computed in double. Throws `ValueError` for a step of zero or away from `end`, for infinity and
/// NaN and for numbers that an integer type cannot hold, `TypeError` for bool and complex and where
/// an integer type is asked for numbers that are not integers. As the factories
/// of `distributed/factories.hpp` otherwise.
DTensor arange(const Scalar& start, const Scalar& end, const Scalar& step, const DeviceMesh& mesh,
               const Placements& placements, DType dtype = DType::float64);
DTensor arange(const Scalar& start, const Scalar& end, const Scalar& step = 1,
               const FactoryOptions& options = {});
Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step, DType dtype,
              DeviceKind device);

/// `steps` numbers from `start` to `end`, both included exactly. Throws `ValueError` for a negative
/// number of them and for an end that is infinite or NaN, `TypeError` for a type that is not
/// floating-point.
DTensor linspace(double start, double end, std::int64_t steps, const DeviceMesh& mesh,
                 const Placements& placements, DType dtype = DType::float64);
DTensor linspace(double start, double end, std::int64_t steps, const FactoryOptions& options = {});
Tensor linspace(double start, double end, std::int64_t steps, DType dtype, DeviceKind device);

/// A matrix with ones on the diagonal and zeros elsewhere. \param columns  -1 for as many as rows
DTensor eye(std::int64_t rows, std::int64_t columns, const DeviceMesh& mesh,
            const Placements& placements, DType dtype = DType::float64);
DTensor eye(std::int64_t rows, std::int64_t columns = -1, const FactoryOptions& options = {});
Tensor eye(std::int64_t rows, std::int64_t columns, DType dtype, DeviceKind device);

}  // namespace dtensor
