// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The strided loops around pointwise kernels on the host, compiled once for all operators.
#include <algorithm>

#include "pointwise_kernel.hpp"

namespace dtensor::detail {

namespace {

// Elements of a buffer that holds an operand which the kernel cannot take as it lies in memory.
constexpr std::int64_t block = 2048;
// Elements of a tile that all operands lie dense for.
constexpr std::int64_t grain = std::int64_t{1} << 16;
// A transposition walks one side with a large stride; tiles of this shape keep both sides in cache.
constexpr std::int64_t transposed_rows = 16, transposed_columns = 128;

// Copies a rectangle between memory and a dense buffer of another scalar type.
struct Rectangle {
  std::int64_t rows, columns, row_stride, column_stride;

  template <class F>
  void for_each(const F& f) const {
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t b = i * columns, m = i * row_stride;
      if (column_stride == 1) {
        for (std::int64_t j = 0; j < columns; ++j) f(b + j, m + j);
      } else {
        for (std::int64_t j = 0; j < columns; ++j) f(b + j, m + j * column_stride);
      }
    }
  }
};
using Load = void (*)(void* buffer, const void* memory, const Rectangle&);
using Store = void (*)(void* memory, const void* buffer, const Rectangle&);

// A rectangle whose columns lie dense in memory, in small squares that compilers transpose in
// vector registers; a few columns side by side, so that their waits for memory overlap and each
// line of a cache is used up before columns a power of two apart displace it.
template <class To, class From>
void load_transposed(To* to, const From* from, const Rectangle& r) {
  constexpr std::int64_t side = 4;
  const std::int64_t rows = r.rows - r.rows % side, columns = r.columns - r.columns % side;
  for (std::int64_t j = 0; j < columns; j += side) {
    for (std::int64_t i = 0; i < rows; i += side) {
      To square_of[side * side];
      for (std::int64_t y = 0; y < side; ++y) {
        for (std::int64_t x = 0; x < side; ++x) {
          square_of[y * side + x] = scalar_cast<To>(from[i + x + (j + y) * r.column_stride]);
        }
      }
      for (std::int64_t x = 0; x < side; ++x) {
        for (std::int64_t y = 0; y < side; ++y) {
          to[(i + x) * r.columns + j + y] = square_of[y * side + x];
        }
      }
    }
  }
  for (std::int64_t j = 0; j < r.columns; ++j) {
    for (std::int64_t i = j < columns ? rows : 0; i < r.rows; ++i) {
      to[i * r.columns + j] = scalar_cast<To>(from[i + j * r.column_stride]);
    }
  }
}

template <class To, class From>
void load(void* buffer, const void* memory, const Rectangle& r) {
  auto* const to = static_cast<To*>(buffer);
  const auto* const from = static_cast<const From*>(memory);
  if (r.column_stride == 0 && r.row_stride == 0) {
    std::fill_n(to, r.rows * r.columns, scalar_cast<To>(*from));
  } else if (r.column_stride == 0) {
    for (std::int64_t i = 0; i < r.rows; ++i) {
      std::fill_n(to + i * r.columns, r.columns, scalar_cast<To>(from[i * r.row_stride]));
    }
  } else if (r.row_stride == 1 && r.column_stride != 1) {
    load_transposed(to, from, r);
  } else {
    r.for_each([=](std::int64_t b, std::int64_t m) { to[b] = scalar_cast<To>(from[m]); });
  }
}

template <class To, class From>
void store(void* memory, const void* buffer, const Rectangle& r) {
  auto* const to = static_cast<To*>(memory);
  const auto* const from = static_cast<const From*>(buffer);
  r.for_each([=](std::int64_t b, std::int64_t m) { to[m] = scalar_cast<To>(from[b]); });
}

// Kernels take what is computed in, and bool.
Load find_load(DType to, DType from) {
  return dispatch_dtype(to, [&]<class To>() -> Load {
    constexpr bool is_bool = std::is_same_v<To, bool>;
    if constexpr (is_bool || compute_dtype(dtype_of<To>) == dtype_of<To>) {
      return dispatch_dtype(from, [&]<class From>() -> Load {
        // Conversion only ever goes up.
        constexpr bool loses = (is_complex_scalar<From> && !is_complex_scalar<To>) ||
                               (std::is_integral_v<To> && !std::is_integral_v<From>);
        if constexpr (is_bool || !loses) return load<To, From>;
        return nullptr;
      });
    }
    return nullptr;
  });
}

Store find_store(DType to, DType from) {
  return dispatch_dtype(to, [&]<class To>() -> Store {
    using C = scalar_t<compute_dtype(dtype_of<To>)>;
    if constexpr (std::is_same_v<To, bool>) {
      if (from == DType::boolean) return store<bool, bool>;
    }
    return store<To, C>;
  });
}

// How the work is cut into tiles of rows by columns, the last two dimensions of the loop or, for a
// transposed operand, the dimension along which it lies dense and the last one.
struct Tiling {
  std::int64_t extent[max_rank] = {};  // of each dimension, in tiles
  std::int64_t size[max_rank];         // of a tile, in elements
  int row_dim = 0;
  std::int64_t tiles = 1;
  std::int64_t tiles_per_item = 1;
};

class HostRun {
 public:
  explicit HostRun(const PointwiseCall& call) : call_(call), loop_(call.loop) {
    const int last = loop_.rank - 1;
    tiling_.row_dim = last - 1;
    bool transposed = false;
    for (int k = 0; k < call.operands; ++k) {
      const DType own = call.operand[k].dtype, kernel = call.kernel.dtype[k];
      const std::int64_t stride = loop_.stride[last][k];
      size_[k] = size_of(kernel);
      // Of two operands the kernel takes one as a single element for the row.
      single_[k] = k > 0 && own == kernel && stride == 0 && loop_.count > 1 && call.operands == 3 &&
                   !single_[3 - k];
      direct_[k] = own == kernel && (stride == 1 || loop_.count == 1 || single_[k]);
      step_[k] = single_[k] ? 0 : 1;
      if (direct_[k]) continue;
      all_direct_ = false;
      if (k == 0) {
        store_ = find_store(own, kernel);
      } else {
        load_[k] = find_load(kernel, own);
      }
      if (stride == 1 || stride == 0 || transposed || loop_.count <= block) continue;
      for (int d = 0; d < last; ++d) {
        if (loop_.stride[d][k] != 1) continue;
        transposed = true;
        tiling_.row_dim = d;
      }
    }
    const std::int64_t elements = all_direct_ ? grain : block;
    for (int d = 0; d < loop_.rank; ++d) tiling_.size[d] = 1;
    std::int64_t& columns = tiling_.size[last];
    columns = std::min(loop_.extent[last], transposed ? transposed_columns : elements);
    if (tiling_.row_dim >= 0) {
      tiling_.size[tiling_.row_dim] =
          std::min(loop_.extent[tiling_.row_dim],
                   transposed ? transposed_rows : std::max<std::int64_t>(elements / columns, 1));
    }
    for (int d = 0; d < loop_.rank; ++d) {
      tiling_.extent[d] = (loop_.extent[d] + tiling_.size[d] - 1) / tiling_.size[d];
      tiling_.tiles *= tiling_.extent[d];
    }
    // An operand that is the same in successive tiles is loaded once.
    if (!all_direct_) tiling_.tiles_per_item = grain / block;
  }

  void run() const {
    const std::int64_t per_item = tiling_.tiles_per_item;
    const std::int64_t items = (tiling_.tiles + per_item - 1) / per_item;
    if (items == 1) return run_item(0);
    Kokkos::parallel_for(
        "dtensor::pointwise",
        Kokkos::RangePolicy<HostExecution, Kokkos::IndexType<std::int64_t>>(0, items),
        [=, this](const std::int64_t item) { run_item(item); });
  }

 private:
  struct Buffers {
    alignas(64) unsigned char bytes[max_operands][block * 16];
    std::int64_t offset[max_operands], rows[max_operands], columns[max_operands];
  };

  void run_item(std::int64_t item) const {
    const std::int64_t begin = item * tiling_.tiles_per_item;
    const std::int64_t end = std::min(begin + tiling_.tiles_per_item, tiling_.tiles);
    if (all_direct_) {
      for (std::int64_t tile = begin; tile < end; ++tile) run_tile(tile, nullptr);
      return;
    }
    Buffers buffers;
    for (int k = 0; k < max_operands; ++k) {
      buffers.offset[k] = buffers.rows[k] = buffers.columns[k] = 0;
    }
    for (std::int64_t tile = begin; tile < end; ++tile) run_tile(tile, &buffers);
  }

  void run_tile(std::int64_t tile, Buffers* buffers) const {
    const int last = loop_.rank - 1;
    PerOperand<max_operands> offset = {};
    std::int64_t rows = 1, columns = 1;
    for (int d = last; d >= 0; --d) {
      const std::int64_t rest = d == 0 ? 0 : tile / tiling_.extent[d];
      const std::int64_t begin = (tile - rest * tiling_.extent[d]) * tiling_.size[d];
      tile = rest;
      for (int k = 0; k < call_.operands; ++k) offset.at[k] += begin * loop_.stride[d][k];
      const std::int64_t extent = std::min(tiling_.size[d], loop_.extent[d] - begin);
      if (d == last) columns = extent;
      if (d == tiling_.row_dim) rows = extent;
    }
    const auto row_stride = [&](int k) {
      return tiling_.row_dim < 0 ? columns : loop_.stride[tiling_.row_dim][k];
    };

    unsigned char* pointer[max_operands];
    std::int64_t step[max_operands];  // bytes to the next row
    bool dense = true;
    for (int k = 0; k < call_.operands; ++k) {
      if (direct_[k]) {
        const auto* const data = static_cast<const unsigned char*>(call_.operand[k].elements());
        pointer[k] = const_cast<unsigned char*>(data) + offset[k] * size_[k];
        step[k] = row_stride(k) * size_[k];
        const std::int64_t to_next = single_[k] ? 0 : columns;
        dense = dense && (rows == 1 || row_stride(k) == to_next);
        continue;
      }
      pointer[k] = buffers->bytes[k];
      step[k] = columns * size_[k];
      const bool loaded = buffers->offset[k] == offset[k] && buffers->columns[k] == columns &&
                          buffers->rows[k] >= rows;
      if (k == 0 || loaded) continue;
      load_[k](pointer[k], memory(k, offset[k]),
               {rows, columns, row_stride(k), loop_.stride[last][k]});
      buffers->offset[k] = offset[k];
      buffers->rows[k] = rows;
      buffers->columns[k] = columns;
    }
    const int inputs = call_.operands - 1;
    const void* in[max_operands - 1];
    for (std::int64_t i = 0; i < (dense ? 1 : rows); ++i) {
      for (int k = 0; k < inputs; ++k) in[k] = pointer[k + 1] + i * step[k + 1];
      call_.kernel.host(pointer[0] + i * step[0], in, step_ + 1, dense ? rows * columns : columns);
    }
    if (!direct_[0]) {
      store_(const_cast<void*>(memory(0, offset[0])), pointer[0],
             {rows, columns, row_stride(0), loop_.stride[last][0]});
    }
  }

  const void* memory(int k, std::int64_t offset) const {
    const PointwiseOperand& operand = call_.operand[k];
    return static_cast<const unsigned char*>(operand.elements()) + offset * size_of(operand.dtype);
  }

  const PointwiseCall& call_;
  const StridedLoop<max_operands>& loop_;
  Tiling tiling_;
  bool all_direct_ = true;
  bool direct_[max_operands] = {};  // taken as it lies in memory
  bool single_[max_operands] = {};  // one element for a whole row
  std::int64_t step_[max_operands] = {};
  std::int64_t size_[max_operands] = {};
  Load load_[max_operands] = {};
  Store store_ = nullptr;
};

}  // namespace

void run_on_host(const PointwiseCall& call) { HostRun(call).run(); }

}  // namespace dtensor::detail
