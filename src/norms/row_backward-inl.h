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

// What the second pass over a row needs: dx = (g - mean_g - xh pull) scale + residuals. Channels that do not count
// towards the statistics are not pulled.
template <typename T>
struct RowFinish {
  RowStatistics<T> statistics;
  T scale, mean_g, pull;
};

template <class Norm, typename T>
HWY_INLINE RowFinish<T> row_finish(const Call& call, const RowBackward& layout, RowStatistics<T> statistics,
                                   RowSums<T> sums) {
  const T count = static_cast<T>(layout.counted), eps = call.in<T>(2)[0], rstd = statistics.rstd;
  const T scale = Norm::kOneGain && layout.gain >= 0 ? rstd * call.in<T>(layout.gain)[0] : rstd;
  return {statistics, scale, sums.g / count, sums.g_xh * Norm::pull(rstd, count, eps)};
}

template <class Norm, typename T>
HWY_INLINE RowStatistics<T> row_statistics_at(const Call& call, const RowBackward& layout, std::int64_t row) {
  return {Norm::kCentred ? call.in<T>(layout.mean)[row] : T{0}, call.in<T>(3)[row]};
}

// dx at channel i of the row that begins at element `at`, given dy, g = gain dy and xh there.
template <class Norm, bool kResidual, class D, typename T>
HWY_INLINE hn::Vec<D> row_backward_dx(D d, const Call& call, const RowBackward& layout, std::int64_t at, std::int64_t i,
                                      const RowFinish<T>& row, hn::Vec<D> g, hn::Vec<D> xh) {
  if constexpr (Norm::kCentred) g = hn::Sub(g, hn::Set(d, row.mean_g));
  auto v = hn::NegMulAdd(xh, hn::Set(d, row.pull), g);
  if constexpr (kResidual) {
    v = hn::MulAdd(v, hn::Set(d, row.scale), hn::LoadU(d, call.in<T>(layout.residual) + at + i));
    for (int k = 1; k < layout.residuals; ++k) v = hn::Add(v, hn::LoadU(d, call.in<T>(layout.residual + k) + at + i));
    return v;
  } else {
    return hn::Mul(v, hn::Set(d, row.scale));
  }
}

// Rows in cache: the second pass over a row and the first over the next are one loop, and each such loop over two rows
// gathers the dgain and dbias of both, so that these are read and written half as often.
enum class Gather { none, finished, both };  // whose share of dgain and dbias

template <class Norm, bool kGain, bool kResidual, bool kDgain, bool kDbias, typename T>
class RowPipeline {
 public:
  RowPipeline(const Call& call, const RowBackward& layout, T* dgain, T* dbias)
      : call_(call), layout_(layout), dgain_(dgain), dbias_(dbias) {}

  HWY_INLINE void run(std::int64_t begin, std::int64_t end) {
    if (begin >= end) return;
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
    sums_ = {};
    for (std::int64_t begin = 0, end = layout_.counted; begin < width; begin = end, end = width, finish.pull = 0) {
      const std::int64_t whole = begin + (end - begin) / lanes * lanes;
      part<kFinish, kBegin, kGather>(d, row, finish, begin, whole);
      if (whole < end) part<kFinish, kBegin, kGather>(one, row, finish, whole, end);
    }
  }

  template <bool kFinish, bool kBegin, Gather kGather, class D>
  HWY_INLINE void part(D d, std::int64_t row, const RowFinish<T>& finish, std::int64_t begin, std::int64_t end) {
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d)), width = layout_.width, at = row * width;
    const T *const x = call_.in<T>(0) + at, *const dy = call_.in<T>(1) + at;
    const T* const gain = kGain ? call_.in<T>(layout_.gain) : nullptr;
    T *const dx = call_.out<T>(0) + at, *const dgain = dgain_, *const dbias = dbias_;
    const RowStatistics<T> next = statistics_;
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
};

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
        return row_backward_dx<Norm, kResidual>(d, call, layout, at, i, row, g,
                                                normalised<Norm>(d, x + i, row.statistics));
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
  if (row < end) row_backward_block<Norm, kGain, kResidual, 1>(call, layout, row, 0, dgain, dbias);
}

template <class Norm, bool kGain, bool kResidual, typename T>
HWY_INLINE void row_backward_in_cache(const Call& call, const RowBackward& layout, std::int64_t begin, std::int64_t end,
                                      T* dgain, T* dbias) {
  with_gathered<Norm>(dgain, dbias, [&]<bool kDgain, bool kDbias>() HWY_ATTR {
    RowPipeline<Norm, kGain, kResidual, kDgain, kDbias, T>(call, layout, dgain, dbias).run(begin, end);
  });
}

template <class Norm, typename T>
HWY_INLINE void row_backward(const Call& call, const RowBackward& layout, std::int64_t begin, std::int64_t end,
                             T* dgain, T* dbias) {
  // Without dx there is nothing to store and no second pass.
  const bool from_memory = layout.stores == Stores::streaming || call.out<T>(0) == nullptr;
  const auto choose = [&]<bool kGain, bool kResidual>() HWY_ATTR {
    from_memory ? row_backward_from_memory<Norm, kGain, kResidual>(call, layout, begin, end, dgain, dbias)
                : row_backward_in_cache<Norm, kGain, kResidual>(call, layout, begin, end, dgain, dbias);
  };
  const bool gain = !Norm::kOneGain && layout.gain >= 0;
  if (layout.residuals > 0) {
    gain ? choose.template operator()<!Norm::kOneGain, true>() : choose.template operator()<false, true>();
  } else {
    gain ? choose.template operator()<!Norm::kOneGain, false>() : choose.template operator()<false, false>();
  }
  if (from_memory) hwy::FlushStream();
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#endif  // NORMA_NORMS_ROW_BACKWARD_INL_H_
