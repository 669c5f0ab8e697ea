// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "redistribute.hpp"

#include <algorithm>
#include <list>
#include <mutex>
#include <unordered_map>

#include "dtensor/comm/events.hpp"
#include "dtensor/comm/runtime.hpp"
#include "dtensor/layout/hash.hpp"

namespace dtensor::detail {

namespace {

// Least recently used programs leave first.
class ProgramCache {
 public:
  std::shared_ptr<const Program> get(const Layout& source, const Layout& destination, DType dtype,
                                     const std::vector<int>& participants) {
    Hash h;
    h.add(source.hash());
    h.add(destination.hash());
    h.add(static_cast<std::uint64_t>(dtype));
    h.add_range(participants);
    std::lock_guard lock(mutex_);
    auto [first, last] = index_.equal_range(h.value());
    for (auto it = first; it != last; ++it) {
      const Entry& e = *it->second;
      const Plan& plan = *e.program->plan;
      if (plan.source() == source && plan.destination() == destination && plan.dtype() == dtype &&
          e.participants == participants) {
        entries_.splice(entries_.begin(), entries_, it->second);
        return e.program;
      }
    }
    auto program = std::make_shared<const Program>(compile(
        std::make_shared<const Plan>(source, destination, dtype), participants, Runtime::rank()));
    entries_.push_front({h.value(), program, participants});
    index_.emplace(h.value(), entries_.begin());
    if (entries_.size() > capacity) {
      auto [begin, end] = index_.equal_range(entries_.back().hash);
      index_.erase(std::find_if(
          begin, end, [&](const auto& item) { return item.second == std::prev(entries_.end()); }));
      entries_.pop_back();
    }
    return program;
  }

 private:
  static constexpr std::size_t capacity = 1024;
  struct Entry {
    std::uint64_t hash;
    std::shared_ptr<const Program> program;
    std::vector<int> participants;
  };
  std::mutex mutex_;
  std::list<Entry> entries_;
  std::unordered_multimap<std::uint64_t, std::list<Entry>::iterator> index_;
};

ProgramCache& cache() {
  static auto* instance = new ProgramCache;
  return *instance;
}

}  // namespace

Compiled compiled(const Layout& source, const Layout& destination, DType dtype,
                  std::shared_ptr<Communicator> communicator,
                  const std::vector<int>& participants) {
  return {cache().get(source, destination, dtype, participants), std::move(communicator)};
}

std::shared_ptr<Execution> start(const Compiled& compiled, const Tensor& local,
                                 std::unique_ptr<Agreement> agreement, const char* operation,
                                 const char* reason, Tensor result) {
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
                                     std::move(agreement), std::move(result));
}

}  // namespace dtensor::detail
