// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "reduction_rule.hpp"

#include <map>
#include <mutex>
#include <unordered_map>

namespace dtensor {

namespace {

Rule make_rule(int rank, DimSet dims, bool keepdim, ReduceOp reduction, std::uint32_t passes) {
  std::string input, output;
  for (int d = 0; d < rank; ++d) {
    const char letter = static_cast<char>('a' + d);
    input += letter;
    if (!dims.test(static_cast<std::size_t>(d))) {
      output += letter;
    } else if (keepdim) {
      output += '1';
    }
  }
  return Rule(input + "->" + output,
              passes == 0 ? not_linear() : PartialPasses{PartialPass{1, passes}}, reduction);
}

}  // namespace

const Rule& reduction_rule(int rank, DimSet dims, bool keepdim, ReduceOp reduction,
                           std::uint32_t passes) {
  // There are no more of them than combinations of arguments, and none ever goes.
  static std::mutex mutex;
  static auto* const rules = new std::unordered_map<std::uint64_t, Rule>;
  const std::uint64_t key = dims.to_ullong() | std::uint64_t(rank) << 8 |
                            std::uint64_t(keepdim) << 12 | std::uint64_t(reduction) << 13 |
                            std::uint64_t(passes) << 16;
  const std::lock_guard lock(mutex);
  const auto found = rules->find(key);
  if (found != rules->end()) return found->second;
  return rules->emplace(key, make_rule(rank, dims, keepdim, reduction, passes)).first->second;
}

const Rule& cached_rule(const std::string& equation, std::uint32_t linear_in) {
  static std::mutex mutex;
  static auto* const rules = new std::map<std::pair<std::string, std::uint32_t>, Rule>;
  const std::lock_guard lock(mutex);
  const auto found = rules->find({equation, linear_in});
  if (found != rules->end()) return found->second;
  const PartialPasses passes =
      linear_in == 0 ? not_linear() : PartialPasses{PartialPass{linear_in, sums}};
  return rules->emplace(std::pair(equation, linear_in), Rule(equation, passes)).first->second;
}

std::int64_t reduced_count(const Shape& shape, DimSet dims) {
  std::int64_t count = 1;
  for (int d = 0; d < shape.size(); ++d) {
    if (dims.test(static_cast<std::size_t>(d))) count *= shape[d];
  }
  return count;
}

}  // namespace dtensor
