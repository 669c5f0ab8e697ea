// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "redistribute.hpp"

#include "dtensor/comm/events.hpp"
#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/lru_cache.hpp"
#include "dtensor/layout/hash.hpp"

namespace dtensor::detail {

namespace {

struct KeyView {
  const Layout& source;
  const Layout& destination;
  DType dtype;
  const std::vector<int>& participants;
};

struct Key {
  Layout source, destination;
  DType dtype;
  std::vector<int> participants;
  explicit Key(const KeyView& v)
      : source(v.source),
        destination(v.destination),
        dtype(v.dtype),
        participants(v.participants) {}
};

template <class A, class B>
bool equal(const A& a, const B& b) noexcept {
  return a.source == b.source && a.destination == b.destination && a.dtype == b.dtype &&
         a.participants == b.participants;
}
bool operator==(const Key& a, const Key& b) noexcept { return equal(a, b); }
bool operator==(const Key& a, const KeyView& b) noexcept { return equal(a, b); }

struct KeyHash {
  using is_transparent = void;
  template <class K>
  std::size_t operator()(const K& key) const noexcept {
    Hash h;
    h.add(key.source.hash());
    h.add(key.destination.hash());
    h.add(static_cast<std::uint64_t>(key.dtype));
    return h.value();  // the participants nearly always follow from the layouts
  }
};

using ProgramCache = LruCache<Key, std::shared_ptr<const Program>, KeyHash>;

ProgramCache& cache() {
  static auto* instance = new ProgramCache(1024);
  return *instance;
}

}  // namespace

Compiled compiled(const Layout& source, const Layout& destination, DType dtype,
                  std::shared_ptr<Communicator> communicator,
                  const std::vector<int>& participants) {
  auto program =
      cache().get(KeyView{source, destination, dtype, participants}, [](const KeyView& key) {
        return std::make_shared<const Program>(
            compile(std::make_shared<const Plan>(key.source, key.destination, key.dtype),
                    key.participants, Runtime::rank()));
      });
  return {std::move(program), std::move(communicator)};
}

std::vector<Tensor> memory_for(const Program& program, DeviceKind device) {
  std::vector<Tensor> results;
  for (std::size_t i = 1; i < program.buffer_shapes.size(); ++i) {
    results.push_back(Tensor::empty(program.buffer_shapes[i], program.plan->dtype(), device));
  }
  // Given back at once, to a pool that has them then. With no more, messages wait for one another.
  std::vector<std::shared_ptr<Storage>> scratch;
  for (std::int64_t bytes : program.min_scratch)
    scratch.push_back(Storage::allocate(bytes, device));
  return results;
}

std::shared_ptr<Execution> start(const Compiled& compiled, const Tensor& local,
                                 std::unique_ptr<Agreement> agreement, const char* operation,
                                 const char* reason, std::vector<Tensor> results) {
  const Program& program = *compiled.program;
  if (observed()) {
    for (std::size_t i = 0; i < program.plan->steps().size(); ++i) {
      const Step& step = program.plan->steps()[i];
      if (step.collective == Collective::none) continue;
      Event event;
      event.collective = step.collective;
      event.operation = operation;
      event.reason = reason;
      event.bytes_sent = program.step_bytes_sent[i];
      event.source = &step.from;
      event.destination = &step.to;
      emit(event);
    }
  }
  return std::make_shared<Execution>(compiled.program, compiled.communicator, local,
                                     std::move(agreement), std::move(results));
}

}  // namespace dtensor::detail
