// relu(x) = max(x, 0); gelu(x) = x Phi(x); gelu_tanh(x) = x sigmoid(2 sqrt(2/pi) (x + 0.044715 x^3)); silu(x) = x
// sigmoid(x).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/activation.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"
#include "norma/ops/activation.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

constexpr double kSqrtHalf = 0.70710678118654752440;
constexpr double kLog2E = 1.44269504088896340736;
constexpr double kInvSqrt2Pi = 0.39894228040143267794;
constexpr double kTanhScale = 1.59576912160573071176;  // 2 sqrt(2/pi)
constexpr double kTanhCubic = 0.044715;

// Phi(x) and exp(-x^2/2). In f32 both come from one exponential: Abramowitz & Stegun 7.1.26 for the tail, whose
// absolute error is below 1e-7; in f64 from the C library's erf. Dividing would take as long as all the rest: the
// reciprocal is the processor's guess, made exact to f32 by one step of Newton's (which infinity would not survive, so
// that it sees large numbers instead; there the tail is 0 whatever they are).
template <class D, class V = hn::Vec<D>>
HWY_INLINE void normal_cdf(D d, V x, V& cdf, V& gauss) {
  using T = hn::TFromD<D>;
  const auto c = [&](double v) HWY_ATTR { return hn::Set(d, static_cast<T>(v)); };
  if constexpr (sizeof(T) == 8) {
    gauss = exp(d, hn::Mul(c(-0.5), hn::Mul(x, x)));
    cdf = hn::MulAdd(c(0.5), erf(d, hn::Mul(x, c(kSqrtHalf))), c(0.5));
  } else {
    gauss = exp2_below(d, hn::Mul(hn::Mul(c(-0.5 * kLog2E), x), x));
    const V q = hn::MulAdd(c(0.3275911 * kSqrtHalf), hn::Min(hn::Abs(x), c(1e4)), c(1));
    const V guess = hn::ApproximateReciprocal(q);
    const V t = hn::Mul(guess, hn::NegMulAdd(q, guess, c(2)));
    V poly = c(0.5 * 1.061405429);
    poly = hn::MulAdd(poly, t, c(0.5 * -1.453152027));
    poly = hn::MulAdd(poly, t, c(0.5 * 1.421413741));
    poly = hn::MulAdd(poly, t, c(0.5 * -0.284496736));
    poly = hn::MulAdd(poly, t, c(0.5 * 0.254829592));
    const V tail = hn::Mul(hn::Mul(poly, t), gauss);
    cdf = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(c(1), tail));
  }
}

template <Activation F, class D, class V = hn::Vec<D>>
HWY_INLINE V activation_value(D d, V x) {
  using T = hn::TFromD<D>;
  const auto c = [&](double v) HWY_ATTR { return hn::Set(d, static_cast<T>(v)); };
  if constexpr (F == Activation::relu) return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);  // NaN stays
  if constexpr (F == Activation::silu) return hn::Mul(x, sigmoid(d, x));
  if constexpr (F == Activation::gelu) {
    V cdf, gauss;
    normal_cdf(d, x, cdf, gauss);
    return hn::Mul(x, cdf);
  }
  if constexpr (F == Activation::gelu_tanh) {
    const V u = hn::Mul(hn::Mul(c(kTanhScale), x), hn::MulAdd(hn::Mul(c(kTanhCubic), x), x, c(1)));
    return hn::Mul(x, sigmoid(d, u));
  }
}

// f'(x); for relu x is the output.
template <Activation F, class D, class V = hn::Vec<D>>
HWY_INLINE V activation_slope(D d, V x) {
  using T = hn::TFromD<D>;
  const auto c = [&](double v) HWY_ATTR { return hn::Set(d, static_cast<T>(v)); };
  const V one = c(1);
  if constexpr (F == Activation::relu)
    return hn::IfThenElse(hn::IsNaN(x), x, hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), one));
  if constexpr (F == Activation::silu) {
    const V s = sigmoid(d, x);
    return hn::Mul(s, hn::MulAdd(x, hn::Sub(one, s), one));
  }
  if constexpr (F == Activation::gelu) {
    V cdf, gauss;
    normal_cdf(d, x, cdf, gauss);
    return hn::MulAdd(hn::Mul(x, c(kInvSqrt2Pi)), gauss, cdf);
  }
  if constexpr (F == Activation::gelu_tanh) {
    const V square = hn::Mul(x, x);
    const V u = hn::Mul(hn::Mul(c(kTanhScale), x), hn::MulAdd(c(kTanhCubic), square, one));
    const V du = hn::Mul(c(kTanhScale), hn::MulAdd(c(3 * kTanhCubic), square, one));
    const V s = sigmoid(d, u);
    return hn::Mul(s, hn::MulAdd(hn::Mul(x, du), hn::Sub(one, s), one));
  }
}

template <Activation F, typename T>
HWY_INLINE void activation_loop(const T* x, T* y, std::int64_t n) {
  for_lanes<T>(
      n, [&](auto d, std::int64_t i) HWY_ATTR { hn::StoreU(activation_value<F>(d, hn::LoadU(d, x + i)), d, y + i); });
}

template <Activation F, typename T>
HWY_INLINE void activation_backward_loop(const T* x, const T* dy, T* dx, std::int64_t n) {
  for_lanes<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, dy + i), activation_slope<F>(d, hn::LoadU(d, x + i))), d, dx + i);
  });
}

template <typename T>
void activation_typed(Activation f, const T* x, T* y, std::int64_t n) {
  switch (f) {
    case Activation::relu: return activation_loop<Activation::relu>(x, y, n);
    case Activation::gelu: return activation_loop<Activation::gelu>(x, y, n);
    case Activation::gelu_tanh: return activation_loop<Activation::gelu_tanh>(x, y, n);
    case Activation::silu: return activation_loop<Activation::silu>(x, y, n);
    case Activation::none: break;
  }
}

template <typename T>
void activation_backward_typed(Activation f, const T* x, const T* dy, T* dx, std::int64_t n) {
  switch (f) {
    case Activation::relu: return activation_backward_loop<Activation::relu>(x, dy, dx, n);
    case Activation::gelu: return activation_backward_loop<Activation::gelu>(x, dy, dx, n);
    case Activation::gelu_tanh: return activation_backward_loop<Activation::gelu_tanh>(x, dy, dx, n);
    case Activation::silu: return activation_backward_loop<Activation::silu>(x, dy, dx, n);
    case Activation::none: break;
  }
}

void activation_f32(Activation f, const float* x, float* y, std::int64_t n) { activation_typed(f, x, y, n); }
void activation_f64(Activation f, const double* x, double* y, std::int64_t n) { activation_typed(f, x, y, n); }
void activation_backward_f32(Activation f, const float* x, const float* dy, float* dx, std::int64_t n) {
  activation_backward_typed(f, x, dy, dx, n);
}
void activation_backward_f64(Activation f, const double* x, const double* dy, double* dx, std::int64_t n) {
  activation_backward_typed(f, x, dy, dx, n);
}
}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <array>

#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/device/cpu/kernel.h"
#include "norma/graph/differentiate.h"
#include "norma/graph/graph.h"
#include "norma/ops/elementwise.h"
#include "ops/activation_cost.h"
#include "ops/check.h"

namespace norma {

HWY_EXPORT(activation_f32);
HWY_EXPORT(activation_f64);
HWY_EXPORT(activation_backward_f32);
HWY_EXPORT(activation_backward_f64);

std::string_view name_of(Activation activation) {
  switch (activation) {
    case Activation::none: return "none";
    case Activation::relu: return "relu";
    case Activation::gelu: return "gelu";
    case Activation::gelu_tanh: return "gelu_tanh";
    case Activation::silu: return "silu";
  }
  return "activation";
}

Activation parse_activation(std::string_view name) {
  constexpr std::array kAll = {Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh,
                               Activation::silu};
  std::vector<std::string> names;
  for (const Activation activation : kAll) {
    if (name_of(activation) == name) return activation;
    names.emplace_back(name_of(activation));
  }
  fail("unknown activation '{}'{}; expected none, relu, gelu, gelu_tanh or silu", name, did_you_mean(name, names));
}

std::vector<Type> ActivationOp::infer(std::span<const Type> in) const {
  check_count(in.size(), 1);
  check_computes(in[0]);
  return {in[0]};
}

Wires ActivationOp::vjp(const VjpContext& context) const {
  return {activate_backward(context.in[0], context.out[0], context.dout[0], activation_)};
}

Wires ActivationOp::reference(std::span<const Wire> in) const {
  const Wire x = in[0];
  switch (activation_) {
    case Activation::none: return {x};
    case Activation::relu: return {x * step(x)};
    case Activation::gelu: return {x * (erf(x * 0.70710678118654752440) + 1.0) * 0.5};
    case Activation::gelu_tanh:
      return {x * (tanh((x + x * square(x) * 0.044715) * 0.79788456080286535588) + 1.0) * 0.5};
    case Activation::silu: return {x * sigmoid(x)};
  }
  return {x};
}

Cost ActivationOp::cost(std::span<const Type> in, std::span<const Type> out) const { return activation_cost(in, out); }

CpuKernel cpu_kernel(const ActivationOp& op, Types in, Types) {
  const Tiling tiling(in[0].shape.elements(), kActivationsPerTile, 64);
  const auto kernel = [&]<typename T>(auto* run) -> CpuKernel {
    return {.phases = {{tiling.tiles, [=, f = op.activation()](const Call& call, std::int64_t tile) {
                          const std::int64_t begin = tiling.begin(tile);
                          run(f, call.in<T>(0) + begin, call.out<T>(0) + begin, tiling.end(tile) - begin);
                        }}}};
  };
  return in[0].dtype == DType::f32 ? kernel.operator()<float>(activation_loop_f32())
                                   : kernel.operator()<double>(activation_loop_f64());
}

std::vector<Type> ActivationBackward::infer(std::span<const Type> in) const {
  check_count(in.size(), 2);
  check_computes(in[0]);
  check_type("the gradient", in[1], in[0]);
  return {in[0]};
}

Wires ActivationBackward::reference(std::span<const Wire> in) const {
  if (activation_ == Activation::relu) return {in[1] * step(in[0])};
  const int first_node = static_cast<int>(in[0].graph().nodes().size());
  const Wires out = ActivationOp(activation_).reference(in.first(1));
  return pull_back(out, in.subspan(1, 1), in.first(1), first_node);
}

Cost ActivationBackward::cost(std::span<const Type> in, std::span<const Type> out) const {
  return activation_cost(in, out);
}

CpuKernel cpu_kernel(const ActivationBackward& op, Types in, Types) {
  const Tiling tiling(in[0].shape.elements(), kActivationsPerTile, 64);
  const auto kernel = [&]<typename T>(auto* run) -> CpuKernel {
    return {.phases = {{tiling.tiles, [=, f = op.activation()](const Call& call, std::int64_t tile) {
                          const std::int64_t begin = tiling.begin(tile);
                          run(f, call.in<T>(0) + begin, call.in<T>(1) + begin, call.out<T>(0) + begin,
                              tiling.end(tile) - begin);
                        }}}};
  };
  return in[0].dtype == DType::f32 ? kernel.operator()<float>(NORMA_SIMD(activation_backward_f32))
                                   : kernel.operator()<double>(NORMA_SIMD(activation_backward_f64));
}

Wire activate(Wire x, Activation activation) {
  if (activation == Activation::none) return x;
  const Wire in[] = {x};
  return x.graph().apply(std::make_shared<ActivationOp>(activation), in)[0];
}

Wire activate_backward(Wire x, Wire y, Wire dy, Activation activation) {
  if (activation == Activation::none) return dy;
  const Wire in[] = {activation == Activation::relu ? y : x, dy};
  return dy.graph().apply(std::make_shared<ActivationBackward>(activation), in)[0];
}

ActivationLoop32 activation_loop_f32() { return NORMA_SIMD(activation_f32); }
ActivationLoop64 activation_loop_f64() { return NORMA_SIMD(activation_f64); }

}  // namespace norma
#endif  // HWY_ONCE
