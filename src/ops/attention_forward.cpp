// context = softmax(scale q k^T) v: per block of queries, all scores of the block, their softmax, the weighted sum.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention_forward.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h, which the helpers need.
#include "ops/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {
namespace attention_detail {

template <typename T>
struct ForwardScratch {
  T* k;        // keys by tiles of kTileRows, see pack_tiles
  T* v;        // [keys, padded width], where they are copied
  T* columns;  // [padded width, lanes]: queries on the way in, context on the way out
  T* strip;    // [keys, lanes]: scores, then probabilities
  std::int64_t bytes;

  ForwardScratch(const AttentionShape& shape, std::byte* base) {
    const std::int64_t keys = round_up(shape.keys, kTileRows), width = padded(shape.width);
    Carver<T> carver(base);
    k = carver.take(keys * shape.width);
    v = carver.take(keys * width);
    columns = carver.take(width * kLanes<T>);
    strip = carver.take(keys * kLanes<T>);
    bytes = carver.bytes();
  }
};

// Values as the weighted sum reads them: where they lie, unless their rows are so far apart that they would not stay in
// the first-level cache.
template <typename T>
struct Values {
  const T* at;
  std::int64_t row;
  bool finite;
};
template <typename T>
HWY_INLINE Values<T> values_of(const AttentionShape& shape, const T* v, std::int64_t needed, T* copy) {
  constexpr std::int64_t kNear = 32768;  // bytes
  if (shape.width % kChannels == 0 && shape.keys * shape.kv_row * static_cast<std::int64_t>(sizeof(T)) <= kNear)
    return {v, shape.kv_row, all_finite(v, shape.kv_row, needed, shape.width)};
  copy_rows(v, shape.kv_row, needed, shape.width, copy, padded(shape.width));
  return {copy, padded(shape.width), all_finite(copy, padded(shape.width), needed, padded(shape.width))};
}

// The keys that a block of queries [first, first + count) sees: all queries see keys below `full`, none sees `limit`.
struct KeyRange {
  std::int64_t first, full, limit;

  KeyRange(const AttentionShape& shape, std::int64_t visible, std::int64_t begin, std::int64_t count)
      : first(begin),
        full(shape.mask == Mask::causal ? std::min(visible, begin + 1) : visible),
        limit(shape.mask == Mask::causal ? std::min(visible, begin + count) : visible) {}

  // Queries of the block that see key j: causal, so those at j or later.
  template <class D>
  HWY_INLINE hn::Mask<D> seen(D d, std::int64_t j) const {
    const std::int64_t from = j < full ? 0 : j < limit ? j - first : static_cast<std::int64_t>(hn::MaxLanes(d));
    return hn::Not(first_lanes(d, from));
  }
};

// strip[j] = scores of key j with the block's queries, -infinity where hidden; returns each query's largest.
template <class D, typename T, typename W>
HWY_INLINE hn::Vec<D> score_strip(D d, W width, const KeyRange& range, const ForwardScratch<T>& scratch) {
  using V = hn::Vec<D>;
  const V lowest = hn::Neg(hn::Inf(d));
  V largest = lowest;
  V acc[kTileRows];
  for (std::int64_t j0 = 0; j0 < range.limit; j0 += kTileRows) {
    dot_tile<kTileRows, kTileRows>(d, width, scratch.k + j0 * width, scratch.columns, acc);
    if (j0 + kTileRows > range.full) {
      repeat<kTileRows>([&](auto r) NORMA_INLINED { acc[r] = hn::IfThenElse(range.seen(d, j0 + r), acc[r], lowest); });
    }
    T* strip = scratch.strip + j0 * kLanes<T>;
    repeat<kTileRows>([&](auto r) NORMA_INLINED { hn::Store(acc[r], d, strip + r * kLanes<T>); });
    repeat<kTileRows / 4>([&](auto r) NORMA_INLINED {
      const V ab = hn::Max(acc[4 * r], acc[4 * r + 1]), ce = hn::Max(acc[4 * r + 2], acc[4 * r + 3]);
      largest = hn::Max(largest, hn::Max(ab, ce));
    });
  }
  return largest;
}

// strip[j] = exp(strip[j] - largest); returns each query's sum.
template <class D, typename T, class V = hn::Vec<D>>
HWY_INLINE V exp_strip(D d, std::int64_t limit, V largest, T* strip) {
  V even = hn::Zero(d), odd = hn::Zero(d);
  const auto exponential = [&](std::int64_t j) NORMA_INLINED {
    const V p = exp_unit(d, hn::Sub(hn::Load(d, strip + j * kLanes<T>), largest));
    hn::Store(p, d, strip + j * kLanes<T>);
    return p;
  };
  std::int64_t j = 0;
  for (; j + 2 <= limit; j += 2) {
    even = hn::Add(even, exponential(j));
    odd = hn::Add(odd, exponential(j + 1));
  }
  if (j < limit) even = hn::Add(even, exponential(j));
  return hn::Add(even, odd);
}

// acc[c] += sum over rows j in [begin, end) of a[j, c] * strip[j] for R columns c of a.
template <int R, class D, typename T, class V>
HWY_INLINE void weigh(D d, std::int64_t begin, std::int64_t end, const T* a, std::int64_t row, const T* strip,
                      V (&acc)[R]) {
  for (std::int64_t j = begin; j < end; ++j) {
    const V x = hn::Load(d, strip + j * kLanes<T>);
    repeat<R>([&](auto c) NORMA_INLINED { acc[c] = hn::MulAdd(hn::Set(d, a[j * row + c]), x, acc[c]); });
  }
}

// The same over rows [begin, range.limit) that some queries only see: the others must not meet a NaN there.
template <int R, class D, typename T, class V>
HWY_INLINE void weigh_seen(D d, std::int64_t begin, const KeyRange& range, const T* a, std::int64_t row, const T* strip,
                           V (&acc)[R]) {
  for (std::int64_t j = begin; j < range.limit; ++j) {
    const auto seen = range.seen(d, j);
    const V x = hn::Load(d, strip + j * kLanes<T>);
    repeat<R>([&](auto c) NORMA_INLINED {
      acc[c] = hn::IfThenElse(seen, hn::MulAdd(hn::Set(d, a[j * row + c]), x, acc[c]), acc[c]);
    });
  }
}

// body(R, c) over the columns [0, width), R of them at a time; width is a multiple of kChannels.
template <typename Body, typename W>
HWY_INLINE void for_columns(W width, const Body& body) {
  std::int64_t c = 0;
  for (; c + kTileRows <= width; c += kTileRows) body(std::integral_constant<int, kTileRows>(), c);
  if (c < width) body(std::integral_constant<int, kChannels>(), c);
}

// One head's queries [first, first + count), count at most a vector.
template <typename T, typename W>
HWY_INLINE void forward_block(const AttentionShape& shape, W width, std::int64_t visible, std::int64_t first,
                              std::int64_t count, const T* q, Values<T> values, T* context, T* lse,
                              const ForwardScratch<T>& scratch) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const std::int64_t context_row = shape.heads * width;
  if (visible == 0) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::fill_n(context + i * context_row, width, T{0});
      if (lse != nullptr) lse[i] = -std::numeric_limits<T>::infinity();
    }
    return;
  }
  const KeyRange range(shape, visible, first, count);
  pack_tiles<kLanes<T>>(q, shape.q_row, count, width, static_cast<T>(shape.scale * kUnit<T>), scratch.columns, 0);
  const V largest = score_strip(d, width, range, scratch);
  const V total = exp_strip(d, range.limit, largest, scratch.strip);
  const V inverse = hn::Div(hn::Set(d, T{1}), total);
  for_columns(padded(width), [&](auto columns, std::int64_t c) NORMA_INLINED {
    constexpr int R = decltype(columns)::value;
    V acc[R];
    repeat<R>([&](auto r) NORMA_INLINED { acc[r] = hn::Zero(d); });
    const std::int64_t plain = values.finite ? range.limit : range.full;
    weigh<R>(d, 0, plain, values.at + c, values.row, scratch.strip, acc);
    weigh_seen<R>(d, plain, range, values.at + c, values.row, scratch.strip, acc);
    repeat<R>([&](auto r)
                  NORMA_INLINED { hn::Store(hn::Mul(acc[r], inverse), d, scratch.columns + (c + r) * kLanes<T>); });
  });
  transpose(scratch.columns, std::int64_t{kLanes<T>}, width, count, T{1}, context, context_row);
  if (lse != nullptr) {
    const V logarithm = hn::IfThenElse(hn::IsNaN(total), total, hn::Log(d, total));
    store_first(d, count, hn::MulAdd(largest, hn::Set(d, kNatural<T>), logarithm), lse);
  }
}

template <typename T>
HWY_INLINE void forward_tile(const AttentionShape& shape, const AttentionArrays<T>& arrays, std::int64_t tile,
                             std::byte* worker) {
  const std::int64_t block = tile % shape.query_blocks(), pair = tile / shape.query_blocks();
  const std::int64_t b = pair / shape.kv_heads, kv_head = pair % shape.kv_heads, group = shape.heads / shape.kv_heads;
  const std::int64_t begin = block * shape.query_block, end = std::min(shape.queries, begin + shape.query_block);
  const std::int64_t visible = shape.visible_keys(arrays.lengths, b);
  const std::int64_t needed = shape.mask == Mask::causal ? std::min(visible, end) : visible;
  const ForwardScratch<T> scratch(shape, worker);
  const std::int64_t kv = b * shape.keys * shape.kv_row + kv_head * shape.width;
  pack_tiles<kTileRows>(arrays.k + kv, shape.kv_row, needed, shape.width, T{1}, scratch.k, kTileRows * shape.width);
  const Values<T> values = values_of(shape, arrays.v + kv, needed, scratch.v);
  for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const T* q = arrays.q + b * shape.queries * shape.q_row + head * shape.width;
    T* context = arrays.context + (b * shape.queries * shape.heads + head) * shape.width;
    T* lse = arrays.lse_out == nullptr ? nullptr : arrays.lse_out + (b * shape.heads + head) * shape.queries;
    with_width<T>(shape.width, [&](auto width) NORMA_INLINED {
      for (std::int64_t i = begin; i < end; i += kLanes<T>) {
        forward_block(shape, width, visible, i, std::min<std::int64_t>(kLanes<T>, end - i), q + i * shape.q_row, values,
                      context + i * shape.heads * shape.width, lse == nullptr ? nullptr : lse + i, scratch);
      }
    });
  }
}

}  // namespace attention_detail

void attention_forward_f32(const AttentionShape& shape, const AttentionArrays<float>& arrays, std::int64_t tile,
                           std::byte* worker) {
  attention_detail::forward_tile(shape, arrays, tile, worker);
}
void attention_forward_f64(const AttentionShape& shape, const AttentionArrays<double>& arrays, std::int64_t tile,
                           std::byte* worker) {
  attention_detail::forward_tile(shape, arrays, tile, worker);
}
std::int64_t attention_forward_bytes_f32(const AttentionShape& shape) {
  return attention_detail::ForwardScratch<float>(shape, nullptr).bytes;
}
std::int64_t attention_forward_bytes_f64(const AttentionShape& shape) {
  return attention_detail::ForwardScratch<double>(shape, nullptr).bytes;
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace norma {

HWY_EXPORT(attention_forward_f32);
HWY_EXPORT(attention_forward_f64);
HWY_EXPORT(attention_forward_bytes_f32);
HWY_EXPORT(attention_forward_bytes_f64);

template <>
AttentionFunctions<float> attention_forward_functions() {
  return {NORMA_SIMD(attention_forward_f32), NORMA_SIMD(attention_forward_bytes_f32)};
}
template <>
AttentionFunctions<double> attention_forward_functions() {
  return {NORMA_SIMD(attention_forward_f64), NORMA_SIMD(attention_forward_bytes_f64)};
}

}  // namespace norma
#endif  // HWY_ONCE
