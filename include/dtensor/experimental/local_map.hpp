// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `local_map`: a function of local tensors as a function of DTensors, after
/// `torch.distributed.tensor.experimental.local_map`.
#pragma once

#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dtensor/experimental/local_arguments.hpp"

namespace dtensor::experimental {

/// How `local_map` works.
struct LocalMapOptions {
  /// Move an input whose placements or shard order differ from `in_placements`, instead of
  /// throwing.
  bool redistribute_inputs = false;
  /// The mesh of all DTensors; that of the first DTensor argument when absent.
  std::optional<DeviceMesh> device_mesh = std::nullopt;
  /// Global shapes of the results, one per result that becomes a DTensor; inferred when absent.
  std::vector<std::optional<Shape>> out_shapes = {};
  /// Let the ranks agree on what the function returned (one small all-reduce), so that what goes
  /// wrong on one rank is thrown on all. Without, a failure stays where it is.
  bool check = true;
  /// For errors and events.
  std::string name = "local_map";
};

/// Per argument, the placements that it must have, in the default shard order; nullopt for no
/// requirement, and for arguments that are no DTensors. Empty for no requirement at all.
using InPlacements = std::vector<std::optional<Placements>>;

namespace detail {

/// An input that is a DTensor, and which argument of the call it is.
struct MappedInput {
  std::size_t argument;
  DTensor tensor;
};

/// What `LocalMap` needs that does not depend on the function's type.
class LocalMapCall {
 public:
  LocalMapCall(const LocalMapOptions& options, const InPlacements& in_placements)
      : options_(options), in_placements_(in_placements) {}

  /// Checks the arguments, chooses the mesh and redistributes what may be. \param is_dtensor per
  /// argument
  void prepare(const std::vector<bool>& is_dtensor, std::vector<MappedInput>& inputs);
  /// Whether the function is to be called on this rank.
  bool takes_part() const { return mesh_->is_member(); }
  /// Runs the function, which adds its results, and makes what it throws everyone's. Then the
  /// global shapes are known. Throws what is wrong with the results.
  void run(FunctionRef<void()> function, const std::vector<MappedInput>& inputs);
  /// The tensors that the function's arguments are made from.
  Lent& lent() noexcept { return lent_; }
  void add_result(const Tensor& local, const Placements& placements) {
    results_.push_back({local, placements});
  }
  template <class ViewType>
  requires is_view<ViewType>
  void add_result(const ViewType& view, const Placements& placements) {
    const Tensor tensor = Tensor::from_view(view);
    add_result(view.use_count() > 0 ? tensor : on_lent_storage(tensor), placements);
  }
  /// Throws `LayoutError` when the function returned another number of tensors than have
  /// placements.
  void check_result_count(std::size_t results, std::size_t placements) const;
  /// The next result as a DTensor; undefined on ranks outside of the mesh.
  DTensor take_result();

 private:
  struct Result {
    Tensor local;
    Placements placements;
    std::optional<Layout> layout = std::nullopt;
  };
  /// What a View without an owner shows, on the storage of the lent tensor that it lies in, which
  /// is kept alive so.
  Tensor on_lent_storage(const Tensor& view) const;
  std::string describe_results() const;
  /// In which order mesh dimensions split a result's dimensions, from how they split the inputs.
  ShardOrder order_of(const Result& result, std::size_t index,
                      const std::vector<MappedInput>& inputs) const;
  Layout guess_layout(const Result& result, std::size_t index,
                      const std::vector<MappedInput>& inputs) const;
  void check_results(const std::vector<MappedInput>& inputs);
  void resolve_with_all_ranks();

  const LocalMapOptions& options_;
  const InPlacements& in_placements_;
  std::optional<DeviceMesh> mesh_;
  Lent lent_;
  std::vector<Result> results_;
  std::size_t taken_ = 0;
};

/// The type of a result whose placements are given as `Spec`.
template <class Spec, class Value>
struct Mapped {
  static_assert(std::is_same_v<Spec, std::nullopt_t>,
                "out_placements: Placements or std::nullopt for a result, std::tuple of those for "
                "several, std::vector<Placements> for a vector of tensors");
  using type = Value;
  static void add(LocalMapCall&, const Value&, const Spec&) {}
  static Value take(LocalMapCall&, std::optional<Value>& value, const Spec&) {
    return value ? std::move(*value) : Value();
  }
};
template <class Value>
struct Mapped<Placements, Value> {
  static_assert(is_tensor_like<Value>,
                "only a Tensor or a Kokkos::View becomes a DTensor: give std::nullopt instead");
  using type = DTensor;
  static void add(LocalMapCall& call, const Value& value, const Placements& placements) {
    call.add_result(value, placements);
  }
  static DTensor take(LocalMapCall& call, std::optional<Value>&, const Placements&) {
    return call.take_result();
  }
};
template <class Value>
struct Mapped<std::vector<Placements>, std::vector<Value>> {
  using type = std::vector<DTensor>;
  static void add(LocalMapCall& call, const std::vector<Value>& values,
                  const std::vector<Placements>& placements) {
    call.check_result_count(values.size(), placements.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      Mapped<Placements, Value>::add(call, values[i], placements[i]);
    }
  }
  static type take(LocalMapCall& call, std::optional<std::vector<Value>>&,
                   const std::vector<Placements>& placements) {
    type list;
    for (std::size_t i = 0; i < placements.size(); ++i) list.push_back(call.take_result());
    return list;
  }
};
/// A tuple or pair.
template <class... Specs, class Values>
struct Mapped<std::tuple<Specs...>, Values> {
  static_assert(sizeof...(Specs) == std::tuple_size_v<Values>,
                "out_placements has one entry for each result of the function");
  template <std::size_t I>
  using Part = std::tuple_element_t<I, Values>;
  template <std::size_t I>
  using MappedPart = Mapped<std::tuple_element_t<I, std::tuple<Specs...>>, Part<I>>;
  using Indices = std::index_sequence_for<Specs...>;

  static void add(LocalMapCall& call, const Values& values, const std::tuple<Specs...>& specs) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (MappedPart<I>::add(call, std::get<I>(values), std::get<I>(specs)), ...);
    }
    (Indices());
  }
  template <std::size_t I>
  static auto take_part(LocalMapCall& call, std::optional<Values>& values,
                        const std::tuple<Specs...>& specs) {
    std::optional<Part<I>> value;
    if (values) value.emplace(std::move(std::get<I>(*values)));
    return MappedPart<I>::take(call, value, std::get<I>(specs));
  }
  static auto take(LocalMapCall& call, std::optional<Values>& values,
                   const std::tuple<Specs...>& specs) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      // Braces: results are taken in order.
      return std::tuple<typename MappedPart<I>::type...>{take_part<I>(call, values, specs)...};
    }
    (Indices());
  }
};

}  // namespace detail

/// What `local_map` returns: call it with DTensors and other values.
template <class Function, class OutPlacements>
class LocalMap {
 public:
  LocalMap(Function function, OutPlacements out_placements, InPlacements in_placements,
           LocalMapOptions options)
      : function_(std::move(function)),
        out_placements_(std::move(out_placements)),
        in_placements_(std::move(in_placements)),
        options_(std::move(options)) {}

  template <class... Args>
  auto operator()(const Args&... args) const {
    detail::LocalMapCall call(options_, in_placements_);
    std::vector<detail::MappedInput> inputs;
    std::size_t count = 0;
    const auto collect = [&]<class Arg>(const Arg& arg) {
      if constexpr (std::is_same_v<Arg, DTensor>) inputs.push_back({count, arg});
      ++count;
    };
    (collect(args), ...);
    call.prepare({std::is_same_v<Args, DTensor>...}, inputs);

    const auto apply = [&] {
      std::size_t next = 0;
      return detail::apply_local(function_, inputs, next, call.lent(), args...);
    };
    using Value = decltype(apply());
    if constexpr (std::is_void_v<Value>) {
      static_assert(std::is_same_v<OutPlacements, std::tuple<>>,
                    "a function without a result has the out_placements std::tuple<>()");
      if (call.takes_part()) call.run(apply, inputs);
    } else {
      using Result = detail::Mapped<OutPlacements, Value>;
      std::optional<Value> value;
      if (call.takes_part()) {
        call.run(
            [&] {
              value.emplace(apply());
              Result::add(call, *value, out_placements_);
            },
            inputs);
      }
      return Result::take(call, value, out_placements_);
    }
  }

 private:
  Function function_;
  OutPlacements out_placements_;
  InPlacements in_placements_;
  LocalMapOptions options_;
};

/// A function of local tensors as a function of DTensors, which are handed to it as their local
/// parts; all other arguments are passed on as they are.
///
/// Where the function's parameter is a `Tensor` (or of any type), it gets the local `Tensor`,
/// sharing memory. Where it is a `Kokkos::View`, it gets the same memory as a View. A View to
/// const elements of another layout than the tensor has is made from a copy; one to non-const
/// elements throws `ValueError` then, and `TypeError` for another scalar type, rank or memory.
///
/// A result may share memory with what the function was given: the DTensor keeps that memory, also
/// where the function returns it as a View. A View of any other memory has to own it (else
/// `ValueError`: nobody knows how long it lives). A View that stays one (`std::nullopt`) is passed
/// on as it is; one of what the function was given is not valid beyond the input's life, and one of
/// a copy not beyond the call.
///
/// \param out_placements  for the result of the function: `Placements` for a `Tensor` or a View
///                        that becomes a DTensor, `std::nullopt` for a value that stays what it
///                        is; `std::tuple` of those for a tuple or pair, `std::vector<Placements>`
///                        for a vector, `std::tuple<>()` for no result
/// \param in_placements   what the arguments must have, in the default shard order as in
///                        `DTensor::redistribute`; an argument that has something else is
///                        redistributed if `options` says so, else a `LayoutError` names the
///                        argument, what it has and what is wanted
///
/// Calling the result throws, on every rank of the mesh, `ValueError` when `in_placements` are not
/// as many as the arguments or given for one that is no DTensor, `LayoutError` when DTensors are on
/// different meshes, `StateError` when there are none and no mesh is given or in scope; and, unless
/// `options.check` is off, what the function throws on any rank, and `LayoutError` naming the
/// result when its local shapes are not those that the placements give each rank.
///
/// The shard order of a result: mesh dimensions that split one of its dimensions do so in the order
/// in which just they split a dimension of an input, in the default order without such an input.
/// `LayoutError` where any two of them split an input in another order, because values would change
/// places; `in_placements` with `redistribute_inputs` brings that input to the default order.
///
/// The global shape of a result: a sharded dimension whose local extent is that of an input
/// dimension which the same mesh dimensions split alike has that one's global extent; others are
/// the local extent times the ranks that split them. Where the ranks do not come to the same so,
/// the sums of their extents count (with one more exchange, which `options.out_shapes` saves).
///
/// Collective over the mesh. On ranks outside of it the function is not called; its results are
/// undefined DTensors and default values.
template <class Function, class OutPlacements>
LocalMap<Function, OutPlacements> local_map(Function function, OutPlacements out_placements,
                                            InPlacements in_placements = {},
                                            LocalMapOptions options = {}) {
  return {std::move(function), std::move(out_placements), std::move(in_placements),
          std::move(options)};
}

}  // namespace dtensor::experimental
