// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "exchange.hpp"

#include "dtensor/comm/communication_scope.hpp"

#include <algorithm>

#include "dtensor/core/error.hpp"

namespace dtensor::detail {

namespace {

std::int64_t bytes_of(const Tensor& t) { return t.numel() * size_of(t.dtype()); }

// Calls `f(begin, bytes)` for parts that fit into a message.
template <class F>
void for_each_part(const Tensor& t, const F& f) {
  auto* const data = static_cast<unsigned char*>(t.data());
  const std::int64_t bytes = bytes_of(t), limit = Communicator::max_message_bytes;
  for (std::int64_t begin = 0; begin < bytes; begin += limit) {
    f(data + begin, std::min(limit, bytes - begin));
  }
}

}  // namespace

void Exchange::send(std::int64_t peer, const Tensor& tensor) {
  const int to = static_cast<int>(peer);
  if (tensor.numel() == 0 || to == mesh_.communicator()->rank()) return;
  sends_.push_back({to, tensor.contiguous()});
  bytes_sent_ += bytes_of(tensor);
}

void Exchange::receive(std::int64_t peer, const Tensor& dense) {
  const int from = static_cast<int>(peer);
  if (dense.numel() == 0 || from == mesh_.communicator()->rank()) return;
  receives_.push_back({from, dense});
}

void Exchange::run(std::uint64_t fingerprint, std::unique_ptr<Agreement> agreement) {
  Communicator& communicator = *mesh_.communicator();
  const int tag = communicator.next_tags(fingerprint);
  fence(mesh_.device(), "dtensor::exchange");
  // The first ones are those of the agreement's round.
  constexpr std::size_t agreeing = 2;
  std::vector<Request> requests(agreeing);
  std::size_t receives = agreeing;
  const auto give_up = [&] {
    auto kept =
        std::make_shared<std::pair<std::vector<Message>, std::vector<Message>>>(sends_, receives_);
    const std::span<Request> all(requests);
    communicator.abandon(all.subspan(agreeing, receives - agreeing), all.subspan(receives),
                         std::move(kept));
  };
  try {
    for (const Message& m : receives_) {
      for_each_part(m.tensor, [&](void* data, std::int64_t bytes) {
        requests.push_back(communicator.irecv(data, bytes, m.peer, tag));
        receives = requests.size();
      });
    }
    for (const Message& m : sends_) {
      for_each_part(m.tensor, [&](const void* data, std::int64_t bytes) {
        requests.push_back(communicator.isend(data, bytes, m.peer, tag));
      });
    }
    while (true) {
      if (agreement && agreement->next_round()) {
        std::copy_n(agreement->requests().begin(), agreeing, requests.begin());
      }
      if (std::none_of(requests.begin(), requests.end(),
                       [](const Request& r) { return r.active(); })) {
        break;
      }
      communicator.progress(requests, true);
      if (!agreement) continue;
      std::copy_n(requests.begin(), agreeing, agreement->requests().begin());
      agreement->next_round();
      if (agreement->failed()) break;
    }
  } catch (const CommunicationError&) {
    give_up();
    throw;
  }
  if (!agreement) return;
  if (agreement->failed()) give_up();
  agreement->wait();
}

std::exception_ptr announce_exchange(const char* operation, const char* reason,
                                     std::int64_t bytes_sent, const Layout& source,
                                     const Layout& destination, Collective collective) {
  if (communication_limited()) {
    if (auto error = charge(operation, reason, 0, source, destination, bytes_sent)) return error;
  }
  if (!observed()) return nullptr;
  Event event;
  event.collective = collective;
  event.operation = operation;
  event.reason = reason;
  event.bytes_sent = bytes_sent;
  event.source = &source;
  event.destination = &destination;
  emit(event);
  return nullptr;
}

std::unique_ptr<Agreement> start_agreement(const DeviceMesh& mesh, const char* operation,
                                           const Hash& what, std::string text,
                                           std::exception_ptr error) {
  return std::make_unique<Agreement>(
      *mesh.communicator(), operation, what.value(), [text = std::move(text)] { return text; },
      std::move(error));
}

}  // namespace dtensor::detail
