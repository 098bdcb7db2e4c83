// The backward kernels of every row norm, compiled once per instruction set; policies as in row_norm-inl.h.
//   dx = rstd (g - mean(g) - xh pull sum(g xh)) + residuals,  g = gain dy
//   dgain = sum over rows of dy xh,  dbias = sum over rows of dy
#if defined(NORMA_NORMS_ROW_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_NORMS_ROW_BACKWARD_INL_H_
#undef NORMA_NORMS_ROW_BACKWARD_INL_H_
#else
#define NORMA_NORMS_ROW_BACKWARD_INL_H_
#endif

#include "core/simd-inl.h"
#include "hwy/highway.h"
#include "norms/row.h"
#include "norms/row_norm-inl.h"
#include "norms/store-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

template <typename T>
struct RowSums {
  T g;     // sum of g
  T g_xh;  // sum of g xh
};

// First pass over kRows neighbouring rows: the sums over each, and their share of dgain and dbias, which are read and
// written once for all of them. Vectors of tag `d` in [begin, end).
template <class Norm, bool kGain, bool kDgain, bool kDbias, int kRows, class D, typename T>
HWY_INLINE void row_backward_sums(D d, const T* x, const T* dy, std::int64_t width, const RowStatistics<T>* statistics,
                                  const T* gain, T* dgain, T* dbias, std::int64_t begin, std::int64_t end,
                                  RowSums<T>* sums) {
  hn::Vec<D> sum_g[kRows], sum_g_xh[kRows];
  for (int r = 0; r < kRows; ++r) sum_g[r] = sum_g_xh[r] = hn::Zero(d);
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = begin; i < end; i += lanes) {
    auto dgain_here = hn::Zero(d), dbias_here = hn::Zero(d);
    for (int r = 0; r < kRows; ++r) {
      const auto dy_here = hn::LoadU(d, dy + r * width + i);
      auto xh = hn::LoadU(d, x + r * width + i);
      if constexpr (Norm::kCentred) xh = hn::Sub(xh, hn::Set(d, statistics[r].mean));
      xh = hn::Mul(xh, hn::Set(d, statistics[r].rstd));
      auto g = dy_here;
      if constexpr (kGain) g = hn::Mul(g, hn::LoadU(d, gain + i));
      if constexpr (Norm::kCentred) sum_g[r] = hn::Add(sum_g[r], g);
      sum_g_xh[r] = hn::MulAdd(g, xh, sum_g_xh[r]);
      if constexpr (kDgain) dgain_here = hn::MulAdd(dy_here, xh, dgain_here);
      if constexpr (kDbias) dbias_here = hn::Add(dy_here, dbias_here);
    }
    if constexpr (kDgain) hn::StoreU(hn::Add(dgain_here, hn::LoadU(d, dgain + i)), d, dgain + i);
    if constexpr (kDbias) hn::StoreU(hn::Add(dbias_here, hn::LoadU(d, dbias + i)), d, dbias + i);
  }
  for (int r = 0; r < kRows; ++r) {
    sums[r] = {sums[r].g + sum_lanes(d, sum_g[r]), sums[r].g_xh + sum_lanes(d, sum_g_xh[r])};
  }
}

template <class Norm, bool kGain, int kRows, typename T>
HWY_INLINE void row_backward_first_pass(const T* x, const T* dy, std::int64_t width, const RowStatistics<T>* statistics,
                                        const T* gain, T* dgain, T* dbias, RowSums<T>* sums) {
  const auto pass = [&]<bool kDgain, bool kDbias>() HWY_ATTR {
    const hn::ScalableTag<T> d;
    const hn::CappedTag<T, 1> one;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const std::int64_t whole = width / lanes * lanes;
    row_backward_sums<Norm, kGain, kDgain, kDbias, kRows>(d, x, dy, width, statistics, gain, dgain, dbias, 0, whole,
                                                          sums);
    if (whole < width) {
      row_backward_sums<Norm, kGain, kDgain, kDbias, kRows>(one, x, dy, width, statistics, gain, dgain, dbias, whole,
                                                            width, sums);
    }
  };
  if constexpr (Norm::kOneGain) {
    pass.template operator()<false, false>();
  } else if (dgain != nullptr && dbias != nullptr) {
    pass.template operator()<true, true>();
  } else if (dgain != nullptr) {
    pass.template operator()<true, false>();
  } else if (dbias != nullptr) {
    pass.template operator()<false, true>();
  } else {
    pass.template operator()<false, false>();
  }
}

// Second pass over one row: dx = (g - mean_g - xh pull) scale + residuals.
template <class Norm, bool kGain, bool kResidual, Stores kStores, typename T>
HWY_INLINE void row_backward_dx(const Call& call, const RowBackward& layout, std::int64_t row, RowStatistics<T> s,
                                T scale, T mean_g, T pull, const T* gain) {
  const std::int64_t at = row * layout.width;
  const T *x = call.in<T>(0) + at, *dy = call.in<T>(1) + at;
  const T* const residual = kResidual ? call.in<T>(layout.residual) + at : nullptr;
  T* const dx = call.out<T>(0) + at;
  const int residuals = layout.residuals;
  store_lanes<kStores>(layout.width, dx, [&](auto d, std::int64_t i) HWY_ATTR {
    auto g = hn::LoadU(d, dy + i);
    if constexpr (kGain) g = hn::Mul(g, hn::LoadU(d, gain + i));
    auto xh = hn::LoadU(d, x + i);
    if constexpr (Norm::kCentred) {
      xh = hn::Sub(xh, hn::Set(d, s.mean));
      g = hn::Sub(g, hn::Set(d, mean_g));
    }
    xh = hn::Mul(xh, hn::Set(d, s.rstd));
    auto pulled = hn::Set(d, pull);
    if constexpr (Norm::kPartial) {
      const auto channel = hn::Iota(d, static_cast<T>(i));
      pulled = hn::IfThenElseZero(hn::Lt(channel, hn::Set(d, static_cast<T>(layout.counted))), pulled);
    }
    auto v = hn::NegMulAdd(xh, pulled, g);
    if constexpr (kResidual) {
      v = hn::MulAdd(v, hn::Set(d, scale), hn::LoadU(d, residual + i));
      for (int k = 1; k < residuals; ++k) v = hn::Add(v, hn::LoadU(d, call.in<T>(layout.residual + k) + at + i));
    } else {
      v = hn::Mul(v, hn::Set(d, scale));
    }
    return v;
  });
}

// kRows neighbouring rows from `first` on, both passes; the second finds them in cache.
template <class Norm, bool kGain, bool kResidual, Stores kStores, int kRows, typename T>
HWY_INLINE void row_backward_block(const Call& call, const RowBackward& layout, std::int64_t first, T* dgain,
                                   T* dbias) {
  const std::int64_t width = layout.width;
  const T* const gain = layout.gain < 0 ? nullptr : call.in<T>(layout.gain);
  const T count = static_cast<T>(layout.counted), eps = call.in<T>(2)[0];
  RowStatistics<T> statistics[kRows];
  RowSums<T> sums[kRows] = {};
  for (int r = 0; r < kRows; ++r) {
    statistics[r] = {Norm::kCentred ? call.in<T>(layout.mean)[first + r] : T{0}, call.in<T>(3)[first + r]};
  }
  row_backward_first_pass<Norm, kGain, kRows>(call.in<T>(0) + first * width, call.in<T>(1) + first * width, width,
                                              statistics, gain, dgain, dbias, sums);
  if (Norm::kOneGain && dgain != nullptr) {
    for (int r = 0; r < kRows; ++r) dgain[0] += sums[r].g_xh;
  }
  if (call.out<T>(0) == nullptr) return;
  for (int r = 0; r < kRows; ++r) {
    const T rstd = statistics[r].rstd;
    const T scale = Norm::kOneGain && gain != nullptr ? rstd * gain[0] : rstd;
    row_backward_dx<Norm, kGain, kResidual, kStores>(call, layout, first + r, statistics[r], scale, sums[r].g / count,
                                                     sums[r].g_xh * Norm::pull(rstd, count, eps), gain);
  }
}

template <class Norm, bool kGain, bool kResidual, Stores kStores, typename T>
HWY_INLINE void row_backward_rows(const Call& call, const RowBackward& layout, std::int64_t begin, std::int64_t end,
                                  T* dgain, T* dbias) {
  // Four wide rows share one read and write of dgain and dbias. Rows up to a page are better taken one by one: the
  // second pass of a row then overlaps with the arrival of the next.
  constexpr int kRowsAtOnce = 4;
  const bool together = layout.width * static_cast<std::int64_t>(sizeof(T)) > 4096;
  std::int64_t row = begin;
  for (; together && row + kRowsAtOnce <= end; row += kRowsAtOnce) {
    row_backward_block<Norm, kGain, kResidual, kStores, kRowsAtOnce>(call, layout, row, dgain, dbias);
  }
  for (; row < end; ++row) row_backward_block<Norm, kGain, kResidual, kStores, 1>(call, layout, row, dgain, dbias);
}

template <class Norm, typename T>
HWY_INLINE void row_backward(const Call& call, const RowBackward& layout, std::int64_t begin, std::int64_t end,
                             T* dgain, T* dbias) {
  const auto choose = [&]<Stores kStores>() HWY_ATTR {
    if constexpr (Norm::kOneGain) {
      layout.residuals > 0 ? row_backward_rows<Norm, false, true, kStores>(call, layout, begin, end, dgain, dbias)
                           : row_backward_rows<Norm, false, false, kStores>(call, layout, begin, end, dgain, dbias);
    } else if (layout.gain >= 0) {
      layout.residuals > 0 ? row_backward_rows<Norm, true, true, kStores>(call, layout, begin, end, dgain, dbias)
                           : row_backward_rows<Norm, true, false, kStores>(call, layout, begin, end, dgain, dbias);
    } else {
      layout.residuals > 0 ? row_backward_rows<Norm, false, true, kStores>(call, layout, begin, end, dgain, dbias)
                           : row_backward_rows<Norm, false, false, kStores>(call, layout, begin, end, dgain, dbias);
    }
  };
  if (layout.stores == Stores::streaming) {
    choose.template operator()<Stores::streaming>();
    hwy::FlushStream();
  } else {
    choose.template operator()<Stores::plain>();
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#endif  // NORMA_NORMS_ROW_BACKWARD_INL_H_
