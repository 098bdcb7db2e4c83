// The backward kernels of every row norm, compiled once per instruction set; policies as in row_norm-inl.h.
//   dx = rstd (g - mean(g) - xh pull sum(g xh)) + residuals,  g = gain dy
//   dgain = sum over rows of dy xh,  dbias = sum over rows of dy
// Four rows at a time share the loads of gain and of the running dgain and dbias.
#if defined(NORMA_NORMS_ROW_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_NORMS_ROW_BACKWARD_INL_H_
#undef NORMA_NORMS_ROW_BACKWARD_INL_H_
#else
#define NORMA_NORMS_ROW_BACKWARD_INL_H_
#endif

#include "core/simd-inl.h"
#include "hwy/highway.h"
#include "norms/row.h"
#include "norms/store-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

// kRows rows from `row` on.
template <typename T, int kRows>
struct RowBlock {
  const T* x;   // [kRows, width]
  const T* dy;  // [kRows, width]
  T mean[kRows];
  T rstd[kRows];
  T sum_g[kRows];     // over the row
  T sum_g_xh[kRows];  // over the row
};

// First pass: the two sums of each row, and the block's share of dgain and dbias. Whole vectors (or, for the end of
// an odd row, single lanes) in [begin, end).
template <class Norm, bool kGain, class D, typename T, int kRows>
HWY_INLINE void row_backward_sums(D d, RowBlock<T, kRows>& block, const RowBackward& layout, const T* gain, T* dgain,
                                  T* dbias, std::int64_t begin, std::int64_t end) {
  using V = hn::Vec<D>;
  V sum_g[kRows], sum_g_xh[kRows];
  for (int r = 0; r < kRows; ++r) sum_g[r] = sum_g_xh[r] = hn::Zero(d);
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = begin; i < end; i += lanes) {
    V dgain_sum = hn::Zero(d), dbias_sum = hn::Zero(d);
    V gain_here = hn::Zero(d);
    if constexpr (kGain) gain_here = hn::LoadU(d, gain + i);
    for (int r = 0; r < kRows; ++r) {
      const V dy = hn::LoadU(d, block.dy + r * layout.width + i);
      V xh = hn::LoadU(d, block.x + r * layout.width + i);
      if constexpr (Norm::kCentred) xh = hn::Sub(xh, hn::Set(d, block.mean[r]));
      xh = hn::Mul(xh, hn::Set(d, block.rstd[r]));
      V g = dy;
      if constexpr (kGain) g = hn::Mul(dy, gain_here);
      if constexpr (Norm::kCentred) sum_g[r] = hn::Add(sum_g[r], g);
      sum_g_xh[r] = hn::MulAdd(g, xh, sum_g_xh[r]);
      dgain_sum = hn::MulAdd(dy, xh, dgain_sum);
      dbias_sum = hn::Add(dbias_sum, dy);
    }
    if (!Norm::kOneGain && dgain != nullptr) hn::StoreU(hn::Add(hn::LoadU(d, dgain + i), dgain_sum), d, dgain + i);
    if (dbias != nullptr) hn::StoreU(hn::Add(hn::LoadU(d, dbias + i), dbias_sum), d, dbias + i);
  }
  for (int r = 0; r < kRows; ++r) {
    block.sum_g[r] += sum_lanes(d, sum_g[r]);
    block.sum_g_xh[r] += sum_lanes(d, sum_g_xh[r]);
  }
}

// Second pass over one row. mean_g and pull are what is subtracted from g: mean_g + pull xh.
template <class Norm, bool kGain, bool kResidual, Stores kStores, typename T>
HWY_INLINE void row_backward_dx(const Call& call, const RowBackward& layout, std::int64_t row, T mean, T rstd, T scale,
                                T mean_g, T pull, const T* gain) {
  const std::int64_t at = row * layout.width;
  const T *x = call.in<T>(0) + at, *dy = call.in<T>(1) + at;
  T* const dx = call.out<T>(0) + at;
  for_lanes<T>(layout.width, [&](auto d, std::int64_t i) HWY_ATTR {
    auto g = hn::LoadU(d, dy + i);
    if constexpr (kGain) g = hn::Mul(g, hn::LoadU(d, gain + i));
    auto xh = hn::LoadU(d, x + i);
    if constexpr (Norm::kCentred) {
      xh = hn::Sub(xh, hn::Set(d, mean));
      g = hn::Sub(g, hn::Set(d, mean_g));
    }
    xh = hn::Mul(xh, hn::Set(d, rstd));
    auto pulled = hn::Set(d, pull);
    if constexpr (Norm::kPartial) {
      const auto channel = hn::Iota(d, static_cast<T>(i));
      pulled = hn::IfThenElseZero(hn::Lt(channel, hn::Set(d, static_cast<T>(layout.counted))), pulled);
    }
    auto v = hn::NegMulAdd(xh, pulled, g);
    if constexpr (kResidual) {
      v = hn::MulAdd(v, hn::Set(d, scale), hn::LoadU(d, call.in<T>(layout.residual) + at + i));
      for (int k = 1; k < layout.residuals; ++k) {
        v = hn::Add(v, hn::LoadU(d, call.in<T>(layout.residual + k) + at + i));
      }
    } else {
      v = hn::Mul(v, hn::Set(d, scale));
    }
    store_as<kStores>(v, d, dx + i);
  });
}

template <class Norm, bool kGain, bool kResidual, Stores kStores, int kRows, typename T>
HWY_INLINE void row_backward_block(const Call& call, const RowBackward& layout, std::int64_t row, T* dgain, T* dbias) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const std::int64_t width = layout.width;
  const std::int64_t whole = width / static_cast<std::int64_t>(hn::Lanes(d)) * static_cast<std::int64_t>(hn::Lanes(d));
  const T* const gain = layout.gain < 0 ? nullptr : call.in<T>(layout.gain);
  const T count = static_cast<T>(layout.counted), eps = call.in<T>(2)[0];
  RowBlock<T, kRows> block;
  block.x = call.in<T>(0) + row * width;
  block.dy = call.in<T>(1) + row * width;
  for (int r = 0; r < kRows; ++r) {
    block.rstd[r] = call.in<T>(3)[row + r];
    block.mean[r] = Norm::kCentred ? call.in<T>(layout.mean)[row + r] : T{0};
    block.sum_g[r] = block.sum_g_xh[r] = T{0};
  }
  row_backward_sums<Norm, kGain>(d, block, layout, gain, dgain, dbias, 0, whole);
  if (whole < width) row_backward_sums<Norm, kGain>(one, block, layout, gain, dgain, dbias, whole, width);
  for (int r = 0; r < kRows; ++r) {
    if (Norm::kOneGain && dgain != nullptr) dgain[0] += block.sum_g_xh[r];
    if (call.out<T>(0) == nullptr) continue;
    const T scale = Norm::kOneGain && gain != nullptr ? block.rstd[r] * gain[0] : block.rstd[r];
    row_backward_dx<Norm, kGain, kResidual, kStores>(call, layout, row + r, block.mean[r], block.rstd[r], scale,
                                                     block.sum_g[r] / count,
                                                     block.sum_g_xh[r] * Norm::pull(block.rstd[r], count, eps), gain);
  }
}

template <class Norm, bool kGain, bool kResidual, Stores kStores, typename T>
HWY_INLINE void row_backward_rows(const Call& call, const RowBackward& layout, std::int64_t begin, std::int64_t end,
                                  T* dgain, T* dbias) {
  constexpr int kRows = 4;
  // Four rows of x and dy must stay in the second-level cache until the second pass.
  const bool blocked = layout.width * kRows * 2 * static_cast<std::int64_t>(sizeof(T)) <= (std::int64_t{1} << 18);
  std::int64_t row = begin;
  for (; blocked && row + kRows <= end; row += kRows) {
    row_backward_block<Norm, kGain, kResidual, kStores, kRows>(call, layout, row, dgain, dbias);
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
