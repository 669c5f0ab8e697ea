// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// The product of two matrices as ScaLAPACK computes it.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <vector>

extern "C" {
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, const char* order, int rows, int columns);
void Cblacs_gridinfo(int context, int* rows, int* columns, int* row, int* column);
void Cblacs_gridexit(int context);
int numroc_(const int* n, const int* block, const int* coordinate, const int* first,
            const int* parts);
void descinit_(int* descriptor, const int* m, const int* n, const int* row_block,
               const int* column_block, const int* first_row, const int* first_column,
               const int* context, const int* leading, int* info);
void pdgemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k,
             const double* alpha, const double* a, const int* ia, const int* ja, const int* desca,
             const double* b, const int* ib, const int* jb, const int* descb, const double* beta,
             double* c, const int* ic, const int* jc, const int* descc);
}

namespace dtensor::perf {

/// Three square matrices in blocks that go round a grid of processes, which is all of MPI's.
class Pdgemm {
 public:
  /// \param element  the value at a row and a column: of a, of b
  template <class A, class B>
  Pdgemm(int size, int grid_rows, int grid_columns, int block, const A& a_element,
         const B& b_element)
      : size_(size), block_(block) {
    Cblacs_get(-1, 0, &context_);
    Cblacs_gridinit(&context_, "Row", grid_rows, grid_columns);
    Cblacs_gridinfo(context_, &grid_rows_, &grid_columns_, &row_, &column_);
    const int first = 0;
    rows_ = numroc_(&size_, &block_, &row_, &first, &grid_rows_);
    columns_ = numroc_(&size_, &block_, &column_, &first, &grid_columns_);
    const int leading = rows_ > 0 ? rows_ : 1;
    int info = 0;
    descinit_(descriptor_.data(), &size_, &size_, &block_, &block_, &first, &first, &context_,
              &leading, &info);
    if (info != 0) throw std::runtime_error("descinit failed");
    for (std::vector<double>* v : {&a_, &b_, &c_}) {
      v->resize(static_cast<std::size_t>(rows_) * static_cast<std::size_t>(columns_));
    }
    for_each([&](std::size_t at, int i, int j) {
      a_[at] = a_element(i, j);
      b_[at] = b_element(i, j);
    });
  }
  ~Pdgemm() { Cblacs_gridexit(context_); }
  Pdgemm(const Pdgemm&) = delete;
  Pdgemm& operator=(const Pdgemm&) = delete;

  /// c = a b. Collective.
  void operator()() {
    const double one = 1, zero = 0;
    const int first = 1;
    pdgemm_("N", "N", &size_, &size_, &size_, &one, a_.data(), &first, &first, descriptor_.data(),
            b_.data(), &first, &first, descriptor_.data(), &zero, c_.data(), &first, &first,
            descriptor_.data());
  }

  /// Whether this process's part of c is `expected(row, column)` everywhere.
  template <class C>
  bool equals(const C& expected) const {
    bool equal = true;
    for_each([&](std::size_t at, int i, int j) { equal = equal && c_[at] == expected(i, j); });
    return equal;
  }

 private:
  template <class F>
  void for_each(const F& f) const {
    const auto global = [this](int local, int coordinate, int parts) {
      return (local / block_ * parts + coordinate) * block_ + local % block_;
    };
    std::size_t at = 0;
    for (int j = 0; j < columns_; ++j) {
      for (int i = 0; i < rows_; ++i) {
        f(at++, global(i, row_, grid_rows_), global(j, column_, grid_columns_));
      }
    }
  }

  int size_, block_;
  int context_ = 0, grid_rows_ = 0, grid_columns_ = 0, row_ = 0, column_ = 0;
  int rows_ = 0, columns_ = 0;
  std::array<int, 9> descriptor_ = {};
  std::vector<double> a_, b_, c_;
};

}  // namespace dtensor::perf
