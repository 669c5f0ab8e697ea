// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reductions whose parts on the ranks are more than one number.
#include "dtensor/core/error.hpp"
#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/local/reduction.hpp"
#include "dtensor/ops/promotion.hpp"
#include "dtensor/ops/reduction.hpp"
#include "reduction_checks.hpp"
#include "reduction_rule.hpp"
#include "states.hpp"

namespace dtensor::detail {

namespace {

DType variance_dtype(DType dtype) {
  if (dtype == DType::complex128) return DType::float64;
  return dtype == DType::complex64 ? DType::float32 : fractional_dtype(dtype);
}

Shape unit_shape(const Shape& kept, const Shape& input, DimSet dims) {
  Shape shape;
  for (int d = 0, k = 0; d < input.size(); ++d) {
    shape.push_back(dims.test(static_cast<std::size_t>(d)) ? 1 : kept[k++]);
  }
  return shape;
}

// A reduction with merged states: the input as the rule takes it, the layout of the result, and
// what is the same for all of its results.
class Merged {
 public:
  Merged(const char* function, const DTensor& a, DimSet dims, bool keepdim, DType result)
      : mesh_(a.device_mesh()),
        operation_{function, reduction_rule(a.dim(), dims, false, ReduceOp::sum, 0), result},
        ready_(prepare(operation_, {a})),
        dims_(dims),
        keepdim_(keepdim),
        reducing_(reducing_mesh_dims(ready_.output)),
        layout_(ready_.output.without_partial()) {
    if (keepdim) layout_ = with_unit_dims(layout_, dims);
  }

  /// Whether this rank has all elements of its results.
  bool whole() const { return reducing_.empty(); }
  const Layout& input_layout() const { return ready_.inputs[0].layout(); }
  Tensor local() const { return ready_.inputs[0].to_local(); }
  std::vector<Extents> coordinates() const {
    return peers(*mesh_.grid(), reducing_, *mesh_.coordinate());
  }
  Tensor merge(const Tensor& states, MergeStates f) const {
    return merged_states(operation_.name, mesh_, input_layout(), ready_.output, states, f);
  }
  /// The result of this rank's part, (...) without reduced dimensions where `shaped` is false.
  DTensor result(DType dtype, FunctionRef<Tensor()> make) const {
    const Operation operation{operation_.name, operation_.rule, dtype};
    return wrap(operation, mesh_, layout_, [&] {
      const Tensor local = make();
      if (!keepdim_ || local.dim() == layout_.shape().size()) return local;
      return local.reshape(unit_shape(local.shape(), input_layout().shape(), dims_));
    });
  }

 private:
  DeviceMesh mesh_;
  Operation operation_;
  Prepared ready_;
  DimSet dims_;
  bool keepdim_;
  std::vector<int> reducing_;
  Layout layout_;
};

// For each reduced dimension, where the runs of indices that a rank holds begin.
std::vector<IndexRuns> index_runs(const Layout& layout, const Extents& coordinate, DimSet dims) {
  std::vector<IndexRuns> result;
  for (int d = 0; d < layout.shape().size(); ++d) {
    if (!dims.test(static_cast<std::size_t>(d))) continue;
    const IndexSet set = layout.index_set(coordinate, d);
    IndexRuns runs{set.size(), layout.shape()[d], {}, {}};
    std::int64_t position = 0;
    for (const Interval& i : set.intervals()) {
      runs.local.push_back(position);
      runs.global.push_back(i.begin);
      position += i.length();
    }
    result.push_back(std::move(runs));
  }
  return result;
}

}  // namespace

Tensor variance(const char* function, const Tensor& a, DimSet dims, double correction, bool keepdim,
                bool root) {
  check_correction(function, correction);
  return variance(a.to(fractional_dtype(a.dtype())), dims, keepdim, correction, root);
}

DTensor variance(const char* function, const DTensor& a, DimSet dims, double correction,
                 bool keepdim, bool root) {
  check_correction(function, correction);
  const DType fraction = fractional_dtype(a.dtype()), type = variance_dtype(a.dtype());
  const Merged merged(function, a, dims, keepdim, type);
  return merged.result(type, [&] {
    const Tensor x = merged.local().to(fraction);
    if (merged.whole()) return variance(x, dims, keepdim, correction, root);
    std::vector<std::int64_t> counts;
    for (const Extents& c : merged.coordinates()) {
      counts.push_back(reduced_count(merged.input_layout().local_shape(c), dims));
    }
    const Tensor state = merged.merge(
        moments(x, dims), [&](const Tensor& parts) { return merge_moments(parts, counts); });
    return variance_of_moments(state, reduced_count(a.shape(), dims), correction, root, type);
  });
}

Tensor logsumexp(const char* function, const Tensor& a, DimSet dims, bool keepdim) {
  check_ordered(function, a.dtype());
  return logsumexp(a.to(fractional_dtype(a.dtype())), dims, keepdim);
}

DTensor logsumexp(const char* function, const DTensor& a, DimSet dims, bool keepdim) {
  check_ordered(function, a.dtype());
  const DType type = fractional_dtype(a.dtype());
  const Merged merged(function, a, dims, keepdim, type);
  return merged.result(type, [&] {
    const Tensor x = merged.local().to(type);
    if (merged.whole()) return logsumexp(x, dims, keepdim);
    return logsumexp_of(merged.merge(max_and_sum(x, dims),
                                     [](const Tensor& parts) { return merge_max_and_sum(parts); }),
                        type);
  });
}

ValuesAndIndices<Tensor> extreme_with_index(const char* function, const Tensor& a, DimSet dims,
                                            bool keepdim, bool largest) {
  check_ordered(function, a.dtype());
  check_not_empty(function, a.shape(), dims);
  const Extremes found = extreme_with_index(a, dims, keepdim, largest);
  return {found.values, found.indices};
}

ValuesAndIndices<DTensor> extreme_with_index(const char* function, const DTensor& a, DimSet dims,
                                             bool keepdim, bool largest) {
  check_ordered(function, a.dtype());
  check_not_empty(function, a.shape(), dims);
  const Merged merged(function, a, dims, keepdim, a.dtype());
  Extremes found;
  const DTensor values = merged.result(a.dtype(), [&] {
    found = extreme_with_index(merged.local(), dims, keepdim && merged.whole(), largest);
    if (!merged.whole()) {
      const Extents& coordinate = *a.device_mesh().coordinate();
      found.indices = to_global(found.indices, index_runs(merged.input_layout(), coordinate, dims));
      found = unpack(merged.merge(pack(found),
                                  [&](const Tensor& parts) {
                                    return merge_extremes(parts, a.dtype(), largest);
                                  }),
                     a.dtype());
    }
    return found.values;
  });
  return {values, merged.result(DType::int64, [&] { return found.indices; })};
}

}  // namespace dtensor::detail
