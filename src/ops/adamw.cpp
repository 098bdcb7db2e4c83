// AdamW in one pass over p, g, m, v.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/adamw.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"
#include "norma/ops/adamw.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

template <typename T>
HWY_INLINE void adamw_typed(T* p, const T* g, T* m, T* v, const T* control, T scale, T lr_factor, T decay_factor,
                            std::int64_t n) {
  using C = AdamWControl;
  const T lr = control[C::lr] * lr_factor;
  const T keep = T{1} - lr * control[C::weight_decay] * decay_factor;
  const T step_size = lr / control[C::correction1];
  const T root_correction = std::sqrt(control[C::correction2]);
  for_lanes<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto grad = hn::Mul(hn::LoadU(d, g + i), hn::Set(d, scale));
    const auto first = hn::MulAdd(hn::Set(d, control[C::beta1]), hn::LoadU(d, m + i),
                                  hn::Mul(hn::Set(d, T{1} - control[C::beta1]), grad));
    const auto second = hn::MulAdd(hn::Set(d, control[C::beta2]), hn::LoadU(d, v + i),
                                   hn::Mul(hn::Set(d, T{1} - control[C::beta2]), hn::Mul(grad, grad)));
    const auto denominator =
        hn::Add(hn::Div(hn::Sqrt(second), hn::Set(d, root_correction)), hn::Set(d, control[C::eps]));
    const auto step = hn::Div(hn::Mul(hn::Set(d, step_size), first), denominator);
    hn::StoreU(hn::Sub(hn::Mul(hn::LoadU(d, p + i), hn::Set(d, keep)), step), d, p + i);
    hn::StoreU(first, d, m + i);
    hn::StoreU(second, d, v + i);
  });
}

void adamw_f32(float* p, const float* g, float* m, float* v, const float* control, float scale, float lr, float decay,
               std::int64_t n) {
  adamw_typed(p, g, m, v, control, scale, lr, decay, n);
}
void adamw_f64(double* p, const double* g, double* m, double* v, const double* control, double scale, double lr,
               double decay, std::int64_t n) {
  adamw_typed(p, g, m, v, control, scale, lr, decay, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "norma/core/error.h"
#include "norma/graph/graph.h"
#include "ops/check.h"

namespace norma {

HWY_EXPORT(adamw_f32);
HWY_EXPORT(adamw_f64);

std::string AdamW::attributes() const {
  return fmt::format("lr*{} wd*{}{}", group_.lr, group_.weight_decay, scaled_ ? " scaled" : "");
}

std::vector<Type> AdamW::infer(std::span<const Type> in) const {
  check_count(in.size(), scaled_ ? 6 : 5);
  check_computes(in[0]);
  check_type("the gradient", in[1], in[0]);
  check_type("the first moment", in[2], in[0]);
  check_type("the second moment", in[3], in[0]);
  check_type("the control block", in[4], {{AdamWControl::size}, in[0].dtype});
  if (scaled_) check_type("the gradient scale", in[5], {{1}, in[0].dtype});
  return {in[0], in[0], in[0]};
}

Cost AdamW::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = 14.0 * static_cast<double>(in[0].shape.elements()), .bytes = traffic(in, out)};
}

CpuKernel AdamW::cpu(std::span<const Type> in, std::span<const Type>) const {
  const Tiling tiling(in[0].shape.elements(), 4096, 64);
  const auto kernel = [&]<typename T>(auto* run) -> CpuKernel {
    return {.phases = {{tiling.tiles, [=, group = group_, scaled = scaled_](const Call& call, std::int64_t tile) {
                          const std::int64_t at = tiling.begin(tile);
                          run(call.out<T>(0) + at, call.in<T>(1) + at, call.out<T>(1) + at, call.out<T>(2) + at,
                              call.in<T>(4), scaled ? *call.in<T>(5) : T{1}, static_cast<T>(group.lr),
                              static_cast<T>(group.weight_decay), tiling.end(tile) - at);
                        }}}};
  };
  return in[0].dtype == DType::f32 ? kernel.operator()<float>(NORMA_SIMD(adamw_f32))
                                   : kernel.operator()<double>(NORMA_SIMD(adamw_f64));
}

void adamw(Wire parameter, Wire gradient, Wire control, Wire gradient_scale, AdamW::Group group) {
  Graph& graph = parameter.graph();
  const auto root = graph.scope_at("");
  const Wire m = graph.state(parameter.name() + "/m", parameter.type());
  const Wire v = graph.state(parameter.name() + "/v", parameter.type());
  Wires in = {parameter, gradient, m, v, control};
  if (gradient_scale) in.push_back(gradient_scale);
  graph.apply(std::make_shared<AdamW>(group, static_cast<bool>(gradient_scale)), in);
}

}  // namespace norma
#endif  // HWY_ONCE
