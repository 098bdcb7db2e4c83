// The kernels of every row norm, compiled once per instruction set. A norm is a policy:
//   kCentred   whether the mean is subtracted
//   kBias      whether there can be a bias
//   kOneGain   whether the gain is one number, applied to the whole row
//   rstd(squares, count, eps)   from the sum of squares of the (centred) row
//   pull(rstd, count, eps)      how strongly rstd follows x: dx = rstd (g - mean(g) - xh pull sum(g xh))
// One pass over memory: what is read from memory stays in cache until it has been normalised.
#if defined(NORMA_NORMS_ROW_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_NORMS_ROW_NORM_INL_H_
#undef NORMA_NORMS_ROW_NORM_INL_H_
#else
#define NORMA_NORMS_ROW_NORM_INL_H_
#endif

#include "core/simd-inl.h"
#include "hwy/highway.h"
#include "norms/row.h"
#include "norms/row_short-inl.h"
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

// How many elements and rows a kernel works on at once. A short row is read, and written while it is in the first-level
// cache. Of long rows two are read one after another, and written in pieces that share their part of gain and bias.
struct RowBlocking {
  std::int64_t rows;
  std::int64_t columns;
};

template <typename T>
HWY_INLINE RowBlocking row_blocking(std::int64_t width) {
  const bool fits = width * static_cast<std::int64_t>(sizeof(T)) <= 4096;
  return {fits ? 1 : kMaxRowsAtOnce, fits ? width : 2048 / static_cast<std::int64_t>(sizeof(T))};
}

template <typename T>
struct RowMoments {
  T count;
  T mean;
  T squares;  // sum of squared distances from the mean
};

// Chan, Golub, LeVeque 1979.
template <typename T>
HWY_INLINE RowMoments<T> merge_moments(RowMoments<T> a, RowMoments<T> b) {
  const T count = a.count + b.count, delta = b.mean - a.mean;
  return {count, a.mean + delta * (b.count / count),
          a.squares + b.squares + delta * delta * (a.count * b.count / count)};
}

// Mean and squares of n elements in one pass over memory: eight vectors at a time are held in registers, where their
// mean is subtracted before squaring, and merged lane by lane; what is left over is merged at the end.
// `load(tag, i)` is called exactly once for every element and leaves it in x.
template <typename T, typename Load>
HWY_INLINE RowMoments<T> row_moments(const T* x, const Load& load, std::int64_t n) {
  const hn::ScalableTag<T> d;
  constexpr int kChunk = 8;
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t chunks = n / (kChunk * lanes), done = chunks * kChunk * lanes;
  auto mean = hn::Zero(d), within = hn::Zero(d), between = hn::Zero(d);
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    hn::Vec<decltype(d)> v[kChunk];
    for (int k = 0; k < kChunk; ++k) v[k] = load(d, (chunk * kChunk + k) * lanes);
    const auto low = hn::Add(hn::Add(v[0], v[1]), hn::Add(v[2], v[3]));
    const auto high = hn::Add(hn::Add(v[4], v[5]), hn::Add(v[6], v[7]));
    const auto here = hn::Mul(hn::Add(low, high), hn::Set(d, T{1} / kChunk));
    auto even = hn::Zero(d), odd = hn::Zero(d);
    for (int k = 0; k < kChunk; k += 2) {
      const auto a = hn::Sub(v[k], here), b = hn::Sub(v[k + 1], here);
      even = hn::MulAdd(a, a, even);
      odd = hn::MulAdd(b, b, odd);
    }
    const T before = static_cast<T>(chunk);
    const auto delta = hn::Sub(here, mean), step = hn::Mul(delta, hn::Set(d, T{1} / (before + T{1})));
    mean = hn::Add(mean, step);
    within = hn::Add(within, hn::Add(even, odd));
    between = hn::MulAdd(hn::Mul(delta, hn::Set(d, before * kChunk)), step, between);
  }
  RowMoments<T> whole{static_cast<T>(done), T{0}, T{0}};
  if (chunks > 0) {
    whole.mean = sum_lanes(d, mean) / static_cast<T>(lanes);
    const auto delta = hn::Sub(mean, hn::Set(d, whole.mean));
    const auto apart = hn::Mul(hn::Mul(delta, delta), hn::Set(d, static_cast<T>(chunks * kChunk)));
    whole.squares = sum_lanes(d, hn::Add(hn::Add(within, between), apart));
    if (done == n) return whole;
  }
  RowMoments<T> rest{static_cast<T>(n - done), T{0}, T{0}};
  rest.mean = fold_over<T>(n - done, [&](auto tag, std::int64_t i, auto sum)
                                         HWY_ATTR { return hn::Add(sum, load(tag, done + i)); }) /
              rest.count;
  rest.squares = fold_over<T>(n - done, [&](auto tag, std::int64_t i, auto sum) HWY_ATTR {
    const auto centred = hn::Sub(hn::LoadU(tag, x + done + i), hn::Set(tag, rest.mean));
    return hn::MulAdd(centred, centred, sum);
  });
  return chunks > 0 ? merge_moments(whole, rest) : rest;
}

// Statistics of one row; `load` as above.
template <class Norm, typename T, typename Load>
HWY_INLINE RowStatistics<T> row_statistics(const T* x, const Load& load, const RowForward& layout, T eps) {
  const T count = static_cast<T>(layout.counted);
  if constexpr (Norm::kCentred) {
    const RowMoments<T> moments = row_moments<T>(x, load, layout.counted);
    return {moments.mean, Norm::rstd(moments.squares, count, eps)};
  } else {
    const T squares = fold_over<T>(layout.counted, [&](auto d, std::int64_t i, auto sum) HWY_ATTR {
      const auto v = load(d, i);
      return hn::MulAdd(v, v, sum);
    });
    for_lanes<T>(layout.width - layout.counted,
                 [&](auto d, std::int64_t i) HWY_ATTR { (void)load(d, layout.counted + i); });
    return {T{0}, Norm::rstd(squares, count, eps)};
  }
}

// y = gain (x - mean) rstd + bias; `ask(tag, i)` is called for every vector.
template <class Norm, bool kGain, bool kBias, Stores kStores, typename T, typename Ask>
HWY_INLINE void row_apply(const T* x, RowStatistics<T> s, const T* gain, const T* bias, T* y, std::int64_t width,
                          const Ask& ask) {
  store_lanes<kStores>(width, y, [&](auto d, std::int64_t i) HWY_ATTR {
    ask(d, i);
    auto v = hn::LoadU(d, x + i);
    if constexpr (Norm::kCentred) v = hn::Sub(v, hn::Set(d, s.mean));
    v = hn::Mul(v, hn::Set(d, s.rstd));
    if constexpr (kGain && kBias) v = hn::MulAdd(v, hn::LoadU(d, gain + i), hn::LoadU(d, bias + i));
    if constexpr (kGain && !kBias) v = hn::Mul(v, hn::LoadU(d, gain + i));
    if constexpr (!kGain && kBias) v = hn::Add(v, hn::LoadU(d, bias + i));
    return v;
  });
}

template <class Norm, Stores kStores, typename T, typename Ask>
HWY_INLINE void row_apply_affine(const T* x, RowStatistics<T> s, const T* gain, const T* bias, T* y, std::int64_t width,
                                 const Ask& ask) {
  if constexpr (Norm::kOneGain) {
    if (gain != nullptr) s.rstd *= gain[0];
    row_apply<Norm, false, false, kStores>(x, s, gain, bias, y, width, ask);
  } else if (Norm::kBias && gain != nullptr && bias != nullptr) {
    row_apply<Norm, true, Norm::kBias, kStores>(x, s, gain, bias, y, width, ask);
  } else if (gain != nullptr) {
    row_apply<Norm, true, false, kStores>(x, s, gain, bias, y, width, ask);
  } else if (Norm::kBias && bias != nullptr) {
    row_apply<Norm, false, Norm::kBias, kStores>(x, s, gain, bias, y, width, ask);
  } else {
    row_apply<Norm, false, false, kStores>(x, s, gain, bias, y, width, ask);
  }
}

// A scale at channel i: a stride of 0 repeats one number.
template <class D, typename T>
HWY_INLINE hn::Vec<D> scale_at(D d, const T* scale, std::int64_t stride, std::int64_t i) {
  return stride == 0 ? hn::Set(d, *scale) : hn::LoadU(d, scale + i);
}

// Term k at channel i of the row that begins at element `at`, as it enters the sum.
template <class D, typename T = hn::TFromD<D>>
HWY_INLINE hn::Vec<D> scaled_term(D d, const Call& call, const RowForward& layout, int k, std::int64_t at,
                                  std::int64_t i) {
  const auto x = hn::LoadU(d, call.in<T>(k) + at + i);
  const RowScale scale = layout.scale[static_cast<std::size_t>(k)];
  return scale.index < 0 ? x : hn::Mul(x, scale_at(d, call.in<T>(scale.index), scale.stride, i));
}

// As row_statistics_of_sum, of s1 x1 + s2 x2 + ...; rounded as products and a sum are, so that fusing shows in no bit.
template <class Norm, typename T, typename Ask>
HWY_INLINE RowStatistics<T> row_statistics_of_scaled_sum(const Call& call, const RowForward& layout, std::int64_t at,
                                                         T eps, T* sum, const Ask& ask) {
  return row_statistics<Norm>(
      static_cast<const T*>(sum),
      [&](auto d, std::int64_t i) HWY_ATTR {
        ask(d, i);
        auto v = scaled_term(d, call, layout, 0, at, i);
        for (int k = 1; k < layout.terms; ++k) v = hn::Add(v, scaled_term(d, call, layout, k, at, i));
        hn::StoreU(v, d, sum + i);
        return v;
      },
      layout, eps);
}

// Statistics of one row of x1 + x2 + ..., leaving the sum in `sum`; `ask(tag, i)` is called for every vector.
template <class Norm, typename T, typename Ask>
HWY_INLINE RowStatistics<T> row_statistics_of_sum(const Call& call, const RowForward& layout, std::int64_t at, T eps,
                                                  T* sum, const Ask& ask) {
  if (layout.scaled) return row_statistics_of_scaled_sum<Norm>(call, layout, at, eps, sum, ask);
  const T *first = call.in<T>(0) + at, *second = call.in<T>(1) + at;
  if (layout.terms == 2) {
    return row_statistics<Norm>(
        static_cast<const T*>(sum),
        [&](auto d, std::int64_t i) HWY_ATTR {
          ask(d, i);
          const auto v = hn::Add(hn::LoadU(d, first + i), hn::LoadU(d, second + i));
          hn::StoreU(v, d, sum + i);
          return v;
        },
        layout, eps);
  }
  return row_statistics<Norm>(
      static_cast<const T*>(sum),
      [&](auto d, std::int64_t i) HWY_ATTR {
        ask(d, i);
        auto v = hn::Add(hn::LoadU(d, first + i), hn::LoadU(d, second + i));
        for (int k = 2; k < layout.terms; ++k) v = hn::Add(v, hn::LoadU(d, call.in<T>(k) + at + i));
        hn::StoreU(v, d, sum + i);
        return v;
      },
      layout, eps);
}

template <class Norm, Stores kStores, typename T>
HWY_INLINE void row_forward_as(const Call& call, const RowForward& layout, std::int64_t begin, std::int64_t end) {
  const std::int64_t width = layout.width;
  const RowBlocking blocking = row_blocking<T>(width);
  const T eps = call.in<T>(layout.eps())[0];
  const T* const gain = layout.gain < 0 ? nullptr : call.in<T>(layout.gain);
  const T* const bias = layout.bias < 0 ? nullptr : call.in<T>(layout.bias);
  T* const rstd_out = call.out<T>(1);
  T* const mean_out = layout.mean < 0 ? nullptr : call.out<T>(layout.mean);
  T* const sum_out = layout.sum < 0 ? nullptr : call.out<T>(layout.sum);
  for (std::int64_t first = begin; first < end; first += blocking.rows) {
    const std::int64_t rows = HWY_MIN(blocking.rows, end - first);
    // A sum is made in its own place, or in scratch when that place is streamed to or does not exist.
    T* const sums = kStores == Stores::plain && sum_out != nullptr ? sum_out + first * width : call.worker<T>();
    const T* const xs = layout.terms == 1 ? call.in<T>(0) + first * width : sums;
    RowStatistics<T> statistics[kMaxRowsAtOnce];
    // What comes from memory is asked for while the rows before it are worked on.
    const std::int64_t next = first + (first + 2 * blocking.rows <= end ? blocking.rows : 0);
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* const x = xs + r * width;
      const auto ask = [&](auto d, std::int64_t i) HWY_ATTR {
        if constexpr (kStores == Stores::plain) return;
        for (int k = 0; k < layout.terms; ++k) prefetch_first_half(d, call.in<T>(k) + (next + r) * width, i);
      };
      const auto load = [&](auto d, std::int64_t i) HWY_ATTR {
        ask(d, i);
        return hn::LoadU(d, x + i);
      };
      statistics[r] = layout.terms == 1
                          ? row_statistics<Norm>(x, load, layout, eps)
                          : row_statistics_of_sum<Norm>(call, layout, (first + r) * width, eps, sums + r * width, ask);
      if (rstd_out != nullptr) rstd_out[first + r] = statistics[r].rstd;
      if (mean_out != nullptr) mean_out[first + r] = statistics[r].mean;
    }
    for (std::int64_t column = 0; column < width; column += blocking.columns) {
      const std::int64_t columns = HWY_MIN(blocking.columns, width - column);
      for (std::int64_t r = 0; r < rows; ++r) {
        const T* const x = xs + r * width + column;
        const std::int64_t at = (first + r) * width + column;
        const auto ask = [&](auto d, std::int64_t i) HWY_ATTR {
          if constexpr (kStores == Stores::plain) return;
          for (int k = 0; k < layout.terms; ++k)
            prefetch_second_half(d, call.in<T>(k) + (next + r) * width, column + i, width);
        };
        row_apply_affine<Norm, kStores>(x, statistics[r], Norm::kOneGain || gain == nullptr ? gain : gain + column,
                                        bias == nullptr ? bias : bias + column, call.out<T>(0) + at, columns, ask);
        if (kStores == Stores::streaming && sum_out != nullptr) {
          store_lanes<kStores>(columns, sum_out + at,
                               [&](auto d, std::int64_t i) HWY_ATTR { return hn::LoadU(d, x + i); });
        }
      }
    }
  }
}

template <class Norm, typename T>
HWY_INLINE void row_forward(const Call& call, const RowForward& layout, std::int64_t begin, std::int64_t end) {
  if constexpr (sizeof(T) == 4) {
    if (short_vectors<T>(layout) > 0) return row_forward_short<Norm, T>(call, layout, begin, end);
  }
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
