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
  T* k;        // keys by tiles, see pack_tiles
  T* v;        // [padded keys, padded width]
  T* columns;  // [padded width, lanes]: queries on the way in, context on the way out
  T* strip;    // [padded keys, lanes]: scores, then probabilities
  std::int64_t bytes;

  ForwardScratch(const AttentionShape& shape, std::byte* base) {
    const std::int64_t keys = padded_keys(shape), width = padded_width<T>(shape), lanes = lanes_of<T>();
    Carver<T> carver(base);
    k = carver.take(keys * width);
    v = carver.take(keys * width);
    columns = carver.take(width * lanes);
    strip = carver.take(keys * lanes);
    bytes = carver.bytes();
  }
};

// strip[j] = scores of key j with the block's queries; returns each query's largest.
template <class D, typename T>
HWY_INLINE hn::Vec<D> score_strip(D d, const AttentionShape& shape, KeyRange range, std::int64_t first,
                                  const ForwardScratch<T>& scratch) {
  const std::int64_t lanes = lanes_of<T>();
  auto largest = hn::Neg(hn::Inf(d));
  hn::Vec<D> acc[kTileRows];
  for (std::int64_t j0 = 0; j0 < range.limit; j0 += kTileRows) {
    dot_tile(d, shape.width, scratch.k + j0 * shape.width, scratch.columns, acc);
    T* strip = scratch.strip + j0 * lanes;
    for (int r = 0; r < kTileRows; ++r) hn::Store(acc[r], d, strip + r * lanes);
    if (j0 + kTileRows <= range.full) {
      for (int r = 0; r < kTileRows; ++r) largest = hn::Max(largest, acc[r]);
    } else {
      const std::int64_t end = std::min<std::int64_t>(range.limit - j0, kTileRows);
      for (std::int64_t r = 0; r < end; ++r) {
        const auto score = hn::Load(d, strip + r * lanes);
        const auto seen = shape.mask == Mask::full || j0 + r < range.full
                              ? score
                              : hn::IfThenElse(sees(d, first, j0 + r), score, largest);
        largest = hn::Max(largest, seen);
      }
    }
  }
  return largest;
}

// strip[j] = exp(strip[j] - largest), 0 where hidden; returns each query's sum.
template <class D, typename T, class V = hn::Vec<D>>
HWY_INLINE V exp_strip(D d, KeyRange range, std::int64_t first, V largest, T* strip) {
  const std::int64_t lanes = lanes_of<T>();
  auto even = hn::Zero(d), odd = hn::Zero(d);
  std::int64_t j = 0;
  for (; j + 2 <= range.full; j += 2) {
    const V p = exp_unit(d, hn::Sub(hn::Load(d, strip + j * lanes), largest));
    const V q = exp_unit(d, hn::Sub(hn::Load(d, strip + (j + 1) * lanes), largest));
    even = hn::Add(even, p);
    odd = hn::Add(odd, q);
    hn::Store(p, d, strip + j * lanes);
    hn::Store(q, d, strip + (j + 1) * lanes);
  }
  for (; j < range.full; ++j) {
    const V p = exp_unit(d, hn::Sub(hn::Load(d, strip + j * lanes), largest));
    even = hn::Add(even, p);
    hn::Store(p, d, strip + j * lanes);
  }
  for (; j < range.limit; ++j) {
    const V p = hn::IfThenElseZero(sees(d, first, j), exp_unit(d, hn::Sub(hn::Load(d, strip + j * lanes), largest)));
    even = hn::Add(even, p);
    hn::Store(p, d, strip + j * lanes);
  }
  return hn::Add(even, odd);
}

// One head's queries [first, first + count), count at most a vector; `finite`: all values are.
template <typename T>
void forward_block(const AttentionShape& shape, std::int64_t visible, std::int64_t first, std::int64_t count,
                   const T* q, T* context, T* lse, bool finite, const ForwardScratch<T>& scratch) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = lanes_of<T>(), width = padded_width<T>(shape), context_row = shape.heads * shape.width;
  if (visible == 0) {
    for (std::int64_t i = 0; i < count; ++i) {
      std::fill_n(context + i * context_row, shape.width, T{0});
      if (lse != nullptr) lse[i] = -std::numeric_limits<T>::infinity();
    }
    return;
  }
  const KeyRange range = key_range(shape, visible, first, lanes);
  load_columns(q, shape.q_row, count, shape.width, static_cast<T>(shape.scale * kUnit<T>), scratch.columns);
  const auto largest = score_strip(d, shape, range, first, scratch);
  const auto total = exp_strip(d, range, first, largest, scratch.strip);
  const auto inverse = hn::Div(hn::Set(d, T{1}), total);
  weigh_columns(d, shape.width, finite ? range.limit : range.full, range.limit, first, scratch.v, width, scratch.strip,
                inverse, scratch.columns);
  transpose(scratch.columns, lanes, shape.width, count, T{1}, context, context_row);
  if (lse != nullptr) {
    const auto logarithm = hn::IfThenElse(hn::IsNaN(total), total, hn::Log(d, total));
    hn::Store(hn::MulAdd(largest, hn::Set(d, kNatural<T>), logarithm), d, scratch.columns);
    std::copy_n(scratch.columns, count, lse);
  }
}

template <typename T>
HWY_INLINE void forward_tile(const AttentionShape& shape, const AttentionArrays<T>& arrays, std::int64_t tile,
                             std::byte* worker) {
  const std::int64_t block = tile % shape.query_blocks(), pair = tile / shape.query_blocks();
  const std::int64_t b = pair / shape.kv_heads, kv_head = pair % shape.kv_heads, group = shape.heads / shape.kv_heads;
  const std::int64_t begin = block * shape.query_block, end = std::min(shape.queries, begin + shape.query_block);
  const std::int64_t visible = shape.visible_keys(arrays.lengths, b), width = padded_width<T>(shape);
  const std::int64_t needed = shape.mask == Mask::causal ? std::min(visible, end) : visible;
  const ForwardScratch<T> scratch(shape, worker);
  const std::int64_t kv = b * shape.keys * shape.kv_row + kv_head * shape.width;
  const std::int64_t rows = round_up(needed, kTileRows);
  pack_tiles(arrays.k + kv, shape.kv_row, needed, shape.width, scratch.k);
  const bool finite = copy_padded(arrays.v + kv, shape.kv_row, needed, shape.width, scratch.v, rows, width);
  for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const T* q = arrays.q + b * shape.queries * shape.q_row + head * shape.width;
    T* context = arrays.context + (b * shape.queries * shape.heads + head) * shape.width;
    T* lse = arrays.lse_out == nullptr ? nullptr : arrays.lse_out + (b * shape.heads + head) * shape.queries;
    for (std::int64_t i = begin; i < end; i += lanes_of<T>()) {
      forward_block(shape, visible, i, std::min(lanes_of<T>(), end - i), q + i * shape.q_row,
                    context + i * shape.heads * shape.width, lse == nullptr ? nullptr : lse + i, finite, scratch);
    }
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
