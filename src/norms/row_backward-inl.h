// The backward kernels of every row norm, compiled once per instruction set; policies as in row_norm-inl.h.
//   dx = rstd (g - mean(g) - xh pull sum(g xh)) + residuals,  g = gain dy
//   dgain = sum over rows of dy xh,  dbias = sum over rows of dy
// Rows and columns are taken in the same blocks as forward.
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

// First pass over a piece of one row: the sums over it, and its share of dgain and dbias. Vectors of tag `d` in
// [begin, end).
template <class Norm, bool kGain, bool kDgain, bool kDbias, class D, typename T>
HWY_INLINE RowSums<T> row_backward_sums(D d, const T* x, const T* dy, RowStatistics<T> s, const T* gain, T* dgain,
                                        T* dbias, std::int64_t begin, std::int64_t end) {
  auto sum_g = hn::Zero(d), sum_g_xh = hn::Zero(d);
  const auto mean = hn::Set(d, s.mean), rstd = hn::Set(d, s.rstd);
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = begin; i < end; i += lanes) {
    const auto dy_here = hn::LoadU(d, dy + i);
    auto xh = hn::LoadU(d, x + i);
    if constexpr (Norm::kCentred) xh = hn::Sub(xh, mean);
    xh = hn::Mul(xh, rstd);
    auto g = dy_here;
    if constexpr (kGain) g = hn::Mul(g, hn::LoadU(d, gain + i));
    if constexpr (Norm::kCentred) sum_g = hn::Add(sum_g, g);
    sum_g_xh = hn::MulAdd(g, xh, sum_g_xh);
    if constexpr (kDgain) hn::StoreU(hn::MulAdd(dy_here, xh, hn::LoadU(d, dgain + i)), d, dgain + i);
    if constexpr (kDbias) hn::StoreU(hn::Add(dy_here, hn::LoadU(d, dbias + i)), d, dbias + i);
  }
  return {sum_lanes(d, sum_g), sum_lanes(d, sum_g_xh)};
}

template <class Norm, bool kGain, typename T>
HWY_INLINE RowSums<T> row_backward_piece(const T* x, const T* dy, RowStatistics<T> s, const T* gain, T* dgain, T* dbias,
                                         std::int64_t begin, std::int64_t end) {
  const auto sums = [&]<bool kDgain, bool kDbias>() HWY_ATTR {
    const hn::ScalableTag<T> d;
    const hn::CappedTag<T, 1> one;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    const std::int64_t whole = begin + (end - begin) / lanes * lanes;
    const RowSums<T> a = row_backward_sums<Norm, kGain, kDgain, kDbias>(d, x, dy, s, gain, dgain, dbias, begin, whole);
    if (whole == end) return a;
    const RowSums<T> b = row_backward_sums<Norm, kGain, kDgain, kDbias>(one, x, dy, s, gain, dgain, dbias, whole, end);
    return RowSums<T>{a.g + b.g, a.g_xh + b.g_xh};
  };
  if constexpr (Norm::kOneGain) return sums.template operator()<false, false>();
  if (dgain != nullptr && dbias != nullptr) return sums.template operator()<true, true>();
  if (dgain != nullptr) return sums.template operator()<true, false>();
  if (dbias != nullptr) return sums.template operator()<false, true>();
  return sums.template operator()<false, false>();
}

// Second pass over columns [begin, end) of one row: dx = (g - mean_g - xh pull) scale + residuals.
template <class Norm, bool kGain, bool kResidual, Stores kStores, typename T>
HWY_INLINE void row_backward_dx(const Call& call, const RowBackward& layout, std::int64_t row, RowStatistics<T> s,
                                T scale, T mean_g, T pull, const T* gain, std::int64_t begin, std::int64_t end) {
  const std::int64_t at = row * layout.width + begin;
  const T *x = call.in<T>(0) + at, *dy = call.in<T>(1) + at;
  const T* const residual = kResidual ? call.in<T>(layout.residual) + at : nullptr;
  T* const dx = call.out<T>(0) + at;
  const int residuals = layout.residuals;
  store_lanes<kStores>(end - begin, dx, [&](auto d, std::int64_t i) HWY_ATTR {
    auto g = hn::LoadU(d, dy + i);
    if constexpr (kGain) g = hn::Mul(g, hn::LoadU(d, gain + begin + i));
    auto xh = hn::LoadU(d, x + i);
    if constexpr (Norm::kCentred) {
      xh = hn::Sub(xh, hn::Set(d, s.mean));
      g = hn::Sub(g, hn::Set(d, mean_g));
    }
    xh = hn::Mul(xh, hn::Set(d, s.rstd));
    auto pulled = hn::Set(d, pull);
    if constexpr (Norm::kPartial) {
      const auto channel = hn::Iota(d, static_cast<T>(begin + i));
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

template <class Norm, bool kGain, bool kResidual, Stores kStores, typename T>
HWY_INLINE void row_backward_rows(const Call& call, const RowBackward& layout, std::int64_t begin, std::int64_t end,
                                  T* dgain, T* dbias) {
  const std::int64_t width = layout.width;
  const RowBlocking blocking = row_blocking<T>(width);
  const T* const gain = layout.gain < 0 ? nullptr : call.in<T>(layout.gain);
  const T *x = call.in<T>(0), *dy = call.in<T>(1);
  const T count = static_cast<T>(layout.counted), eps = call.in<T>(2)[0];
  for (std::int64_t first = begin; first < end; first += blocking.rows) {
    const std::int64_t rows = HWY_MIN(blocking.rows, end - first);
    RowStatistics<T> statistics[kMaxRowsAtOnce];
    RowSums<T> sums[kMaxRowsAtOnce] = {};
    for (std::int64_t r = 0; r < rows; ++r) {
      statistics[r] = {Norm::kCentred ? call.in<T>(layout.mean)[first + r] : T{0}, call.in<T>(3)[first + r]};
    }
    for (std::int64_t column = 0; column < width; column += blocking.columns) {
      const std::int64_t column_end = HWY_MIN(column + blocking.columns, width);
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t at = (first + r) * width;
        const RowSums<T> piece =
            row_backward_piece<Norm, kGain>(x + at, dy + at, statistics[r], gain, dgain, dbias, column, column_end);
        sums[r] = {sums[r].g + piece.g, sums[r].g_xh + piece.g_xh};
      }
    }
    if (Norm::kOneGain && dgain != nullptr) {
      for (std::int64_t r = 0; r < rows; ++r) dgain[0] += sums[r].g_xh;
    }
    if (call.out<T>(0) == nullptr) continue;
    for (std::int64_t column = 0; column < width; column += blocking.columns) {
      const std::int64_t column_end = HWY_MIN(column + blocking.columns, width);
      for (std::int64_t r = 0; r < rows; ++r) {
        const T rstd = statistics[r].rstd;
        const T scale = Norm::kOneGain && gain != nullptr ? rstd * gain[0] : rstd;
        row_backward_dx<Norm, kGain, kResidual, kStores>(call, layout, first + r, statistics[r], scale,
                                                         sums[r].g / count, sums[r].g_xh * Norm::pull(rstd, count, eps),
                                                         gain, column, column_end);
      }
    }
  }
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
