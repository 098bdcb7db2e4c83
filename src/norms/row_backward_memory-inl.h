// Backward over rows that come from memory, and whose gradients go there.
#if defined(NORMA_NORMS_ROW_BACKWARD_MEMORY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_NORMS_ROW_BACKWARD_MEMORY_INL_H_
#undef NORMA_NORMS_ROW_BACKWARD_MEMORY_INL_H_
#else
#define NORMA_NORMS_ROW_BACKWARD_MEMORY_INL_H_
#endif

#include "core/simd-inl.h"
#include "hwy/highway.h"
#include "norms/row.h"
#include "norms/row_gradient-inl.h"
#include "norms/store-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

// First pass over kRows neighbouring rows: the sums over each, and their share of dgain and dbias, which are read and
// written once for all of them. Vectors of tag `d` in [begin, end); the rows that come next are `ahead` elements away.
template <class Norm, bool kGain, bool kResidual, bool kDgain, bool kDbias, int kRows, class D, typename T>
HWY_INLINE void row_backward_sums(D d, const T* x, const T* dy, const T* residual, std::int64_t width,
                                  std::int64_t ahead, const RowStatistics<T>* statistics, const T* gain, T* dgain,
                                  T* dbias, std::int64_t begin, std::int64_t end, RowSums<T>* sums) {
  hn::Vec<D> sum_g[kRows], sum_g_xh[kRows];
  for (int r = 0; r < kRows; ++r) sum_g[r] = sum_g_xh[r] = hn::Zero(d);
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = begin; i < end; i += lanes) {
    auto dgain_here = hn::Zero(d), dbias_here = hn::Zero(d);
    if constexpr (kDgain) dgain_here = hn::LoadU(d, dgain + i);
    if constexpr (kDbias) dbias_here = hn::LoadU(d, dbias + i);
    for (int r = 0; r < kRows; ++r) {
      prefetch_first_half(d, x + r * width + ahead, i);
      prefetch_first_half(d, dy + r * width + ahead, i);
      if constexpr (kResidual) prefetch(residual + r * width + i);
      const auto dy_here = hn::LoadU(d, dy + r * width + i);
      const auto xh = normalised<Norm>(d, x + r * width + i, statistics[r]);
      auto g = dy_here;
      if constexpr (kGain) g = hn::Mul(g, hn::LoadU(d, gain + i));
      if constexpr (Norm::kCentred) sum_g[r] = hn::Add(sum_g[r], g);
      sum_g_xh[r] = hn::MulAdd(g, xh, sum_g_xh[r]);
      if constexpr (kDgain) dgain_here = hn::MulAdd(dy_here, xh, dgain_here);
      if constexpr (kDbias) dbias_here = hn::Add(dy_here, dbias_here);
    }
    if constexpr (kDgain) hn::StoreU(dgain_here, d, dgain + i);
    if constexpr (kDbias) hn::StoreU(dbias_here, d, dbias + i);
  }
  for (int r = 0; r < kRows; ++r) {
    sums[r] = {sums[r].g + sum_lanes(d, sum_g[r]), sums[r].g_xh + sum_lanes(d, sum_g_xh[r])};
  }
}

// The channels that count towards the statistics and those that do not are summed by themselves, as in RowPipeline.
template <class Norm, bool kGain, bool kResidual, int kRows, typename T>
HWY_INLINE void row_backward_first_pass(const T* x, const T* dy, const T* residual, const RowBackward& layout,
                                        std::int64_t ahead, const RowStatistics<T>* statistics, const T* gain, T* dgain,
                                        T* dbias, RowSums<T>* sums) {
  with_gathered<Norm>(dgain, dbias, [&]<bool kDgain, bool kDbias>() HWY_ATTR {
    const hn::ScalableTag<T> d;
    const hn::CappedTag<T, 1> one;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d)), width = layout.width;
    for (std::int64_t begin = 0, end = layout.counted; begin < width; begin = end, end = width) {
      const std::int64_t whole = begin + (end - begin) / lanes * lanes;
      row_backward_sums<Norm, kGain, kResidual, kDgain, kDbias, kRows>(d, x, dy, residual, width, ahead, statistics,
                                                                       gain, dgain, dbias, begin, whole, sums);
      if (whole < end) {
        row_backward_sums<Norm, kGain, kResidual, kDgain, kDbias, kRows>(one, x, dy, residual, width, ahead, statistics,
                                                                         gain, dgain, dbias, whole, end, sums);
      }
    }
  });
}

// Rows from memory: kRows neighbouring rows from `first` on, both passes; the second finds them in cache and streams.
// They ask for the rows that come next, `ahead` elements away, so that memory is read while it is written.
template <class Norm, bool kGain, bool kResidual, int kRows, typename T>
HWY_INLINE void row_backward_block(const Call& call, const RowBackward& layout, std::int64_t first, std::int64_t ahead,
                                   T* dgain, T* dbias) {
  const std::int64_t width = layout.width;
  const T* const gain = layout.gain < 0 ? nullptr : call.in<T>(layout.gain);
  const T* const residual = kResidual ? call.in<T>(layout.residual) + first * width : nullptr;
  RowStatistics<T> statistics[kRows];
  RowSums<T> sums[kRows] = {};
  for (int r = 0; r < kRows; ++r) statistics[r] = row_statistics_at<Norm, T>(call, layout, first + r);
  row_backward_first_pass<Norm, kGain, kResidual, kRows>(call.in<T>(0) + first * width, call.in<T>(1) + first * width,
                                                         residual, layout, ahead, statistics, gain, dgain, dbias, sums);
  if (Norm::kOneGain && dgain != nullptr) {
    for (int r = 0; r < kRows; ++r) dgain[0] += sums[r].g_xh;
  }
  if (call.out<T>(0) == nullptr) return;
  for (int r = 0; r < kRows; ++r) {
    RowFinish<T> row = row_finish<Norm>(call, layout, statistics[r], sums[r]);
    const std::int64_t at = (first + r) * width;
    const T *const x = call.in<T>(0) + at, *const dy = call.in<T>(1) + at;
    for (std::int64_t begin = 0, end = layout.counted; begin < width; begin = end, end = width, row.pull = 0) {
      store_lanes<Stores::streaming>(end - begin, call.out<T>(0) + at + begin, [&](auto d, std::int64_t k) HWY_ATTR {
        const std::int64_t i = begin + k;
        prefetch_second_half(d, x + ahead, i, width);
        prefetch_second_half(d, dy + ahead, i, width);
        auto g = hn::LoadU(d, dy + i);
        if constexpr (kGain) g = hn::Mul(g, hn::LoadU(d, gain + i));
        const auto total = row_backward_dx<Norm, kResidual>(d, call, layout, at, i, row, g,
                                                            normalised<Norm>(d, x + i, row.statistics));
        for (int term = 0; term < layout.scaled; ++term) {
          store_scaled_gradient<Stores::streaming>(d, call, layout, term, at, i, total);
        }
        return total;
      });
    }
  }
}

template <class Norm, bool kGain, bool kResidual, typename T>
HWY_INLINE void row_backward_from_memory(const Call& call, const RowBackward& layout, std::int64_t begin,
                                         std::int64_t end, T* dgain, T* dbias) {
  constexpr int kRowsAtOnce = kMaxRowsAtOnce;  // share one read and write of dgain and dbias
  std::int64_t row = begin;
  for (; row + kRowsAtOnce <= end; row += kRowsAtOnce) {
    const std::int64_t ahead = row + 2 * kRowsAtOnce <= end ? kRowsAtOnce * layout.width : 0;
    row_backward_block<Norm, kGain, kResidual, kRowsAtOnce>(call, layout, row, ahead, dgain, dbias);
  }
  for (; row < end; ++row) row_backward_block<Norm, kGain, kResidual, 1>(call, layout, row, 0, dgain, dbias);
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#endif  // NORMA_NORMS_ROW_BACKWARD_MEMORY_INL_H_
