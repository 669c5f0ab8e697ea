// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Dense linear algebra on matrices that fit on every rank: row-major std::vector<double>.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

/// Makes the columns of a rows x columns matrix orthonormal: modified Gram-Schmidt, twice.
inline void orthonormalize(std::vector<double>& a, std::size_t rows, std::size_t columns) {
  for (int pass = 0; pass < 2; ++pass) {
    for (std::size_t j = 0; j < columns; ++j) {
      for (std::size_t k = 0; k < j; ++k) {
        double dot = 0;
        for (std::size_t i = 0; i < rows; ++i) dot += a[i * columns + k] * a[i * columns + j];
        for (std::size_t i = 0; i < rows; ++i) a[i * columns + j] -= dot * a[i * columns + k];
      }
      double norm = 0;
      for (std::size_t i = 0; i < rows; ++i) norm += a[i * columns + j] * a[i * columns + j];
      for (std::size_t i = 0; i < rows; ++i) a[i * columns + j] /= std::sqrt(norm);
    }
  }
}

/// Eigenvalues of a symmetric n x n matrix, largest first, by cyclic Jacobi rotations
/// (Golub and Van Loan, Matrix Computations, section 8.5).
inline std::vector<double> symmetric_eigenvalues(std::vector<double> a, std::size_t n) {
  for (int sweep = 0; sweep < 50; ++sweep) {
    double off = 0;
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) off += a[p * n + q] * a[p * n + q];
    }
    if (off == 0) break;
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) {
        if (a[p * n + q] == 0) continue;
        const double tau = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
        const double t = std::copysign(1.0, tau) / (std::abs(tau) + std::hypot(1.0, tau));
        const double c = 1 / std::hypot(1.0, t), s = t * c;
        for (std::size_t k = 0; k < n; ++k) {
          const double x = a[k * n + p], y = a[k * n + q];
          a[k * n + p] = c * x - s * y;
          a[k * n + q] = s * x + c * y;
        }
        for (std::size_t k = 0; k < n; ++k) {
          const double x = a[p * n + k], y = a[q * n + k];
          a[p * n + k] = c * x - s * y;
          a[q * n + k] = s * x + c * y;
        }
      }
    }
  }
  std::vector<double> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = a[i * n + i];
  std::sort(values.rbegin(), values.rend());
  return values;
}
