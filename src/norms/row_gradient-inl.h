// The derivative of a row norm, one row or vector at a time; policies as in row_norm-inl.h.
//   dx = rstd (g - mean(g) - xh pull sum(g xh)) + residuals,  g = gain dy
//   dgain = sum over rows of dy xh,  dbias = sum over rows of dy
#if defined(NORMA_NORMS_ROW_GRADIENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_NORMS_ROW_GRADIENT_INL_H_
#undef NORMA_NORMS_ROW_GRADIENT_INL_H_
#else
#define NORMA_NORMS_ROW_GRADIENT_INL_H_
#endif

#include "core/simd-inl.h"
#include "hwy/highway.h"
#include "norms/row.h"
#include "norms/row_norm-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

template <typename T>
struct RowSums {
  T g;     // sum of g
  T g_xh;  // sum of g xh
};

template <class Norm, class D, typename T>
HWY_INLINE hn::Vec<D> normalised(D d, const T* x, RowStatistics<T> statistics) {
  auto xh = hn::LoadU(d, x);
  if constexpr (Norm::kCentred) xh = hn::Sub(xh, hn::Set(d, statistics.mean));
  return hn::Mul(xh, hn::Set(d, statistics.rstd));
}

// run<kDgain, kDbias>() for the gradients that are wanted channel by channel.
template <class Norm, typename T, typename Run>
HWY_INLINE void with_gathered(const T* dgain, const T* dbias, const Run& run) {
  if constexpr (Norm::kOneGain) {
    run.template operator()<false, false>();
  } else if (Norm::kBias && dgain != nullptr && dbias != nullptr) {
    run.template operator()<true, Norm::kBias>();
  } else if (dgain != nullptr) {
    run.template operator()<true, false>();
  } else if (Norm::kBias && dbias != nullptr) {
    run.template operator()<false, Norm::kBias>();
  } else {
    run.template operator()<false, false>();
  }
}

// What the second pass over a row needs: dx = g scale - shift - xh pull + residuals. Channels that do not count towards
// the statistics are not pulled.
template <typename T>
struct RowFinish {
  RowStatistics<T> statistics;
  T scale, shift, pull;
};

template <class Norm, typename T>
HWY_INLINE RowFinish<T> row_finish(const Call& call, const RowBackward& layout, RowStatistics<T> statistics,
                                   RowSums<T> sums) {
  const T count = static_cast<T>(layout.counted), eps = call.in<T>(2)[0], rstd = statistics.rstd;
  const T scale = Norm::kOneGain && layout.gain >= 0 ? rstd * call.in<T>(layout.gain)[0] : rstd;
  return {statistics, scale, sums.g / count * scale, sums.g_xh * Norm::pull(rstd, count, eps) * scale};
}

template <class Norm, typename T>
HWY_INLINE RowStatistics<T> row_statistics_at(const Call& call, const RowBackward& layout, std::int64_t row) {
  return {Norm::kCentred ? call.in<T>(layout.mean)[row] : T{0}, call.in<T>(3)[row]};
}

// dx at channel i of the row that begins at element `at`, given dy, g = gain dy and xh there.
template <class Norm, bool kResidual, class D, typename T>
HWY_INLINE hn::Vec<D> row_backward_dx(D d, const Call& call, const RowBackward& layout, std::int64_t at, std::int64_t i,
                                      const RowFinish<T>& row, hn::Vec<D> g, hn::Vec<D> xh) {
  auto v = hn::Zero(d);
  if constexpr (Norm::kCentred) {
    v = hn::MulSub(g, hn::Set(d, row.scale), hn::Set(d, row.shift));
  } else {
    v = hn::Mul(g, hn::Set(d, row.scale));
  }
  v = hn::NegMulAdd(xh, hn::Set(d, row.pull), v);
  if constexpr (kResidual) {
    for (int k = 0; k < layout.residuals; ++k) v = hn::Add(v, hn::LoadU(d, call.in<T>(layout.residual + k) + at + i));
  }
  return v;
}

// The gradient of scaled term k at channel i: its scale times the total there. Nothing where nobody reads it.
template <Stores kStores, class D, typename T = hn::TFromD<D>>
HWY_INLINE void store_scaled_gradient(D d, const Call& call, const RowBackward& layout, int k, std::int64_t at,
                                      std::int64_t i, hn::Vec<D> total) {
  T* const out = call.out<T>(layout.scaled_out + k);
  if (out == nullptr) return;
  const RowScale scale = layout.scale[static_cast<std::size_t>(k)];
  store_as<kStores>(hn::Mul(total, scale_at(d, call.in<T>(scale.index), scale.stride, i)), d, out + at + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#endif  // NORMA_NORMS_ROW_GRADIENT_INL_H_
