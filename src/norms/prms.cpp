// pRMSNorm: RMSNorm whose mean square is taken over the first fraction of the row only. Zhang, Sennrich 2019.
//   y = gain x / sqrt(mean_k(x^2) + eps), k = max(1, floor(fraction d))
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "norms/prms.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the kernels need.
#include "norms/row_kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

struct PrmsRow {
  static constexpr bool kCentred = false, kPartial = true, kOneGain = false;
  template <typename T>
  static HWY_INLINE T rstd(T squares, T count, T eps) {
    return T{1} / std::sqrt(squares / count + eps);
  }
  template <typename T>
  static HWY_INLINE T pull(T, T count, T) {
    return T{1} / count;
  }
};

NORMA_ROW_NORM_KERNELS(prms, PrmsRow)

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "norma/core/error.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"
#include "norma/ops/views.h"

namespace norma {

NORMA_ROW_NORM_EXPORT(prms)

namespace {

Wires prms_statistics(Wire x, Wire eps, std::int64_t counted) {
  return {rsqrt(mean_last(square(slice_last(x, 0, counted))) + eps)};
}

const RowNormDefinition kPrmsNorm = {"prms_norm", Saved::rstd, GainExtent::channels, prms_statistics, prms_row_kernels};

}  // namespace

Wire prms_norm(Wire x, Wire gain, double fraction, Scalar eps) {
  if (!(fraction > 0 && fraction <= 1)) fail("prms_norm: the fraction must be in (0, 1] but is {}", fraction);
  return apply_row_norm(kPrmsNorm, x, gain, {}, eps, fraction);
}

}  // namespace norma
#endif  // HWY_ONCE
