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

template <typename T>
struct BackwardScratch {
  T *k_tiles, *v_tiles;               // by tiles, see pack_tiles
  T *k, *dk, *dv;                     // [padded keys, padded width]
  T *q_rows, *dc_rows;                // [lanes, padded width]
  T *q_columns, *dc_columns;          // [padded width, lanes]
  T *probabilities, *score_gradient;  // [padded keys, lanes]
  std::int64_t bytes;

  BackwardScratch(const AttentionShape& shape, std::byte* base) {
    const std::int64_t keys = padded_keys(shape), width = padded_width<T>(shape), lanes = lanes_of<T>();
    Carver<T> carver(base);
    for (T** array : {&k_tiles, &v_tiles, &k, &dk, &dv}) *array = carver.take(keys * width);
    for (T** array : {&q_rows, &dc_rows, &q_columns, &dc_columns}) *array = carver.take(lanes * width);
    for (T** array : {&probabilities, &score_gradient}) *array = carver.take(keys * lanes);
    bytes = carver.bytes();
  }
};

// Stores a tile of the strip with zeros where the mask hides a key from a query, and beyond the last key.
template <class D, typename T, class V>
HWY_INLINE void store_masked(D d, KeyRange range, std::int64_t first, std::int64_t j0, V (&tile)[kTileRows], T* strip) {
  const std::int64_t lanes = lanes_of<T>();
  if (j0 + kTileRows <= range.full) {
    for (int r = 0; r < kTileRows; ++r) hn::Store(tile[r], d, strip + (j0 + r) * lanes);
    return;
  }
  for (int r = 0; r < kTileRows; ++r) {
    const std::int64_t j = j0 + r;
    const V hidden = hn::Zero(d);
    const V seen =
        j < range.full ? tile[r] : (j < range.limit ? hn::IfThenElseZero(sees(d, first, j), tile[r]) : hidden);
    hn::Store(seen, d, strip + j * lanes);
  }
}

// Rows = a multiple that divides the vector, so that a tile of keys lies on the diagonal of a block of queries wholly
// or not at all.
template <typename T>
constexpr int outer_rows() {
  constexpr int most = static_cast<int>(hn::MaxLanes(hn::ScalableTag<T>()));
  return most < kOuterRows ? most : kOuterRows;
}

// c[r, :] += sum over queries i of strip[r, i] * rows[i, :] for R keys and N vectors of channels. Under a causal mask
// with the tile's first key at query `diagonal` of the block, key r takes queries from diagonal + r on only.
template <int R, int N, class D, typename T>
HWY_INLINE void outer_tile(D d, std::int64_t diagonal, std::int64_t count, const T* strip, const T* rows,
                           std::int64_t row, T* c) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  hn::Vec<D> acc[R][N];
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < N; ++n) acc[r][n] = hn::Load(d, c + r * row + n * lanes);
  }
  std::int64_t i = 0;
  if (diagonal >= 0) {
    for (int t = 0; t < R; ++t) {
      i = diagonal + t;
      if (i >= count) break;
      for (int r = 0; r < R; ++r) {
        if (r > t) continue;
        const auto weight = hn::Set(d, strip[r * lanes + i]);
        for (int n = 0; n < N; ++n) acc[r][n] = hn::MulAdd(weight, hn::Load(d, rows + i * row + n * lanes), acc[r][n]);
      }
    }
    i = diagonal + R;
  }
  for (; i < count; ++i) {
    hn::Vec<D> x[N];
    for (int n = 0; n < N; ++n) x[n] = hn::Load(d, rows + i * row + n * lanes);
    for (int r = 0; r < R; ++r) {
      const auto weight = hn::Set(d, strip[r * lanes + i]);
      for (int n = 0; n < N; ++n) acc[r][n] = hn::MulAdd(weight, x[n], acc[r][n]);
    }
  }
  for (int r = 0; r < R; ++r) {
    for (int n = 0; n < N; ++n) hn::Store(acc[r][n], d, c + r * row + n * lanes);
  }
}

// c[keys, width] += strip[keys, queries] rows[queries, width]
template <class D, typename T>
HWY_INLINE void outer_product(D d, const AttentionShape& shape, KeyRange range, std::int64_t first, std::int64_t count,
                              const T* strip, const T* rows, T* c) {
  constexpr int R = outer_rows<T>();
  const std::int64_t lanes = lanes_of<T>(), width = padded_width<T>(shape);
  for (std::int64_t j = 0; j < range.limit; j += R) {
    const std::int64_t diagonal = shape.mask == Mask::causal && j >= first ? j - first : -1;
    std::int64_t n = 0;
    for (; n + 2 * lanes <= round_up(shape.width, lanes); n += 2 * lanes) {
      outer_tile<R, 2>(d, diagonal, count, strip + j * lanes, rows + n, width, c + j * width + n);
    }
    if (n < shape.width) outer_tile<R, 1>(d, diagonal, count, strip + j * lanes, rows + n, width, c + j * width + n);
  }
}

// One head's queries [first, first + count), count at most a vector; `finite`: all keys are. Adds to dk and dv in the
// scratch.
template <typename T>
void backward_block(const AttentionShape& shape, std::int64_t visible, std::int64_t first, std::int64_t count,
                    const T* q, const T* lse, const T* dcontext, T* dq, bool finite,
                    const BackwardScratch<T>& scratch) {
  const hn::ScalableTag<T> d;
  using V = hn::Vec<decltype(d)>;
  const std::int64_t lanes = lanes_of<T>(), width = padded_width<T>(shape), context_row = shape.heads * shape.width;
  const KeyRange range = key_range(shape, visible, first, lanes);
  copy_padded(q, shape.q_row, count, shape.width, scratch.q_rows, lanes, width);
  copy_padded(dcontext, context_row, count, shape.width, scratch.dc_rows, lanes, width);
  load_columns(q, shape.q_row, count, shape.width, static_cast<T>(shape.scale * kUnit<T>), scratch.q_columns);
  load_columns(dcontext, context_row, count, shape.width, T{1}, scratch.dc_columns);
  HWY_ALIGN T lse_lanes[HWY_MAX_BYTES / sizeof(T)] = {};
  std::copy_n(lse, count, lse_lanes);
  const V normaliser = hn::Mul(hn::Load(d, lse_lanes), hn::Set(d, kUnit<T>));

  V acc[kTileRows];
  V dot = hn::Zero(d);  // sum over keys of P dP
  for (std::int64_t j0 = 0; j0 < range.limit; j0 += kTileRows) {
    dot_tile(d, shape.width, scratch.k_tiles + j0 * shape.width, scratch.q_columns, acc);
    for (int r = 0; r < kTileRows; ++r) acc[r] = exp_unit(d, hn::Sub(acc[r], normaliser));
    store_masked(d, range, first, j0, acc, scratch.probabilities);
    dot_tile(d, shape.width, scratch.v_tiles + j0 * shape.width, scratch.dc_columns, acc);
    store_masked(d, range, first, j0, acc, scratch.score_gradient);
  }
  const std::int64_t stored = round_up(range.limit, kTileRows);
  for (std::int64_t j = 0; j < range.limit; ++j) {
    dot = hn::MulAdd(hn::Load(d, scratch.probabilities + j * lanes), hn::Load(d, scratch.score_gradient + j * lanes),
                     dot);
  }
  for (std::int64_t j = 0; j < range.full; ++j) {
    T* ds = scratch.score_gradient + j * lanes;
    hn::Store(hn::Mul(hn::Load(d, scratch.probabilities + j * lanes), hn::Sub(hn::Load(d, ds), dot)), d, ds);
  }
  for (std::int64_t j = range.full; j < stored; ++j) {
    T* ds = scratch.score_gradient + j * lanes;
    const V value = hn::Mul(hn::Load(d, scratch.probabilities + j * lanes), hn::Sub(hn::Load(d, ds), dot));
    hn::Store(j < range.limit ? hn::IfThenElseZero(sees(d, first, j), value) : hn::Zero(d), d, ds);
  }

  outer_product(d, shape, range, first, count, scratch.probabilities, scratch.dc_rows, scratch.dv);
  outer_product(d, shape, range, first, count, scratch.score_gradient, scratch.q_rows, scratch.dk);
  if (dq == nullptr) return;
  const V scale = hn::Set(d, static_cast<T>(shape.scale));
  weigh_columns(d, shape.width, finite ? range.limit : range.full, range.limit, first, scratch.k, width,
                scratch.score_gradient, scale, scratch.q_columns);
  transpose(scratch.q_columns, lanes, shape.width, count, T{1}, dq, shape.q_row);
}

// target[keys, width] = factor * source[padded], zero for keys that no query sees.
template <typename T>
HWY_INLINE void write_gradient(const AttentionShape& shape, std::int64_t visible, const T* source, T factor,
                               T* target) {
  for (std::int64_t j = 0; j < shape.keys; ++j) {
    const T* from = source + j * padded_width<T>(shape);
    T* to = target + j * shape.kv_row;
    if (j >= visible) {
      std::fill_n(to, shape.width, T{0});
      continue;
    }
    for_head<T>(shape.width, [&](auto d, std::int64_t c) HWY_ATTR {
      hn::StoreU(hn::Mul(hn::Set(d, factor), hn::LoadU(d, from + c)), d, to + c);
    });
  }
}

template <typename T>
HWY_INLINE void backward_tile(const AttentionShape& shape, const AttentionArrays<T>& arrays, std::int64_t tile,
                              std::byte* worker) {
  const std::int64_t b = tile / shape.kv_heads, kv_head = tile % shape.kv_heads, group = shape.heads / shape.kv_heads;
  const std::int64_t visible = shape.visible_keys(arrays.lengths, b), width = padded_width<T>(shape);
  const BackwardScratch<T> scratch(shape, worker);
  const std::int64_t kv = b * shape.keys * shape.kv_row + kv_head * shape.width;
  const std::int64_t rows = round_up(visible, kTileRows);
  const bool finite = copy_padded(arrays.k + kv, shape.kv_row, visible, shape.width, scratch.k, rows, width);
  pack_tiles(arrays.k + kv, shape.kv_row, visible, shape.width, scratch.k_tiles);
  pack_tiles(arrays.v + kv, shape.kv_row, visible, shape.width, scratch.v_tiles);
  std::fill_n(scratch.dk, rows * width, T{0});
  std::fill_n(scratch.dv, rows * width, T{0});
  for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const std::int64_t q = b * shape.queries * shape.q_row + head * shape.width;
    const T* dcontext = arrays.dcontext + (b * shape.queries * shape.heads + head) * shape.width;
    const T* lse = arrays.lse + (b * shape.heads + head) * shape.queries;
    for (std::int64_t i = 0; i < shape.queries; i += lanes_of<T>()) {
      const std::int64_t count = std::min(lanes_of<T>(), shape.queries - i), at = q + i * shape.q_row;
      T* dq = arrays.dq == nullptr ? nullptr : arrays.dq + at;
      if (visible == 0) {
        for (std::int64_t n = 0; dq != nullptr && n < count; ++n) std::fill_n(dq + n * shape.q_row, shape.width, T{0});
        continue;
      }
      backward_block(shape, visible, i, count, arrays.q + at, lse + i, dcontext + i * shape.heads * shape.width, dq,
                     finite, scratch);
    }
  }
  if (arrays.dk != nullptr) write_gradient(shape, visible, scratch.dk, static_cast<T>(shape.scale), arrays.dk + kv);
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
