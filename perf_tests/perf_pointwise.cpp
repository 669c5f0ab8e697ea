// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Pointwise operators beside hand-written Kokkos kernels on Views. Both sides read the same inputs
// and allocate their results alike.
#include <dtensor/comm/runtime.hpp>
#include <dtensor/core/error.hpp>
#include <dtensor/ops/pointwise.hpp>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <functional>
#include <stdexcept>

#include "support/program.hpp"
#include "support/report.hpp"
#include "support/timing.hpp"

namespace {

using namespace dtensor;

template <class T>
using Vector =
    Kokkos::View<T*, Kokkos::LayoutRight, DeviceMemory, Kokkos::MemoryTraits<Kokkos::Unmanaged>>;
template <class T>
Vector<T> view(const Tensor& t) {
  return Vector<T>(static_cast<T*>(t.data()), static_cast<std::size_t>(t.numel()));
}

using Policy = Kokkos::RangePolicy<DeviceExecution, Kokkos::IndexType<std::int64_t>>;

template <class T>
struct Kernels {
  struct Add {
    Vector<T> o, x, y;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const { o(i) = x(i) + y(i); }
  };
  struct Scale {
    Vector<T> o, x;
    T factor;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const { o(i) = x(i) * factor; }
  };
  struct Exp {
    Vector<T> o, x;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const { o(i) = std::exp(x(i)); }
  };
  struct Where {
    Vector<T> o;
    Vector<bool> c;
    Vector<T> x, y;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const {
      o(i) = c(i) ? x(i) : y(i);
    }
  };
  struct Less {
    Vector<bool> o;
    Vector<T> x, y;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t i) const { o(i) = x(i) < y(i); }
  };
  // Square tiles, as the two operands differ in which dimension lies dense.
  struct AddTransposed {
    Vector<T> o, x, y;
    std::int64_t n;
    KOKKOS_INLINE_FUNCTION void operator()(const std::int64_t tile) const {
      const std::int64_t tiles = (n + 31) / 32, r = tile / tiles * 32, c = tile % tiles * 32;
      const std::int64_t r_end = r + 32 < n ? r + 32 : n, c_end = c + 32 < n ? c + 32 : n;
      for (std::int64_t i = r; i < r_end; ++i) {
        for (std::int64_t j = c; j < c_end; ++j) o(i * n + j) = x(i * n + j) + y(j * n + i);
      }
    }
  };
};

template <class T>
class Rows {
 public:
  Rows(const char* type, const char* size, std::int64_t bytes, const perf::Options& options,
       perf::Report& report)
      : options_(options), report_(report), suffix_(std::string(", ") + type + ", " + size) {
    count_ = bytes / static_cast<std::int64_t>(sizeof(T));
    const auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(count_)));
    count_ = root * root;
    large_ = bytes >= 1 << 20;
    std::vector<T> a(static_cast<std::size_t>(count_)), b = a;
    for (std::size_t i = 0; i < a.size(); ++i) {
      a[i] = static_cast<T>(i % 1000) / T(250) - T(2);
      b[i] = static_cast<T>(i % 777) / T(200) - T(2);
    }
    const Tensor x = Tensor::from_vector(a, {count_}), y = Tensor::from_vector(b, {count_});
    const Tensor c = x < y;
    const auto vx = view<T>(x), vy = view<T>(y);
    const auto vc = view<bool>(c);
    using K = Kernels<T>;
    const auto out = [&](auto&& kernel) {
      const Tensor o = empty();
      Kokkos::parallel_for("reference", Policy(0, count_), kernel(view<T>(o)));
      return o;
    };
    compare(
        "add", [&] { return add(x, y); },
        [&] { return out([&](auto o) {
                return typename K::Add{o, vx, vy};
              }); });
    compare(
        "mul by a number", [&] { return mul(x, 2.5); },
        [&] { return out([&](auto o) {
                return typename K::Scale{o, vx, T(2.5)};
              }); });
    compare(
        "exp", [&] { return exp(x); },
        [&] { return out([&](auto o) {
                return typename K::Exp{o, vx};
              }); });
    compare(
        "where", [&] { return where(c, x, y); },
        [&] { return out([&](auto o) {
                return typename K::Where{o, vc, vx, vy};
              }); });
    compare(
        "lt", [&] { return lt(x, y); },
        [&] {
          const Tensor o = Tensor::empty({count_}, DType::boolean);
          Kokkos::parallel_for("reference", Policy(0, count_),
                               typename K::Less{view<bool>(o), vx, vy});
          return o;
        });
    const auto add_by_hand = [&](const Tensor& t) {
      Kokkos::parallel_for("reference", Policy(0, count_),
                           typename K::Add{view<T>(t), view<T>(t), vy});
      return t;
    };
    // Both in the same memory: what one block happens to get of large pages is no difference.
    const Tensor target = x.clone();
    if (selects("add_")) {
      check("add_", add_(x.clone(), y), add_by_hand(x.clone()));
      measure(
          "add_", [&] { return add_(target, y); }, [&] { return add_by_hand(target); });
    }
    const Tensor m = x.reshape({root, root}), t = y.reshape({root, root}).transpose(0, 1);
    compare(
        "add a transposed matrix", [&] { return add(m, t); },
        [&] {
          const Tensor o = Tensor::empty({root, root}, dtype_of<T>);
          const std::int64_t tiles = (root + 31) / 32;
          Kokkos::parallel_for("reference", Policy(0, tiles * tiles),
                               typename K::AddTransposed{view<T>(o), vx, vy, root});
          return o;
        });
  }

 private:
  Tensor empty() const { return Tensor::empty({count_}, dtype_of<T>); }

  bool selects(const std::string& name) const { return options_.selects(name + suffix_); }

  void compare(const std::string& name, const std::function<Tensor()>& ours,
               const std::function<Tensor()>& reference) {
    if (!selects(name)) return;
    check(name, ours(), reference());
    measure(name, ours, reference);
  }

  static void check(const std::string& name, const Tensor& ours, const Tensor& reference) {
    const Tensor a = ours.to(DeviceKind::host), b = reference.to(DeviceKind::host);
    fence(DeviceKind::device, "compare");
    const auto bytes = static_cast<std::size_t>(a.numel() * size_of(a.dtype()));
    if (a.dtype() != b.dtype() || std::memcmp(a.data(), b.data(), bytes) != 0) {
      throw std::runtime_error(name + ": the two results differ");
    }
  }

  void measure(const std::string& name, const std::function<Tensor()>& ours,
               const std::function<Tensor()>& reference) {
    const auto run = [](const std::function<Tensor()>& f) {
      const Tensor result = f();
      fence(result.device(), "measured");
    };
    const perf::Comparison c = perf::compare(
        options_.min_time, [&] { run(ours); }, [&] { run(reference); });
    report_.add({name + suffix_, c.seconds, "Kokkos kernel", c.reference_seconds,
                 large_ ? std::optional(1.11) : std::nullopt});
  }

  const perf::Options& options_;
  perf::Report& report_;
  std::string suffix_;
  std::int64_t count_ = 0;
  bool large_ = false;
};

void run(const perf::Options& options) {
  perf::Report report;
  struct Size {
    const char* name;
    std::int64_t bytes;
  };
  for (const Size& size : {Size{"1 KB", 1 << 10}, Size{"1 MB", 1 << 20}, Size{"64 MB", 64 << 20}}) {
    Rows<double>("float64", size.name, size.bytes, options, report);
    Rows<float>("float32", size.name, size.bytes, options, report);
  }
  report.write(options.json);
}

}  // namespace

int main(int argc, char** argv) {
  return dtensor::perf::main_with(
      argc, argv, "Times pointwise operators beside hand-written Kokkos kernels.", run);
}
