// The kernels of every row norm, compiled once per instruction set. A norm is a policy:
//   kCentred   whether the mean is subtracted
//   kPartial   whether only the leading channels count towards the statistics
//   kOneGain   whether the gain is one number, applied to the whole row
//   rstd(squares, count, eps)   from the sum of squares of the (centred) row
//   pull(rstd, count, eps)      how strongly rstd follows x: dx = rstd (g - mean(g) - xh pull sum(g xh))
// One pass over memory: a row is read from memory once and stays in cache between the passes over it.
#if defined(NORMA_NORMS_ROW_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_NORMS_ROW_NORM_INL_H_
#undef NORMA_NORMS_ROW_NORM_INL_H_
#else
#define NORMA_NORMS_ROW_NORM_INL_H_
#endif

#include "core/simd-inl.h"
#include "hwy/highway.h"
#include "norms/row.h"
#include "norms/store-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

// total = step(tag, i, total) over [0, n) with four totals, so that the dependency chain stays short.
template <typename T, typename Step>
HWY_INLINE T fold_over(std::int64_t n, const Step& step) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto a = hn::Zero(d), b = hn::Zero(d), c = hn::Zero(d), e = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = step(d, i, a);
    b = step(d, i + lanes, b);
    c = step(d, i + 2 * lanes, c);
    e = step(d, i + 3 * lanes, e);
  }
  for (; i + lanes <= n; i += lanes) a = step(d, i, a);
  T total = sum_lanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e)));
  for (; i < n; ++i) total = hn::GetLane(step(one, i, hn::Set(one, total)));
  return total;
}

template <typename T>
struct RowStatistics {
  T mean;
  T rstd;
};

// Statistics of one row; `load(tag, i)` is called exactly once for every element, in the first pass, and leaves it in
// x.
template <class Norm, typename T, typename Load>
HWY_INLINE RowStatistics<T> row_statistics(const T* x, const Load& load, const RowForward& layout, T eps) {
  const T count = static_cast<T>(layout.counted);
  RowStatistics<T> result{T{0}, T{0}};
  T squares;
  if constexpr (Norm::kCentred) {
    const T total = fold_over<T>(layout.counted,
                                 [&](auto d, std::int64_t i, auto sum) HWY_ATTR { return hn::Add(sum, load(d, i)); });
    const T mean = total / count;
    squares = fold_over<T>(layout.counted, [&](auto d, std::int64_t i, auto sum) HWY_ATTR {
      const auto centred = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, mean));
      return hn::MulAdd(centred, centred, sum);
    });
    result.mean = mean;
  } else {
    squares = fold_over<T>(layout.counted, [&](auto d, std::int64_t i, auto sum) HWY_ATTR {
      const auto v = load(d, i);
      return hn::MulAdd(v, v, sum);
    });
  }
  if constexpr (Norm::kPartial) {
    for_lanes<T>(layout.width - layout.counted,
                 [&](auto d, std::int64_t i) HWY_ATTR { (void)load(d, layout.counted + i); });
  }
  result.rstd = Norm::rstd(squares, count, eps);
  return result;
}

// y = gain (x - mean) rstd + bias
template <class Norm, bool kGain, bool kBias, Stores kStores, typename T>
HWY_INLINE void row_apply(const T* x, RowStatistics<T> s, const T* gain, const T* bias, T* y, std::int64_t width) {
  for_lanes<T>(width, [&](auto d, std::int64_t i) HWY_ATTR {
    auto v = hn::LoadU(d, x + i);
    if constexpr (Norm::kCentred) v = hn::Sub(v, hn::Set(d, s.mean));
    v = hn::Mul(v, hn::Set(d, s.rstd));
    if constexpr (kGain && kBias) v = hn::MulAdd(v, hn::LoadU(d, gain + i), hn::LoadU(d, bias + i));
    if constexpr (kGain && !kBias) v = hn::Mul(v, hn::LoadU(d, gain + i));
    if constexpr (!kGain && kBias) v = hn::Add(v, hn::LoadU(d, bias + i));
    store_as<kStores>(v, d, y + i);
  });
}

template <class Norm, Stores kStores, typename T>
HWY_INLINE void row_forward_as(const Call& call, const RowForward& layout, std::int64_t begin, std::int64_t end) {
  const std::int64_t width = layout.width;
  const T eps = call.in<T>(layout.eps())[0];
  const T* const gain = layout.gain < 0 ? nullptr : call.in<T>(layout.gain);
  const T* const bias = layout.bias < 0 ? nullptr : call.in<T>(layout.bias);
  T* const rstd_out = call.out<T>(1);
  T* const mean_out = layout.mean < 0 ? nullptr : call.out<T>(layout.mean);
  T* const sum_out = layout.sum < 0 ? nullptr : call.out<T>(layout.sum);
  for (std::int64_t row = begin; row < end; ++row) {
    const std::int64_t at = row * width;
    const T* x = call.in<T>(0) + at;
    RowStatistics<T> s;
    if (layout.terms == 1) {
      s = row_statistics<Norm>(
          x, [&](auto d, std::int64_t i) HWY_ATTR { return hn::LoadU(d, x + i); }, layout, eps);
    } else {
      // The sum is made in cache: in its own place, or beside it when that place is streamed to or does not exist.
      const T* const second = call.in<T>(1) + at;
      T* const sum = kStores == Stores::plain && sum_out != nullptr ? sum_out + at : call.worker<T>();
      const auto add = [&](auto d, std::int64_t i) HWY_ATTR {
        auto v = hn::Add(hn::LoadU(d, x + i), hn::LoadU(d, second + i));
        for (int k = 2; k < layout.terms; ++k) v = hn::Add(v, hn::LoadU(d, call.in<T>(k) + at + i));
        hn::StoreU(v, d, sum + i);
        return v;
      };
      s = row_statistics<Norm>(static_cast<const T*>(sum), add, layout, eps);
      x = sum;
      if (kStores == Stores::streaming && sum_out != nullptr) {
        for_lanes<T>(width, [&](auto d, std::int64_t i)
                                HWY_ATTR { store_as<kStores>(hn::LoadU(d, x + i), d, sum_out + at + i); });
      }
    }
    if (rstd_out != nullptr) rstd_out[row] = s.rstd;
    if (mean_out != nullptr) mean_out[row] = s.mean;
    T* const y = call.out<T>(0) + at;
    if constexpr (Norm::kOneGain) {
      if (gain != nullptr) s.rstd *= gain[0];
      row_apply<Norm, false, false, kStores>(x, s, gain, bias, y, width);
    } else if (gain != nullptr && bias != nullptr) {
      row_apply<Norm, true, true, kStores>(x, s, gain, bias, y, width);
    } else if (gain != nullptr) {
      row_apply<Norm, true, false, kStores>(x, s, gain, bias, y, width);
    } else if (bias != nullptr) {
      row_apply<Norm, false, true, kStores>(x, s, gain, bias, y, width);
    } else {
      row_apply<Norm, false, false, kStores>(x, s, gain, bias, y, width);
    }
  }
}

template <class Norm, typename T>
HWY_INLINE void row_forward(const Call& call, const RowForward& layout, std::int64_t begin, std::int64_t end) {
  if (layout.stores == Stores::streaming) {
    row_forward_as<Norm, Stores::streaming, T>(call, layout, begin, end);
    hwy::FlushStream();
  } else {
    row_forward_as<Norm, Stores::plain, T>(call, layout, begin, end);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#endif  // NORMA_NORMS_ROW_NORM_INL_H_
