// Backward over rows that are in cache, or may be.
#if defined(NORMA_NORMS_ROW_BACKWARD_CACHE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_NORMS_ROW_BACKWARD_CACHE_INL_H_
#undef NORMA_NORMS_ROW_BACKWARD_CACHE_INL_H_
#else
#define NORMA_NORMS_ROW_BACKWARD_CACHE_INL_H_
#endif

#include "core/simd-inl.h"
#include "hwy/highway.h"
#include "norms/row.h"
#include "norms/row_gradient-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

// Rows in cache: the second pass over a row and the first over the next are one loop, and each such loop over two rows
// gathers the dgain and dbias of both, so that these are read and written half as often. The row after the next is
// asked for meanwhile: caches are shared, and not everything that was in them still is.
enum class Gather { none, finished, both };  // whose share of dgain and dbias

template <class Norm, bool kGain, bool kResidual, bool kDgain, bool kDbias, typename T>
class RowPipeline {
 public:
  RowPipeline(const Call& call, const RowBackward& layout, T* dgain, T* dbias)
      : call_(call), layout_(layout), dgain_(dgain), dbias_(dbias) {}

  HWY_INLINE void run(std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
    end_ = end;
    pass<false, true, Gather::none>(begin - 1);
    std::int64_t row = begin;
    for (; row + 2 < end; row += 2) {
      pass<true, true, Gather::both>(row);
      pass<true, true, Gather::none>(row + 1);
    }
    if (row + 2 == end) {
      pass<true, true, Gather::both>(row);
      pass<true, false, Gather::none>(row + 1);
    } else {
      pass<true, false, Gather::finished>(row);
    }
  }

 private:
  // Finishes `row`, whose sums are known, and begins the next: takes its sums.
  template <bool kFinish, bool kBegin, Gather kGather>
  HWY_INLINE void pass(std::int64_t row) {
    const hn::ScalableTag<T> d;
    const hn::CappedTag<T, 1> one;
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d)), width = layout_.width;
    RowFinish<T> finish{};
    if constexpr (kFinish) {
      finish = row_finish<Norm>(call_, layout_, statistics_, sums_);
      if (Norm::kOneGain && dgain_ != nullptr) dgain_[0] += sums_.g_xh;
    }
    if constexpr (kBegin) statistics_ = row_statistics_at<Norm, T>(call_, layout_, row + 1);
    ahead_ = (row + 2 < end_ ? 2 : 1) * width;
    sums_ = {};
    for (std::int64_t begin = 0, end = layout_.counted; begin < width; begin = end, end = width, finish.pull = 0) {
      const std::int64_t whole = begin + (end - begin) / lanes * lanes;
      part<kFinish, kBegin, kGather>(d, row, finish, begin, whole);
      if (whole < end) part<kFinish, kBegin, kGather>(one, row, finish, whole, end);
    }
    if (kFinish && layout_.scaled > 0) scale_row(row * width);
  }

  // The row's total as scaled terms see it, while it is in the first-level cache. Terms without scales pay one test.
  HWY_INLINE void scale_row(std::int64_t at) {
    const T* const dx = call_.out<T>(0) + at;
    for (int k = 0; k < layout_.scaled; ++k) {
      for_lanes<T>(layout_.width, [&](auto d, std::int64_t i) HWY_ATTR {
        store_scaled_gradient<Stores::plain>(d, call_, layout_, k, at, i, hn::LoadU(d, dx + i));
      });
    }
  }

  template <bool kFinish, bool kBegin, Gather kGather, class D>
  HWY_INLINE void part(D d, std::int64_t row, const RowFinish<T>& finish, std::int64_t begin, std::int64_t end) {
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d)), width = layout_.width, at = row * width;
    const T *const x = call_.in<T>(0) + at, *const dy = call_.in<T>(1) + at;
    const T* const gain = kGain ? call_.in<T>(layout_.gain) : nullptr;
    T *const dx = call_.out<T>(0) + at, *const dgain = dgain_, *const dbias = dbias_;
    const RowStatistics<T> next = statistics_;
    const std::int64_t ahead = ahead_;
    constexpr bool kGathersGain = kDgain && kGather != Gather::none, kGathersBias = kDbias && kGather != Gather::none;
    auto sum_g = hn::Zero(d), sum_g_xh = hn::Zero(d);
    for (std::int64_t i = begin; i < end; i += lanes) {
      auto gain_here = hn::Zero(d), dgain_here = hn::Zero(d), dbias_here = hn::Zero(d);
      if constexpr (kGain) gain_here = hn::LoadU(d, gain + i);
      if constexpr (kGathersGain) dgain_here = hn::LoadU(d, dgain + i);
      if constexpr (kGathersBias) dbias_here = hn::LoadU(d, dbias + i);
      if constexpr (kFinish) {
        const auto dy_here = hn::LoadU(d, dy + i);
        const auto xh = normalised<Norm>(d, x + i, finish.statistics);
        auto g = dy_here;
        if constexpr (kGain) g = hn::Mul(g, gain_here);
        if constexpr (kGathersGain) dgain_here = hn::MulAdd(dy_here, xh, dgain_here);
        if constexpr (kGathersBias) dbias_here = hn::Add(dy_here, dbias_here);
        hn::StoreU(row_backward_dx<Norm, kResidual>(d, call_, layout_, at, i, finish, g, xh), d, dx + i);
      }
      if constexpr (kBegin) {
        __builtin_prefetch(x + ahead + i);
        __builtin_prefetch(dy + ahead + i);
        if constexpr (kResidual) __builtin_prefetch(call_.in<T>(layout_.residual) + at + width + i);
        const auto dy_here = hn::LoadU(d, dy + width + i);
        const auto xh = normalised<Norm>(d, x + width + i, next);
        auto g = dy_here;
        if constexpr (kGain) g = hn::Mul(g, gain_here);
        if constexpr (Norm::kCentred) sum_g = hn::Add(sum_g, g);
        sum_g_xh = hn::MulAdd(g, xh, sum_g_xh);
        if constexpr (kGathersGain) dgain_here = hn::MulAdd(dy_here, xh, dgain_here);
        if constexpr (kGathersBias) dbias_here = hn::Add(dy_here, dbias_here);
      }
      if constexpr (kGathersGain) hn::StoreU(dgain_here, d, dgain + i);
      if constexpr (kGathersBias) hn::StoreU(dbias_here, d, dbias + i);
    }
    if constexpr (kBegin) sums_ = {sums_.g + sum_lanes(d, sum_g), sums_.g_xh + sum_lanes(d, sum_g_xh)};
  }

  const Call& call_;
  const RowBackward& layout_;
  T *const dgain_, *const dbias_;
  RowStatistics<T> statistics_{};  // of the row that has begun
  RowSums<T> sums_{};
  std::int64_t end_ = 0, ahead_ = 0;  // the row behind the last; elements to the row that is asked for
};

template <class Norm, bool kGain, bool kResidual, typename T>
HWY_INLINE void row_backward_in_cache(const Call& call, const RowBackward& layout, std::int64_t begin, std::int64_t end,
                                      T* dgain, T* dbias) {
  with_gathered<Norm>(dgain, dbias, [&]<bool kDgain, bool kDbias>() HWY_ATTR {
    RowPipeline<Norm, kGain, kResidual, kDgain, kDbias, T>(call, layout, dgain, dbias).run(begin, end);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#endif  // NORMA_NORMS_ROW_BACKWARD_CACHE_INL_H_
