// dv = P^T dc, dP = dc v^T, dS = P (dP - sum of P dP over keys), dq = scale dS k, dk = scale dS^T q, with
// P = exp(scale q k^T - lse) computed again per block of queries.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention_backward.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "ops/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {
namespace attention_detail {

constexpr int kGroup = 16;  // queries that are gone through together

template <typename T>
struct BackwardScratch {
  T *k_columns, *v_columns;  // [key blocks, width, lanes], see pack_tiles
  T *dk, *dv;                // [key blocks, padded width, lanes]
  T* k;                      // [keys, row_width]
  T *q, *dc;                 // [padded width, kGroup]; queries times scale, as forward has them: scores are the same
  T *probabilities, *gradients;  // [key blocks, kGroup, lanes], the latter by the probabilities, then by the scores
  T *dots, *sums;                // [kGroup, lanes] and [kGroup]: sums of P dP over keys
  T* normalisers;                // [kGroup]
  std::int64_t row_width, bytes;

  BackwardScratch(const AttentionShape& shape, std::byte* base) {
    const std::int64_t keys = round_up(shape.keys, kLanes<T>), width = padded(shape.width);
    row_width = round_up(shape.width, kLanes<T>);
    Carver<T> carver(base);
    for (T** array : {&k_columns, &v_columns, &dk, &dv}) *array = carver.take(keys * width);
    k = carver.take(keys * row_width);
    for (T** array : {&q, &dc}) *array = carver.take(width * kGroup);
    for (T** array : {&probabilities, &gradients}) *array = carver.take(keys * kGroup);
    dots = carver.take(kGroup * kLanes<T>);
    for (T** array : {&sums, &normalisers}) *array = carver.take(kGroup);
    bytes = carver.bytes();
  }
};

// What queries [first, first + count) of one head see: keys below `limit`, and causal of those their own and before.
struct Queries {
  std::int64_t first, count, visible, limit;
  bool causal;

  Queries(const AttentionShape& shape, std::int64_t seen, std::int64_t begin)
      : first(begin),
        count(std::min<std::int64_t>(kGroup, shape.queries - begin)),
        visible(seen),
        limit(shape.mask == Mask::causal ? std::min(seen, begin + count) : seen),
        causal(shape.mask == Mask::causal) {}

  // How many keys query r sees, the first query that sees key j, and whether no group before this one sees it.
  std::int64_t seen_by(std::int64_t r) const { return causal ? std::min(visible, first + r + 1) : visible; }
  std::int64_t first_row(std::int64_t j) const { return causal ? std::max<std::int64_t>(0, j - first) : 0; }
  bool first_to_see(std::int64_t j) const { return causal ? j >= first : first == 0; }
};

// probabilities, gradients by them, and dots, for a tile of queries from `row` on and the block of keys at j0.
template <typename T, typename W>
HWY_INLINE void probability_tile(const Queries& queries, W width, std::int64_t j0, std::int64_t row,
                                 const BackwardScratch<T>& scratch) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  V p[kTileRows], dp[kTileRows];
  T* probabilities = scratch.probabilities + j0 * kGroup + row * kLanes<T>;
  T* gradients = scratch.gradients + j0 * kGroup + row * kLanes<T>;
  T* dots = scratch.dots + row * kLanes<T>;
  const auto seen = [&](std::int64_t r) NORMA_INLINED { return first_lanes(d, queries.seen_by(row + r) - j0); };
  const bool whole = j0 + kLanes<T> <= queries.seen_by(row);

  dot_tile<kTileRows, kGroup>(d, width, scratch.q + row, scratch.k_columns + j0 * width, p);
  repeat<kTileRows>([&](auto r)
                        NORMA_INLINED { p[r] = exp_unit(d, hn::Sub(p[r], hn::Set(d, scratch.normalisers[row + r]))); });
  if (!whole) repeat<kTileRows>([&](auto r) NORMA_INLINED { p[r] = hn::IfThenElseZero(seen(r), p[r]); });
  repeat<kTileRows>([&](auto r) NORMA_INLINED { hn::Store(p[r], d, probabilities + r * kLanes<T>); });

  dot_tile<kTileRows, kGroup>(d, width, scratch.dc + row, scratch.v_columns + j0 * width, dp);
  if (!whole) repeat<kTileRows>([&](auto r) NORMA_INLINED { dp[r] = hn::IfThenElseZero(seen(r), dp[r]); });
  repeat<kTileRows>([&](auto r) NORMA_INLINED {
    const V before = j0 == 0 ? hn::Zero(d) : hn::Load(d, dots + r * kLanes<T>);
    hn::Store(dp[r], d, gradients + r * kLanes<T>);
    hn::Store(hn::MulAdd(hn::Load(d, probabilities + r * kLanes<T>), dp[r], before), d, dots + r * kLanes<T>);
  });
}

// gradients = P (dP - sum of P dP), which an infinite sum must not make NaN where a key is hidden.
template <typename T>
HWY_INLINE void score_gradients(const Queries& queries, std::int64_t j0, const BackwardScratch<T>& scratch) {
  const hn::ScalableTag<T> d;
  const T* p = scratch.probabilities + j0 * kGroup;
  T* ds = scratch.gradients + j0 * kGroup;
  for (std::int64_t r = queries.first_row(j0); r < queries.count; ++r) {
    const std::int64_t at = r * kLanes<T>, seen = queries.seen_by(r) - j0;
    const auto value = hn::Mul(hn::Load(d, p + at), hn::Sub(hn::Load(d, ds + at), hn::Set(d, scratch.sums[r])));
    hn::Store(seen < kLanes<T> ? hn::IfThenElseZero(first_lanes(d, seen), value) : value, d, ds + at);
  }
}

// dv[c] += sum over the queries that see a key of P[query] * dc[c, query], and dk with dS and q. `finite`: both are;
// `fresh`: nothing has been added yet.
template <typename T, typename W>
HWY_INLINE void add_gradients(const Queries& queries, W width, std::int64_t j0, bool finite, bool fresh,
                              const BackwardScratch<T>& scratch) {
  constexpr int R = kTileRows / 2;
  const hn::ScalableTag<T> d;
  const T *p = scratch.probabilities + j0 * kGroup, *ds = scratch.gradients + j0 * kGroup;
  const std::int64_t begin = queries.first_row(j0);
  const std::int64_t plain = finite ? begin : std::min(queries.count, queries.first_row(j0 + kLanes<T> - 1));
  for (std::int64_t c = 0; c < width; c += R) {
    T *dv = scratch.dv + j0 * padded(width) + c * kLanes<T>, *dk = scratch.dk + j0 * padded(width) + c * kLanes<T>;
    const T *dc = scratch.dc + c * kGroup, *q = scratch.q + c * kGroup;
    hn::Vec<decltype(d)> of_v[R], of_k[R];
    repeat<R>([&](auto r) NORMA_INLINED {
      of_v[r] = fresh ? hn::Zero(d) : hn::Load(d, dv + r * kLanes<T>);
      of_k[r] = fresh ? hn::Zero(d) : hn::Load(d, dk + r * kLanes<T>);
    });
    for (std::int64_t i = begin; i < plain; ++i) {  // hidden keys must not meet a NaN
      const auto seen = first_lanes(d, queries.first + i + 1 - j0);
      const auto x = hn::Load(d, p + i * kLanes<T>), y = hn::Load(d, ds + i * kLanes<T>);
      repeat<R>([&](auto r) NORMA_INLINED {
        of_v[r] = hn::IfThenElse(seen, hn::MulAdd(hn::Set(d, dc[i + r * kGroup]), x, of_v[r]), of_v[r]);
        of_k[r] = hn::IfThenElse(seen, hn::MulAdd(hn::Set(d, q[i + r * kGroup]), y, of_k[r]), of_k[r]);
      });
    }
    for (std::int64_t i = plain; i < queries.count; ++i) {
      const auto x = hn::Load(d, p + i * kLanes<T>), y = hn::Load(d, ds + i * kLanes<T>);
      repeat<R>([&](auto r) NORMA_INLINED { of_v[r] = hn::MulAdd(hn::Set(d, dc[i + r * kGroup]), x, of_v[r]); });
      repeat<R>([&](auto r) NORMA_INLINED { of_k[r] = hn::MulAdd(hn::Set(d, q[i + r * kGroup]), y, of_k[r]); });
    }
    repeat<R>([&](auto r) NORMA_INLINED {
      hn::Store(of_v[r], d, dv + r * kLanes<T>);
      hn::Store(of_k[r], d, dk + r * kLanes<T>);
    });
  }
}

// dq[row + r] = scale * (sum over its keys of gradients[r, key] * k[key]) for R queries and N vectors of channels.
template <int R, int N, typename T>
HWY_INLINE void query_tile(const Queries& queries, const AttentionShape& shape, std::int64_t row, std::int64_t channel,
                           const BackwardScratch<T>& scratch, T* dq) {
  const hn::ScalableTag<T> d;
  hn::Vec<decltype(d)> acc[R * N];
  repeat<R * N>([&](auto i) NORMA_INLINED { acc[i] = hn::Zero(d); });
  const T *weights = scratch.gradients + row * kLanes<T>, *k = scratch.k + channel;
  const auto add = [&](std::int64_t j, auto from) NORMA_INLINED {  // key j, which queries see from row `from` on
    const T* weight = weights + j / kLanes<T> * (kGroup * kLanes<T>)+j % kLanes<T>;
    hn::Vec<decltype(d)> x[N];
    repeat<N>([&](auto n) NORMA_INLINED { x[n] = hn::Load(d, k + j * scratch.row_width + n * kLanes<T>); });
    repeat<R - from>([&](auto past) NORMA_INLINED {
      constexpr int r = past + decltype(from)::value;
      const auto w = hn::Set(d, weight[r * kLanes<T>]);
      repeat<N>([&](auto n) NORMA_INLINED { acc[r * N + n] = hn::MulAdd(w, x[n], acc[r * N + n]); });
    });
  };
  const std::int64_t whole = queries.seen_by(row);
  for (std::int64_t j = 0; j < whole; ++j) add(j, std::integral_constant<int, 0>());
  repeat<R - 1>([&](auto t) NORMA_INLINED {
    if (whole + t < queries.limit) add(whole + t, std::integral_constant<int, t + 1>());
  });
  const auto scale = hn::Set(d, static_cast<T>(shape.scale));
  repeat<R>([&](auto r) NORMA_INLINED {
    if (row + r >= queries.count) return;
    repeat<N>([&](auto n) NORMA_INLINED {
      store_first(d, shape.width - channel - n * kLanes<T>, hn::Mul(acc[r * N + n], scale),
                  dq + (row + r) * shape.q_row + channel + n * kLanes<T>);
    });
  });
}

template <typename T>
HWY_INLINE void query_gradient(const Queries& queries, const AttentionShape& shape, const BackwardScratch<T>& scratch,
                               T* dq) {
  std::int64_t channel = 0;
  for (; channel + kLanes<T> < shape.width; channel += 2 * kLanes<T>) {
    for (std::int64_t row = 0; row < queries.count; row += kTileRows / 2)
      query_tile<kTileRows / 2, 2>(queries, shape, row, channel, scratch, dq);
  }
  if (channel >= shape.width) return;
  for (std::int64_t row = 0; row < queries.count; row += kTileRows)
    query_tile<kTileRows, 1>(queries, shape, row, channel, scratch, dq);
}

// One head's queries; adds to dk and dv in the scratch, which the first head begins.
template <typename T, typename W>
HWY_INLINE void backward_group(const AttentionShape& shape, W width, const Queries& queries, bool first_head,
                               const T* q, const T* lse, const T* dcontext, T* dq, const BackwardScratch<T>& scratch) {
  pack_tiles<kGroup>(q, shape.q_row, queries.count, std::int64_t{width}, static_cast<T>(shape.scale * kUnit<T>),
                     scratch.q, 0);
  pack_tiles<kGroup>(dcontext, shape.heads * width, queries.count, std::int64_t{width}, T{1}, scratch.dc, 0);
  for (std::int64_t r = 0; r < kGroup; ++r) scratch.normalisers[r] = r < queries.count ? lse[r] * kUnit<T> : T{0};

  for (std::int64_t j0 = 0; j0 < queries.limit; j0 += kLanes<T>) {
    for (std::int64_t row = queries.first_row(j0) / kTileRows * kTileRows; row < queries.count; row += kTileRows)
      probability_tile(queries, width, j0, row, scratch);
  }
  sum_rows<kGroup>(scratch.dots, scratch.sums);
  const bool finite = !queries.causal ||
                      (all_finite(scratch.q, kGroup, width, kGroup) && all_finite(scratch.dc, kGroup, width, kGroup));
  for (std::int64_t j0 = 0; j0 < queries.limit; j0 += kLanes<T>) {
    score_gradients(queries, j0, scratch);
    add_gradients(queries, width, j0, finite, first_head && queries.first_to_see(j0), scratch);
  }
  if (dq != nullptr) query_gradient(queries, shape, scratch, dq);
}

// target[keys, width] = factor * the columns, zero for keys that no query sees.
template <typename T>
HWY_INLINE void write_gradient(const AttentionShape& shape, std::int64_t visible, const T* columns, T factor,
                               T* target) {
  for (std::int64_t j = 0; j < visible; j += kLanes<T>) {
    transpose(columns + j * padded(shape.width), std::int64_t{kLanes<T>}, shape.width,
              std::min<std::int64_t>(kLanes<T>, visible - j), factor, target + j * shape.kv_row, shape.kv_row);
  }
  for (std::int64_t j = visible; j < shape.keys; ++j) std::fill_n(target + j * shape.kv_row, shape.width, T{0});
}

template <typename T>
HWY_INLINE void backward_tile(const AttentionShape& shape, const AttentionArrays<T>& arrays, std::int64_t tile,
                              std::byte* worker) {
  const std::int64_t b = tile / shape.kv_heads, kv_head = tile % shape.kv_heads, group = shape.heads / shape.kv_heads;
  const std::int64_t visible = shape.visible_keys(arrays.lengths, b);
  const BackwardScratch<T> scratch(shape, worker);
  const std::int64_t kv = b * shape.keys * shape.kv_row + kv_head * shape.width;
  const std::int64_t block = kLanes<T> * shape.width;
  pack_tiles<kLanes<T>>(arrays.k + kv, shape.kv_row, visible, shape.width, T{1}, scratch.k_columns, block);
  pack_tiles<kLanes<T>>(arrays.v + kv, shape.kv_row, visible, shape.width, T{1}, scratch.v_columns, block);
  copy_rows(arrays.k + kv, shape.kv_row, visible, shape.width, scratch.k, scratch.row_width);
  for (std::int64_t c = shape.width * kGroup; c < padded(shape.width) * kGroup; ++c)
    scratch.q[c] = scratch.dc[c] = T{0};
  for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const std::int64_t q = b * shape.queries * shape.q_row + head * shape.width;
    const T* dcontext = arrays.dcontext + (b * shape.queries * shape.heads + head) * shape.width;
    const T* lse = arrays.lse + (b * shape.heads + head) * shape.queries;
    with_width<T>(shape.width, [&](auto width) NORMA_INLINED {
      for (std::int64_t i = 0; i < shape.queries; i += kGroup) {
        const Queries queries(shape, visible, i);
        const std::int64_t at = q + i * shape.q_row;
        T* dq = arrays.dq == nullptr ? nullptr : arrays.dq + at;
        if (visible > 0) {
          backward_group(shape, width, queries, head == kv_head * group, arrays.q + at, lse + i,
                         dcontext + i * shape.heads * shape.width, dq, scratch);
        } else if (dq != nullptr) {
          for (std::int64_t r = 0; r < queries.count; ++r) std::fill_n(dq + r * shape.q_row, shape.width, T{0});
        }
      }
    });
  }
  if (arrays.dk != nullptr) write_gradient(shape, visible, scratch.dk, kNatural<T>, arrays.dk + kv);
  if (arrays.dv != nullptr) write_gradient(shape, visible, scratch.dv, T{1}, arrays.dv + kv);
}

}  // namespace attention_detail

void attention_backward_f32(const AttentionShape& shape, const AttentionArrays<float>& arrays, std::int64_t tile,
                            std::byte* worker) {
  attention_detail::backward_tile(shape, arrays, tile, worker);
}
void attention_backward_f64(const AttentionShape& shape, const AttentionArrays<double>& arrays, std::int64_t tile,
                            std::byte* worker) {
  attention_detail::backward_tile(shape, arrays, tile, worker);
}
std::int64_t attention_backward_bytes_f32(const AttentionShape& shape) {
  return attention_detail::BackwardScratch<float>(shape, nullptr).bytes;
}
std::int64_t attention_backward_bytes_f64(const AttentionShape& shape) {
  return attention_detail::BackwardScratch<double>(shape, nullptr).bytes;
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace norma {

HWY_EXPORT(attention_backward_f32);
HWY_EXPORT(attention_backward_f64);
HWY_EXPORT(attention_backward_bytes_f32);
HWY_EXPORT(attention_backward_bytes_f64);

template <>
AttentionFunctions<float> attention_backward_functions() {
  return {NORMA_SIMD(attention_backward_f32), NORMA_SIMD(attention_backward_bytes_f32)};
}
template <>
AttentionFunctions<double> attention_backward_functions() {
  return {NORMA_SIMD(attention_backward_f64), NORMA_SIMD(attention_backward_bytes_f64)};
}

}  // namespace norma
#endif  // HWY_ONCE
