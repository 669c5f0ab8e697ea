// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/redistribute/execution.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/kokkos_state.hpp"
#include "dtensor/core/strided_copy.hpp"
#include "dtensor/redistribute/combine.hpp"

namespace dtensor {

namespace {

enum class End { source, destination };

unsigned char* at(const Tensor& tensor, const Extents& position) {
  std::int64_t offset = 0;
  for (int d = 0; d < position.size(); ++d) offset += position[d] * tensor.strides()[d];
  return static_cast<unsigned char*>(tensor.data()) + offset * size_of(tensor.dtype());
}

// Address of a transfer's elements in a tensor when they lie there in one piece and in order, else
// null.
unsigned char* in_one_piece(const Tensor& tensor, const Transfer& transfer, End end) {
  std::int64_t expected = 1;
  Extents position = Extents::filled(tensor.dim(), 0);
  for (int d = tensor.dim() - 1; d >= 0; --d) {
    const auto& runs = transfer.runs[static_cast<std::size_t>(d)];
    if (runs.size() != 1) return nullptr;
    if (runs[0].length != 1 && tensor.strides()[d] != expected) return nullptr;
    expected *= runs[0].length;
    position[d] = end == End::source ? runs[0].first : runs[0].second;
  }
  return at(tensor, position);
}

// Copies a transfer's elements between a tensor and a dense buffer in message order: box by box,
// and both ends walk the same boxes.
void copy_packed(const Tensor& tensor, const Transfer& transfer, End end, unsigned char* packed) {
  const std::int64_t size = size_of(tensor.dtype());
  for_each_box(
      transfer, [&](const Extents& source, const Extents& destination, const Extents& extents) {
        const bool packs = end == End::source;
        const StridedBox in_tensor{at(tensor, packs ? source : destination), tensor.strides()};
        const StridedBox in_buffer{packed, row_major_strides(extents)};
        copy_strided(packs ? in_buffer : in_tensor, packs ? in_tensor : in_buffer, extents, size,
                     tensor.device());
        packed += extents.product() * size;
      });
}

}  // namespace

// Executions under way, oldest first. Before Kokkos takes their buffers or MPI goes down they are
// waited for, in the order of their start, which is the same on all ranks.
class Execution::UnderWay {
 public:
  static std::uint64_t add(Execution& execution) {
    UnderWay& u = instance();
    std::lock_guard lock(u.mutex_);
    if (u.started_ == 0) {
      detail::on_kokkos_finalize(&end_all);
      detail::on_mpi_finalize(&end_all);
    }
    u.executions_.emplace(++u.started_, &execution);
    ++u.count_;
    return u.started_;
  }
  static void progress() {
    UnderWay& u = instance();
    if (u.count_.load(std::memory_order_relaxed) == 0) return;
    std::lock_guard lock(u.mutex_);
    for (auto& [number, execution] : u.executions_) {
      try {
        execution->test();
      } catch (const Error&) {
        // Kept for whoever waits for this execution.
      }
    }
  }
  static void remove(std::uint64_t number) {
    UnderWay& u = instance();
    std::lock_guard lock(u.mutex_);
    u.executions_.erase(number);
    --u.count_;
  }

 private:
  // Never destroyed: DTensors with static lifetime may outlive every other static object.
  static UnderWay& instance() {
    static auto* instance = new UnderWay;
    return *instance;
  }
  static void end_all() {
    UnderWay& u = instance();
    std::map<std::uint64_t, Execution*> executions;
    {
      std::lock_guard lock(u.mutex_);
      executions.swap(u.executions_);
    }
    for (auto& [number, execution] : executions) execution->end();
  }

  std::mutex mutex_;
  std::map<std::uint64_t, Execution*> executions_;
  std::uint64_t started_ = 0;
  std::atomic<std::int64_t> count_ = 0;  // those not yet destroyed
};

struct Execution::PieceState {
  std::size_t missing = 0;  // contributions still to come
  std::int64_t scratch = 0;
  bool reserved = false;
};

struct Execution::Active {
  bool is_send;
  std::size_t index;
  std::shared_ptr<Storage> scratch;
  std::int64_t bytes;
};

Execution::Execution(std::shared_ptr<const Program> program,
                     std::shared_ptr<Communicator> communicator, Tensor source,
                     std::unique_ptr<Agreement> agreement, std::vector<Tensor> results)
    : program_(std::move(program)),
      communicator_(std::move(communicator)),
      agreement_(std::move(agreement)),
      element_size_(size_of(source.dtype())),
      device_(source.device()) {
  // Messages start before the ranks have agreed; those of ranks that differ must not meet, as they
  // could be larger than the buffers they arrive in.
  // A local move may be made on some ranks only, so it takes no tags.
  if (communicator_ && program_->plan->communicates()) {
    tag_ = communicator_->next_tags(agreement_ ? agreement_->fingerprint() : 0);
  }
  buffers_.push_back(std::move(source));
  buffers_.resize(program_->buffer_shapes.size());
  std::move(results.begin(), results.end(), buffers_.begin() + 1);
  if (program_->stages.empty()) {
    // A rank that an all-reduce leaves out still gets an empty result.
    allocate_buffers(buffers_.size() - 1);
    done_ = true;
    return;
  }
  guarded([&] {
    begin_stage();
    while (work()) progress(false);
  });
  if (!program_->plan->communicates()) test();
}

void Execution::leave_under_way() {
  if (!done_ || agreement_) number_ = UnderWay::add(*this);
}

Execution::~Execution() {
  if (number_ != 0) UnderWay::remove(number_);
  end();
}

void Execution::progress_all() { UnderWay::progress(); }

void Execution::end() noexcept {
  try {
    if (!done_ || agreement_) wait();
  } catch (const std::exception&) {
    // Whoever asked for the result has had this error.
  }
}

// What goes wrong while messages are under way is kept for `wait`; no buffer is given back before
// the network is done with it.
template <class F>
void Execution::guarded(const F& f) {
  try {
    f();
  } catch (...) {
    failure_ = std::current_exception();
    abandon();
  }
}

// Scratch for a message. Where there is no memory for it now, but messages are under way whose
// scratch will come back, there is none yet.
std::shared_ptr<Storage> Execution::try_scratch(std::int64_t bytes) {
  try {
    return Storage::allocate(bytes, device_);
  } catch (const ValueError&) {
    if (requests_.empty()) throw;
    return nullptr;
  }
}

void Execution::allocate_buffers(std::size_t last) {
  for (std::size_t i = 1; i <= last; ++i) {
    if (!buffers_[i].defined()) {
      buffers_[i] = Tensor::empty(program_->buffer_shapes[i], buffers_[0].dtype(), device_);
    }
  }
}

void Execution::begin_stage() {
  const Stage& s = stage();
  const DType dtype = buffers_[0].dtype();
  allocate_buffers(s.output);
  // A stage over all elements in order needs them dense.
  const bool flat = !(s.input_shape == buffers_[s.input].shape());
  input_ = flat ? buffers_[s.input].contiguous().reshape(s.input_shape) : buffers_[s.input];
  output_ = !(s.output_shape == buffers_[s.output].shape())
                ? buffers_[s.output].reshape(s.output_shape)
                : buffers_[s.output];
  if (s.identity) output_.fill(identity_of(*s.identity, dtype));
  fence(device_, "dtensor::begin_stage");
  next_receive_ = next_send_ = next_own_ = oldest_receive_ = 0;
  pieces_left_ = s.pieces.size();
  pieces_.assign(s.pieces.size(), {});
  own_pieces_.clear();
  received_.assign(s.receives.size(), 0);
  contributions_.assign(s.contributions, nullptr);
  for (std::size_t i = 0; i < s.pieces.size(); ++i) {
    const auto& contributors = s.pieces[i].contributors;
    const bool own =
        std::find(contributors.begin(), contributors.end(), program_->self) != contributors.end();
    pieces_[i].missing = contributors.size() - (own ? 1 : 0);
    if (pieces_[i].missing == 0) own_pieces_.push_back(i);
  }
}

bool Execution::post_receives() {
  const Stage& s = stage();
  bool any = false;
  for (; next_receive_ < s.receives.size(); ++next_receive_) {
    const Receive& r = s.receives[next_receive_];
    const Piece& piece = s.pieces[r.piece];
    PieceState& state = pieces_[r.piece];
    unsigned char* direct =
        s.reduces ? nullptr : in_one_piece(output_, piece.transfer, End::destination);
    if (!direct && !state.reserved) {
      state.scratch = bytes(piece.transfer) * (s.reduces ? s.group + 1 : 1);
      const bool oldest = !s.reduces || oldest_receive_ == s.receives.size()
                              ? receive_scratch_ == 0
                              : r.slice == s.receives[oldest_receive_].slice;
      if (!oldest && receive_scratch_ + state.scratch > program_->limits.window_bytes) {
        state.scratch = 0;
        break;
      }
      state.reserved = true;
      receive_scratch_ += state.scratch;
    }
    void* data = direct;
    if (!direct) {
      auto& scratch = contributions_[piece.first_contribution + r.slot];
      scratch = try_scratch(bytes(piece.transfer));
      if (!scratch) break;
      data = scratch->data();
    }
    requests_.push_back(communicator_->irecv(data, bytes(piece.transfer), r.peer, tag_ + s.tag));
    active_.push_back({false, next_receive_, nullptr, 0});
    any = true;
  }
  return any;
}

bool Execution::post_sends() {
  const Stage& s = stage();
  if (next_send_ == s.sends.size()) return false;
  const Send& send = s.sends[next_send_];
  const std::int64_t size = bytes(send.transfer);
  std::shared_ptr<Storage> scratch;
  void* data = in_one_piece(input_, send.transfer, End::source);
  if (!data) {
    if (send_scratch_ > 0 && send_scratch_ + size > program_->limits.window_bytes) return false;
    scratch = try_scratch(size);
    if (!scratch) return false;
    copy_packed(input_, send.transfer, End::source, static_cast<unsigned char*>(scratch->data()));
    fence(device_, "dtensor::pack");
    data = scratch->data();
    send_scratch_ += size;
  }
  requests_.push_back(communicator_->isend(data, size, send.peer, tag_ + s.tag));
  active_.push_back({true, next_send_, std::move(scratch), size});
  ++next_send_;
  return true;
}

bool Execution::copy_own() {
  if (next_own_ == own_pieces_.size()) return false;
  finish_piece(own_pieces_[next_own_++]);
  return true;
}

bool Execution::work() {
  const bool received = post_receives();
  const bool sent = post_sends();
  if (sent || received) return true;
  // The own part is copied while messages are under way. Those that arrive at once are taken
  // before: within a node they are still in a cache then, and copying moves them out of it.
  if (next_own_ == 0 && !own_pieces_.empty()) {
    std::ptrdiff_t patience = 64;  // requests looked at
    while (patience > 0 && !requests_.empty()) {
      patience -= std::ssize(requests_);
      progress(false);
    }
  }
  return copy_own();
}

void Execution::finish_piece(std::size_t index) {
  const Stage& s = stage();
  const Piece& piece = s.pieces[index];
  PieceState& state = pieces_[index];
  const std::span scratch(contributions_.data() + piece.first_contribution,
                          piece.contributors.size());
  if (!s.reduces) {
    if (piece.contributors[0] != program_->self) {
      if (scratch[0]) {
        copy_packed(output_, piece.transfer, End::destination,
                    static_cast<unsigned char*>(scratch[0]->data()));
      }
    } else {
      for_each_box(piece.transfer, [&](const Extents& source, const Extents& destination,
                                       const Extents& extents) {
        copy_strided({at(output_, destination), output_.strides()},
                     {at(input_, source), input_.strides()}, extents, element_size_, device_);
      });
    }
  } else {
    std::vector<const void*> contributions;
    std::shared_ptr<Storage> own;
    for (std::size_t k = 0; k < piece.contributors.size(); ++k) {
      if (piece.contributors[k] != program_->self) {
        contributions.push_back(scratch[k]->data());
      } else if (const void* direct = in_one_piece(input_, piece.transfer, End::source)) {
        contributions.push_back(direct);
      } else {
        own = Storage::allocate(bytes(piece.transfer), device_);
        copy_packed(input_, piece.transfer, End::source, static_cast<unsigned char*>(own->data()));
        contributions.push_back(own->data());
      }
    }
    std::shared_ptr<Storage> result;
    void* out = in_one_piece(output_, piece.transfer, End::destination);
    const bool packed = out == nullptr;
    if (packed) {
      result = Storage::allocate(bytes(piece.transfer), device_);
      out = result->data();
    }
    combine(out, contributions, piece.transfer.elements, output_.dtype(), s.op, s.divisor, device_);
    if (packed) {
      copy_packed(output_, piece.transfer, End::destination, static_cast<unsigned char*>(out));
    }
    fence(device_, "dtensor::reduce");
  }
  receive_scratch_ -= state.scratch;
  if (state.scratch > 0) fence(device_, "dtensor::unpack");
  for (auto& contribution : scratch) contribution = nullptr;
  state = {};
  --pieces_left_;
}

void Execution::on_received(std::size_t receive) {
  const Stage& s = stage();
  received_[receive] = 1;
  while (oldest_receive_ < s.receives.size() && received_[oldest_receive_]) ++oldest_receive_;
  const std::size_t piece = s.receives[receive].piece;
  if (--pieces_[piece].missing == 0) finish_piece(piece);
}

void Execution::progress(bool block) {
  // Data that never comes and the reason for that are waited for together.
  const std::size_t messages = requests_.size();
  if (agreement_ && agreement_->next_round()) {
    const auto more = agreement_->requests();
    requests_.insert(requests_.end(), more.begin(), more.end());
  }
  if (requests_.empty()) return;
  try {
    communicator_->progress(requests_, block);
  } catch (const CommunicationError&) {
    failure_ = std::current_exception();
  }
  if (requests_.size() > messages) {
    std::copy(requests_.begin() + static_cast<std::ptrdiff_t>(messages), requests_.end(),
              agreement_->requests().begin());
    requests_.resize(messages);
    if (!failure_) agreement_->next_round();
  }
  if (failure_) {
    abandon();
    return;
  }
  for (std::size_t i = 0; i < requests_.size();) {
    if (requests_[i].active()) {
      ++i;
      continue;
    }
    Active finished = std::move(active_[i]);
    requests_[i] = requests_.back();
    active_[i] = std::move(active_.back());
    requests_.pop_back();
    active_.pop_back();
    if (finished.is_send) {
      if (finished.scratch) send_scratch_ -= finished.bytes;
    } else {
      on_received(finished.index);
    }
  }
}

bool Execution::stage_done() const noexcept {
  return pieces_left_ == 0 && next_send_ == stage().sends.size() && requests_.empty();
}

void Execution::end_stage() {
  const Stage& s = stage();
  if (s.scale != 1) {
    divide(output_.data(), output_.numel(), output_.dtype(), s.scale, device_);
  }
  fence(device_, "dtensor::end_stage");
  const std::size_t input = s.input;
  if (++stage_ == program_->stages.size()) {
    done_ = true;
    allocate_buffers(buffers_.size() - 1);
    return;
  }
  if (stage().input != input) buffers_[input] = Tensor::empty(Shape{0}, output_.dtype(), device_);
  begin_stage();
}

// The first round is undone by `abandon`; a later one relies on what the ranks agreed on.
bool Execution::may_advance() {
  return !agreement_ || (agreement_->test() && !agreement_->failed());
}

bool Execution::test() {
  guarded([&] {
    while (!done_ && !(agreement_ && agreement_->failed())) {
      const bool worked = work();
      progress(false);
      if (done_) break;
      if (stage_done()) {
        if (!may_advance()) break;
        end_stage();
      } else if (!worked) {
        break;
      }
    }
  });
  if (agreement_ && agreement_->failed()) return true;
  return done_ && (!agreement_ || agreement_->test());
}

const Tensor& Execution::wait() {
  guarded([&] {
    while (!done_ && !(agreement_ && agreement_->failed())) {
      const bool worked = work();
      if (stage_done() && may_advance()) {
        end_stage();
      } else {
        progress(!worked);
      }
    }
  });
  if (agreement_) {
    if (!done_) abandon();
    const auto agreement = std::move(agreement_);
    agreement->wait();
  }
  if (failure_) std::rethrow_exception(failure_);
  return buffers_.back();
}

void Execution::abandon() {
  std::vector<Request> receives, sends;
  auto kept = std::make_shared<std::pair<std::vector<Active>, std::vector<Tensor>>>();
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    (active_[i].is_send ? sends : receives).push_back(requests_[i]);
  }
  kept->first = std::move(active_);
  kept->second = buffers_;
  kept->second.push_back(input_);
  if (communicator_) communicator_->abandon(receives, sends, std::move(kept));
  requests_.clear();
  active_.clear();
  done_ = true;
}

}  // namespace dtensor
