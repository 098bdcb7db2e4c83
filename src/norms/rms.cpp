// RMSNorm: y = gain x / sqrt(mean(x^2) + eps), mean over the row. Zhang, Sennrich 2019.
// pRMSNorm takes the mean over the first k = max(1, floor(fraction d)) channels only; to the kernels that is the same.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "norms/rms.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the kernels need.
#include "norms/row_kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

struct RmsRow {
  static constexpr bool kCentred = false, kBias = false, kOneGain = false;
  template <typename T>
  static HWY_INLINE T rstd(T squares, T count, T eps) {
    return T{1} / std::sqrt(squares / count + eps);
  }
  template <typename T>
  static HWY_INLINE T pull(T, T count, T) {
    return T{1} / count;
  }
};

NORMA_ROW_NORM_KERNELS(rms, RmsRow)

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "norma/core/error.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"
#include "norma/ops/views.h"

namespace norma {

NORMA_ROW_NORM_EXPORT(rms)

namespace {

Wires rms_statistics(Wire x, Wire eps, std::int64_t counted) {
  const Wire leading = counted < x.shape().channels() ? slice_last(x, 0, counted) : x;
  return {rsqrt(mean_last(square(leading)) + eps)};
}

const RowNormDefinition kRmsNorm = {"rms_norm", Saved::rstd, GainExtent::channels, rms_statistics, rms_row_kernels};
const RowNormDefinition kPrmsNorm = {"prms_norm", Saved::rstd, GainExtent::channels, rms_statistics, rms_row_kernels};

}  // namespace

Wire rms_norm(Wire x, Wire gain, Scalar eps) { return apply_row_norm(kRmsNorm, x, gain, {}, eps); }

Wire prms_norm(Wire x, Wire gain, double fraction, Scalar eps) {
  if (!(fraction > 0 && fraction <= 1)) fail("prms_norm: the fraction must be in (0, 1] but is {}", fraction);
  return apply_row_norm(kPrmsNorm, x, gain, {}, eps, fraction);
}

}  // namespace norma
#endif  // HWY_ONCE
