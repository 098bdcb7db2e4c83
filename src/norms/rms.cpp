// RMSNorm: y = gain x / sqrt(mean(x^2) + eps), mean over the row. Zhang, Sennrich 2019.
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
  static constexpr bool kCentred = false, kPartial = false, kOneGain = false;
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
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"

namespace norma {

NORMA_ROW_NORM_EXPORT(rms)

namespace {

Wires rms_statistics(Wire x, Wire eps, std::int64_t) { return {rsqrt(mean_last(square(x)) + eps)}; }

const RowNormDefinition kRmsNorm = {"rms_norm", Saved::rstd, GainExtent::channels, rms_statistics, rms_row_kernels};

}  // namespace

Wire rms_norm(Wire x, Wire gain, Scalar eps) { return apply_row_norm(kRmsNorm, x, gain, {}, eps); }

}  // namespace norma
#endif  // HWY_ONCE
