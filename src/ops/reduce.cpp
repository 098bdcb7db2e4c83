// Sums over axes: partial sums over fixed blocks, then the blocks in order, so that bits never depend on threads.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/reduce.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"
#include "norma/ops/reduce.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

template <typename T>
HWY_INLINE T sum_row_typed(const T* x, std::int64_t n) {
  return sum_over<T>(n, [&](auto d, std::int64_t i) HWY_ATTR { return hn::LoadU(d, x + i); });
}

// total[n] += x[rows, n]
template <typename T>
HWY_INLINE void add_rows_typed(const T* x, std::int64_t rows, std::int64_t n, T* total) {
  for_lanes<T>(n, [&](auto d, std::int64_t i) HWY_ATTR {
    auto sum = hn::LoadU(d, total + i);
    for (std::int64_t row = 0; row < rows; ++row) sum = hn::Add(sum, hn::LoadU(d, x + row * n + i));
    hn::StoreU(sum, d, total + i);
  });
}

float sum_row_f32(const float* x, std::int64_t n) { return sum_row_typed(x, n); }
double sum_row_f64(const double* x, std::int64_t n) { return sum_row_typed(x, n); }
void add_rows_f32(const float* x, std::int64_t rows, std::int64_t n, float* total) {
  add_rows_typed(x, rows, n, total);
}
void add_rows_f64(const double* x, std::int64_t rows, std::int64_t n, double* total) {
  add_rows_typed(x, rows, n, total);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "norma/core/arena.h"
#include "norma/core/error.h"
#include "norma/device/cpu/kernel.h"
#include "norma/graph/graph.h"
#include "norma/ops/elementwise.h"
#include "ops/broadcast.h"
#include "ops/check.h"

namespace norma {

HWY_EXPORT(sum_row_f32);
HWY_EXPORT(sum_row_f64);
HWY_EXPORT(add_rows_f32);
HWY_EXPORT(add_rows_f64);

namespace {

template <typename T>
struct ReduceFunctions {
  T (*sum_row)(const T*, std::int64_t);
  void (*add_rows)(const T*, std::int64_t, std::int64_t, T*);
};

template <typename T>
ReduceFunctions<T> functions() {
  if constexpr (sizeof(T) == 4) {
    return {NORMA_SIMD(sum_row_f32), NORMA_SIMD(add_rows_f32)};
  } else {
    return {NORMA_SIMD(sum_row_f64), NORMA_SIMD(add_rows_f64)};
  }
}

// [rows, n] -> [rows]
template <typename T>
CpuKernel row_sums(std::int64_t rows, std::int64_t n) {
  const Tiling tiling(rows, std::max<std::int64_t>(1, 16384 / n));
  return {.phases = {{tiling.tiles, [=, f = functions<T>()](const Call& call, std::int64_t tile) {
                        for (std::int64_t row = tiling.begin(tile); row < tiling.end(tile); ++row) {
                          call.out<T>(0)[row] = f.sum_row(call.in<T>(0) + row * n, n);
                        }
                      }}}};
}

// [rows, n] -> [n]
template <typename T>
CpuKernel column_sums(std::int64_t rows, std::int64_t n) {
  const Tiling tiling(rows, std::max<std::int64_t>(1, 16384 / n));
  const auto f = functions<T>();
  CpuKernel kernel;
  kernel.scratch_bytes = tiling.tiles * n * static_cast<std::int64_t>(sizeof(T));
  kernel.phases.push_back({tiling.tiles, [=](const Call& call, std::int64_t tile) {
                             T* partial = call.shared<T>() + tile * n;
                             std::fill_n(partial, n, T{0});
                             f.add_rows(call.in<T>(0) + tiling.begin(tile) * n, tiling.end(tile) - tiling.begin(tile),
                                        n, partial);
                           }});
  kernel.phases.push_back({1, [=](const Call& call, std::int64_t) {
                             std::fill_n(call.out<T>(0), n, T{0});
                             f.add_rows(call.shared<T>(), tiling.tiles, n, call.out<T>(0));
                           }});
  return kernel;
}

// everything -> [1]
template <typename T>
CpuKernel total_sum(std::int64_t n) {
  const Tiling tiling(n, 16384, 64);
  const auto f = functions<T>();
  CpuKernel kernel;
  kernel.scratch_bytes = tiling.tiles * static_cast<std::int64_t>(sizeof(T));
  kernel.phases.push_back({tiling.tiles, [=](const Call& call, std::int64_t tile) {
                             call.shared<T>()[tile] =
                                 f.sum_row(call.in<T>(0) + tiling.begin(tile), tiling.end(tile) - tiling.begin(tile));
                           }});
  kernel.phases.push_back(
      {1, [=](const Call& call, std::int64_t) { call.out<T>(0)[0] = f.sum_row(call.shared<T>(), tiling.tiles); }});
  return kernel;
}

// Any other pattern of axes; one tile, rows in order.
template <typename T>
CpuKernel general_sum(const Shape& from, const Shape& to) {
  const BroadcastIndex index(to, from);
  const std::int64_t rows = from.rows(), n = from.channels(), size = to.elements();
  return {.phases = {{1, [=, f = functions<T>()](const Call& call, std::int64_t) {
                        T* out = call.out<T>(0);
                        std::fill_n(out, size, T{0});
                        for (std::int64_t row = 0; row < rows; ++row) {
                          const T* x = call.in<T>(0) + row * n;
                          T* target = out + index.row_offset(row);
                          if (index.column_stride() == 0) {
                            *target += f.sum_row(x, n);
                          } else {
                            f.add_rows(x, 1, n, target);
                          }
                        }
                      }}}};
}

template <typename T>
CpuKernel sum_kernel(const Shape& from, const Shape& to) {
  if (to.elements() == 1) return total_sum<T>(from.elements());
  if (to.rank() == from.rank() && to.channels() == 1 && to.elements() == from.rows())
    return row_sums<T>(from.rows(), from.channels());
  if (to.elements() == from.channels() && to.channels() == from.channels())
    return column_sums<T>(from.rows(), from.channels());
  return general_sum<T>(from, to);
}

}  // namespace

std::vector<Type> SumTo::infer(std::span<const Type> in) const {
  check_computes(in[0]);
  if (!broadcasts_to(shape_, in[0].shape)) fail("cannot sum {} down to {}", in[0].shape.str(), shape_.str());
  return {{shape_, in[0].dtype}};
}

Wires SumTo::vjp(const VjpContext& context) const { return {broadcast_to(context.dout[0], context.in[0].shape())}; }

Cost SumTo::cost(std::span<const Type> in, std::span<const Type> out) const {
  return {.flops = static_cast<double>(in[0].shape.elements()), .bytes = traffic(in, out)};
}

CpuKernel cpu_kernel(const SumTo&, Types in, Types out) {
  return in[0].dtype == DType::f32 ? sum_kernel<float>(in[0].shape, out[0].shape)
                                   : sum_kernel<double>(in[0].shape, out[0].shape);
}

std::vector<Type> BroadcastTo::infer(std::span<const Type> in) const {
  check_computes(in[0]);
  if (!broadcasts_to(in[0].shape, shape_)) fail("cannot repeat {} to {}", in[0].shape.str(), shape_.str());
  return {{shape_, in[0].dtype}};
}

Wires BroadcastTo::vjp(const VjpContext& context) const { return {sum_to(context.dout[0], context.in[0].shape())}; }

CpuKernel cpu_kernel(const BroadcastTo&, Types in, Types out) {
  const BroadcastIndex index(in[0].shape, out[0].shape);
  const std::int64_t n = out[0].shape.channels();
  const Tiling tiling(out[0].shape.rows(), std::max<std::int64_t>(1, 16384 / n));
  const auto kernel = [&]<typename T>(T) -> CpuKernel {
    return {.phases = {{tiling.tiles, [=](const Call& call, std::int64_t tile) {
                          for (std::int64_t row = tiling.begin(tile); row < tiling.end(tile); ++row) {
                            const T* x = call.in<T>(0) + index.row_offset(row);
                            T* y = call.out<T>(0) + row * n;
                            if (index.column_stride() == 0) {
                              std::fill_n(y, n, *x);
                            } else {
                              std::copy_n(x, n, y);
                            }
                          }
                        }}}};
  };
  return in[0].dtype == DType::f32 ? kernel(0.0f) : kernel(0.0);
}

Wire sum_to(Wire x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const Wire in[] = {x};
  return x.graph().apply(std::make_shared<SumTo>(shape), in)[0];
}

Wire broadcast_to(Wire x, const Shape& shape) {
  if (x.shape() == shape) return x;
  const Wire in[] = {x};
  return x.graph().apply(std::make_shared<BroadcastTo>(shape), in)[0];
}

Wire sum_last(Wire x) { return sum_to(x, x.shape().with(-1, 1)); }
Wire mean_last(Wire x) { return sum_last(x) / static_cast<double>(x.shape().channels()); }
Wire sum_all(Wire x) { return sum_to(x, {1}); }
Wire mean_all(Wire x) { return sum_all(x) / static_cast<double>(x.shape().elements()); }

}  // namespace norma
#endif  // HWY_ONCE
