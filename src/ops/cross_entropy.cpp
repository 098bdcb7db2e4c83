// loss = (1-s) (lse - z_target) + s (lse - mean(z)) per row; dz = scale (softmax(z) - (1-s) onehot - s/n).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cross_entropy.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include <limits>

#include "core/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

// A NaN may be lost here; the sum of exponentials brings it back.
template <typename T>
HWY_INLINE T largest_of(const T* z, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto top = hn::Set(d, -std::numeric_limits<T>::infinity());
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) top = hn::Max(top, hn::LoadU(d, z + i));
  T result = hn::GetLane(hn::MaxOfLanes(d, top));
  for (; i < n; ++i) result = z[i] > result ? z[i] : result;
  return result;
}

template <typename T>
HWY_INLINE T row_loss(const T* z, std::int64_t n, std::int32_t target, T smoothing, T* lse) {
  const T top = largest_of(z, n);
  const T sum = sum_over<T>(
      n, [&](auto d, std::int64_t i) HWY_ATTR { return exp(d, hn::Sub(hn::LoadU(d, z + i), hn::Set(d, top))); });
  *lse = top + std::log(sum);
  if (target < 0 || target >= n) return std::numeric_limits<T>::quiet_NaN();
  T loss = *lse - z[target];
  if (smoothing != 0) {
    const T total = sum_over<T>(n, [&](auto d, std::int64_t i) HWY_ATTR { return hn::LoadU(d, z + i); });
    loss = (1 - smoothing) * loss + smoothing * (*lse - total / static_cast<T>(n));
  }
  return loss;
}

template <typename T>
HWY_INLINE void row_gradient(const T* z, std::int64_t n, std::int32_t target, T smoothing, T lse, T scale, T* dz) {
  const bool known = target >= 0 && target < n;
  if (!known) scale = std::numeric_limits<T>::quiet_NaN();
  const T uniform = smoothing / static_cast<T>(n);
  for_lanes<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    const auto p = exp(d, hn::Sub(hn::LoadU(d, z + i), hn::Set(d, lse)));
    hn::StoreU(hn::Mul(hn::Set(d, scale), hn::Sub(p, hn::Set(d, uniform))), d, dz + i);
  });
  if (known) dz[target] -= scale * (1 - smoothing);
}

float cross_entropy_loss_f32(const float* z, std::int64_t n, std::int32_t target, float smoothing, float* lse) {
  return row_loss(z, n, target, smoothing, lse);
}
double cross_entropy_loss_f64(const double* z, std::int64_t n, std::int32_t target, double smoothing, double* lse) {
  return row_loss(z, n, target, smoothing, lse);
}
void cross_entropy_gradient_f32(const float* z, std::int64_t n, std::int32_t target, float smoothing, float lse,
                                float scale, float* dz) {
  row_gradient(z, n, target, smoothing, lse, scale, dz);
}
void cross_entropy_gradient_f64(const double* z, std::int64_t n, std::int32_t target, double smoothing, double lse,
                                double scale, double* dz) {
  row_gradient(z, n, target, smoothing, lse, scale, dz);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "norma/core/error.h"
#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/ops/cross_entropy.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/one_hot.h"
#include "norma/ops/reduce.h"
#include "norma/ops/softmax.h"
#include "norma/ops/views.h"
#include "ops/check.h"
#include "ops/cross_entropy_rows.h"

namespace norma {

HWY_EXPORT(cross_entropy_loss_f32);
HWY_EXPORT(cross_entropy_loss_f64);
HWY_EXPORT(cross_entropy_gradient_f32);
HWY_EXPORT(cross_entropy_gradient_f64);

CrossEntropyRows<float> cross_entropy_rows_f32() {
  return {NORMA_SIMD(cross_entropy_loss_f32), NORMA_SIMD(cross_entropy_gradient_f32)};
}
CrossEntropyRows<double> cross_entropy_rows_f64() {
  return {NORMA_SIMD(cross_entropy_loss_f64), NORMA_SIMD(cross_entropy_gradient_f64)};
}

namespace {

template <typename T>
CpuKernel loss_kernel(const Shape& logits, std::int32_t ignore) {
  const std::int64_t rows = logits.rows(), n = logits.channels();
  const Tiling tiling(rows, std::max<std::int64_t>(1, 8192 / n));
  CpuKernel kernel;
  kernel.scratch_bytes = rows * static_cast<std::int64_t>(sizeof(T));
  kernel.phases.push_back({tiling.tiles, [=, f = cross_entropy_rows<T>()](const Call& call, std::int64_t tile) {
                             const std::int32_t* targets = call.in<std::int32_t>(1);
                             for (std::int64_t row = tiling.begin(tile); row < tiling.end(tile); ++row) {
                               const T loss = f.loss(call.in<T>(0) + row * n, n, targets[row], *call.in<T>(2),
                                                     call.out<T>(1) + row);
                               call.shared<T>()[row] = targets[row] == ignore ? 0 : loss;
                             }
                           }});
  kernel.phases.push_back({1, [=](const Call& call, std::int64_t) {
                             call.out<T>(0)[0] = mean_loss(call.shared<T>(), call.in<std::int32_t>(1), rows, ignore);
                           }});
  return kernel;
}

template <typename T>
CpuKernel gradient_kernel(const Shape& logits, std::int32_t ignore) {
  const std::int64_t rows = logits.rows(), n = logits.channels();
  const Tiling tiling(rows, std::max<std::int64_t>(1, 8192 / n));
  return {.phases = {{tiling.tiles, [=, f = cross_entropy_rows<T>()](const Call& call, std::int64_t tile) {
                        const std::int32_t* targets = call.in<std::int32_t>(1);
                        const T scale = *call.in<T>(4) / counted_rows<T>(targets, rows, ignore);
                        for (std::int64_t row = tiling.begin(tile); row < tiling.end(tile); ++row) {
                          T* dz = call.out<T>(0) + row * n;
                          if (targets[row] == ignore) {
                            std::fill_n(dz, n, T{0});
                          } else {
                            f.gradient(call.in<T>(0) + row * n, n, targets[row], *call.in<T>(2), call.in<T>(3)[row],
                                       scale, dz);
                          }
                        }
                      }}}};
}

// What the softmax should be in every row, and 1 for the rows that count.
struct Wanted {
  Wire weights, counted;

  Wanted(Wire logits, Wire targets, Wire smoothing, std::int32_t ignore) {
    const std::int64_t classes = logits.shape().channels();
    const Wire hot = one_hot(targets, classes, ignore, logits.dtype());
    weights = hot - smoothing * (hot + -1.0 / static_cast<double>(classes));
    counted = sum_last(hot);
  }
};

std::string describe(const CrossEntropyOptions& options) {
  return fmt::format("ignore={}{}", options.ignore, options.weight == Transpose::yes ? " W^T" : "");
}

}  // namespace

std::string CrossEntropy::attributes() const { return describe(options_); }
std::string CrossEntropyBackward::attributes() const { return describe(options_); }

std::vector<Type> CrossEntropy::infer(std::span<const Type> in) const {
  check_count(in.size(), 3);
  check_computes(in[0]);
  const Shape& logits = in[0].shape;
  if (logits.rank() < 2) fail("logits must be [rows, vocabulary] but are {}", logits.str());
  const Shape rows(logits.dims().first(static_cast<std::size_t>(logits.rank() - 1)));
  check_type("targets", in[1], {rows, DType::i32});
  check_type("smoothing", in[2], {{1}, in[0].dtype});
  return {{{1}, in[0].dtype}, {rows, in[0].dtype}};
}

Wires CrossEntropy::vjp(const VjpContext& context) const {
  if (context.dout[1]) fail("cross_entropy has no gradient through its log-sum-exp");
  const Wire in[] = {context.in[0], context.in[1], context.in[2], context.out[1], context.dout[0]};
  return {context.graph().apply(std::make_shared<CrossEntropyBackward>(options_), in)[0], Wire(), Wire()};
}

// Where the softmax does not underflow.
Wires CrossEntropy::reference(std::span<const Wire> in) const {
  const Wire logits = in[0], logs = log(softmax(logits));
  const Wanted wanted(logits, in[1], in[2], options_.ignore);
  const Wire total = sum_all(wanted.counted * sum_last(wanted.weights * logs));
  return {-(total / sum_all(wanted.counted)), reshape(mean_last(logits - logs), in[1].shape())};
}

Cost CrossEntropy::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = 10.0 * static_cast<double>(in[0].shape.elements()), .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const CrossEntropy& op, Types in, Types) {
  return in[0].dtype == DType::f32 ? loss_kernel<float>(in[0].shape, op.options().ignore)
                                   : loss_kernel<double>(in[0].shape, op.options().ignore);
}

std::vector<Type> CrossEntropyBackward::infer(std::span<const Type> in) const {
  check_count(in.size(), 5);
  const std::vector<Type> forward = CrossEntropy(options_).infer(in.first(3));
  check_type("lse", in[3], forward[1]);
  check_type("dloss", in[4], forward[0]);
  return {in[0]};
}

Wires CrossEntropyBackward::reference(std::span<const Wire> in) const {
  const Wanted wanted(in[0], in[1], in[2], options_.ignore);
  return {(softmax(in[0]) - wanted.weights) * wanted.counted * (in[4] / sum_all(wanted.counted))};
}

Cost CrossEntropyBackward::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = 10.0 * static_cast<double>(in[0].shape.elements()), .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const CrossEntropyBackward& op, Types in, Types) {
  return in[0].dtype == DType::f32 ? gradient_kernel<float>(in[0].shape, op.options().ignore)
                                   : gradient_kernel<double>(in[0].shape, op.options().ignore);
}

Wire cross_entropy(Wire logits, Wire targets, Wire smoothing, CrossEntropyOptions options) {
  Graph& graph = logits.graph();
  const Wire in[] = {logits, targets, smoothing ? smoothing : graph.fill({{1}, logits.dtype()}, 0)};
  return graph.apply(std::make_shared<CrossEntropy>(options), in)[0];
}

}  // namespace norma
#endif  // HWY_ONCE
