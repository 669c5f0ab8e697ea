// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Redistribution beside hand-written MPI for the same move: boxes packed by plain loops into
// buffers that are allocated once, one collective call, unpacked by plain loops into a result that
// is allocated once. What needs no packing is sent and received in place. An exchange of boxes is
// also measured beside a reference that keeps a rank's own box out of the collective and copies it
// straight from source to result, as the library does; these rows have no goal.
#include <dtensor/comm/runtime.hpp>
#include <dtensor/core/error.hpp>
#include <dtensor/distributed/dtensor.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>

#include "support/program.hpp"
#include "support/report.hpp"
#include "support/timing.hpp"

namespace {

using namespace dtensor;

// A local tensor as an array. Both sides read the same source and use memory of the same pool, so
// that neither has larger pages than the other.
class Values {
 public:
  explicit Values(Tensor memory) : memory_(std::move(memory)) {}
  explicit Values(std::int64_t size = 0)
      : Values(Tensor::empty({size}, DType::float64, DeviceKind::host)) {}

  std::int64_t size() const { return memory_.numel(); }
  double* data() { return memory_.data_as<double>(); }
  const double* data() const { return memory_.data_as<double>(); }

 private:
  Tensor memory_;
};

int rank_count() { return Runtime::size(); }

// Half-open ranges of rows and columns of the global matrix.
struct Box {
  std::int64_t row_begin, row_end, column_begin, column_end;

  std::int64_t rows() const { return std::max<std::int64_t>(row_end - row_begin, 0); }
  std::int64_t columns() const { return std::max<std::int64_t>(column_end - column_begin, 0); }
  std::int64_t elements() const { return rows() * columns(); }
};

Box intersect(const Box& a, const Box& b) {
  return {std::max(a.row_begin, b.row_begin), std::min(a.row_end, b.row_end),
          std::max(a.column_begin, b.column_begin), std::min(a.column_end, b.column_end)};
}

// Block (i, j) of a matrix that is cut into m by n equal blocks.
Box block(const Shape& shape, std::int64_t i, std::int64_t m, std::int64_t j, std::int64_t n) {
  const std::int64_t rows = shape[0] / m, columns = shape[1] / n;
  return {i * rows, (i + 1) * rows, j * columns, (j + 1) * columns};
}

void copy_rows(double* to, std::int64_t to_stride, const double* from, std::int64_t from_stride,
               const Box& extents) {
  const auto bytes = static_cast<std::size_t>(extents.columns()) * sizeof(double);
  for (std::int64_t i = 0; i < extents.rows(); ++i) {
    std::memcpy(to + i * to_stride, from + i * from_stride, bytes);
  }
}

// Every rank holds one box before and one after; MPI_Alltoallv moves the intersections.
class BoxExchange {
 public:
  BoxExchange(const std::vector<Box>& before, const std::vector<Box>& after, bool own_aside)
      : rank_(static_cast<std::size_t>(Runtime::rank())),
        before_(before[rank_]),
        after_(after[rank_]),
        own_aside_(own_aside) {
    for (std::size_t peer = 0; peer < before.size(); ++peer) {
      const bool aside = own_aside && peer == rank_;
      send_.add(intersect(before_, after[peer]), before_, aside);
      receive_.add(intersect(before[peer], after_), after_, aside);
    }
    send_.finish();
    receive_.finish();
  }

  void operator()(const Values& source, Values& result) {
    if (!send_.in_place) {
      for (std::size_t peer = 0; peer < send_.boxes.size(); ++peer) {
        const Box& box = send_.boxes[peer];
        if (own_aside_ && peer == rank_) continue;
        copy_rows(send_.buffer.data() + send_.offsets[peer], box.columns(),
                  source.data() + offset(box, before_), before_.columns(), box);
      }
    }
    MPI_Alltoallv(send_.in_place ? source.data() : send_.buffer.data(), send_.counts.data(),
                  send_.offsets.data(), MPI_DOUBLE,
                  receive_.in_place ? result.data() : receive_.buffer.data(),
                  receive_.counts.data(), receive_.offsets.data(), MPI_DOUBLE, MPI_COMM_WORLD);
    if (own_aside_) {
      const Box& own = send_.boxes[rank_];
      copy_rows(result.data() + offset(own, after_), after_.columns(),
                source.data() + offset(own, before_), before_.columns(), own);
    }
    if (!receive_.in_place) {
      for (std::size_t peer = 0; peer < receive_.boxes.size(); ++peer) {
        const Box& box = receive_.boxes[peer];
        if (own_aside_ && peer == rank_) continue;
        copy_rows(result.data() + offset(box, after_), after_.columns(),
                  receive_.buffer.data() + receive_.offsets[peer], box.columns(), box);
      }
    }
  }

 private:
  static std::int64_t offset(const Box& box, const Box& holder) {
    if (box.elements() == 0) return 0;
    return (box.row_begin - holder.row_begin) * holder.columns() + box.column_begin -
           holder.column_begin;
  }

  // One direction: a box per peer, in place when whole rows of the tensor travel.
  struct Side {
    std::vector<Box> boxes;
    std::vector<int> counts, offsets, places;
    bool in_place = true;
    Values buffer;

    void add(const Box& box, const Box& holder, bool aside) {
      boxes.push_back(box);
      counts.push_back(aside ? 0 : static_cast<int>(box.elements()));
      places.push_back(static_cast<int>(offset(box, holder)));
      in_place &= aside || box.elements() == 0 || box.columns() == holder.columns();
    }
    void finish() {
      offsets.resize(counts.size());
      std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), 0);
      if (in_place) {
        offsets = places;
      } else {
        buffer = Values(std::int64_t{offsets.back()} + counts.back());
      }
    }
  };

  std::size_t rank_;
  Box before_, after_;
  bool own_aside_;
  Side send_, receive_;
};

struct Move {
  std::string name;
  std::string reference;
  Shape mesh;
  Placements from, to;
  Shape shape;
  std::function<void(const Values& source, Values& result)> by_hand;
  bool has_goal = true;
};

// About square, of `elements` elements, both extents divisible by the number of ranks.
Shape matrix_shape(std::int64_t elements) {
  const std::int64_t n = rank_count();
  const auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(elements)));
  const std::int64_t rows = std::max(root / n, std::int64_t{1}) * n;
  return {rows, std::max(elements / rows / n, std::int64_t{1}) * n};
}

// The moves of tensors of which each rank holds `elements` elements before.
std::vector<Move> moves(std::int64_t elements) {
  const std::int64_t n = rank_count();
  const Shape sharded = matrix_shape(n * elements), whole = matrix_shape(elements);
  std::vector<Box> by_rows, by_columns;
  for (std::int64_t r = 0; r < n; ++r) {
    by_rows.push_back(block(sharded, r, n, 0, 1));
    by_columns.push_back(block(sharded, 0, 1, r, n));
  }
  std::vector<Move> result;
  const auto add_exchange = [&](const std::string& name, const std::string& reference,
                                const Shape& mesh, const Placements& from, const Placements& to,
                                const std::vector<Box>& before, const std::vector<Box>& after) {
    result.push_back({name, reference, mesh, from, to, sharded, BoxExchange(before, after, false)});
    result.push_back({name + ", own box aside", reference + ", own box copied directly", mesh, from,
                      to, sharded, BoxExchange(before, after, true), false});
  };
  add_exchange("S0 to S1", "pack, MPI_Alltoallv", {n}, {Shard(0)}, {Shard(1)}, by_rows, by_columns);
  add_exchange("S1 to S0", "MPI_Alltoallv, unpack", {n}, {Shard(1)}, {Shard(0)}, by_columns,
               by_rows);
  result.insert(result.end(),
                {{"S0 to R",
                  "MPI_Allgatherv",
                  {n},
                  {Shard(0)},
                  {Replicate()},
                  sharded,
                  [counts = std::vector<int>(static_cast<std::size_t>(n)),
                   offsets = std::vector<int>(static_cast<std::size_t>(n))](const Values& source,
                                                                            Values& out) mutable {
                    const int own = static_cast<int>(source.size());
                    counts.assign(counts.size(), own);
                    std::exclusive_scan(counts.begin(), counts.end(), offsets.begin(), 0);
                    MPI_Allgatherv(source.data(), own, MPI_DOUBLE, out.data(), counts.data(),
                                   offsets.data(), MPI_DOUBLE, MPI_COMM_WORLD);
                  }},
                 {"P to R",
                  "MPI_Allreduce",
                  {n},
                  {Partial()},
                  {Replicate()},
                  whole,
                  [](const Values& source, Values& out) {
                    MPI_Allreduce(source.data(), out.data(), static_cast<int>(out.size()),
                                  MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
                  }},
                 {"P to S0",
                  "MPI_Reduce_scatter",
                  {n},
                  {Partial()},
                  {Shard(0)},
                  whole,
                  [counts = std::vector<int>(static_cast<std::size_t>(n))](const Values& source,
                                                                           Values& out) mutable {
                    counts.assign(counts.size(), static_cast<int>(out.size()));
                    MPI_Reduce_scatter(source.data(), out.data(), counts.data(), MPI_DOUBLE,
                                       MPI_SUM, MPI_COMM_WORLD);
                  }}});
  if (n >= 4 && n % 2 == 0) {
    const std::int64_t m = n / 2;
    std::vector<Box> before, after;
    for (std::int64_t r = 0; r < n; ++r) {
      before.push_back(block(sharded, r / m, 2, r % m, m));
      after.push_back(block(sharded, r % m, m, r / m, 2));
    }
    add_exchange("[S0,S1] to [S1,S0]", "pack, MPI_Alltoallv, unpack", {2, m}, {Shard(0), Shard(1)},
                 {Shard(1), Shard(0)}, before, after);
  }
  return result;
}

std::optional<double> goal(const Move& move, std::int64_t bytes) {
  if (bytes < 1 << 20 || !move.has_goal) return std::nullopt;
  return bytes >= 64 << 20 && move.name == "S0 to S1" ? 1.0 : 1.05;
}

void measure(const Move& move, const std::string& name, std::int64_t bytes,
             const perf::Options& options, perf::Report& report) {
  const DeviceMesh mesh(move.mesh, {}, DeviceKind::host);
  const Layout before(move.shape, mesh.grid(), move.from);
  const Shape local = before.local_shape(*mesh.coordinate());
  // Integers: every sum is exact, whatever its order.
  std::vector<double> values(static_cast<std::size_t>(local.product()));
  std::iota(values.begin(), values.end(), static_cast<double>(Runtime::rank() * local.product()));
  const DTensor tensor(mesh, before, Tensor::from_vector(values, local, DeviceKind::host));
  const Values source(tensor.to_local());
  Values result;
  {
    const Tensor moved = tensor.redistribute(move.to).to_local();
    result = Values(moved.numel());
    move.by_hand(source, result);
    int equal = std::equal(result.data(), result.data() + result.size(), moved.data_as<double>());
    MPI_Allreduce(MPI_IN_PLACE, &equal, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!equal) throw std::runtime_error(name + ": the two results differ");
  }
  const perf::Comparison c = perf::compare(
      options.min_time, [&] { tensor.redistribute(move.to).wait(); },
      [&] { move.by_hand(source, result); });
  report.add({name, c.seconds, move.reference, c.reference_seconds, goal(move, bytes)});
}

void run(const perf::Options& options) {
  struct Size {
    const char* name;
    std::int64_t bytes;
  };
  perf::Report report;
  for (const Size& size : {Size{"1 KB", 1 << 10}, Size{"1 MB", 1 << 20}, Size{"64 MB", 64 << 20}}) {
    for (const Move& move : moves(size.bytes / static_cast<std::int64_t>(sizeof(double)))) {
      const std::string name = move.name + ", " + size.name;
      if (options.selects(name)) measure(move, name, size.bytes, options, report);
    }
  }
  report.write(options.json);
}

}  // namespace

int main(int argc, char** argv) {
  return dtensor::perf::main_with(argc, argv, "Times redistribution beside hand-written MPI.", run);
}
