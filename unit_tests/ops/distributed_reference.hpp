// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// DTensors of known values under any placements, and counting what communicates.
#pragma once

#include <cmath>

#include "dtensor/comm/events.hpp"
#include "dtensor/distributed/dtensor.hpp"
#include "ops/reference.hpp"

namespace dtensor::testing {

/// The contribution of one coordinate of the Partial mesh dimensions to an element; those of all
/// coordinates make up `value`. Every rank can compute every contribution.
inline double contribution(double value, const Layout& layout, const Extents& coordinate,
                           std::uint64_t element) {
  std::uint64_t path = element;
  for (int m = 0; m < layout.grid()->dim(); ++m) {
    const Placement& p = layout.placement(m);
    if (!p.is_partial()) continue;
    const std::int64_t size = layout.grid()->size(m);
    const auto random = [&](std::int64_t c) {
      Numbers numbers(path * 131 + static_cast<std::uint64_t>(c) * 17 +
                      static_cast<std::uint64_t>(m) + 1);
      for (int i = 0; i < 5; ++i) numbers.next();
      return numbers();
    };
    const std::int64_t own = coordinate[m];
    if (p.reduce_op() == ReduceOp::max || p.reduce_op() == ReduceOp::min) {
      const double sign = p.reduce_op() == ReduceOp::max ? -1 : 1;
      const auto winner = static_cast<std::int64_t>(path % static_cast<std::uint64_t>(size));
      if (own != winner) value += sign * std::abs(random(own));
    } else {
      double rest = p.reduce_op() == ReduceOp::avg ? value * static_cast<double>(size) : value;
      for (std::int64_t c = 1; c < size; ++c) rest -= random(c);
      value = own == 0 ? rest : random(own);
    }
    path = path * 31 + static_cast<std::uint64_t>(own) + 1;
  }
  return value;
}

/// A DTensor with these global values. Local.
inline DTensor place(const Array& global, const DeviceMesh& mesh, const Layout& layout) {
  const Extents& coordinate = *mesh.coordinate();
  std::vector<std::vector<std::int64_t>> indices;
  for (int d = 0; d < global.shape.size(); ++d) {
    indices.emplace_back();
    const IndexSet set = layout.index_set(coordinate, d);
    for (const Interval& i : set.intervals()) {
      for (std::int64_t j = i.begin; j < i.end; ++j) indices.back().push_back(j);
    }
  }
  Array local(layout.local_shape(coordinate));
  for_each_index(local.shape, [&](const Extents& at) {
    Extents index = at;
    std::uint64_t element = 7;
    for (int d = 0; d < at.size(); ++d) {
      index[d] = indices[static_cast<std::size_t>(d)][static_cast<std::size_t>(at[d])];
      element = element * 1009 + static_cast<std::uint64_t>(index[d]);
    }
    local.at(at) = contribution(global.at(index), layout, coordinate, element);
  });
  return DTensor(mesh, layout, Tensor::from_vector(local.values, local.shape, mesh.device()));
}

inline DTensor place(const Array& global, const DeviceMesh& mesh, const Placements& placements) {
  return place(global, mesh, Layout(global.shape, mesh.grid(), placements));
}

/// The largest difference of a DTensor's value to `expected`; infinite for another shape.
/// Collective.
inline double error_of(const DTensor& tensor, const Array& expected) {
  const Tensor full = tensor.full_tensor().to(DType::float64);
  if (!(full.shape() == expected.shape) || !(tensor.shape() == expected.shape)) return INFINITY;
  const auto values = full.to_vector<double>();
  double error = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double scale = std::max(1.0, std::abs(expected.values[i]));
    const double difference = std::abs(values[i] - expected.values[i]) / scale;
    error = difference <= error ? error : difference;  // keeps NaN
  }
  return error;
}

/// The communication events of this rank while the object lives.
class Communication : public Observer {
 public:
  Communication() { add_observer(*this); }
  ~Communication() override { remove_observer(*this); }
  void on_event(const Event& event) override {
    if (event.collective == Collective::none) return;
    ++count;
    bytes += event.bytes_sent;
    operation = event.operation;
    reason = event.reason;
    collective = event.collective;
  }
  int count = 0;
  std::int64_t bytes = 0;
  std::string operation, reason;
  Collective collective = Collective::none;
};

}  // namespace dtensor::testing
