#include "norma/ops/pooling.h"

#include <algorithm>
#include <cmath>

#include "norma/core/error.h"
#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"
#include "norma/ops/views.h"
#include "ops/check.h"
#include "ops/pooling_sizes.h"

namespace norma {
namespace {

// The largest of one window of one channel, and its place.
template <typename T>
void pool_window(const T* x, const PoolingSizes& s, const PoolingOptions& o, std::int64_t top, std::int64_t left, T* y,
                 std::int32_t* places) {
  const std::int64_t bottom = std::min(s.height, top + o.size), right = std::min(s.width, left + o.size);
  const std::int64_t first_row = std::max<std::int64_t>(0, top), first_column = std::max<std::int64_t>(0, left);
  for (std::int64_t c = 0; c < s.channels; ++c) {
    std::int64_t place = first_row * s.width + first_column;
    T best = x[place * s.channels + c];
    for (std::int64_t row = first_row; row < bottom; ++row) {
      for (std::int64_t column = first_column; column < right; ++column) {
        const T value = x[(row * s.width + column) * s.channels + c];
        if (!(value > best || (std::isnan(value) && !std::isnan(best)))) continue;
        best = value;
        place = row * s.width + column;
      }
    }
    y[c] = best;
    if (places != nullptr) places[c] = static_cast<std::int32_t>(place);
  }
}

template <typename T>
CpuKernel max_pool_kernel(const PoolingOptions& o, const PoolingSizes& s) {
  const Tiling rows(s.batch * s.out_height, std::max<std::int64_t>(1, 4096 / (s.out_width * s.channels)));
  const auto run = [=](const Call& call, std::int64_t tile) {
    for (std::int64_t row = rows.begin(tile); row < rows.end(tile); ++row) {
      const std::int64_t image = row / s.out_height, i = row % s.out_height;
      const T* x = call.in<T>(0) + image * s.height * s.width * s.channels;
      for (std::int64_t j = 0; j < s.out_width; ++j) {
        const std::int64_t at = (row * s.out_width + j) * s.channels;
        std::int32_t* const places = call.out<std::int32_t>(1);
        pool_window(x, s, o, i * o.stride - o.padding, j * o.stride - o.padding, call.out<T>(0) + at,
                    places == nullptr ? nullptr : places + at);
      }
    }
  };
  return {.phases = {{.tiles = rows.tiles, .run = run}}};
}

// An image is a tile: what is added up in one place is added in one order.
template <typename T>
CpuKernel places_kernel(Places::Way way, const Shape& image, const Shape& windows) {
  const std::int64_t channels = image[3], from = image[1] * image[2] * channels, to = windows.elements() / windows[0];
  const auto run = [=](const Call& call, std::int64_t tile) {
    const std::int32_t* const places = call.in<std::int32_t>(1) + tile * to;
    if (way == Places::Way::gather) {
      const T* const x = call.in<T>(0) + tile * from;
      T* const y = call.out<T>(0) + tile * to;
      for (std::int64_t i = 0; i < to; ++i) y[i] = x[places[i] * channels + i % channels];
    } else {
      const T* const dy = call.in<T>(0) + tile * to;
      T* const dx = call.out<T>(0) + tile * from;
      std::fill_n(dx, from, T{0});
      for (std::int64_t i = 0; i < to; ++i) dx[places[i] * channels + i % channels] += dy[i];
    }
  };
  return {.phases = {{.tiles = image[0], .run = run}}};
}

}  // namespace

PoolingSizes::PoolingSizes(const PoolingOptions& o, const Shape& x) {
  if (x.rank() != 4) fail("needs images [batch, height, width, channels], but is given {}", x.str());
  if (o.size < 1 || o.stride < 1 || o.padding < 0 || 2 * o.padding > o.size)
    fail("size {}, stride {} and padding {}: expected at least 1, 1 and 0, and padding of at most half the size",
         o.size, o.stride, o.padding);
  const auto positions = [&](std::int64_t size) {
    if (size + 2 * o.padding < o.size) fail("a window of {} does not fit into {}", o.size, x.str());
    return (size + 2 * o.padding - o.size) / o.stride + 1;
  };
  batch = x[0], height = x[1], width = x[2], channels = x[3];
  out_height = positions(height), out_width = positions(width);
}

std::string MaxPool::attributes() const {
  return fmt::format("size={} stride={} padding={}", options_.size, options_.stride, options_.padding);
}

std::vector<Type> MaxPool::infer(std::span<const Type> in) const {
  check_count(in.size(), 1);
  check_computes(in[0]);
  const Shape y = PoolingSizes(options_, in[0].shape).y();
  return {{y, in[0].dtype}, {y, DType::i32}};
}

Wires MaxPool::vjp(const VjpContext& context) const {
  const Wire in[] = {context.dout[0], context.out[1]};
  return context.graph().apply(std::make_shared<Places>(Places::Way::scatter, context.in[0].shape(), options_), in);
}

Cost MaxPool::cost(std::span<const Type> in, std::span<const Type> out) const {
  const double windows = static_cast<double>(out[0].shape.elements());
  return {.flops = windows * static_cast<double>(options_.size * options_.size), .bytes = traffic(in, out.first(1))};
}

CpuKernel cpu_kernel(const MaxPool& op, Types in, Types) {
  const PoolingSizes sizes(op.options(), in[0].shape);
  return in[0].dtype == DType::f32 ? max_pool_kernel<float>(op.options(), sizes)
                                   : max_pool_kernel<double>(op.options(), sizes);
}

std::string Places::attributes() const {
  return fmt::format("image={} size={} stride={} padding={}", image_.str(), windows_.size, windows_.stride,
                     windows_.padding);
}

std::vector<Type> Places::infer(std::span<const Type> in) const {
  check_count(in.size(), 2);
  check_computes(in[0]);
  const Shape& windows = in[1].shape;
  if (windows.rank() != 4 || windows[0] != image_[0] || windows[3] != image_[3] || in[1].dtype != DType::i32)
    fail("places {} do not suit images {}", in[1].str(), image_.str());
  if (windows.elements() > 0 && PoolingSizes(windows_, image_).y() != windows)
    fail("places {} are not those of the windows of {}: {}", in[1].str(), image_.str(), attributes());
  const Type image{image_, in[0].dtype}, gathered{windows, in[0].dtype};
  const bool gather = way_ == Way::gather;
  check_type(gather ? "x" : "dy", in[0], gather ? image : gathered);
  return {gather ? gathered : image};
}

Wires Places::vjp(const VjpContext& context) const {
  const Way other = way_ == Way::gather ? Way::scatter : Way::gather;
  const Wire in[] = {context.dout[0], context.in[1]};
  return {context.graph().apply(std::make_shared<Places>(other, image_, windows_), in)[0], Wire()};
}

CpuKernel cpu_kernel(const Places& op, Types in, Types out) {
  const Shape& image = op.way() == Places::Way::gather ? in[0].shape : out[0].shape;
  return in[0].dtype == DType::f32 ? places_kernel<float>(op.way(), image, in[1].shape)
                                   : places_kernel<double>(op.way(), image, in[1].shape);
}

Wire max_pool(Wire x, PoolingOptions options) {
  const Wire in[] = {x};
  return x.graph().apply(std::make_shared<MaxPool>(options), in)[0];
}

Wire average_pool(Wire x, std::int64_t size) {
  const Shape s = x.shape();
  if (s.rank() != 4 || size < 1 || s[1] % size != 0 || s[2] % size != 0)
    fail("average_pool: {} does not divide into windows of {} x {}", s.str(), size, size);
  const Shape rows{s[0], s[1] / size, s[2], s[3]}, both{s[0], s[1] / size, s[2] / size, s[3]};
  const auto summed = [&](Wire wide, const Shape& split, const Shape& one, const Shape& narrow) {
    return reshape(sum_to(reshape(wide, split), one), narrow);
  };
  const Wire down = summed(x, {s[0] * rows[1], size, s[2] * s[3]}, {s[0] * rows[1], 1, s[2] * s[3]}, rows);
  const std::int64_t windows = s[0] * rows[1] * both[2];
  return summed(down, {windows, size, s[3]}, {windows, 1, s[3]}, both) / static_cast<double>(size * size);
}

Wire global_average_pool(Wire x) {
  const Shape& s = x.shape();
  if (s.rank() < 3) fail("global_average_pool: needs [batch, positions.., channels], but is given {}", s.str());
  const std::int64_t channels = s.channels(), batch = s[0], positions = s.rows() / batch;
  const Wire sum = sum_to(reshape(x, {batch, positions, channels}), {batch, 1, channels});
  return reshape(sum, {batch, channels}) / static_cast<double>(positions);
}

}  // namespace norma
