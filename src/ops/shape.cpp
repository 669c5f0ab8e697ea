// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The operators of shapes, made of the primitives for either kind of tensor.
#include "dtensor/ops/shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "dtensor/core/error.hpp"
#include "dtensor/ops/dispatch.hpp"
#include "dtensor/ops/promotion.hpp"
#include "shape_primitives.hpp"

namespace dtensor {

namespace detail {

void check_rank(const char* function, std::size_t dims) {
  if (dims <= static_cast<std::size_t>(max_rank)) return;
  throw ValueError(function, fmt::format("{} dimensions", dims),
                   fmt::format("at most {}", max_rank));
}

Scalar as_element(const char* function, DType dtype, const Scalar& value) {
  const bool integer = value.kind() == Scalar::Kind::integer;
  if (dtype == DType::boolean && integer) {
    const auto number = value.to<std::int64_t>();
    if (number == 0 || number == 1) return number == 1;
  }
  if (common_dtype(function, dtype, value) == dtype) return value;
  throw TypeError(function,
                  fmt::format("{} for a tensor of {}", to_string(value), to_string(dtype)),
                  dtype == DType::boolean ? "false, true, 0 or 1"
                                          : "a number of the kind of the tensor's type");
}

}  // namespace detail

ShapeArgument::ShapeArgument(const Shape& shape)
    : extents_(shape), size_(static_cast<std::size_t>(shape.size())) {}
ShapeArgument::ShapeArgument(std::initializer_list<std::int64_t> extents) : size_(extents.size()) {
  if (size_ <= static_cast<std::size_t>(max_rank)) extents_ = extents;
}
ShapeArgument::ShapeArgument(const std::vector<std::int64_t>& extents) : size_(extents.size()) {
  if (size_ <= static_cast<std::size_t>(max_rank)) extents_ = extents;
}

const Shape& ShapeArgument::of(const char* function) const {
  detail::check_rank(function, size_);
  return extents_;
}

namespace {

using Numbers = std::vector<std::int64_t>;

std::string text(const Numbers& numbers) { return fmt::format("({})", fmt::join(numbers, ", ")); }

// The shape with what is left in place of -1, for `count` elements.
Shape inferred(const char* function, const Shape& shape, std::int64_t count,
               const std::string& of) {
  Shape result = shape;
  int open = -1;
  std::int64_t known = 1;
  bool fits = true;
  for (int d = 0; d < shape.size(); ++d) {
    if (shape[d] == -1 && open < 0) {
      open = d;
      result[d] = 1;
    }
    fits = fits && result[d] >= 0;
  }
  if (fits) {
    known = checked_element_count(function, result);
    if (open >= 0) {
      fits = known > 0 && count % known == 0;
      if (fits) result[open] = count / known;
    } else {
      fits = known == count;
    }
  }
  if (fits) return result;
  throw ValueError(function, fmt::format("shape {} for {}", to_string(shape), of),
                   fmt::format("extents that make up {} elements, at most one of them -1", count));
}

template <class T>
T viewed(const char* function, const T& a, const Shape& shape, bool may_copy) {
  return detail::reshaped(
      function, a,
      inferred(function, shape, a.numel(), "a tensor of shape " + to_string(a.shape())), may_copy);
}

// Dimensions counted from the front, each at most once.
Numbers checked_dims(const char* function, const Numbers& dims, int rank) {
  Numbers result;
  for (std::int64_t d : dims) {
    const std::int64_t dim = normalize_dim(function, d, rank);
    if (std::find(result.begin(), result.end(), dim) != result.end()) {
      throw ValueError(function, "dimensions " + text(dims), "each dimension at most once");
    }
    result.push_back(dim);
  }
  return result;
}

void check_same_count(const char* function, const char* what, const Numbers& a, const Numbers& b) {
  if (a.size() == b.size()) return;
  throw ValueError(function, fmt::format("{} {} and {}", what, text(a), text(b)),
                   "as many of one as of the other");
}

template <class T>
T narrowed(const char* function, const T& a, int dim, std::int64_t start, std::int64_t length) {
  return detail::sliced(function, a, dim, start, 1, length);
}

template <class T>
T without_dims(const char* function, const T& a, const std::vector<int>& dims) {
  Shape shape;
  for (int d = 0; d < a.dim(); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) shape.push_back(a.shape()[d]);
  }
  return detail::reshaped(function, a, shape, true);
}

template <class T>
std::vector<T> pieces(const char* function, const T& a, const Numbers& sizes, int dim) {
  std::vector<T> result;
  std::int64_t start = 0;
  for (std::int64_t size : sizes) {
    result.push_back(narrowed(function, a, dim, start, size));
    start += size;
  }
  return result;
}

Numbers equal_sizes(std::int64_t extent, std::int64_t size) {
  Numbers sizes;
  for (std::int64_t start = 0; start < extent; start += size) {
    sizes.push_back(std::min(size, extent - start));
  }
  if (sizes.empty()) sizes.push_back(0);
  return sizes;
}

void check_one_place(const char* function, const Tensor& a, const Tensor& b) {
  check_same_memory(function, a, b);
}
void check_one_place(const char* function, const DTensor& a, const DTensor& b) {
  detail::check_mesh(function, a, b);
}

template <class T>
int check_list(const char* function, const std::vector<T>& tensors, std::int64_t dim,
               bool new_dim) {
  if (tensors.empty()) throw ValueError(function, "no tensors", "at least one");
  const T& first = tensors.front();
  const int d = normalize_dim(function, dim, first.dim() + (new_dim ? 1 : 0));
  for (const T& t : tensors) {
    common_dtype(function, first.dtype(), t.dtype());
    check_one_place(function, first, t);
    bool fits = t.dim() == first.dim();
    for (int k = 0; fits && k < t.dim(); ++k) {
      fits = t.shape()[k] == first.shape()[k] || (k == d && !new_dim);
    }
    if (fits) continue;
    throw ValueError(function,
                     fmt::format("shapes {} and {} along dimension {}", to_string(first.shape()),
                                 to_string(t.shape()), d),
                     new_dim ? "equal shapes" : "equal extents of all other dimensions");
  }
  return d;
}

// Checks the size of tensors one after the other along `dim`.
template <class T>
void check_sum(const char* function, const std::vector<T>& tensors, int dim) {
  Shape shape = tensors.front().shape();
  shape[dim] = 0;
  for (const T& t : tensors) {
    shape[dim] += t.shape()[dim];
    checked_element_count(function, shape);
  }
}

// `result`, in memory of its own where it is all or a part of the operator's input.
Tensor separated(const Tensor& result, const Tensor& a) {
  return result.storage() == a.storage() ? result.clone() : result;
}
DTensor separated(const DTensor& result, const DTensor& a) {
  if (!a.device_mesh().is_member() || result.to_local().storage() != a.to_local().storage()) {
    return result;
  }
  return detail::assemble(result, result.layout(), result.dtype(),
                          [&] { return result.to_local().clone(); });
}

// A tensor of a shape without elements, placed as `a` is. The empty dimension comes first, so that
// nothing is made or moved for the others.
template <class T>
T without_elements(const char* function, const T& a, const Shape& shape) {
  int empty = 0;
  while (shape[empty] != 0) ++empty;
  T result = detail::rearranged(function, a, empty, 0, {});
  for (int d = 0; d < shape.size(); ++d) {
    if (d != empty) result = detail::rearranged(function, result, d, shape[d], {});
  }
  return result;
}

template <class T>
T with_new_dim(const char* function, const T& a, int at) {
  detail::check_rank(function, static_cast<std::size_t>(a.dim()) + 1);
  Shape shape;
  for (int d = 0; d <= a.dim(); ++d) {
    if (d == at) shape.push_back(1);
    if (d < a.dim()) shape.push_back(a.shape()[d]);
  }
  return detail::reshaped(function, a, shape, true);
}

template <class T>
T rolled(const char* function, const T& a, int dim, std::int64_t shift) {
  const std::int64_t n = a.shape()[dim];
  const std::int64_t s = n == 0 ? 0 : ((shift % n) + n) % n;
  if (s == 0) return a;
  return detail::rearranged(function, a, dim, n, {{0, n - s, s}, {s, 0, n - s}});
}

}  // namespace

template <AnyTensor T>
T view(const T& a, const ShapeArgument& shape) {
  return viewed("view", a, shape.of("view"), false);
}

template <AnyTensor T>
T reshape(const T& a, const ShapeArgument& shape) {
  return viewed("reshape", a, shape.of("reshape"), true);
}

template <AnyTensor T>
T flatten(const T& a, std::int64_t start, std::int64_t end) {
  const int rank = std::max(a.dim(), 1);
  const int begin = normalize_dim("flatten", start, rank);
  const int last = normalize_dim("flatten", end, rank);
  if (last < begin) {
    throw ValueError("flatten", fmt::format("dimensions {} to {}", start, end),
                     "a first dimension that is not behind the last one");
  }
  if (a.dim() == 0) return viewed("flatten", a, {1}, true);
  Shape shape;
  for (int d = 0; d < a.dim(); ++d) {
    if (d > begin && d <= last) {
      shape[begin] *= a.shape()[d];
    } else {
      shape.push_back(a.shape()[d]);
    }
  }
  return detail::reshaped("flatten", a, shape, true);
}

template <AnyTensor T>
T unflatten(const T& a, std::int64_t dim, const ShapeArgument& sizes) {
  const int at = normalize_dim("unflatten", dim, a.dim());
  const Shape extents =
      inferred("unflatten", sizes.of("unflatten"), a.shape()[at],
               fmt::format("dimension {} of a tensor of shape {}", at, to_string(a.shape())));
  detail::check_rank("unflatten", static_cast<std::size_t>(a.dim() - 1 + extents.size()));
  Shape shape;
  for (int d = 0; d < a.dim(); ++d) {
    if (d != at) {
      shape.push_back(a.shape()[d]);
    } else {
      for (std::int64_t e : extents) shape.push_back(e);
    }
  }
  checked_element_count("unflatten", shape);
  return detail::reshaped("unflatten", a, shape, false);
}

template <AnyTensor T>
T permute(const T& a, const Numbers& dims) {
  if (static_cast<int>(dims.size()) != a.dim()) {
    throw ValueError("permute", "dimensions " + text(dims),
                     fmt::format("each of the {} dimensions once", a.dim()));
  }
  return detail::permuted("permute", a, checked_dims("permute", dims, a.dim()));
}

template <AnyTensor T>
T transpose(const T& a, std::int64_t dim0, std::int64_t dim1) {
  Numbers dims(static_cast<std::size_t>(a.dim()));
  std::iota(dims.begin(), dims.end(), 0);
  const auto d0 = static_cast<std::size_t>(normalize_dim("transpose", dim0, a.dim()));
  const auto d1 = static_cast<std::size_t>(normalize_dim("transpose", dim1, a.dim()));
  std::swap(dims[d0], dims[d1]);
  return detail::permuted("transpose", a, dims);
}

template <AnyTensor T>
T movedim(const T& a, const Numbers& source, const Numbers& destination) {
  check_same_count("movedim", "dimensions", source, destination);
  const Numbers from = checked_dims("movedim", source, a.dim());
  const Numbers to = checked_dims("movedim", destination, a.dim());
  Numbers dims(static_cast<std::size_t>(a.dim()), -1);
  for (std::size_t i = 0; i < from.size(); ++i) dims[static_cast<std::size_t>(to[i])] = from[i];
  std::int64_t next = 0;
  for (std::int64_t& d : dims) {
    if (d >= 0) continue;
    while (std::find(from.begin(), from.end(), next) != from.end()) ++next;
    d = next++;
  }
  return detail::permuted("movedim", a, dims);
}

template <AnyTensor T>
T squeeze(const T& a) {
  std::vector<int> ones;
  for (int d = 0; d < a.dim(); ++d) {
    if (a.shape()[d] == 1) ones.push_back(d);
  }
  return without_dims("squeeze", a, ones);
}

template <AnyTensor T>
T squeeze(const T& a, std::int64_t dim) {
  const int d = normalize_dim("squeeze", dim, a.dim());
  return a.shape()[d] == 1 ? without_dims("squeeze", a, {d}) : a;
}

template <AnyTensor T>
T unsqueeze(const T& a, std::int64_t dim) {
  return with_new_dim("unsqueeze", a, normalize_dim("unsqueeze", dim, a.dim() + 1));
}

template <AnyTensor T>
T expand(const T& a, const ShapeArgument& argument) {
  const Shape& shape = argument.of("expand");
  const int added = shape.size() - a.dim();
  Shape target = shape;
  bool fits = added >= 0;
  for (int d = 0; fits && d < shape.size(); ++d) {
    const std::int64_t has = d < added ? 1 : a.shape()[d - added];
    if (shape[d] == -1 && d >= added) target[d] = has;
    fits = target[d] >= 0 && (target[d] == has || has == 1);
  }
  if (!fits) {
    throw ValueError(
        "expand",
        fmt::format("shape {} for a tensor of shape {}", to_string(shape), to_string(a.shape())),
        "its extents, or -1, aligned from the last dimension; others where it has 1");
  }
  checked_element_count("expand", target);
  return detail::expanded("expand", a, target);
}

template <AnyTensor T>
T narrow(const T& a, std::int64_t dim, std::int64_t start, std::int64_t length) {
  const int d = normalize_dim("narrow", dim, a.dim());
  const std::int64_t extent = a.shape()[d];
  const std::int64_t begin = start < 0 ? start + extent : start;
  if (begin < 0 || length < 0 || begin > extent - length) {
    throw IndexError(
        "narrow",
        fmt::format("{} indices from {} of dimension {} with extent {}", length, start, d, extent),
        "a range inside the dimension");
  }
  return narrowed("narrow", a, d, begin, length);
}

template <AnyTensor T>
T slice(const T& a, std::int64_t dim, std::int64_t start, std::int64_t end, std::int64_t step) {
  const int d = normalize_dim("slice", dim, a.dim());
  if (step < 1) throw ValueError("slice", fmt::format("a step of {}", step), "1 or more");
  const std::int64_t n = a.shape()[d];
  const auto inside = [n](std::int64_t i) {
    return std::clamp<std::int64_t>(i < 0 ? i + n : i, 0, n);
  };
  const std::int64_t begin = inside(start), count = std::max<std::int64_t>(inside(end) - begin, 0);
  // Between less than two indices there is no step, however large.
  const std::int64_t length = count / step + (count % step != 0);
  return detail::sliced("slice", a, d, begin, length < 2 ? 1 : step, length);
}

template <AnyTensor T>
T select(const T& a, std::int64_t dim, std::int64_t index) {
  const int d = normalize_dim("select", dim, a.dim());
  const std::int64_t n = a.shape()[d];
  const std::int64_t i = index < 0 ? index + n : index;
  if (i < 0 || i >= n) {
    throw IndexError("select", fmt::format("index {} of dimension {} with extent {}", index, d, n),
                     n == 0 ? std::string("a dimension that is not empty")
                            : fmt::format("an index from {} to {}", -n, n - 1));
  }
  return without_dims("select", narrowed("select", a, d, i, 1), {d});
}

template <AnyTensor T>
std::vector<T> split(const T& a, std::int64_t size, std::int64_t dim) {
  const int d = normalize_dim("split", dim, a.dim());
  if (size < 1) throw ValueError("split", fmt::format("pieces of size {}", size), "1 or more");
  return pieces("split", a, equal_sizes(a.shape()[d], size), d);
}

template <AnyTensor T>
std::vector<T> split(const T& a, const Numbers& sizes, std::int64_t dim) {
  const int d = normalize_dim("split", dim, a.dim());
  std::int64_t left = a.shape()[d];
  bool fits = true;
  for (std::int64_t s : sizes) {
    fits = fits && s >= 0 && s <= left;
    if (fits) left -= s;
  }
  if (!fits || left != 0) {
    throw ValueError(
        "split", "sizes " + text(sizes),
        fmt::format("sizes that add up to the extent {} of dimension {}", a.shape()[d], d));
  }
  return pieces("split", a, sizes, d);
}

template <AnyTensor T>
std::vector<T> chunk(const T& a, std::int64_t count, std::int64_t dim) {
  const int d = normalize_dim("chunk", dim, a.dim());
  if (count < 1) throw ValueError("chunk", fmt::format("{} pieces", count), "1 or more");
  const std::int64_t n = a.shape()[d];
  const std::int64_t size = std::max<std::int64_t>(n / count + (n % count != 0), 1);
  return pieces("chunk", a, equal_sizes(n, size), d);
}

template <AnyTensor T>
T repeat(const T& a, const Numbers& times) {
  const int added = static_cast<int>(times.size()) - a.dim();
  if (added < 0 || std::any_of(times.begin(), times.end(), [](auto t) { return t < 0; })) {
    throw ValueError("repeat", "numbers " + text(times),
                     fmt::format("a number of 0 or more for each of the {} dimensions or more of "
                                 "them",
                                 a.dim()));
  }
  detail::check_rank("repeat", times.size());
  Shape shape = Extents::filled(added, 1);
  for (std::int64_t e : a.shape()) shape.push_back(e);
  Shape result = shape;
  bool fits = true;
  for (int d = 0; d < shape.size(); ++d) {
    fits =
        !__builtin_mul_overflow(shape[d], times[static_cast<std::size_t>(d)], &result[d]) && fits;
  }
  if (!fits) {
    throw ValueError(
        "repeat",
        fmt::format("numbers {} for a tensor of shape {}", text(times), to_string(a.shape())),
        "a size in bytes below 2^63");
  }
  T out = detail::reshaped("repeat", a, shape, true);
  if (checked_element_count("repeat", result) == 0) return without_elements("repeat", out, result);
  for (int d = 0; d < shape.size(); ++d) {
    const std::int64_t t = times[static_cast<std::size_t>(d)];
    if (t != 1) out = detail::repeated_along("repeat", out, d, t);
  }
  return separated(out, a);
}

template <AnyTensor T>
T cat(const std::vector<T>& tensors, std::int64_t dim) {
  const int d = check_list("cat", tensors, dim, false);
  check_sum("cat", tensors, d);
  return detail::concatenated("cat", tensors, d);
}

template <AnyTensor T>
T stack(const std::vector<T>& tensors, std::int64_t dim) {
  const int d = check_list("stack", tensors, dim, true);
  std::vector<T> list;
  for (const T& t : tensors) list.push_back(with_new_dim("stack", t, d));
  check_sum("stack", list, d);
  return detail::concatenated("stack", list, d);
}

template <AnyTensor T>
T flip(const T& a, const Numbers& dims) {
  T result = a;
  for (std::int64_t dim : checked_dims("flip", dims, a.dim())) {
    const int d = static_cast<int>(dim);
    const std::int64_t n = a.shape()[d];
    result = detail::rearranged("flip", result, d, n, {{0, n - 1, n, -1}});
  }
  return separated(result, a);
}

template <AnyTensor T>
T roll(const T& a, const Numbers& shifts, const Numbers& dims) {
  if (dims.empty() && shifts.size() == 1) {
    const T flat = detail::reshaped("roll", a, {a.numel()}, true);
    return separated(detail::reshaped("roll", rolled("roll", flat, 0, shifts[0]), a.shape(), true),
                     a);
  }
  check_same_count("roll", "shifts and dimensions", shifts, dims);
  T result = a;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    result = rolled("roll", result, normalize_dim("roll", dims[i], a.dim()), shifts[i]);
  }
  return separated(result, a);
}

template <AnyTensor T>
T pad(const T& a, const Numbers& pads, const Scalar& value) {
  Shape shape = a.shape();
  // Beyond these no size fits, within them no sum overflows.
  constexpr std::int64_t most = INT64_MAX / 4;
  bool fits = pads.size() % 2 == 0 && static_cast<int>(pads.size() / 2) <= a.dim() &&
              std::all_of(pads.begin(), pads.end(), [](auto n) { return n >= -most && n <= most; });
  for (std::size_t i = 0; fits && i < pads.size(); i += 2) {
    std::int64_t& extent = shape[a.dim() - 1 - static_cast<int>(i / 2)];
    // Not cutting off more than there is.
    fits =
        std::min<std::int64_t>(pads[i], 0) + std::min<std::int64_t>(pads[i + 1], 0) + extent >= 0;
    extent += pads[i] + pads[i + 1];
  }
  if (!fits) {
    throw ValueError("pad",
                     fmt::format("{} for a tensor of shape {}", text(pads), to_string(a.shape())),
                     "two numbers for each dimension, the last one first, that leave extents of 0 "
                     "or more and a size in bytes below 2^63");
  }
  checked_element_count("pad", shape);
  const Scalar element = detail::as_element("pad", a.dtype(), value);
  T result = detail::with_partials(
      "pad", a, [&](ReduceOp op) { return detail::is_fixed_point(op, element); });
  for (std::size_t i = 0; i < pads.size(); i += 2) {
    if (pads[i] == 0 && pads[i + 1] == 0) continue;
    const int d = a.dim() - 1 - static_cast<int>(i / 2);
    const std::int64_t cut = std::max<std::int64_t>(-pads[i], 0);
    const std::int64_t kept = a.shape()[d] - cut - std::max<std::int64_t>(-pads[i + 1], 0);
    result = detail::rearranged("pad", result, d, shape[d],
                                {{std::max<std::int64_t>(pads[i], 0), cut, kept}}, element);
  }
  return separated(result, a);
}

#define DTENSOR_INSTANTIATE(T)                                                        \
  template T view(const T&, const ShapeArgument&);                                    \
  template T reshape(const T&, const ShapeArgument&);                                 \
  template T flatten(const T&, std::int64_t, std::int64_t);                           \
  template T unflatten(const T&, std::int64_t, const ShapeArgument&);                 \
  template T permute(const T&, const Numbers&);                                       \
  template T transpose(const T&, std::int64_t, std::int64_t);                         \
  template T movedim(const T&, const Numbers&, const Numbers&);                       \
  template T squeeze(const T&);                                                       \
  template T squeeze(const T&, std::int64_t);                                         \
  template T unsqueeze(const T&, std::int64_t);                                       \
  template T expand(const T&, const ShapeArgument&);                                  \
  template T narrow(const T&, std::int64_t, std::int64_t, std::int64_t);              \
  template T slice(const T&, std::int64_t, std::int64_t, std::int64_t, std::int64_t); \
  template T select(const T&, std::int64_t, std::int64_t);                            \
  template std::vector<T> split(const T&, std::int64_t, std::int64_t);                \
  template std::vector<T> split(const T&, const Numbers&, std::int64_t);              \
  template std::vector<T> chunk(const T&, std::int64_t, std::int64_t);                \
  template T repeat(const T&, const Numbers&);                                        \
  template T cat(const std::vector<T>&, std::int64_t);                                \
  template T stack(const std::vector<T>&, std::int64_t);                              \
  template T flip(const T&, const Numbers&);                                          \
  template T roll(const T&, const Numbers&, const Numbers&);                          \
  template T pad(const T&, const Numbers&, const Scalar&);
DTENSOR_INSTANTIATE(Tensor)
DTENSOR_INSTANTIATE(DTensor)
#undef DTENSOR_INSTANTIATE

}  // namespace dtensor
