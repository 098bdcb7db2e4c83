// DyT: y = gain t + bias, t = tanh(alpha x). With h = dy gain (1 - t^2):
//   dx = alpha h, dalpha = sum of h x, dgain = sum over rows of dy t, dbias = sum over rows of dy
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "norms/dyt.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"
#include "norms/store-inl.h"

// What one tile's rows need; shared by all instruction sets.
#ifndef NORMA_NORMS_DYT_ROWS_
#define NORMA_NORMS_DYT_ROWS_
namespace norma {
template <typename T>
struct DyTRows {
  std::int64_t rows, width;
  T alpha;
  const T *x, *dy;       // [rows, width]; dy backward only
  const T *gain, *bias;  // [width] or null
  T* out;                // [rows, width] y, or dx, which may be null
  T *dalpha, *dgain, *dbias;
  Stores stores;
};
}  // namespace norma
#endif

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

template <Stores kStores, typename T>
HWY_INLINE void dyt_forward(const DyTRows<T>& in) {
  for (std::int64_t row = 0; row < in.rows; ++row) {
    for_lanes<T>(in.width, [&](auto d, std::int64_t i) HWY_ATTR {
      const std::int64_t at = row * in.width + i;
      auto y = tanh(d, hn::Mul(hn::LoadU(d, in.x + at), hn::Set(d, in.alpha)));
      if (in.gain != nullptr) y = hn::Mul(y, hn::LoadU(d, in.gain + i));
      if (in.bias != nullptr) y = hn::Add(y, hn::LoadU(d, in.bias + i));
      store_as<kStores>(y, d, in.out + at);
    });
  }
}

template <Stores kStores, typename T>
HWY_INLINE void dyt_backward(const DyTRows<T>& in) {
  for (std::int64_t row = 0; row < in.rows; ++row) {
    *in.dalpha += sum_over<T>(in.width, [&](auto d, std::int64_t i) HWY_ATTR {
      const std::int64_t at = row * in.width + i;
      const auto x = hn::LoadU(d, in.x + at), dy = hn::LoadU(d, in.dy + at), alpha = hn::Set(d, in.alpha);
      const auto t = tanh(d, hn::Mul(x, alpha));
      auto h = hn::Mul(dy, hn::NegMulAdd(t, t, hn::Set(d, T{1})));
      if (in.gain != nullptr) h = hn::Mul(h, hn::LoadU(d, in.gain + i));
      if (in.dgain != nullptr) hn::StoreU(hn::MulAdd(dy, t, hn::LoadU(d, in.dgain + i)), d, in.dgain + i);
      if (in.dbias != nullptr) hn::StoreU(hn::Add(dy, hn::LoadU(d, in.dbias + i)), d, in.dbias + i);
      if (in.out != nullptr) store_as<kStores>(hn::Mul(h, alpha), d, in.out + at);
      return hn::Mul(h, x);
    });
  }
}

template <typename T>
HWY_INLINE void dyt_rows(const DyTRows<T>& in) {
  const auto run = [&]<Stores kStores>()
                       HWY_ATTR { in.dy == nullptr ? dyt_forward<kStores>(in) : dyt_backward<kStores>(in); };
  if (in.stores == Stores::plain) return run.template operator()<Stores::plain>();
  run.template operator()<Stores::streaming>();
  hwy::FlushStream();
}

void dyt_rows_f32(const DyTRows<float>& in) { dyt_rows(in); }
void dyt_rows_f64(const DyTRows<double>& in) { dyt_rows(in); }

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "norma/device/cpu/kernel.h"
#include "norma/graph/differentiate.h"
#include "norma/graph/graph.h"
#include "norma/norms/dyt.h"
#include "norma/ops/elementwise.h"
#include "norms/affine.h"
#include "norms/partials.h"
#include "ops/check.h"

namespace norma {

HWY_EXPORT(dyt_rows_f32);
HWY_EXPORT(dyt_rows_f64);

namespace {

template <typename T>
auto dyt_function() {
  if constexpr (sizeof(T) == 4) {
    return NORMA_SIMD(dyt_rows_f32);
  } else {
    return NORMA_SIMD(dyt_rows_f64);
  }
}

Tiling dyt_tiles(const Type& x) {
  return Tiling(x.shape.rows(), std::max<std::int64_t>(1, 16384 / x.shape.channels()));
}

template <typename T>
CpuKernel dyt_kernel(Affine affine, const Type& type) {
  const Tiling tiling = dyt_tiles(type);
  const std::int64_t width = type.shape.channels();
  const Stores stores = choose_stores(type);
  const int gain = has_gain(affine) ? 2 : -1, bias = has_bias(affine) ? 2 + has_gain(affine) : -1;
  return {.phases = {{tiling.tiles, [=, run = dyt_function<T>()](const Call& call, std::int64_t tile) {
                        const std::int64_t first = tiling.begin(tile) * width;
                        run({.rows = tiling.end(tile) - tiling.begin(tile),
                             .width = width,
                             .alpha = call.in<T>(1)[0],
                             .x = call.in<T>(0) + first,
                             .dy = nullptr,
                             .gain = gain < 0 ? nullptr : call.in<T>(gain),
                             .bias = bias < 0 ? nullptr : call.in<T>(bias),
                             .out = call.out<T>(0) + first,
                             .dalpha = nullptr,
                             .dgain = nullptr,
                             .dbias = nullptr,
                             .stores = stores});
                      }}}};
}

template <typename T>
CpuKernel dyt_backward_kernel(Affine affine, const Type& type) {
  const Tiling tiling = dyt_tiles(type);
  const std::int64_t width = type.shape.channels();
  const Stores stores = choose_stores(type);
  const int dgain = has_gain(affine) ? 2 : -1, dbias = has_bias(affine) ? 2 + has_gain(affine) : -1;
  CpuKernel kernel;
  const Partials<T> alphas(kernel, 1, tiling.tiles), gains(kernel, dgain < 0 ? 0 : width, tiling.tiles),
      biases(kernel, dbias < 0 ? 0 : width, tiling.tiles);
  kernel.phases.push_back({tiling.tiles, [=, run = dyt_function<T>()](const Call& call, std::int64_t tile) {
                             const std::int64_t first = tiling.begin(tile) * width;
                             const auto line = [&](const Partials<T>& partials, int output) -> T* {
                               if (output < 0) return nullptr;
                               T* const start = partials.line(call, tile);
                               std::fill_n(start, partials.width, T{0});
                               return start;
                             };
                             T* const dx = call.out<T>(0);
                             run({.rows = tiling.end(tile) - tiling.begin(tile),
                                  .width = width,
                                  .alpha = call.in<T>(2)[0],
                                  .x = call.in<T>(0) + first,
                                  .dy = call.in<T>(1) + first,
                                  .gain = has_gain(affine) ? call.in<T>(3) : nullptr,
                                  .bias = nullptr,
                                  .out = dx == nullptr ? nullptr : dx + first,
                                  .dalpha = line(alphas, 1),
                                  .dgain = line(gains, dgain),
                                  .dbias = line(biases, dbias),
                                  .stores = stores});
                           }});
  add_total_phase(kernel, alphas, 1);
  if (dgain >= 0) add_total_phase(kernel, gains, dgain);
  if (dbias >= 0) add_total_phase(kernel, biases, dbias);
  return kernel;
}

}  // namespace

std::vector<Type> DyT::infer(std::span<const Type> in) const {
  check_count(in.size(), 2u + has_gain(affine_) + has_bias(affine_));
  check_computes(in[0]);
  check_type("alpha", in[1], {{1}, in[0].dtype});
  for (std::size_t k = 2; k < in.size(); ++k) {
    check_type("gain or bias", in[k], {{in[0].shape.channels()}, in[0].dtype});
  }
  return {in[0]};
}

Wires DyT::vjp(const VjpContext& context) const {
  Wires in = {context.in[0], context.dout[0], context.in[1]};
  if (has_gain(affine_)) in.push_back(context.in[2]);
  return context.graph().apply(std::make_shared<DyTBackward>(affine_), in);  // one gradient per input, in their order
}

Wires DyT::reference(std::span<const Wire> in) const {
  Wire y = tanh(in[0] * in[1]);
  std::size_t next = 2;
  if (has_gain(affine_)) y = y * in[next++];
  if (has_bias(affine_)) y = y + in[next];
  return {y};
}

Cost DyT::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = static_cast<double>(in[0].shape.elements()) * 20, .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const DyT& op, Types in, Types) {
  return in[0].dtype == DType::f32 ? dyt_kernel<float>(op.affine(), in[0]) : dyt_kernel<double>(op.affine(), in[0]);
}

std::vector<Type> DyTBackward::infer(std::span<const Type> in) const {
  check_count(in.size(), 3u + has_gain(affine_));
  const Type& x = in[0];
  const Type channels{{x.shape.channels()}, x.dtype};
  check_computes(x);
  check_type("dy", in[1], x);
  check_type("alpha", in[2], {{1}, x.dtype});
  if (has_gain(affine_)) check_type("gain", in[3], channels);
  std::vector<Type> out = {x, in[2]};
  if (has_gain(affine_)) out.push_back(channels);
  if (has_bias(affine_)) out.push_back(channels);
  return out;
}

Wires DyTBackward::reference(std::span<const Wire> in) const {
  const Wire x = in[0];
  Wires forward = {x, in[2]};
  if (has_gain(affine_)) forward.push_back(in[3]);
  if (has_bias(affine_)) forward.push_back(x.graph().fill({{x.shape().channels()}, x.dtype()}, 0));
  const Wires dout = {in[1]};
  return pull_back(DyT(affine_).reference(forward), dout, forward);
}

Cost DyTBackward::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = static_cast<double>(in[0].shape.elements()) * 30, .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const DyTBackward& op, Types in, Types) {
  return in[0].dtype == DType::f32 ? dyt_backward_kernel<float>(op.affine(), in[0])
                                   : dyt_backward_kernel<double>(op.affine(), in[0]);
}

Wire dyt(Wire x, Wire alpha, Wire gain, Wire bias) {
  Wires in = {x, alpha};
  const Affine affine = append_affine(in, gain, bias);
  return x.graph().apply(std::make_shared<DyT>(affine), in)[0];
}

}  // namespace norma
#endif  // HWY_ONCE
