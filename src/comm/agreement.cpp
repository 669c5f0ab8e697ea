// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/comm/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <utility>
#include <vector>

#include "dtensor/layout/hash.hpp"

namespace dtensor {

namespace {

// Errors travel as text; '\x1f' (unit separator) keeps the fields apart.
constexpr char separator = '\x1f';

std::string pack(const std::exception_ptr& error, const std::string& function) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& e) {
    return fmt::format("E{}{}{}{}{}{}{}", static_cast<int>(e.kind()), separator, e.function(),
                       separator, e.given(), separator, e.expected());
  } catch (const std::exception& e) {
    return fmt::format("E{}{}{}{}{}{}{}", static_cast<int>(ErrorKind::state), separator, function,
                       separator, e.what(), separator, "no failure");
  } catch (...) {
    return fmt::format("E{}{}{}{}{}{}{}", static_cast<int>(ErrorKind::state), separator, function,
                       separator, "an unknown exception", separator, "no failure");
  }
}

[[noreturn]] void unpack_and_throw(const std::string& text, int rank) {
  std::vector<std::string> fields(1);
  for (char c : text.substr(1)) {
    if (c == separator && fields.size() < 4) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  fields.resize(4);
  throw_error(static_cast<ErrorKind>(std::stoi(fields[0])), fields[1], fields[2], fields[3], rank);
}

std::string ranks_text(const std::vector<int>& ranks) {
  return ranks.size() == 1 ? fmt::format("rank {}", ranks[0])
                           : fmt::format("ranks {}", fmt::join(ranks, ", "));
}

// Equal arguments of two functions are no agreement.
std::uint64_t with_function(std::uint64_t fingerprint, const std::string& function) {
  Hash h;
  h.add(fingerprint);
  h.add_range(function);
  return h.value();
}

}  // namespace

Agreement::Agreement(Communicator& communicator, std::string function, std::uint64_t fingerprint,
                     std::function<std::string()> describe, std::exception_ptr error)
    : communicator_(communicator),
      function_(std::move(function)),
      describe_(std::move(describe)),
      error_(std::move(error)),
      fingerprint_(with_function(fingerprint, function_)) {
  if (communicator_.size() == 1) {
    if (error_) std::rethrow_exception(error_);
    return;
  }
  wire_ = std::make_unique_for_overwrite<Wire>();
  wire_->rounds = std::bit_width(static_cast<unsigned>(communicator_.size() - 1));
  wire_->known[0] = {fingerprint_, ~fingerprint_, error_ ? 1u : 0u};
  tag_ = communicator_.next_agreement_tags();
  start_round();
}

Agreement::~Agreement() {
  try {
    while (under_way()) {
      communicator_.progress(requests_, true);
      next_round();
    }
  } catch (const Error&) {
    // The network failed: whoever waits for data of the same operation reports it.
    wire_.release();  // it may still be written to
  }
}

// In round k a rank learns what the 2^k ranks before the one it has learned of know.
void Agreement::start_round() {
  const int size = communicator_.size(), rank = communicator_.rank();
  const int distance = static_cast<int>((std::int64_t{1} << round_) % size);
  const auto bytes = static_cast<std::int64_t>(sizeof(Words));
  requests_[0] =
      communicator_.irecv(&wire_->received, bytes, (rank + size - distance) % size, tag_ + round_);
  requests_[1] =
      communicator_.isend(&wire_->known[round_], bytes, (rank + distance) % size, tag_ + round_);
}

bool Agreement::next_round() {
  while (under_way() && !requests_[0].active() && !requests_[1].active()) {
    const Words& before = wire_->known[round_];
    Words& after = wire_->known[++round_];
    for (std::size_t i = 0; i < after.size(); ++i) {
      after[i] = std::max(before[i], wire_->received[i]);
    }
    if (under_way()) start_round();
  }
  return under_way();
}

bool Agreement::test() {
  if (!under_way()) return true;
  communicator_.progress(requests_, false);
  return !next_round();
}

// Equal everywhere exactly when the maximum and the minimum (the complement's maximum) are.
bool Agreement::failed() const noexcept {
  if (!wire_ || under_way()) return false;
  const auto& [fingerprint, complement, failures] = wire_->known[round_];
  return failures != 0 || fingerprint != ~complement;
}

void Agreement::wait() {
  while (under_way()) {
    communicator_.progress(requests_, true);
    next_round();
  }
  if (failed()) throw_failure();
  wire_.reset();
}

void Agreement::throw_failure() {
  wire_.reset();
  auto texts = communicator_.all_gather_text(
      fmt::format("{}{}", communicator_.operations(), separator) +
      (error_ ? pack(error_, function_)
              : fmt::format("V{}{}{}", function_, separator, describe_ ? describe_() : "")));
  std::uint64_t operations = 0;
  for (std::string& text : texts) {
    const auto end = text.find(separator);
    operations = std::max<std::uint64_t>(operations, std::stoull(text.substr(0, end)));
    text.erase(0, end + 1);
  }
  communicator_.set_operations(operations);
  std::vector<std::string> functions, descriptions;
  for (int r = 0; r < communicator_.size(); ++r) {
    const auto& text = texts[static_cast<std::size_t>(r)];
    if (text[0] == 'E') unpack_and_throw(text, r);
    const auto end = text.find(separator);
    functions.push_back(text.substr(1, end - 1));
    descriptions.push_back(text.substr(end + 1));
  }
  const bool one_function = std::equal(functions.begin() + 1, functions.end(), functions.begin());
  std::map<std::string, std::vector<int>> groups;
  for (std::size_t r = 0; r < functions.size(); ++r) {
    const std::string call =
        one_function ? descriptions[r] : functions[r] + " of " + descriptions[r];
    groups[call].push_back(static_cast<int>(r));
  }
  std::vector<std::pair<std::vector<int>, std::string>> ordered;
  for (auto& [text, ranks] : groups) ordered.emplace_back(ranks, text);
  std::sort(ordered.begin(), ordered.end());
  std::string given;
  for (const auto& [ranks, text] : ordered) {
    if (!given.empty()) given += "; ";
    given += fmt::format("{} on {}", text, ranks_text(ranks));
  }
  if (ordered.size() == 1) given += ", but other arguments";
  throw MismatchError(functions.front(), given, "the same on every rank");
}

void agree(Communicator& communicator, const std::string& function,
           const std::function<std::uint64_t()>& check,
           const std::function<std::string()>& describe) {
  std::uint64_t fingerprint = 0;
  std::exception_ptr error;
  try {
    fingerprint = check();
  } catch (...) {
    error = std::current_exception();
  }
  Agreement(communicator, function, fingerprint, describe, error).wait();
}

void all_or_none(Communicator& communicator, const std::string& function,
                 const std::function<void()>& body) {
  agree(
      communicator, function,
      [&] {
        body();
        return std::uint64_t{0};
      },
      nullptr);
}

}  // namespace dtensor
