// reshape, slice, pad, concat: moves of memory that know no arithmetic, so they work on any dtype.
#include "norma/ops/views.h"

#include <algorithm>
#include <cstring>

#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "ops/check.h"

namespace norma {
namespace {

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

CpuKernel cpu_kernel(const Slice& op, Types in, Types) {
  const AxisView x(in[0], op.axis());
  const std::int64_t stride = x.size * x.inner_bytes, first = op.begin() * x.inner_bytes,
                     bytes = op.count() * x.inner_bytes;
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

CpuKernel cpu_kernel(const Pad& op, Types in, Types out) {
  const AxisView x(in[0], op.axis()), y(out[0], op.axis());
  const auto bytes = static_cast<std::size_t>(x.size * x.inner_bytes);
  const auto before = static_cast<std::size_t>(op.begin() * x.inner_bytes);
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

CpuKernel cpu_kernel(const Concat& op, Types in, Types out) {
  const AxisView y(out[0], op.axis());
  std::vector<std::int64_t> bytes;
  for (const Type& part : in) bytes.push_back(part.bytes() / y.outer);
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

}  // namespace norma
