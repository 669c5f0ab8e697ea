// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// `Communicator` over MPI 3.1.
#pragma once

#include <mpi.h>

#include <memory>
#include <vector>

#include "dtensor/comm/communicator.hpp"

namespace dtensor {

/// Owns an MPI communicator. It is freed with the object, or by `MPI_Finalize` when that comes
/// first; a use after that throws `StateError`.
class MpiCommunicator final : public Communicator {
 public:
  ~MpiCommunicator() override;

  /// The communicator of these ranks of `MPI_COMM_WORLD`, in this order. Equal lists share one as
  /// long as anyone holds it. Collective over the listed ranks when none is held.
  static std::shared_ptr<MpiCommunicator> of_ranks(const std::vector<int>& world_ranks);

  /// For the program's own use; not to be freed. Throws `StateError` after `MPI_Finalize`.
  MPI_Comm handle() const;

  Request isend(const void* data, std::int64_t bytes, int peer, int tag) override;
  Request irecv(void* data, std::int64_t bytes, int peer, int tag) override;
  void progress(std::span<Request> requests, bool block) override;
  std::vector<std::string> all_gather_text(const std::string& text) override;
  void abandon(std::span<Request> receives, std::span<Request> sends,
               std::shared_ptr<void> keep_alive) override;

  /// Number of MPI communicators that the library holds now.
  static int live_count() noexcept;

 private:
  MpiCommunicator(MPI_Comm comm, int rank, int size, int max_tag);

  MPI_Comm comm_;
  std::vector<std::shared_ptr<void>> kept_alive_;
};

namespace detail {
/// Throws `CommunicationError` with MPI's own text unless `code` is `MPI_SUCCESS`.
void check_mpi(int code, const char* call);
}  // namespace detail

}  // namespace dtensor
