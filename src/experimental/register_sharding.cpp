// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/experimental/register_sharding.hpp"

#include <fmt/format.h>

#include <mutex>

#include "dtensor/core/error.hpp"
#include "dtensor/core/lru_cache.hpp"
#include "dtensor/layout/hash.hpp"
#include "dtensor/ops/dispatch.hpp"
#include "library_operators.hpp"
#include "sharding_registry.hpp"

namespace dtensor::experimental {

namespace {

struct Key {
  std::vector<Layout> layouts;
  OperatorCall call;
};

bool operator==(const Key& a, const Key& b) {
  return a.layouts == b.layouts && a.call.inputs == b.call.inputs &&
         a.call.outputs == b.call.outputs && a.call.attributes == b.call.attributes &&
         a.call.equation == b.call.equation;
}

struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept {
    Hash h;
    for (const Layout& layout : key.layouts) h.add(layout.hash());
    for (const TensorDescription& t : key.call.inputs) h.add(static_cast<std::uint64_t>(t.dtype));
    for (const TensorDescription& t : key.call.outputs) {
      h.add_range(t.shape);
      h.add(static_cast<std::uint64_t>(t.dtype));
    }
    return h.value();  // attributes are few, and their comparison is exact
  }
};

// A registration owns its decisions, so that they end with it.
struct Registered {
  std::string name;
  ShardingFunction function;
  LruCache<Key, Decided, KeyHash> decisions{256};
};

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Registered>, std::less<>> entries;
};

Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

std::shared_ptr<Registered> find(std::string_view name) {
  std::lock_guard lock(registry().mutex);
  const auto found = registry().entries.find(name);
  return found == registry().entries.end() ? nullptr : found->second;
}

// For the library's own operators.
Decided decision_of(const Operation& operation, Inputs inputs) {
  if (!find(operation.name)) return nullptr;
  OperatorCall call;
  std::vector<Layout> layouts;
  std::vector<Shape> shapes;
  for (const DTensor& input : inputs) {
    call.inputs.push_back({input.shape(), input.dtype()});
    layouts.push_back(input.layout());
    shapes.push_back(input.shape());
  }
  call.outputs.push_back({operation.rule.output_shape(operation.name, shapes), operation.result});
  call.equation = to_string(operation.rule);
  return registered_decision(operation.name, call, layouts);
}

}  // namespace

ShardingRegistration register_sharding(const std::string& operator_name,
                                       ShardingFunction function) {
  if (operator_name.empty() || !function) {
    throw ValueError("register_sharding",
                     operator_name.empty()
                         ? std::string("an empty name")
                         : fmt::format("an empty function for \"{}\"", operator_name),
                     "the name of an operator and a function");
  }
  if (decided_by(operator_name) == DecidedBy::itself) {
    throw ValueError("register_sharding",
                     fmt::format("\"{}\", an operator of the library that has no rule to replace",
                                 operator_name),
                     fmt::format("the name of a CustomOperator, or of one of the library's {}",
                                 operators_with_rules()));
  }
  auto entry = std::make_shared<Registered>();
  entry->name = operator_name;
  entry->function = std::move(function);
  std::lock_guard lock(registry().mutex);
  if (!registry().entries.emplace(operator_name, entry).second) {
    throw ValueError("register_sharding", fmt::format("\"{}\" a second time", operator_name),
                     "an operator without a registration; destroy the earlier one first");
  }
  detail::registered_decisions.store(&decision_of, std::memory_order_release);
  return ShardingRegistration(entry);
}

void ShardingRegistration::unregister() noexcept {
  if (!entry_) return;
  const auto entry = std::static_pointer_cast<Registered>(std::move(entry_));
  std::lock_guard lock(registry().mutex);
  registry().entries.erase(entry->name);
  if (registry().entries.empty()) {
    detail::registered_decisions.store(nullptr, std::memory_order_release);
  }
}

Decided registered_decision(const char* name, const OperatorCall& call,
                            const std::vector<Layout>& inputs) {
  const auto entry = find(name);
  if (!entry) return nullptr;
  return entry->decisions.get(Key{inputs, call}, [&](const Key& key) {
    return decide_among(name, key.call, entry->function(key.call), key.layouts);
  });
}

Attributes placement_attributes(const Attributes& attributes) {
  Attributes kept;
  for (const auto& [name, value] : attributes) {
    if (!std::holds_alternative<double>(value)) kept.emplace(name, value);
  }
  return kept;
}

}  // namespace dtensor::experimental
