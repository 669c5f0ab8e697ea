// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `Execution`: a program being carried out over a communicator.
#pragma once

#include <memory>
#include <vector>

#include "dtensor/comm/agreement.hpp"
#include "dtensor/comm/communicator.hpp"
#include "dtensor/core/tensor.hpp"
#include "dtensor/redistribute/program.hpp"

namespace dtensor {

/// Starts when constructed, never blocks before `wait`. Packs straight into send buffers, sends
/// from the source and receives into the result where the elements lie in one piece, and copies
/// this rank's own part while messages are under way.
class Execution {
 public:
  /// \param communicator  of the program's participants; may be null when nothing is communicated
  /// \param source        this rank's local tensor, with the shape of the program's first buffer
  /// \param agreement     the comparison of all ranks' arguments under way, if any; no result is
  ///                      used before it has ended well
  /// \param results       what the steps make, with the shapes of the program's buffers after the
  ///                      first; made when needed if absent
  Execution(std::shared_ptr<const Program> program, std::shared_ptr<Communicator> communicator,
            Tensor source, std::unique_ptr<Agreement> agreement, std::vector<Tensor> results = {});
  /// Blocks until the network is done with the buffers.
  ~Execution();
  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;

  /// Makes progress without blocking. Returns whether `wait` would return at once.
  bool test();
  /// To be called when its maker returns before its end: `progress_all` goes on with it, and it is
  /// waited for before Kokkos or MPI is finalized.
  void leave_under_way();
  /// Makes progress on all executions left under way, without blocking. Called when the library
  /// starts new work, so that asynchronous moves go on beside it.
  static void progress_all();
  /// Blocks until done and returns this rank's local result. Throws on every rank what the
  /// agreement found, `CommunicationError` when the network failed.
  const Tensor& wait();

 private:
  class UnderWay;
  struct PieceState;
  struct Active;

  template <class F>
  void guarded(const F& f);
  std::shared_ptr<Storage> try_scratch(std::int64_t bytes);
  void allocate_buffers(std::size_t last);
  void begin_stage();
  void end_stage();
  bool stage_done() const noexcept;
  // One round of posting and local work; whether anything was done.
  bool work();
  bool post_receives();
  bool post_sends();
  bool copy_own();
  void progress(bool block);
  void on_received(std::size_t receive);
  void finish_piece(std::size_t piece);
  void abandon();
  // Waits where that has not been done; what it throws has nobody left to hear it.
  void end() noexcept;

  bool may_advance();

  const Stage& stage() const { return program_->stages[stage_]; }
  std::int64_t bytes(const Transfer& t) const { return t.elements * element_size_; }
  Tensor& buffer(std::size_t i) { return buffers_[i]; }

  std::shared_ptr<const Program> program_;
  std::shared_ptr<Communicator> communicator_;
  std::unique_ptr<Agreement> agreement_;
  std::uint64_t number_ = 0;    // among those left under way; 0 when not one of them
  std::exception_ptr failure_;  // of the network, or for want of memory
  std::int64_t element_size_;
  DeviceKind device_;
  int tag_ = 0;
  std::vector<Tensor> buffers_;
  std::size_t stage_ = 0;
  bool done_ = false;

  // Of the current stage.
  Tensor input_, output_;
  std::size_t next_receive_ = 0, next_send_ = 0, next_own_ = 0, oldest_receive_ = 0;
  std::size_t pieces_left_ = 0;
  std::int64_t send_scratch_ = 0, receive_scratch_ = 0;
  std::vector<PieceState> pieces_;
  std::vector<std::shared_ptr<Storage>> contributions_;  // scratch of each, empty where direct
  std::vector<std::size_t> own_pieces_;
  std::vector<char> received_;
  std::vector<Request> requests_;
  std::vector<Active> active_;
};

}  // namespace dtensor
