// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dtensor/comm/mpi_communicator.hpp"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <mutex>
#include <numeric>
#include <set>

#include "dtensor/comm/runtime.hpp"
#include "dtensor/core/error.hpp"

namespace dtensor {

namespace {

static_assert(sizeof(MPI_Request) <= sizeof(std::uint64_t));

std::uint64_t to_handle(MPI_Request request) {
  std::uint64_t handle = 0;
  std::memcpy(&handle, &request, sizeof(request));
  return handle;
}

MPI_Request to_request(std::uint64_t handle) {
  MPI_Request request;
  std::memcpy(&request, &handle, sizeof(request));
  return request;
}

bool mpi_is_up() {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized && !finalized;
}

// Communicators that exist, by their ranks, so that equal meshes share them.
struct Registry {
  std::mutex mutex;
  std::map<std::vector<int>, std::weak_ptr<MpiCommunicator>> by_ranks;
  std::set<MPI_Comm> live;
  std::vector<void (*)()> callbacks;
  bool hooked = false;
  bool finalized = false;
};

// Never destroyed: meshes with static lifetime may outlive every other static object.
Registry& registry() {
  static auto* instance = new Registry;
  return *instance;
}

// MPI_Finalize deletes the attributes of MPI_COMM_SELF first, while communicators can be freed.
int finalize(MPI_Comm, int, void*, void*) {
  auto& r = registry();
  for (auto callback : r.callbacks) callback();
  std::lock_guard lock(r.mutex);
  for (MPI_Comm comm : r.live) MPI_Comm_free(&comm);
  r.live.clear();
  r.finalized = true;
  return MPI_SUCCESS;
}

void hook_finalize(Registry& r) {
  if (r.hooked) return;
  int key = MPI_KEYVAL_INVALID;
  detail::check_mpi(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &finalize, &key, nullptr),
                    "MPI_Comm_create_keyval");
  detail::check_mpi(MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr), "MPI_Comm_set_attr");
  detail::check_mpi(MPI_Comm_free_keyval(&key), "MPI_Comm_free_keyval");
  r.hooked = true;
}

}  // namespace

namespace detail {
void on_mpi_finalize(void (*callback)()) {
  auto& r = registry();
  std::lock_guard lock(r.mutex);
  r.callbacks.push_back(callback);
}

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(code, text, &length);
  throw CommunicationError(call, std::string(text, static_cast<std::size_t>(length)),
                           "MPI_SUCCESS");
}
}  // namespace detail

using detail::check_mpi;

MpiCommunicator::MpiCommunicator(MPI_Comm comm, int rank, int size, int max_tag)
    : Communicator(rank, size, max_tag), comm_(comm) {}

MpiCommunicator::~MpiCommunicator() {
  auto& r = registry();
  std::lock_guard lock(r.mutex);
  if (r.live.erase(comm_) && mpi_is_up()) MPI_Comm_free(&comm_);
}

std::shared_ptr<MpiCommunicator> MpiCommunicator::of_ranks(const std::vector<int>& world_ranks) {
  detail::require_mpi("MpiCommunicator");
  auto& r = registry();
  {
    std::lock_guard lock(r.mutex);
    hook_finalize(r);
    if (auto it = r.by_ranks.find(world_ranks); it != r.by_ranks.end()) {
      if (auto existing = it->second.lock()) return existing;
    }
  }
  MPI_Group world, group;
  check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
  const int included =
      MPI_Group_incl(world, static_cast<int>(world_ranks.size()), world_ranks.data(), &group);
  MPI_Group_free(&world);
  check_mpi(included, "MPI_Group_incl");
  MPI_Comm comm = MPI_COMM_NULL;
  constexpr int creation_tag = 0x6474;
  const int created = MPI_Comm_create_group(MPI_COMM_WORLD, group, creation_tag, &comm);
  MPI_Group_free(&group);
  check_mpi(created, "MPI_Comm_create_group");
  check_mpi(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  int rank = 0, size = 0, found = 0;
  int* upper = nullptr;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  check_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &upper, &found), "MPI_Comm_get_attr");
  const int max_tag = found ? *upper : 32767;

  std::lock_guard lock(r.mutex);
  r.live.insert(comm);
  std::erase_if(r.by_ranks, [](const auto& entry) { return entry.second.expired(); });
  std::shared_ptr<MpiCommunicator> result(new MpiCommunicator(comm, rank, size, max_tag));
  r.by_ranks[world_ranks] = result;
  return result;
}

int MpiCommunicator::live_count() noexcept {
  auto& r = registry();
  std::lock_guard lock(r.mutex);
  return static_cast<int>(r.live.size());
}

MPI_Comm MpiCommunicator::handle() const {
  if (registry().finalized) {
    throw StateError("Communicator", "a use after MPI_Finalize",
                     "meshes and distributed tensors to be used only while MPI is up");
  }
  return comm_;
}

Request MpiCommunicator::isend(const void* data, std::int64_t bytes, int peer, int tag) {
  MPI_Request request;
  check_mpi(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, handle(), &request),
            "MPI_Isend");
  return Request(to_handle(request));
}

Request MpiCommunicator::irecv(void* data, std::int64_t bytes, int peer, int tag) {
  MPI_Request request;
  check_mpi(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, tag, handle(), &request),
            "MPI_Irecv");
  return Request(to_handle(request));
}

void MpiCommunicator::progress(std::span<Request> requests, bool block) {
  thread_local std::vector<MPI_Request> active;
  thread_local std::vector<std::size_t> where;
  thread_local std::vector<int> done;
  active.clear();
  where.clear();
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (!requests[i].active()) continue;
    active.push_back(to_request(requests[i].handle()));
    where.push_back(i);
  }
  if (active.empty()) return;
  (void)handle();
  done.resize(active.size());
  int count = 0;
  const int n = static_cast<int>(active.size());
  const int code = block ? MPI_Waitsome(n, active.data(), &count, done.data(), MPI_STATUSES_IGNORE)
                         : MPI_Testsome(n, active.data(), &count, done.data(), MPI_STATUSES_IGNORE);
  // A request that has failed is finished too.
  for (std::size_t i = 0; i < active.size(); ++i) {
    if (active[i] == MPI_REQUEST_NULL) requests[where[i]].set_done();
  }
  check_mpi(code, block ? "MPI_Waitsome" : "MPI_Testsome");
}

std::vector<std::string> MpiCommunicator::all_gather_text(const std::string& text) {
  const int own = static_cast<int>(text.size());
  const auto n = static_cast<std::size_t>(size());
  std::vector<int> lengths(n), offsets(n + 1, 0);
  check_mpi(MPI_Allgather(&own, 1, MPI_INT, lengths.data(), 1, MPI_INT, handle()), "MPI_Allgather");
  std::partial_sum(lengths.begin(), lengths.end(), offsets.begin() + 1);
  std::string all(static_cast<std::size_t>(offsets.back()), '\0');
  check_mpi(MPI_Allgatherv(text.data(), own, MPI_CHAR, all.data(), lengths.data(), offsets.data(),
                           MPI_CHAR, handle()),
            "MPI_Allgatherv");
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < n; ++i) {
    texts.push_back(
        all.substr(static_cast<std::size_t>(offsets[i]), static_cast<std::size_t>(lengths[i])));
  }
  return texts;
}

void MpiCommunicator::abandon(std::span<Request> receives, std::span<Request> sends,
                              std::shared_ptr<void> keep_alive) {
  if (!mpi_is_up()) {  // MPI_Finalize has ended them all
    for (Request& r : receives) r.set_done();
    for (Request& r : sends) r.set_done();
    return;
  }
  for (Request& r : receives) {
    if (!r.active()) continue;
    MPI_Request request = to_request(r.handle());
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    r.set_done();
  }
  bool left = false;
  for (Request& r : sends) {
    if (!r.active()) continue;
    MPI_Request request = to_request(r.handle());
    int done = 0;
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    if (!done) {
      // A send cannot be cancelled portably: its buffer stays until the communicator goes.
      MPI_Request_free(&request);
      left = true;
    }
    r.set_done();
  }
  if (left) kept_alive_.push_back(std::move(keep_alive));
}

}  // namespace dtensor
