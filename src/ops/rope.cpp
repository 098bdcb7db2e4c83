// (a, b) -> (a cos - b sin, a sin + b cos) for each pair of channels; the derivative is the inverse rotation.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/rope.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"
#include "norma/ops/rope.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

// One head: x, y[2 * half], cosine, sine[half]; y may be x.
template <typename T>
HWY_INLINE void rope_head(RopePairs pairs, const T* x, const T* cosine, const T* sine, std::int64_t half, T* y) {
  if (pairs == RopePairs::half_split) {
    for_lanes<T>(half, [&](auto d, std::int64_t i) HWY_ATTR {
      const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + half + i);
      const auto c = hn::LoadU(d, cosine + i), s = hn::LoadU(d, sine + i);
      hn::StoreU(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, y + i);
      hn::StoreU(hn::MulAdd(a, s, hn::Mul(b, c)), d, y + half + i);
    });
    return;
  }
  for (std::int64_t i = 0; i < half; ++i) {
    const T a = x[2 * i], b = x[2 * i + 1];
    y[2 * i] = a * cosine[i] - b * sine[i];
    y[2 * i + 1] = a * sine[i] + b * cosine[i];
  }
}

void rope_head_f32(RopePairs pairs, const float* x, const float* c, const float* s, std::int64_t half, float* y) {
  rope_head(pairs, x, c, s, half, y);
}
void rope_head_f64(RopePairs pairs, const double* x, const double* c, const double* s, std::int64_t half, double* y) {
  rope_head(pairs, x, c, s, half, y);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cmath>

#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "ops/check.h"
#include "ops/rope_sizes.h"

namespace norma {

HWY_EXPORT(rope_head_f32);
HWY_EXPORT(rope_head_f64);

std::string_view name_of(RopePairs pairs) { return pairs == RopePairs::interleaved ? "interleaved" : "half_split"; }

RopeSizes rope_sizes(const RopeOptions& options, const Shape& x) {
  if (x.rank() < 2 || x.rank() > 4) {
    fail("takes [batch, time, heads, width], [batch, time, channels] or [rows, channels], not {}", x.str());
  }
  RopeSizes s;
  s.channels = x.rank() == 4 ? x[2] * x[3] : x.channels();
  s.width = options.head_width == 0 && x.rank() == 4 ? x[3] : options.head_width;
  s.time = options.time == 0 && x.rank() > 2 ? x[1] : options.time;
  s.rotated = options.rotated == 0 ? s.channels : options.rotated;
  if (s.width < 2 || s.width % 2 != 0) fail("the width of a head must be even and at least 2 but is {}", s.width);
  if (x.rank() == 4 && s.width != x[3]) fail("heads of {} are {} wide, not {}", x.str(), x[3], s.width);
  if (s.rotated < 0 || s.rotated > s.channels || s.rotated % s.width != 0) {
    fail("{} rotated channels of {} are not a number of heads of width {}", s.rotated, s.channels, s.width);
  }
  const std::int64_t rows = x.elements() / s.channels;
  if (s.time < 1 || rows % s.time != 0) fail("{} rows are not a multiple of {} positions", rows, s.time);
  return s;
}

std::string Rope::attributes() const {
  return fmt::format("width={} time={} rotated={} theta={} pairs={}", options_.head_width, options_.time,
                     options_.rotated, options_.theta, name_of(options_.pairs));
}

std::vector<Type> Rope::infer(std::span<const Type> in) const {
  check_count(in.size(), 1);
  check_computes(in[0]);
  rope_sizes(options_, in[0].shape);
  if (!(options_.theta > 0)) fail("theta must be positive but is {}", options_.theta);
  return {in[0]};
}

Wires Rope::vjp(const VjpContext& context) const {
  const Direction back = direction_ == Direction::forward ? Direction::inverse : Direction::forward;
  const Wire in[] = {context.dout[0]};
  return {context.graph().apply(std::make_shared<Rope>(options_, back), in)[0]};
}

Cost Rope::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = 3.0 * static_cast<double>(in[0].shape.elements()), .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const Rope& op, Types in, Types) {
  const RopeSizes s = rope_sizes(op.options(), in[0].shape);
  const std::int64_t half = s.width / 2, rows = in[0].shape.elements() / s.channels;
  const Tiling tiling(rows, std::max<std::int64_t>(1, 8192 / s.channels));
  const RopePairs pairs = op.options().pairs;
  const auto kernel = [&]<typename T>(auto* run) -> CpuKernel {
    auto table = std::make_shared<std::vector<T>>(static_cast<std::size_t>(2 * s.time * half));  // [time, 2, half]
    for (std::int64_t t = 0; t < s.time; ++t) {
      for (std::int64_t i = 0; i < half; ++i) {
        const double frequency =
            std::pow(op.options().theta, -2.0 * static_cast<double>(i) / static_cast<double>(s.width));
        const double angle = static_cast<double>(t) * frequency;
        T* cosine = table->data() + 2 * t * half + i;
        cosine[0] = static_cast<T>(std::cos(angle));
        cosine[half] = static_cast<T>(op.direction() == Rope::Direction::forward ? std::sin(angle) : -std::sin(angle));
      }
    }
    return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                          for (std::int64_t row = tiling.begin(tile); row < tiling.end(tile); ++row) {
                            const T* cosine = table->data() + row % s.time * 2 * half;
                            const T* x = call.in<T>(0) + row * s.channels;
                            T* y = call.out<T>(0) + row * s.channels;
                            for (std::int64_t c = 0; c < s.rotated; c += s.width) {
                              run(pairs, x + c, cosine, cosine + half, half, y + c);
                            }
                            if (x != y) std::copy(x + s.rotated, x + s.channels, y + s.rotated);
                          }
                        }}}};
  };
  return in[0].dtype == DType::f32 ? kernel.operator()<float>(NORMA_SIMD(rope_head_f32))
                                   : kernel.operator()<double>(NORMA_SIMD(rope_head_f64));
}

Wire rope(Wire x, const RopeOptions& options) {
  const Wire in[] = {x};
  return x.graph().apply(std::make_shared<Rope>(options), in)[0];
}

}  // namespace norma
#endif  // HWY_ONCE
