// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/ops/einsum.hpp"

#include <memory>

#include "dtensor/core/error.hpp"
#include "dtensor/core/lru_cache.hpp"
#include "dtensor/layout/hash.hpp"
#include "dtensor/ops/promotion.hpp"
#include "einsum_plan.hpp"

namespace dtensor::detail {

namespace {

struct Key {
  std::string subscripts;
  std::vector<Shape> shapes;
  friend bool operator==(const Key&, const Key&) = default;
};

struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    Hash h;
    h.add_range(key.subscripts);
    for (const Shape& shape : key.shapes) h.add_range(shape);
    return h.value();
  }
};

std::shared_ptr<const EinsumPlan> plan_for(const char* name, std::string_view subscripts,
                                           std::vector<Shape> shapes) {
  static auto* cache = new LruCache<Key, std::shared_ptr<const EinsumPlan>, KeyHash>(256);
  return cache->get(Key{std::string(subscripts), std::move(shapes)}, [name](const Key& key) {
    return std::make_shared<const EinsumPlan>(make_einsum_plan(name, key.subscripts, key.shapes));
  });
}

template <class T>
T sum_of_products(const char* name, std::string_view subscripts, std::vector<T> values) {
  if (values.empty()) throw ValueError(name, "no operands", "at least one");
  std::vector<Shape> shapes;
  for (const T& value : values) {
    shapes.push_back(value.shape());
    common_dtype(name, values.front().dtype(), value.dtype());
  }
  const auto plan = plan_for(name, subscripts, std::move(shapes));
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (const auto& d : plan->operands[i].diagonals) {
      values[i] = diagonal(name, values[i], d.kept, d.dropped);
    }
    if (const auto& r = plan->operands[i].reordering) values[i] = reorder(name, *r, values[i]);
  }
  for (const EinsumPlan::Step& step : plan->steps) {
    values.push_back(contract(name, step.contraction, values[step.a], values[step.b]));
    // Nobody needs them again.
    values[step.a] = values[step.b] = T();
  }
  return values.back();
}

}  // namespace

Tensor einsum(const char* name, std::string_view subscripts, const std::vector<Tensor>& operands) {
  return sum_of_products(name, subscripts, operands);
}
DTensor einsum(const char* name, std::string_view subscripts,
               const std::vector<DTensor>& operands) {
  return sum_of_products(name, subscripts, operands);
}

}  // namespace dtensor::detail
