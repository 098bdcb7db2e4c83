// y = x1 + x2 + ...: the kernel; the graph itself defines the op.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/sum.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"
#include "norma/device/cpu/kernel.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

template <typename T>
void sum_range(const Call& call, std::int64_t begin, std::int64_t end) {
  T* out = call.out<T>(0);
  for_lanes<T>(end - begin, [&](auto d, std::int64_t i) HWY_ATTR {
    const std::int64_t at = begin + i;
    auto total = hn::LoadU(d, call.in<T>(0) + at);
    for (int k = 1; k < call.inputs; ++k) total = hn::Add(total, hn::LoadU(d, call.in<T>(k) + at));
    hn::StoreU(total, d, out + at);
  });
}

void sum_f32(const Call& call, std::int64_t begin, std::int64_t end) { sum_range<float>(call, begin, end); }
void sum_f64(const Call& call, std::int64_t begin, std::int64_t end) { sum_range<double>(call, begin, end); }

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "norma/graph/sum.h"

namespace norma {

HWY_EXPORT(sum_f32);
HWY_EXPORT(sum_f64);

CpuKernel cpu_kernel(const Sum&, Types in, Types) {
  const Tiling tiling(in[0].shape.elements(), 16384, 64);
  const auto run = in[0].dtype == DType::f32 ? NORMA_SIMD(sum_f32) : NORMA_SIMD(sum_f64);
  return {.phases = {{tiling.tiles,
                      [=](const Call& call, std::int64_t tile) { run(call, tiling.begin(tile), tiling.end(tile)); }}}};
}

}  // namespace norma
#endif  // HWY_ONCE
