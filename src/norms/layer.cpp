// LayerNorm: y = gain (x - mean) / sqrt(var + eps) + bias, mean and (biased) var over the row. Ba, Kiros, Hinton 2016.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "norms/layer.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the kernels need.
#include "norms/row_kernels-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

struct LayerRow {
  static constexpr bool kCentred = true, kBias = true, kOneGain = false;
  template <typename T>
  static HWY_INLINE T rstd(T squares, T count, T eps) {
    return T{1} / std::sqrt(squares / count + eps);
  }
  template <typename T>
  static HWY_INLINE T pull(T, T count, T) {
    return T{1} / count;
  }
};

NORMA_ROW_NORM_KERNELS(layer, LayerRow)

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"

namespace norma {

NORMA_ROW_NORM_EXPORT(layer)

namespace {

Wires layer_statistics(Wire x, Wire eps, std::int64_t) {
  const Wire mean = mean_last(x);
  return {rsqrt(mean_last(square(x - mean)) + eps), mean};
}

const RowNormDefinition kLayerNorm = {"layer_norm", Saved::mean_and_rstd, GainExtent::channels, layer_statistics,
                                      layer_row_kernels};

}  // namespace

Wire layer_norm(Wire x, Wire gain, Wire bias, Scalar eps) { return apply_row_norm(kLayerNorm, x, gain, bias, eps); }

}  // namespace norma
#endif  // HWY_ONCE
