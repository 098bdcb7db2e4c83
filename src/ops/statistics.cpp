// Sum, sum of squares, max |x| and the count of non-finite elements of fixed tiles, combined in order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/statistics.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

// partial = {sum, sum of squares, max |x|, count of non-finite}
template <typename T>
HWY_INLINE void statistics_typed(const T* x, std::int64_t n, T* partial) {
  const hn::ScalableTag<T> wide;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(wide));
  constexpr int kSets = 2;  // of accumulators, so that one addition need not wait for the last
  hn::Vec<decltype(wide)> sum[kSets], squares[kSets], largest[kSets];
  for (int k = 0; k < kSets; ++k) sum[k] = squares[k] = largest[k] = hn::Zero(wide);
  std::int64_t bad = 0, i = 0;
  const auto take = [&](int k, std::int64_t at) HWY_ATTR {
    const auto v = hn::LoadU(wide, x + at);
    const auto finite = hn::IsFinite(v);
    sum[k] = hn::Add(sum[k], v);
    squares[k] = hn::MulAdd(v, v, squares[k]);
    largest[k] = hn::Max(largest[k], hn::IfThenElseZero(finite, hn::Abs(v)));
    bad += lanes - static_cast<std::int64_t>(hn::CountTrue(wide, finite));
  };
  for (; i + kSets * lanes <= n; i += kSets * lanes) {
    for (int k = 0; k < kSets; ++k) take(k, i + k * lanes);
  }
  for (; i + lanes <= n; i += lanes) take(0, i);
  partial[0] = sum_lanes(wide, hn::Add(sum[0], sum[1]));
  partial[1] = sum_lanes(wide, hn::Add(squares[0], squares[1]));
  partial[2] = hn::GetLane(hn::MaxOfLanes(wide, hn::Max(largest[0], largest[1])));
  for (; i < n; ++i) {
    partial[0] += x[i];
    partial[1] += x[i] * x[i];
    if (std::isfinite(x[i])) {
      partial[2] = std::max(partial[2], std::abs(x[i]));
    } else {
      ++bad;
    }
  }
  partial[3] = static_cast<T>(bad);
}

void statistics_f32(const float* x, std::int64_t n, float* partial) { statistics_typed(x, n, partial); }
void statistics_f64(const double* x, std::int64_t n, double* partial) { statistics_typed(x, n, partial); }

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <cmath>
#include <limits>

#include "norma/core/error.h"
#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/ops/statistics.h"
#include "ops/check.h"

namespace norma {

HWY_EXPORT(statistics_f32);
HWY_EXPORT(statistics_f64);

namespace {

enum Part { sum_of_values, sum_of_squares, largest, non_finite, parts };

}  // namespace

std::vector<Type> StatisticsOp::infer(std::span<const Type> in) const {
  check_count(in.size(), 1);
  check_computes(in[0]);
  return {{{parts}, DType::f64}};
}

Wires StatisticsOp::vjp(const VjpContext&) const { return {Wire()}; }

Cost StatisticsOp::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = 4.0 * static_cast<double>(in[0].shape.elements()), .bytes = traffic(in, out)};
}

std::vector<Type> StatisticsOfSeveral::infer(std::span<const Type> in) const {
  if (in.empty() || in.size() > kMostStatistics) fail("takes 1 to {} tensors, not {}", kMostStatistics, in.size());
  for (const Type& x : in) check_computes(x);
  return std::vector<Type>(in.size(), {{parts}, DType::f64});
}

Wires StatisticsOfSeveral::reference(std::span<const Wire> in) const {
  Wires all;
  for (const Wire& x : in) all.push_back(statistics(x));
  return all;
}

Wires StatisticsOfSeveral::vjp(const VjpContext& context) const { return Wires(context.in.size()); }

Cost StatisticsOfSeveral::cost(std::span<const Type> in, std::span<const Type> out) const {
  double elements = 0;
  for (const Type& x : in) elements += static_cast<double>(x.shape.elements());
  return {.flops = 4.0 * elements, .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const StatisticsOp&, Types in, Types) {
  const Tiling tiling(in[0].shape.elements(), 16384, 64);
  const auto make = [&]<typename T>(auto* run) {
    CpuKernel kernel;
    kernel.scratch_bytes = tiling.tiles * parts * static_cast<std::int64_t>(sizeof(T));
    kernel.phases.push_back({tiling.tiles, [=](const Call& call, std::int64_t tile) {
                               const std::int64_t at = tiling.begin(tile);
                               run(call.in<T>(0) + at, tiling.end(tile) - at, call.shared<T>() + tile * parts);
                             }});
    kernel.phases.push_back({1, [=](const Call& call, std::int64_t) {
                               double* const total = call.out<double>(0);
                               std::fill_n(total, parts, 0.0);
                               for (std::int64_t tile = 0; tile < tiling.tiles; ++tile) {
                                 const T* partial = call.shared<T>() + tile * parts;
                                 total[sum_of_values] += static_cast<double>(partial[sum_of_values]);
                                 total[sum_of_squares] += static_cast<double>(partial[sum_of_squares]);
                                 total[largest] = std::max(total[largest], static_cast<double>(partial[largest]));
                                 total[non_finite] += static_cast<double>(partial[non_finite]);
                               }
                             }});
    return kernel;
  };
  return in[0].dtype == DType::f32 ? make.operator()<float>(NORMA_SIMD(statistics_f32))
                                   : make.operator()<double>(NORMA_SIMD(statistics_f64));
}

Wire statistics(Wire x) {
  const Wire in[] = {x};
  return x.graph().apply(std::make_shared<StatisticsOp>(), in)[0];
}

Wires statistics_of_several(std::span<const Wire> x) {
  return x[0].graph().apply(std::make_shared<StatisticsOfSeveral>(), x);
}

Statistics read_statistics(std::int64_t elements, const std::function<double(std::size_t)>& output) {
  const double count = static_cast<double>(elements);
  Statistics found{.mean = output(sum_of_values) / count,
                   .rms = std::sqrt(output(sum_of_squares) / count),
                   .max_abs = output(largest),
                   .non_finite = output(non_finite)};
  if (found.non_finite > 0) found.max_abs = std::numeric_limits<double>::infinity();
  return found;
}

}  // namespace norma
#endif  // HWY_ONCE
