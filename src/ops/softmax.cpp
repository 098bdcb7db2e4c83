// y = exp(x - max x) / sum exp(x - max x) over the last axis, with an optional mask.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/softmax.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include <algorithm>

#include "core/simd-inl.h"
#include "norma/ops/softmax.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

// y[0, seen) = softmax(x[0, seen)), y[seen, n) = 0; y may be x. Vectors run over the end of what is seen, under a mask,
// as long as they stay inside the row: causal rows would else spend most of their time in the scalar rest.
template <typename T>
HWY_INLINE void softmax_row(const T* x, T* y, std::int64_t seen, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t whole = std::min(n / lanes * lanes, (seen + lanes - 1) / lanes * lanes);
  const auto in_sight = [&](std::int64_t i)
                            HWY_ATTR { return hn::FirstN(d, static_cast<std::size_t>(std::min(lanes, seen - i))); };
  auto most = hn::Neg(hn::Inf(d));
  for (std::int64_t i = 0; i < whole; i += lanes) {
    most = hn::Max(most, hn::IfThenElse(in_sight(i), hn::LoadU(d, x + i), most));
  }
  T largest = hn::GetLane(hn::MaxOfLanes(d, most));
  for (std::int64_t i = whole; i < seen; ++i) largest = x[i] > largest ? x[i] : largest;
  // A NaN that the maximum missed comes back through the sum.
  auto sum = hn::Zero(d);
  for (std::int64_t i = 0; i < whole; i += lanes) {
    const auto e = exp(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, largest)));
    sum = hn::Add(sum, hn::IfThenElseZero(in_sight(i), e));
    hn::StoreU(e, d, y + i);
  }
  T total = sum_lanes(d, sum);
  for (std::int64_t i = whole; i < seen; ++i) {
    y[i] = hn::GetLane(exp(one, hn::Set(one, x[i] - largest)));
    total += y[i];
  }
  const T inverse = T{1} / total;
  for_lanes<T>(seen, [&](auto tag, std::int64_t i)
                         HWY_ATTR { hn::StoreU(hn::Mul(hn::LoadU(tag, y + i), hn::Set(tag, inverse)), tag, y + i); });
  for (std::int64_t i = seen; i < n; ++i) y[i] = T{0};
}

// dx = y (dy - sum of y dy); dx may be y or dy.
template <typename T>
HWY_INLINE void softmax_backward_row(const T* y, const T* dy, T* dx, std::int64_t n) {
  const T dot = sum_over<T>(
      n, [&](auto d, std::int64_t i) HWY_ATTR { return hn::Mul(hn::LoadU(d, y + i), hn::LoadU(d, dy + i)); });
  for_lanes<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, y + i), hn::Sub(hn::LoadU(d, dy + i), hn::Set(d, dot))), d, dx + i);
  });
}

void softmax_backward_row_f32(const float* y, const float* dy, float* dx, std::int64_t n) {
  softmax_backward_row(y, dy, dx, n);
}
void softmax_backward_row_f64(const double* y, const double* dy, double* dx, std::int64_t n) {
  softmax_backward_row(y, dy, dx, n);
}
void softmax_row_f32(const float* x, float* y, std::int64_t seen, std::int64_t n) { softmax_row(x, y, seen, n); }
void softmax_row_f64(const double* x, double* y, std::int64_t seen, std::int64_t n) { softmax_row(x, y, seen, n); }

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"
#include "ops/check.h"

namespace norma {

HWY_EXPORT(softmax_row_f32);
HWY_EXPORT(softmax_row_f64);
HWY_EXPORT(softmax_backward_row_f32);
HWY_EXPORT(softmax_backward_row_f64);

std::string_view name_of(Mask mask) { return mask == Mask::causal ? "causal" : "full"; }

std::vector<Type> Softmax::infer(std::span<const Type> in) const {
  if (in.size() != 1 && in.size() != 2) fail("takes x and lengths, not {} inputs", in.size());
  check_computes(in[0]);
  const Shape& x = in[0].shape;
  if (x.rank() < 1) fail("needs at least one axis but was given {}", x.str());
  if (mask_ == Mask::causal && (x.rank() < 2 || x[-2] != x[-1])) {
    fail("a causal mask needs as many keys as queries but was given {}", x.str());
  }
  if (in.size() == 2) {
    if (x.rank() < 2) fail("lengths need x[samples, ..., keys] but x is {}", x.str());
    check_type("lengths", in[1], {{x[0]}, DType::i32});
  }
  return {in[0]};
}

Wires Softmax::vjp(const VjpContext& context) const {
  const Wire in[] = {context.out[0], context.dout[0]};
  Wires result = context.graph().apply(std::make_shared<SoftmaxBackward>(), in);
  result.resize(context.in.size());
  return result;
}

Cost Softmax::cost(std::span<const Type> in, std::span<const Type> out) const {
  // max, subtract, exp, sum, divide
  return {.flops = 5.0 * static_cast<double>(in[0].shape.elements()), .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const Softmax& op, Types in, Types) {
  const Shape& x = in[0].shape;
  const std::int64_t keys = x.channels(), rows = x.rows(), queries = x.rank() > 1 ? x[-2] : 1;
  const std::int64_t rows_per_sample = rows / x[0];
  const bool causal = op.mask() == Mask::causal, with_lengths = in.size() > 1;
  const Tiling tiling(rows, std::max<std::int64_t>(1, 4096 / keys));
  const auto kernel = [&]<typename T>(auto* run) -> CpuKernel {
    return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                          for (std::int64_t row = tiling.begin(tile); row < tiling.end(tile); ++row) {
                            std::int64_t seen = causal ? row % queries + 1 : keys;
                            if (with_lengths) {
                              const std::int64_t length = call.in<std::int32_t>(1)[row / rows_per_sample];
                              seen = std::clamp<std::int64_t>(length, 0, seen);
                            }
                            run(call.in<T>(0) + row * keys, call.out<T>(0) + row * keys, seen, keys);
                          }
                        }}}};
  };
  return in[0].dtype == DType::f32 ? kernel.operator()<float>(NORMA_SIMD(softmax_row_f32))
                                   : kernel.operator()<double>(NORMA_SIMD(softmax_row_f64));
}

std::vector<Type> SoftmaxBackward::infer(std::span<const Type> in) const {
  check_count(in.size(), 2);
  check_computes(in[0]);
  check_type("the gradient", in[1], in[0]);
  return {in[0]};
}

Wires SoftmaxBackward::reference(std::span<const Wire> in) const {
  const Wire y = in[0], dy = in[1];
  return {y * (dy - sum_last(y * dy))};
}

Cost SoftmaxBackward::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = 4.0 * static_cast<double>(in[0].shape.elements()), .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const SoftmaxBackward&, Types in, Types) {
  const std::int64_t n = in[0].shape.channels();
  const Tiling tiling(in[0].shape.rows(), std::max<std::int64_t>(1, 8192 / n));
  const auto kernel = [&]<typename T>(auto* run) -> CpuKernel {
    return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                          for (std::int64_t row = tiling.begin(tile); row < tiling.end(tile); ++row) {
                            run(call.in<T>(0) + row * n, call.in<T>(1) + row * n, call.out<T>(0) + row * n, n);
                          }
                        }}}};
  };
  return in[0].dtype == DType::f32 ? kernel.operator()<float>(NORMA_SIMD(softmax_backward_row_f32))
                                   : kernel.operator()<double>(NORMA_SIMD(softmax_backward_row_f64));
}

Wire softmax(Wire x, Mask mask, Wire lengths) {
  Wires in = {x};
  if (lengths) in.push_back(lengths);
  return x.graph().apply(std::make_shared<Softmax>(mask), in)[0];
}

}  // namespace norma
#endif  // HWY_ONCE
