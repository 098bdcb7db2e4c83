// swiglu([gate, up]) = gate sigmoid(gate) up, the two halves of each row.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/swiglu.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"
#include "norma/ops/activation.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

// One row: x = [gate, up], each n wide.
template <typename T>
HWY_INLINE void swiglu_typed(const T* x, T* y, std::int64_t n) {
  for_lanes<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto gate = hn::LoadU(d, x + i);
    hn::StoreU(hn::Mul(hn::Mul(gate, sigmoid(d, gate)), hn::LoadU(d, x + n + i)), d, y + i);
  });
}

template <typename T>
HWY_INLINE void swiglu_backward_typed(const T* x, const T* dy, T* dx, std::int64_t n) {
  for_lanes<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto gate = hn::LoadU(d, x + i), up = hn::LoadU(d, x + n + i), grad = hn::LoadU(d, dy + i);
    const auto s = sigmoid(d, gate);
    const auto slope = hn::Mul(s, hn::MulAdd(gate, hn::Sub(hn::Set(d, T{1}), s), hn::Set(d, T{1})));
    hn::StoreU(hn::Mul(hn::Mul(grad, up), slope), d, dx + i);
    hn::StoreU(hn::Mul(grad, hn::Mul(gate, s)), d, dx + n + i);
  });
}

void swiglu_f32(const float* x, float* y, std::int64_t n) { swiglu_typed(x, y, n); }
void swiglu_f64(const double* x, double* y, std::int64_t n) { swiglu_typed(x, y, n); }
void swiglu_backward_f32(const float* x, const float* dy, float* dx, std::int64_t n) {
  swiglu_backward_typed(x, dy, dx, n);
}
void swiglu_backward_f64(const double* x, const double* dy, double* dx, std::int64_t n) {
  swiglu_backward_typed(x, dy, dx, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "norma/core/error.h"
#include "norma/device/cpu/kernel.h"
#include "norma/graph/differentiate.h"
#include "norma/graph/graph.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/views.h"
#include "ops/activation_cost.h"
#include "ops/check.h"

namespace norma {

HWY_EXPORT(swiglu_f32);
HWY_EXPORT(swiglu_f64);
HWY_EXPORT(swiglu_backward_f32);
HWY_EXPORT(swiglu_backward_f64);

std::vector<Type> SwiGlu::infer(std::span<const Type> in) const {
  check_count(in.size(), 1);
  check_computes(in[0]);
  if (in[0].shape.channels() % 2 != 0)
    fail("needs an even number of channels (gate, up) but got {}", in[0].shape.str());
  return {{in[0].shape.with(-1, in[0].shape.channels() / 2), in[0].dtype}};
}

Wires SwiGlu::vjp(const VjpContext& context) const {
  const Wire in[] = {context.in[0], context.dout[0]};
  return context.graph().apply(std::make_shared<SwiGluBackward>(), in);
}

Wires SwiGlu::reference(std::span<const Wire> in) const {
  const std::int64_t width = in[0].shape().channels() / 2;
  const Wire gate = slice_last(in[0], 0, width), up = slice_last(in[0], width, width);
  return {gate * sigmoid(gate) * up};
}

Cost SwiGlu::cost(std::span<const Type> in, std::span<const Type> out) const { return activation_cost(in, out); }

CpuKernel cpu_kernel(const SwiGlu&, Types in, Types out) {
  const std::int64_t n = out[0].shape.channels();
  const Tiling tiling(out[0].shape.rows(), std::max<std::int64_t>(1, kActivationsPerTile / n));
  const auto kernel = [&]<typename T>(auto* run) -> CpuKernel {
    return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                          for (std::int64_t row = tiling.begin(tile); row < tiling.end(tile); ++row) {
                            run(call.in<T>(0) + row * 2 * n, call.out<T>(0) + row * n, n);
                          }
                        }}}};
  };
  return in[0].dtype == DType::f32 ? kernel.operator()<float>(NORMA_SIMD(swiglu_f32))
                                   : kernel.operator()<double>(NORMA_SIMD(swiglu_f64));
}

std::vector<Type> SwiGluBackward::infer(std::span<const Type> in) const {
  check_count(in.size(), 2);
  check_type("the gradient", in[1], SwiGlu().infer(in.first(1))[0]);
  return {in[0]};
}

Wires SwiGluBackward::reference(std::span<const Wire> in) const {
  const int first_node = static_cast<int>(in[0].graph().nodes().size());
  return pull_back(SwiGlu().reference(in.first(1)), in.subspan(1, 1), in.first(1), first_node);
}

Cost SwiGluBackward::cost(std::span<const Type> in, std::span<const Type> out) const {
  return activation_cost(in, out);
}

CpuKernel cpu_kernel(const SwiGluBackward&, Types in, Types) {
  const std::int64_t n = in[1].shape.channels();
  const Tiling tiling(in[1].shape.rows(), std::max<std::int64_t>(1, kActivationsPerTile / n));
  const auto kernel = [&]<typename T>(auto* run) -> CpuKernel {
    return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                          for (std::int64_t row = tiling.begin(tile); row < tiling.end(tile); ++row) {
                            run(call.in<T>(0) + row * 2 * n, call.in<T>(1) + row * n, call.out<T>(0) + row * 2 * n, n);
                          }
                        }}}};
  };
  return in[0].dtype == DType::f32 ? kernel.operator()<float>(NORMA_SIMD(swiglu_backward_f32))
                                   : kernel.operator()<double>(NORMA_SIMD(swiglu_backward_f64));
}

Wire swiglu(Wire x) {
  const Wire in[] = {x};
  return x.graph().apply(std::make_shared<SwiGlu>(), in)[0];
}

}  // namespace norma
#endif  // HWY_ONCE
