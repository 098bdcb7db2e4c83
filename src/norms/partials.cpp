// total = line 0 + line 1 + ..., in order.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "norms/partials.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "core/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

template <typename T>
HWY_INLINE void sum_lines_typed(const T* lines, std::int64_t count, std::int64_t stride, std::int64_t begin,
                                std::int64_t end, T* total) {
  for_lanes<T>(end - begin, [&](auto d, std::int64_t i) HWY_ATTR {
    auto sum = hn::LoadU(d, lines + begin + i);
    for (std::int64_t k = 1; k < count; ++k) sum = hn::Add(sum, hn::LoadU(d, lines + k * stride + begin + i));
    hn::StoreU(sum, d, total + begin + i);
  });
}

void norms_sum_lines_f32(const float* lines, std::int64_t count, std::int64_t stride, std::int64_t begin,
                         std::int64_t end, float* total) {
  sum_lines_typed(lines, count, stride, begin, end, total);
}
void norms_sum_lines_f64(const double* lines, std::int64_t count, std::int64_t stride, std::int64_t begin,
                         std::int64_t end, double* total) {
  sum_lines_typed(lines, count, stride, begin, end, total);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "norms/partials.h"

namespace norma {

HWY_EXPORT(norms_sum_lines_f32);
HWY_EXPORT(norms_sum_lines_f64);

template <>
SumLines<float> sum_lines<float>() {
  return NORMA_SIMD(norms_sum_lines_f32);
}
template <>
SumLines<double> sum_lines<double>() {
  return NORMA_SIMD(norms_sum_lines_f64);
}

}  // namespace norma
#endif  // HWY_ONCE
