// y = x (1 + scale) + shift
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/modulate.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

// One row.
template <typename T>
HWY_INLINE void modulate_typed(const T* x, const T* scale, const T* shift, T* y, std::int64_t n) {
  for_lanes<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto factor = hn::Add(hn::Set(d, T{1}), hn::LoadU(d, scale + i));
    hn::StoreU(hn::MulAdd(hn::LoadU(d, x + i), factor, hn::LoadU(d, shift + i)), d, y + i);
  });
}

// One row, whose share is added to the sums.
template <typename T>
HWY_INLINE void modulate_backward_typed(const T* x, const T* scale, const T* dy, T* dx, T* dscale, T* dshift,
                                        std::int64_t n) {
  for_lanes<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto gradient = hn::LoadU(d, dy + i);
    const auto factor = hn::Add(hn::Set(d, T{1}), hn::LoadU(d, scale + i));
    hn::StoreU(hn::MulAdd(gradient, hn::LoadU(d, x + i), hn::LoadU(d, dscale + i)), d, dscale + i);
    hn::StoreU(hn::Add(gradient, hn::LoadU(d, dshift + i)), d, dshift + i);
    hn::StoreU(hn::Mul(gradient, factor), d, dx + i);
  });
}

void modulate_f32(const float* x, const float* scale, const float* shift, float* y, std::int64_t n) {
  modulate_typed(x, scale, shift, y, n);
}
void modulate_f64(const double* x, const double* scale, const double* shift, double* y, std::int64_t n) {
  modulate_typed(x, scale, shift, y, n);
}
void modulate_backward_f32(const float* x, const float* scale, const float* dy, float* dx, float* dscale, float* dshift,
                           std::int64_t n) {
  modulate_backward_typed(x, scale, dy, dx, dscale, dshift, n);
}
void modulate_backward_f64(const double* x, const double* scale, const double* dy, double* dx, double* dscale,
                           double* dshift, std::int64_t n) {
  modulate_backward_typed(x, scale, dy, dx, dscale, dshift, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "norma/core/error.h"
#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/modulate.h"
#include "norma/ops/reduce.h"
#include "norma/ops/views.h"
#include "ops/check.h"

namespace norma {

HWY_EXPORT(modulate_f32);
HWY_EXPORT(modulate_f64);
HWY_EXPORT(modulate_backward_f32);
HWY_EXPORT(modulate_backward_f64);

namespace {

void check_modulation(const char* what, const Type& x, const Type& given) {
  check_same_dtype(x, given);
  if (x.shape.rank() < 2) fail("needs [batch, .., channels], but is given {}", x.shape.str());
  const bool fits = given.shape.rank() >= 2 && given.shape[0] == x.shape[0] &&
                    given.shape.channels() == x.shape.channels() &&
                    given.shape.elements() == x.shape[0] * x.shape.channels();
  if (!fits)
    fail("{} must be one number for each channel of a sample, [{}, {}], but is {}", what, x.shape[0],
         x.shape.channels(), given.str());
}

// [batch, positions, d] and [batch, 1, d].
Wire by_position(Wire x) { return reshape(x, {x.shape()[0], x.shape().rows() / x.shape()[0], x.shape().channels()}); }

struct ModulateSizes {
  std::int64_t batch, positions, width;
  explicit ModulateSizes(const Shape& x) : batch(x[0]), positions(x.rows() / x[0]), width(x.channels()) {}
};

template <typename T, typename Run>
CpuKernel modulate_kernel(const ModulateSizes& s, Run* run) {
  const Tiling rows(s.batch * s.positions, std::max<std::int64_t>(1, 16384 / s.width));
  return {.phases = {{.tiles = rows.tiles, .run = [=](const Call& call, std::int64_t tile) {
                        for (std::int64_t row = rows.begin(tile); row < rows.end(tile); ++row) {
                          const std::int64_t at = row * s.width, of = row / s.positions * s.width;
                          run(call.in<T>(0) + at, call.in<T>(1) + of, call.in<T>(2) + of, call.out<T>(0) + at, s.width);
                        }
                      }}}};
}

// A sample is a tile: its sums have one order.
template <typename T, typename Run>
CpuKernel modulate_backward_kernel(const ModulateSizes& s, Run* run) {
  return {.phases = {{.tiles = s.batch, .run = [=](const Call& call, std::int64_t sample) {
                        const std::int64_t of = sample * s.width;
                        T* const dscale = call.out<T>(1) + of;
                        T* const dshift = call.out<T>(2) + of;
                        std::fill_n(dscale, s.width, T{0});
                        std::fill_n(dshift, s.width, T{0});
                        for (std::int64_t row = 0; row < s.positions; ++row) {
                          const std::int64_t at = (sample * s.positions + row) * s.width;
                          run(call.in<T>(0) + at, call.in<T>(1) + of, call.in<T>(2) + at, call.out<T>(0) + at, dscale,
                              dshift, s.width);
                        }
                      }}}};
}

}  // namespace

std::vector<Type> Modulate::infer(std::span<const Type> in) const {
  check_count(in.size(), 3);
  check_computes(in[0]);
  check_modulation("scale", in[0], in[1]);
  check_modulation("shift", in[0], in[2]);
  return {in[0]};
}

Wires Modulate::reference(std::span<const Wire> in) const {
  const Wire scale = by_position(in[1]), shift = by_position(in[2]);
  return {reshape(by_position(in[0]) * (scale + 1.0) + shift, in[0].shape())};
}

Wires Modulate::vjp(const VjpContext& context) const {
  const Wire in[] = {context.in[0], context.in[1], context.dout[0]};
  const Wires out = context.graph().apply(std::make_shared<ModulateBackward>(), in);
  return {out[0], out[1], reshape(out[2], context.in[2].shape())};
}

Cost Modulate::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = 3.0 * static_cast<double>(out[0].shape.elements()), .bytes = traffic(in, out)};
}

std::vector<Type> ModulateBackward::infer(std::span<const Type> in) const {
  check_count(in.size(), 3);
  check_computes(in[0]);
  check_modulation("scale", in[0], in[1]);
  check_type("dy", in[2], in[0]);
  return {in[0], in[1], in[1]};
}

Wires ModulateBackward::reference(std::span<const Wire> in) const {
  const Wire x = by_position(in[0]), scale = by_position(in[1]), dy = by_position(in[2]);
  const auto summed = [&](Wire wide) { return reshape(sum_to(wide, scale.shape()), in[1].shape()); };
  return {reshape(dy * (scale + 1.0), in[0].shape()), summed(dy * x), summed(dy)};
}

Cost ModulateBackward::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = 5.0 * static_cast<double>(out[0].shape.elements()), .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const Modulate&, Types in, Types) {
  const ModulateSizes sizes(in[0].shape);
  return in[0].dtype == DType::f32 ? modulate_kernel<float>(sizes, NORMA_SIMD(modulate_f32))
                                   : modulate_kernel<double>(sizes, NORMA_SIMD(modulate_f64));
}

CpuKernel cpu_kernel(const ModulateBackward&, Types in, Types) {
  const ModulateSizes sizes(in[0].shape);
  return in[0].dtype == DType::f32 ? modulate_backward_kernel<float>(sizes, NORMA_SIMD(modulate_backward_f32))
                                   : modulate_backward_kernel<double>(sizes, NORMA_SIMD(modulate_backward_f64));
}

Wire modulate(Wire x, Wire scale, Wire shift) {
  const Wire in[] = {x, scale, shift};
  return x.graph().apply(std::make_shared<Modulate>(), in)[0];
}

}  // namespace norma
#endif  // HWY_ONCE
