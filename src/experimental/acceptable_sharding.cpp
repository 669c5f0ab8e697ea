// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a list of acceptable shardings to what a decision is made from.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "dtensor/core/error.hpp"
#include "sharding_registry.hpp"

namespace dtensor::experimental {

namespace {

// Checks one entry and counts its shard dimensions from the front.
class Entry {
 public:
  Entry(const char* name, const OperatorCall& call, std::size_t index, AcceptableSharding& sharding)
      : name_(name), call_(call), index_(index), sharding_(sharding) {}

  void check() {
    check_tensors("input", sharding_.inputs, call_.inputs);
    check_tensors("result", sharding_.outputs, call_.outputs);
    check_extents();
    check_results();
  }

 private:
  [[noreturn]] void fail(const std::string& detail, const std::string& expected) const {
    throw LayoutError(
        name_,
        fmt::format("acceptable sharding {}, {} of inputs {}: {}", index_,
                    to_string(sharding_.outputs), to_string(sharding_.inputs), detail),
        expected);
  }

  void check_tensors(const char* kind, Placements& placements,
                     const std::vector<TensorDescription>& tensors) const {
    if (placements.size() != tensors.size()) {
      fail(fmt::format("{} placements of {}s", placements.size(), kind),
           fmt::format("one for each of the {} {}s", tensors.size(), kind));
    }
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      Placement& p = placements[i];
      if (!p.is_shard()) continue;
      const int rank = tensors[i].shape.size();
      if (p.dim() < -rank || p.dim() >= rank) {
        fail(fmt::format("{} for {} {} of shape {}", to_string(p), kind, i,
                         to_string(tensors[i].shape)),
             rank == 0 ? "no shard of a tensor without dimensions"
                       : fmt::format("a dimension from {} to {}", -rank, rank - 1));
      }
      if (p.kind() != Placement::Kind::shard || p.has_extents()) {
        fail(fmt::format("{} for {} {}", to_string(p), kind, i),
             "Shard(dim); strided shards and given extents are accepted with it where an input "
             "has them");
      }
      if (p.dim() < 0) p = p.with_dim(p.dim() + rank);
    }
  }

  // Each rank holds the same share of every sharded dimension.
  void check_extents() const {
    std::int64_t smallest = -1;
    const auto each = [&](const auto& f) {
      const auto visit = [&](const char* kind, const Placements& placements,
                             const std::vector<TensorDescription>& tensors) {
        for (std::size_t i = 0; i < tensors.size(); ++i) {
          if (placements[i].is_shard()) f(kind, i, tensors[i].shape[placements[i].dim()]);
        }
      };
      visit("input", sharding_.inputs, call_.inputs);
      visit("result", sharding_.outputs, call_.outputs);
    };
    each([&](const char*, std::size_t, std::int64_t extent) {
      smallest = smallest == -1 ? extent : std::min(smallest, extent);
    });
    each([&](const char* kind, std::size_t i, std::int64_t extent) {
      if (extent == smallest || (smallest != 0 && extent % smallest == 0)) return;
      fail(fmt::format("the sharded dimension of {} {} has extent {}, that of another tensor {}",
                       kind, i, extent, smallest),
           "sharded dimensions of equal extents, or of multiples of the smallest");
    });
  }

  void check_results() const {
    std::optional<Placement> sharded, partial;
    for (const Placement& p : sharding_.inputs) {
      if (p.is_shard()) sharded = p;
      if (!p.is_partial()) continue;
      if (partial && !(*partial == p)) {
        fail(fmt::format("inputs are {} and {}", to_string(*partial), to_string(p)),
             "one reduce operation for all Partial inputs");
      }
      partial = p;
    }
    for (std::size_t i = 0; i < sharding_.outputs.size(); ++i) {
      const Placement& p = sharding_.outputs[i];
      const auto refuse = [&](const std::string& why, const char* expected) {
        fail(fmt::format("result {} is {} {}", i, to_string(p), why), expected);
      };
      if (partial && !p.is_partial()) {
        refuse(fmt::format("though an input is {}", to_string(*partial)),
               "Partial results of a Partial input: its contributions are not reduced");
      }
      if (sharded && p.is_replicate()) {
        refuse(fmt::format("though an input is {}", to_string(*sharded)),
               "Shard or Partial results of a sharded input: no rank sees all of it");
      }
      if (p.is_shard() && !sharded) {
        refuse("and no input is sharded", "a sharded input, whose part decides on the result's");
      }
      if (p.is_partial()) {
        if (!partial) check_reduce_op(name_, p.reduce_op(), call_.outputs[i].dtype);
        const ReduceOp op = p.reduce_op();
        const bool counts = op == ReduceOp::sum || op == ReduceOp::product || op == ReduceOp::bxor;
        if (counts && !partial && !sharded) {
          refuse("of replicated inputs",
                 "Replicate: reducing the same value from every rank changes it");
        }
      }
    }
  }

  const char* name_;
  const OperatorCall& call_;
  std::size_t index_;
  AcceptableSharding& sharding_;
};

// The dimensions of all tensors, numbered through, in sets that are split together.
class DimensionSets {
 public:
  explicit DimensionSets(const OperatorCall& call) {
    int count = 0;
    for (const auto* tensors : {&call.inputs, &call.outputs}) {
      for (const TensorDescription& t : *tensors) {
        first_.push_back(count);
        count += t.shape.size();
      }
    }
    first_.push_back(count);
    parent_.resize(static_cast<std::size_t>(count));
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  int number(std::size_t tensor, int dim) const { return first_[tensor] + dim; }
  int set_of(int number) const {
    while (parent_[static_cast<std::size_t>(number)] != number) {
      number = parent_[static_cast<std::size_t>(number)];
    }
    return number;
  }
  void join(int a, int b) { parent_[static_cast<std::size_t>(set_of(a))] = set_of(b); }
  int count() const { return static_cast<int>(parent_.size()); }
  std::vector<int> axes(std::size_t tensor) const {
    std::vector<int> list;
    for (int n = first_[tensor]; n < first_[tensor + 1]; ++n) list.push_back(set_of(n));
    return list;
  }

 private:
  std::vector<int> first_, parent_;
};

// What one entry offers: its shards in the even form.
Choice choice_of(const OperatorCall& call, const AcceptableSharding& sharding,
                 const DimensionSets& sets) {
  Choice choice{sharding.inputs, sharding.outputs};
  std::int64_t smallest = -1, largest = -1;
  for (std::size_t i = 0; i < call.inputs.size() + call.outputs.size(); ++i) {
    const bool is_input = i < call.inputs.size();
    const std::size_t k = is_input ? i : i - call.inputs.size();
    const Placement& p = is_input ? sharding.inputs[k] : sharding.outputs[k];
    if (!p.is_shard()) continue;
    const std::int64_t extent = (is_input ? call.inputs[k] : call.outputs[k]).shape[p.dim()];
    choice.axis = sets.set_of(sets.number(i, p.dim()));
    smallest = smallest == -1 ? extent : std::min(smallest, extent);
    largest = std::max(largest, extent);
  }
  if (largest != smallest) choice.divided_extent = smallest;
  return choice;
}

Placements with_form(Placements placements, const Placement& form) {
  for (Placement& p : placements) {
    if (p.is_shard()) p = form.with_dim(p.dim());
  }
  return placements;
}

}  // namespace

Choices acceptable_choices(const char* name, const OperatorCall& call,
                           std::vector<AcceptableSharding> acceptable) {
  const auto all = [](std::size_t count) { return Placements(count, Replicate()); };
  for (std::size_t i = 0; i < acceptable.size(); ++i) Entry(name, call, i, acceptable[i]).check();
  acceptable.insert(acceptable.begin(), {all(call.outputs.size()), all(call.inputs.size())});

  DimensionSets sets(call);
  for (const AcceptableSharding& sharding : acceptable) {
    int first = -1;
    for (std::size_t i = 0; i < call.inputs.size() + call.outputs.size(); ++i) {
      const Placement& p =
          i < call.inputs.size() ? sharding.inputs[i] : sharding.outputs[i - call.inputs.size()];
      if (!p.is_shard()) continue;
      const int number = sets.number(i, p.dim());
      if (first == -1) first = number;
      sets.join(number, first);
    }
  }
  Choices choices;
  choices.axes = sets.count();
  for (std::size_t i = 0; i < call.inputs.size(); ++i) choices.input_axes.push_back(sets.axes(i));
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    choices.output_axes.push_back(sets.axes(call.inputs.size() + i));
    choices.output_shapes.push_back(call.outputs[i].shape);
    choices.results.push_back(call.outputs[i].dtype);
  }
  std::vector<Choice> even;
  for (const AcceptableSharding& s : acceptable) even.push_back(choice_of(call, s, sets));
  choices.of_mesh_dim = [even = std::move(even)](const Placements& current) {
    std::vector<Choice> list;
    for (const Choice& choice : even) {
      list.push_back(choice);
      if (choice.divided_extent != 0) continue;
      Placements forms{Shard(0)};
      for (std::size_t i = 0; i < current.size(); ++i) {
        const Placement& p = choice.inputs[i];
        if (!p.is_shard() || !current[i].is_shard(p.dim())) continue;
        const Placement form = current[i].with_dim(0);
        if (std::find(forms.begin(), forms.end(), form) != forms.end()) continue;
        forms.push_back(form);
        list.push_back(
            {with_form(choice.inputs, form), with_form(choice.outputs, form), choice.axis, 0});
      }
    }
    return list;
  };
  return choices;
}

Decided decide_among(const char* name, const OperatorCall& call,
                     std::vector<AcceptableSharding> acceptable,
                     const std::vector<Layout>& inputs) {
  std::vector<DType> dtypes;
  for (const TensorDescription& t : call.inputs) dtypes.push_back(t.dtype);
  const Choices choices = acceptable_choices(name, call, std::move(acceptable));
  return std::make_shared<const Decision>(decide(choices, inputs, dtypes));
}

}  // namespace dtensor::experimental
