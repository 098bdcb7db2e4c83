// reshape, slice, pad, concat, permute, cast: moves of memory that know no arithmetic, so they work on any dtype.
#include "norma/ops/views.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "norma/graph/graph.h"
#include "ops/check.h"

namespace norma {
namespace {

int resolve_axis(int axis, const Shape& shape) {
  const int resolved = axis < 0 ? axis + shape.rank() : axis;
  if (resolved < 0 || resolved >= shape.rank()) fail("{} has no axis {}", shape.str(), axis);
  return resolved;
}

// A tensor as [outer, size of the axis, inner].
struct AxisView {
  std::int64_t outer = 1, size = 1, inner_bytes = 1;

  AxisView(const Type& type, int axis) {
    const int at = resolve_axis(axis, type.shape);
    for (int i = 0; i < at; ++i) outer *= type.shape[i];
    size = type.shape[at];
    inner_bytes = type.bytes() / (outer * size);
  }
};

// Rows of bytes copied by independent tiles.
Tiling copy_tiling(std::int64_t rows, std::int64_t row_bytes) {
  return Tiling(rows, std::max<std::int64_t>(1, 65536 / std::max<std::int64_t>(1, row_bytes)));
}

}  // namespace

std::vector<Type> Reshape::infer(std::span<const Type> in) const {
  check_count(in.size(), 1);
  if (shape_.elements() != in[0].shape.elements()) {
    fail("{} has {} elements but {} has {}", in[0].shape.str(), in[0].shape.elements(), shape_.str(),
         shape_.elements());
  }
  return {{shape_, in[0].dtype}};
}

Wires Reshape::vjp(const VjpContext& context) const { return {reshape(context.dout[0], context.in[0].shape())}; }

std::string Slice::attributes() const { return fmt::format("axis={} begin={} count={}", axis_, begin_, count_); }

std::vector<Type> Slice::infer(std::span<const Type> in) const {
  check_count(in.size(), 1);
  const int axis = resolve_axis(axis_, in[0].shape);
  if (begin_ < 0 || count_ < 1 || begin_ + count_ > in[0].shape[axis]) {
    fail("entries {} to {} asked of axis {}, which has {}", begin_, begin_ + count_ - 1, axis, in[0].shape[axis]);
  }
  return {{in[0].shape.with(axis, count_), in[0].dtype}};
}

Wires Slice::vjp(const VjpContext& context) const {
  return {pad(context.dout[0], axis_, begin_, context.in[0].shape()[axis_])};
}

std::int64_t Slice::view_offset(std::span<const Type> in) const {
  const AxisView x(in[0], axis_);
  return x.outer == 1 ? begin_ * x.inner_bytes : -1;
}

Cost Slice::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = 0, .bytes = view_offset(in) >= 0 ? 0.0 : 2.0 * static_cast<double>(out[0].bytes())};
}

CpuKernel Slice::cpu(std::span<const Type> in, std::span<const Type>) const {
  if (view_offset(in) >= 0) return {};
  const AxisView x(in[0], axis_);
  const std::int64_t stride = x.size * x.inner_bytes, first = begin_ * x.inner_bytes, bytes = count_ * x.inner_bytes;
  const Tiling tiling = copy_tiling(x.outer, bytes);
  return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                        for (std::int64_t row = tiling.begin(tile); row < tiling.end(tile); ++row) {
                          std::memcpy(call.out<std::byte>(0) + row * bytes,
                                      call.in<std::byte>(0) + row * stride + first, static_cast<std::size_t>(bytes));
                        }
                      }}}};
}

std::string Pad::attributes() const { return fmt::format("axis={} begin={} size={}", axis_, begin_, size_); }

std::vector<Type> Pad::infer(std::span<const Type> in) const {
  check_count(in.size(), 1);
  const int axis = resolve_axis(axis_, in[0].shape);
  if (begin_ < 0 || begin_ + in[0].shape[axis] > size_) {
    fail("{} entries of axis {} do not fit at {} of {}", in[0].shape[axis], axis, begin_, size_);
  }
  return {{in[0].shape.with(axis, size_), in[0].dtype}};
}

Wires Pad::vjp(const VjpContext& context) const {
  return {slice(context.dout[0], axis_, begin_, context.in[0].shape()[axis_])};
}

Cost Pad::cost(std::span<const Type> in, std::span<const Type> out) const { return {.bytes = traffic(in, out)}; }

CpuKernel Pad::cpu(std::span<const Type> in, std::span<const Type> out) const {
  const AxisView x(in[0], axis_), y(out[0], axis_);
  const auto bytes = static_cast<std::size_t>(x.size * x.inner_bytes);
  const auto before = static_cast<std::size_t>(begin_ * x.inner_bytes);
  const auto stride = static_cast<std::size_t>(y.size * y.inner_bytes);
  const Tiling tiling = copy_tiling(x.outer, y.size * y.inner_bytes);
  return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                        for (std::int64_t row = tiling.begin(tile); row < tiling.end(tile); ++row) {
                          std::byte* target = call.out<std::byte>(0) + static_cast<std::size_t>(row) * stride;
                          // All-zero bytes are zero in every dtype.
                          std::memset(target, 0, before);
                          std::memcpy(target + before, call.in<std::byte>(0) + static_cast<std::size_t>(row) * bytes,
                                      bytes);
                          std::memset(target + before + bytes, 0, stride - before - bytes);
                        }
                      }}}};
}

std::string Concat::attributes() const { return fmt::format("axis={}", axis_); }

std::vector<Type> Concat::infer(std::span<const Type> in) const {
  if (in.empty()) fail("needs at least one part");
  const int axis = resolve_axis(axis_, in[0].shape);
  std::int64_t total = 0;
  for (const Type& part : in) {
    check_same_dtype(in[0], part);
    if (part.shape.rank() != in[0].shape.rank() || part.shape.with(axis, in[0].shape[axis]) != in[0].shape) {
      fail("parts may differ only along axis {}, but {} and {} were given", axis, in[0].shape.str(), part.shape.str());
    }
    total += part.shape[axis];
  }
  return {{in[0].shape.with(axis, total), in[0].dtype}};
}

Wires Concat::vjp(const VjpContext& context) const {
  Wires result;
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < context.in.size(); ++i) {
    const std::int64_t count = context.in[i].shape()[axis_];
    result.push_back(context.needed[i] ? slice(context.dout[0], axis_, begin, count) : Wire());
    begin += count;
  }
  return result;
}

Cost Concat::cost(std::span<const Type> in, std::span<const Type> out) const { return {.bytes = traffic(in, out)}; }

CpuKernel Concat::cpu(std::span<const Type> in, std::span<const Type> out) const {
  const AxisView y(out[0], axis_);
  std::array<std::int64_t, kMaxArguments> bytes{};
  for (std::size_t i = 0; i < in.size(); ++i) bytes[i] = in[i].bytes() / y.outer;
  const std::int64_t stride = y.size * y.inner_bytes;
  const Tiling tiling = copy_tiling(y.outer, stride);
  return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                        for (std::int64_t row = tiling.begin(tile); row < tiling.end(tile); ++row) {
                          std::byte* target = call.out<std::byte>(0) + row * stride;
                          for (int i = 0; i < call.inputs; ++i) {
                            const std::int64_t part = bytes[static_cast<std::size_t>(i)];
                            std::memcpy(target, call.in<std::byte>(i) + row * part, static_cast<std::size_t>(part));
                            target += part;
                          }
                        }
                      }}}};
}

std::string Permute::attributes() const { return fmt::format("order={}", fmt::join(order_, ",")); }

std::vector<Type> Permute::infer(std::span<const Type> in) const {
  check_count(in.size(), 1);
  const Shape& shape = in[0].shape;
  std::array<std::int64_t, Shape::kMaxRank> dims{};
  std::array<bool, Shape::kMaxRank> seen{};
  bool fits = static_cast<int>(order_.size()) == shape.rank();
  for (std::size_t i = 0; fits && i < order_.size(); ++i) {
    fits = order_[i] >= 0 && order_[i] < shape.rank() && !seen[static_cast<std::size_t>(order_[i])];
    if (!fits) break;
    seen[static_cast<std::size_t>(order_[i])] = true;
    dims[i] = shape[order_[i]];
  }
  if (!fits) fail("[{}] is not an order of the {} axes of {}", fmt::join(order_, ", "), shape.rank(), shape.str());
  return {{Shape(std::span<const std::int64_t>(dims.data(), order_.size())), in[0].dtype}};
}

Wires Permute::vjp(const VjpContext& context) const {
  std::vector<int> inverse(order_.size());
  for (std::size_t i = 0; i < order_.size(); ++i) inverse[static_cast<std::size_t>(order_[i])] = static_cast<int>(i);
  return {permute(context.dout[0], inverse)};
}

Cost Permute::cost(std::span<const Type> in, std::span<const Type> out) const { return {.bytes = traffic(in, out)}; }

namespace {

// y's rows in order; `strides` and `last` are x's, in elements, in the order of y's axes.
template <typename Word>
CpuKernel permute_kernel(const Shape& shape, std::array<std::int64_t, Shape::kMaxRank> strides) {
  const int leading = std::max(0, shape.rank() - 1);
  const std::int64_t width = shape.channels(),
                     last = shape.rank() == 0 ? 1 : strides[static_cast<std::size_t>(leading)];
  const Tiling tiling(shape.rows(), std::max<std::int64_t>(1, 8192 / width));
  return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                        for (std::int64_t row = tiling.begin(tile); row < tiling.end(tile); ++row) {
                          std::int64_t offset = 0, rest = row;
                          for (int axis = leading - 1; axis >= 0; --axis) {
                            offset += rest % shape[axis] * strides[static_cast<std::size_t>(axis)];
                            rest /= shape[axis];
                          }
                          const Word* x = call.in<Word>(0) + offset;
                          Word* y = call.out<Word>(0) + row * width;
                          if (last == 1) {
                            std::copy_n(x, width, y);
                          } else {
                            for (std::int64_t i = 0; i < width; ++i) y[i] = x[i * last];
                          }
                        }
                      }}}};
}

}  // namespace

CpuKernel Permute::cpu(std::span<const Type> in, std::span<const Type> out) const {
  std::array<std::int64_t, Shape::kMaxRank> source{}, strides{};
  std::int64_t stride = 1;
  for (int axis = in[0].shape.rank() - 1; axis >= 0; --axis) {
    source[static_cast<std::size_t>(axis)] = stride;
    stride *= in[0].shape[axis];
  }
  for (std::size_t i = 0; i < order_.size(); ++i) strides[i] = source[static_cast<std::size_t>(order_[i])];
  switch (size_of(in[0].dtype)) {
    case 2: return permute_kernel<std::uint16_t>(out[0].shape, strides);
    case 4: return permute_kernel<std::uint32_t>(out[0].shape, strides);
    default: return permute_kernel<std::uint64_t>(out[0].shape, strides);
  }
}

std::vector<Type> Cast::infer(std::span<const Type> in) const {
  check_count(in.size(), 1);
  if (!is_floating(in[0].dtype) || !is_floating(dtype_)) {
    fail("converts between floating dtypes, but {} to {} was asked", in[0].str(), name_of(dtype_));
  }
  return {{in[0].shape, dtype_}};
}

Wires Cast::vjp(const VjpContext& context) const { return {cast(context.dout[0], context.in[0].dtype())}; }

Cost Cast::cost(std::span<const Type> in, std::span<const Type> out) const { return {.bytes = traffic(in, out)}; }

namespace {

template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_same_v<To, From>) {
    return value;
  } else if constexpr (std::is_same_v<From, BFloat16>) {
    return static_cast<To>(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, BFloat16> && std::is_same_v<From, double>) {
    // Through float, rounded to odd: a second rounding to nearest could otherwise break a tie the wrong way.
    const float nearest = static_cast<float>(value);
    const bool exact = !(static_cast<double>(nearest) != value) || !std::isfinite(nearest);
    std::uint32_t word = std::bit_cast<std::uint32_t>(nearest);
    if (!exact) {
      if (std::abs(static_cast<double>(nearest)) > std::abs(value)) --word;
      word |= 1u;
    }
    return BFloat16(std::bit_cast<float>(word));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return BFloat16(value);
  } else {
    return static_cast<To>(value);
  }
}

template <typename From, typename To>
CpuKernel cast_kernel(std::int64_t count) {
  const Tiling tiling(count, 16384, 64);
  return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                        const From* x = call.in<From>(0);
                        To* y = call.out<To>(0);
                        for (std::int64_t i = tiling.begin(tile); i < tiling.end(tile); ++i) y[i] = convert<To>(x[i]);
                      }}}};
}

template <typename From>
CpuKernel cast_from(DType to, std::int64_t count) {
  switch (to) {
    case DType::f64: return cast_kernel<From, double>(count);
    case DType::bf16: return cast_kernel<From, BFloat16>(count);
    default: return cast_kernel<From, float>(count);
  }
}

}  // namespace

CpuKernel Cast::cpu(std::span<const Type> in, std::span<const Type>) const {
  const std::int64_t count = in[0].shape.elements();
  switch (in[0].dtype) {
    case DType::f64: return cast_from<double>(dtype_, count);
    case DType::bf16: return cast_from<BFloat16>(dtype_, count);
    default: return cast_from<float>(dtype_, count);
  }
}

Wire reshape(Wire x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const Wire in[] = {x};
  return x.graph().apply(std::make_shared<Reshape>(shape), in)[0];
}

Wire slice(Wire x, int axis, std::int64_t begin, std::int64_t count) {
  const Wire in[] = {x};
  return x.graph().apply(std::make_shared<Slice>(axis, begin, count), in)[0];
}

Wire pad(Wire x, int axis, std::int64_t begin, std::int64_t size) {
  const Wire in[] = {x};
  return x.graph().apply(std::make_shared<Pad>(axis, begin, size), in)[0];
}

Wire concat(std::span<const Wire> parts, int axis) {
  if (parts.empty()) fail("concat: needs at least one part");
  if (parts.size() == 1) return parts[0];
  return parts[0].graph().apply(std::make_shared<Concat>(axis), parts)[0];
}

Wire permute(Wire x, std::span<const int> order) {
  const Wire in[] = {x};
  return x.graph().apply(std::make_shared<Permute>(std::vector<int>(order.begin(), order.end())), in)[0];
}

Wire permute(Wire x, std::initializer_list<int> order) {
  return permute(x, std::span<const int>(order.begin(), order.size()));
}

Wire swap_axes(Wire x, int a, int b) {
  std::vector<int> order(static_cast<std::size_t>(x.shape().rank()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<std::size_t>(resolve_axis(a, x.shape()))],
            order[static_cast<std::size_t>(resolve_axis(b, x.shape()))]);
  return permute(x, order);
}

Wire cast(Wire x, DType dtype) {
  if (x.dtype() == dtype) return x;
  const Wire in[] = {x};
  return x.graph().apply(std::make_shared<Cast>(dtype), in)[0];
}

}  // namespace norma
