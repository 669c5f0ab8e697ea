// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The public operators as a table, each with a generator of arguments: what random programs are
// made of.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dtensor/ops/ops.hpp"
#include "ops/programs/values.hpp"

namespace dtensor::testing {

/// What is known of a tensor in a program, from one device.
struct Variable {
  Tensor tensor;
  Plain plain;
  /// Computed without rounding, so that operators which jump may be applied. `depth` counts the
  /// operators that make numbers longer.
  bool exact = true;
  int depth = 0;
  bool finite = true;
  double smallest = 0, largest = 0;  ///< absolute values, infinite ones left out
  double lowest = 0;                 ///< smallest (real part)
  double smallest_imaginary = 0;

  Variable(const Tensor& t, bool is_exact, int exact_depth);
};

/// A new tensor as operand.
struct Leaf {
  Shape shape;
  DType dtype = DType::float64;
  std::int64_t bound = 0;  ///< indices below it; 0 for small numbers
  std::uint64_t seed = 0;
  Plain values() const {
    return bound > 0 ? indices_below(shape, dtype, bound, seed) : small_numbers(shape, dtype, seed);
  }
};

/// A variable of the program or a new tensor.
struct Argument {
  int variable = -1;
  Leaf leaf;
};

/// What an operator asks of the values of its operands, beside being of moderate size, so that
/// rounding stays rounding.
enum class Need {
  nothing,         ///< elements are only moved
  moderate,        ///< rounding errors are not made much larger
  small,           ///< nor are they up to 5
  away_from_zero,  ///< nor away from zero, whose sign may differ
  exact,           ///< jumps, or is steep somewhere
  exact_nonzero,   ///< both
};

/// What an operator does to exactness.
enum class Precision {
  rounds,
  exact,  ///< results of exact operands are exact, but longer
  moves,  ///< and no longer than the operands
};

/// An operator with its arguments.
struct Call {
  std::string text;  ///< "sum(%0, {1})", with %i for operands
  Precision precision = Precision::rounds;
  std::vector<Argument> arguments;
  std::function<std::vector<Tensor>(const std::vector<Tensor>&)> on_tensors;
  std::function<std::vector<DTensor>(const std::vector<DTensor>&)> on_dtensors;
};

/// Chooses arguments.
class Maker {
 public:
  Maker(Numbers& n, const std::vector<Variable>& v, int first_variable)
      : numbers(n), variables_(v) {
    arguments.push_back({first_variable, {}});
  }

  int below(int bound) { return numbers.below(bound); }
  bool chance(int percent) { return numbers.below(100) < percent; }
  /// The first operand.
  const Variable& first() const { return variables_[static_cast<std::size_t>(first_index())]; }
  const Shape& shape() const { return first().tensor.shape(); }
  int dim() const { return shape().size(); }
  DType dtype() const { return first().tensor.dtype(); }
  int any_dim() { return below(dim()) - (chance(30) ? dim() : 0); }
  DType any_dtype() { return static_cast<DType>(below(dtype_count)); }
  std::vector<std::int64_t> any_dims();
  double number();

  /// Adds an operand: a variable of that shape and type where there is one, or a new tensor.
  void add(const Shape& shape, DType dtype);
  void add_indices(const Shape& shape, std::int64_t bound);
  /// Whether all operands have what the operator needs.
  bool has(Need need) const;

  /// The call of `f`, which takes a vector of tensors of either kind and returns one tensor or
  /// several.
  template <class F>
  std::optional<Call> call(Need need, Precision precision, std::string text, F f) const {
    if (!has(need)) return std::nullopt;
    Call c;
    c.text = std::move(text);
    c.precision = precision;
    c.arguments = arguments;
    c.on_tensors = [f](const std::vector<Tensor>& x) { return results(f(x)); };
    c.on_dtensors = [f](const std::vector<DTensor>& x) { return results(f(x)); };
    return c;
  }

  Numbers& numbers;
  std::vector<Argument> arguments;

 private:
  template <class T>
  static std::vector<T> results(const T& t) {
    return {t};
  }
  template <class T>
  static std::vector<T> results(const std::vector<T>& t) {
    return t;
  }
  template <class T>
  static std::vector<T> results(const ValuesAndIndices<T>& t) {
    return {t.values, t.indices};
  }
  int first_index() const { return arguments[0].variable; }

  const std::vector<Variable>& variables_;
};

/// One operator or a family.
struct ProgramOperator {
  const char* name;
  int weight;
  /// A call with arguments that fit the first operand, now and then ones that do not; nothing when
  /// it is no operand of this operator.
  std::optional<Call> (*make)(Maker&);
};

const std::vector<ProgramOperator>& program_operators();

// The parts of the table.
std::vector<ProgramOperator> pointwise_operators();
std::vector<ProgramOperator> reduction_operators();
std::vector<ProgramOperator> shape_operators();
std::vector<ProgramOperator> matrix_operators();
std::vector<ProgramOperator> indexing_operators();

/// "{1, -2}".
std::string text_of(const std::vector<std::int64_t>& list);
std::string text_of(const Shape& shape);

/// A tensor of its own memory.
inline Tensor copy_of(const Tensor& t) { return t.clone(); }
inline DTensor copy_of(const DTensor& t) {
  return DTensor(t.device_mesh(), t.layout(), t.to_local().clone());
}
/// Runs `f` in place on a copy. In place a Partial operand may be refused, and is reduced then.
template <class T, class F>
T in_place(const T& t, const F& f) {
  T x = copy_of(t);
  if constexpr (std::is_same_v<T, DTensor>) {
    try {
      f(x);
    } catch (const LayoutError&) {
      if (!t.layout().has_partial()) throw;
      const Layout whole = t.layout().without_partial();
      x = copy_of(t.redistribute(whole.placements(), {.shard_order = whole.shard_order()}));
      f(x);
    }
  } else {
    f(x);
  }
  return x;
}

}  // namespace dtensor::testing
