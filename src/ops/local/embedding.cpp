// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels that pick elements by integers: embeddings and losses of classes.
#include "learning.hpp"
#include "limits.hpp"
#include "reduction_loop.hpp"
#include "reduction_types.hpp"
#include "run_table.hpp"

namespace dtensor {

namespace {

template <class T>
struct EmbedRow {
  T* out;
  const std::int64_t* indices;
  const T* weight;
  Runs held;
  std::int64_t rows, length, row_stride, stride;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
    const std::int64_t index = indices[i];
    const std::int64_t row = held.position(index);
    T* KOKKOS_RESTRICT o = out + i * length;
    if (row < 0) {
      const bool bad = index < 0 || index >= rows;
      const T fill = scalar_cast<T>(bad ? limits::not_a_number<double> : 0.0);
      for (std::int64_t k = 0; k < length; ++k) o[k] = fill;
      return;
    }
    const T* const from = weight + row * row_stride;
    if (stride == 1) {
      for (std::int64_t k = 0; k < length; ++k) o[k] = from[k];
    } else {
      for (std::int64_t k = 0; k < length; ++k) o[k] = from[k * stride];
    }
  }
};

// Targets walk the losses (operand 0) and the input (1).
template <class T>
struct PickLoss {
  using A = accumulate_t<T>;
  T* losses;
  double* weights;  // or null
  const T* in;
  const std::int64_t* target;
  const double* max_and_sum;  // or null
  const T* weight;            // or null
  StridedLoop<2> loop;
  Runs held;
  std::int64_t class_stride, classes, ignore;
  bool ignores;

  KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t item) const {
    const PerOperand<2> at = loop.locate(loop.rank, item);
    const std::int64_t i = at[0], index = target[i];
    A loss = 0;
    double w = 0;
    if (ignores && index == ignore) {
      // counts for nothing
    } else if (index < 0 || index >= classes) {
      loss = limits::not_a_number<A>;
      w = limits::not_a_number<double>;
    } else {
      const std::int64_t own = held.position(index);
      if (own >= 0) {
        const A factor = weight ? scalar_cast<A>(weight[own]) : A(1);
        const A x = scalar_cast<A>(in[at[1] + own * class_stride]);
        if (max_and_sum) {
          const double max = max_and_sum[i], sum = max_and_sum[loop.count + i];
          loss = static_cast<A>(max - static_cast<double>(x) + logarithm(sum)) * factor;
        } else {
          loss = -x * factor;
        }
        w = static_cast<double>(factor);
      }
    }
    losses[i] = scalar_cast<T>(loss);
    if (weights) weights[i] = w;
  }
};

}  // namespace

namespace detail {

Tensor local_embedding(const Tensor& indices, const Tensor& weight, const IndexSet& held,
                       std::int64_t rows) {
  const Tensor index = indices.to(DType::int64).contiguous();
  Shape shape = index.shape();
  shape.push_back(weight.shape()[1]);
  Tensor out = Tensor::empty(shape, weight.dtype(), weight.device());
  const RunTable runs(held, weight.device());
  dispatch_dtype(weight.dtype(), [&]<class T>() {
    if constexpr (!std::is_integral_v<T>) {
      const EmbedRow<T> task{static_cast<T*>(out.data()),
                             index.data_as<std::int64_t>(),
                             static_cast<const T*>(weight.data()),
                             runs.runs(),
                             rows,
                             weight.shape()[1],
                             weight.strides()[0],
                             weight.strides()[1]};
      dispatch_space(weight.device(), [&]<class Execution>() {
        for_items<Execution>("dtensor::embedding", index.numel(), task);
      });
    }
  });
  fence(weight.device(), "dtensor::embedding");  // before the table goes
  return out;
}

ClassLosses local_class_loss(const Tensor& a, int class_dim, const Tensor& target,
                             const Tensor& max_and_sum, const std::optional<Tensor>& weight,
                             std::optional<std::int64_t> ignore_index, const IndexSet& held,
                             std::int64_t classes, bool with_weights) {
  const Tensor index = target.to(DType::int64).contiguous();
  const Tensor w = weight ? weight->contiguous() : Tensor();
  ClassLosses result{Tensor::empty(target.shape(), a.dtype(), a.device()), Tensor()};
  if (with_weights) result.weights = Tensor::empty(target.shape(), DType::float64, a.device());
  Extents strides = a.strides();
  strides.erase(class_dim);
  const auto loop = make_loop<2>(target.shape(), {row_major_strides(target.shape()), strides});
  const RunTable runs(held, a.device());
  with_floating_dtype(a.dtype(), [&]<class T>() {
    const PickLoss<T> task{static_cast<T*>(result.losses.data()),
                           with_weights ? result.weights.data_as<double>() : nullptr,
                           static_cast<const T*>(a.data()),
                           index.data_as<std::int64_t>(),
                           max_and_sum.defined() ? max_and_sum.data_as<double>() : nullptr,
                           weight ? static_cast<const T*>(w.data()) : nullptr,
                           loop,
                           runs.runs(),
                           a.strides()[class_dim],
                           classes,
                           ignore_index.value_or(0),
                           ignore_index.has_value()};
    dispatch_space(a.device(), [&]<class Execution>() {
      for_items<Execution>("dtensor::class_loss", loop.count, task);
    });
  });
  fence(a.device(), "dtensor::class_loss");  // before the table goes
  return result;
}

}  // namespace detail
}  // namespace dtensor
