// Forward over short rows: up to four whole vectors, held in registers from the terms to the result. Sums are taken in
// the order of row_moments and fold_over, so that both give the same bits.
#if defined(NORMA_NORMS_ROW_SHORT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_NORMS_ROW_SHORT_INL_H_
#undef NORMA_NORMS_ROW_SHORT_INL_H_
#else
#define NORMA_NORMS_ROW_SHORT_INL_H_
#endif

#include "core/simd-inl.h"
#include "hwy/highway.h"
#include "norms/row.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

constexpr int kShortVectors = 4;

// Vectors of a row, 0 if its kernel is not the one for short rows.
template <typename T>
HWY_INLINE std::int64_t short_vectors(const RowForward& layout) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>())), vectors = layout.width / lanes;
  const bool whole = layout.width == vectors * lanes && layout.counted == layout.width;
  const bool plain = layout.stores == Stores::plain && !layout.scaled && layout.terms <= 2;
  return whole && plain && vectors <= kShortVectors ? vectors : 0;
}

// The sum of N vectors' lanes; step(n, total) adds vector n.
template <int N, class D, typename Step>
HWY_INLINE hn::TFromD<D> sum_short(D d, const Step& step) {
  const auto zero = hn::Zero(d);
  if constexpr (N == 4) {
    return sum_lanes(d, hn::Add(hn::Add(step(0, zero), step(1, zero)), hn::Add(step(2, zero), step(3, zero))));
  } else {
    auto total = zero;
    for (int n = 0; n < N; ++n) total = step(n, total);
    return sum_lanes(d, total);
  }
}

template <class Norm, int N, bool kBias, typename T>
HWY_INLINE void short_rows(const Call& call, const RowForward& layout, std::int64_t begin, std::int64_t end) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  constexpr std::int64_t kLanes = static_cast<std::int64_t>(hn::MaxLanes(d)), kWidth = N * kLanes;
  const T eps = call.in<T>(layout.eps())[0], count = static_cast<T>(kWidth);
  const T* const gains = layout.gain < 0 ? nullptr : call.in<T>(layout.gain);
  const T* const second = layout.terms == 2 ? call.in<T>(1) : nullptr;
  T* const rstds = call.out<T>(1);
  T* const means = layout.mean < 0 ? nullptr : call.out<T>(layout.mean);
  T* const sums = layout.sum < 0 ? nullptr : call.out<T>(layout.sum);
  V gain[N], bias[N], v[N];
  for (int n = 0; n < N; ++n) {
    gain[n] = Norm::kOneGain || gains == nullptr ? hn::Set(d, T{1}) : hn::LoadU(d, gains + n * kLanes);
    bias[n] = kBias ? hn::LoadU(d, call.in<T>(layout.bias) + n * kLanes) : hn::Zero(d);
  }
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t at = row * kWidth;
    for (int n = 0; n < N; ++n) v[n] = hn::LoadU(d, call.in<T>(0) + at + n * kLanes);
    if (second != nullptr) {
      for (int n = 0; n < N; ++n) v[n] = hn::Add(v[n], hn::LoadU(d, second + at + n * kLanes));
    }
    if (sums != nullptr) {
      for (int n = 0; n < N; ++n) hn::StoreU(v[n], d, sums + at + n * kLanes);
    }
    T mean{0};
    if constexpr (Norm::kCentred) {
      mean = sum_short<N>(d, [&](int n, V sum) HWY_ATTR { return hn::Add(sum, v[n]); }) / count;
      for (int n = 0; n < N; ++n) v[n] = hn::Sub(v[n], hn::Set(d, mean));
    }
    const T squares = sum_short<N>(d, [&](int n, V sum) HWY_ATTR { return hn::MulAdd(v[n], v[n], sum); });
    const T rstd = Norm::rstd(squares, count, eps);
    if (rstds != nullptr) rstds[row] = rstd;
    if (means != nullptr) means[row] = mean;
    const T scale = Norm::kOneGain && gains != nullptr ? rstd * gains[0] : rstd;
    for (int n = 0; n < N; ++n) {
      V y = hn::Mul(v[n], hn::Set(d, scale));
      if constexpr (kBias) {
        y = hn::MulAdd(y, gain[n], bias[n]);
      } else {
        y = hn::Mul(y, gain[n]);
      }
      hn::StoreU(y, d, call.out<T>(0) + at + n * kLanes);
    }
  }
}

template <class Norm, typename T>
HWY_INLINE void row_forward_short(const Call& call, const RowForward& layout, std::int64_t begin, std::int64_t end) {
  const auto run = [&]<int N>() HWY_ATTR {
    if (Norm::kBias && layout.bias >= 0) {
      short_rows<Norm, N, Norm::kBias, T>(call, layout, begin, end);
    } else {
      short_rows<Norm, N, false, T>(call, layout, begin, end);
    }
  };
  switch (short_vectors<T>(layout)) {
    case 1: return run.template operator()<1>();
    case 2: return run.template operator()<2>();
    case 3: return run.template operator()<3>();
    default: return run.template operator()<4>();
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#endif  // NORMA_NORMS_ROW_SHORT_INL_H_
