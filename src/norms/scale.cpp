// ScaleNorm: y = g0 x / max(||x||, eps), one learned g0. Nguyen, Salazar 2019.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "norms/scale.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the kernels need.
#include "norms/row_kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

struct ScaleRow {
  static constexpr bool kCentred = false, kBias = false, kOneGain = true;
  template <typename T>
  static HWY_INLINE T rstd(T squares, T, T eps) {
    const T norm = std::sqrt(squares);
    return T{1} / (norm < eps ? eps : norm);  // NaN stays NaN
  }
  template <typename T>
  static HWY_INLINE T pull(T rstd, T, T eps) {
    return rstd < T{1} / eps ? T{1} : T{0};  // a row shorter than eps is only multiplied
  }
};

NORMA_ROW_NORM_KERNELS(scale, ScaleRow)

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"

namespace norma {

NORMA_ROW_NORM_EXPORT(scale)

namespace {

// 1 / sqrt(max(||x||^2, eps^2)): the same function, with a derivative at x = 0.
Wires scale_statistics(Wire x, Wire eps, std::int64_t) {
  const Wire floor = square(eps), above = sum_last(square(x)) - floor;
  return {rsqrt(above * step(above) + floor)};
}

const RowNormDefinition kScaleNorm = {"scale_norm", Saved::rstd, GainExtent::one, scale_statistics, scale_row_kernels};

}  // namespace

Wire scale_norm(Wire x, Wire g0, Scalar eps) { return apply_row_norm(kScaleNorm, x, g0, {}, eps); }

}  // namespace norma
#endif  // HWY_ONCE
