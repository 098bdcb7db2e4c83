// The pieces of the attention kernels, compiled once per instruction set. Scores are held transposed, one vector of
// queries per key: softmax then needs no sums across lanes, and k and v are read as they lie in memory, one element
// broadcast to all queries at a time.
#if defined(NORMA_OPS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_OPS_ATTENTION_INL_H_
#undef NORMA_OPS_ATTENTION_INL_H_
#else
#define NORMA_OPS_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "core/simd-inl.h"
#include "hwy/highway.h"
#include "norma/core/arena.h"
#include "ops/attention_kernel.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {
namespace attention_detail {

// Rows of one register tile: accumulators for half of the vector registers.
#if HWY_TARGET <= HWY_AVX3
constexpr int kTileRows = 16;
constexpr int kOuterRows = 8;
#else
constexpr int kTileRows = 8;
constexpr int kOuterRows = 4;
#endif

HWY_INLINE std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

template <typename T>
HWY_INLINE std::int64_t lanes_of() {
  return static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>()));
}

// Padded sizes: all tiles are whole, and what is padded holds zeros.
template <typename T>
HWY_INLINE std::int64_t padded_width(const AttentionShape& shape) {
  return round_up(shape.width, std::max<std::int64_t>(kTileRows, lanes_of<T>()));
}
HWY_INLINE std::int64_t padded_keys(const AttentionShape& shape) { return round_up(shape.keys, kTileRows); }

// Hands out consecutive aligned arrays of the worker's scratch.
template <typename T>
class Carver {
 public:
  explicit Carver(std::byte* base) : at_(base) {}
  T* take(std::int64_t count) {
    T* result = reinterpret_cast<T*>(at_);
    bytes_ += align_up(count * static_cast<std::int64_t>(sizeof(T)));
    at_ = at_ == nullptr ? nullptr : at_ + align_up(count * static_cast<std::int64_t>(sizeof(T)));
    return result;
  }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::byte* at_;
  std::int64_t bytes_ = 0;
};

// Scores are kept in units in which the exponential is cheapest: f32 in powers of 2, f64 in powers of e.
template <typename T>
constexpr T kUnit = sizeof(T) == 4 ? static_cast<T>(1.4426950408889634) : T{1};  // units per natural one
template <typename T>
constexpr T kNatural = sizeof(T) == 4 ? static_cast<T>(0.6931471805599453) : T{1};

// exp in those units, for t <= 0 or hardly above.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_unit(D d, V t) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return exp(d, t);
  } else {
    return exp2_below(d, t);
  }
}

// Lanes (queries) that see key j when the block of queries starts at `first`: causal, so those at j or later.
template <class D>
HWY_INLINE hn::Mask<D> sees(D d, std::int64_t first, std::int64_t j) {
  using T = hn::TFromD<D>;
  return hn::Ge(hn::Iota(d, T{0}), hn::Set(d, static_cast<T>(j - first)));
}

// for_lanes for heads narrower than a vector: by four what is left of one.
template <typename T, typename Body>
HWY_INLINE void for_head(std::int64_t width, const Body& body) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 4> few;
  const hn::CappedTag<T, 1> one;
  const auto lanes = lanes_of<T>(), step = static_cast<std::int64_t>(hn::Lanes(few));
  std::int64_t c = 0;
  for (; c + lanes <= width; c += lanes) body(d, c);
  for (; c + step <= width; c += step) body(few, c);
  for (; c < width; ++c) body(one, c);
}

// target[rows_padded, width_padded] = source[rows, width] with zeros around it; whether all of it is finite.
template <typename T>
HWY_INLINE bool copy_padded(const T* source, std::int64_t source_row, std::int64_t rows, std::int64_t width, T* target,
                            std::int64_t rows_padded, std::int64_t width_padded) {
  const hn::ScalableTag<T> d;
  const std::int64_t lanes = lanes_of<T>(), whole = width / lanes * lanes;
  auto zeros = hn::Zero(d);  // sum of 0 * x: NaN as soon as one x is infinite or NaN
  for (std::int64_t row = 0; row < rows; ++row) {
    T* to = target + row * width_padded;
    const T* from = source + row * source_row;
    for (std::int64_t i = 0; i < whole; i += lanes) {
      const auto x = hn::LoadU(d, from + i);
      zeros = hn::MulAdd(x, hn::Zero(d), zeros);
      hn::Store(x, d, to + i);
    }
    for (std::int64_t i = whole; i < width_padded; i += lanes) hn::Store(hn::Zero(d), d, to + i);
    for_head<T>(width - whole, [&](auto tag, std::int64_t c)
                                   HWY_ATTR { hn::StoreU(hn::LoadU(tag, from + whole + c), tag, to + whole + c); });
  }
  if (whole < width) {
    for (std::int64_t row = 0; row < rows; ++row)
      zeros = hn::MulAdd(hn::Load(d, target + row * width_padded + whole), hn::Zero(d), zeros);
  }
  std::fill(target + rows * width_padded, target + rows_padded * width_padded, T{0});
  return sum_lanes(d, zeros) == T{0};
}

#if HWY_TARGET != HWY_SCALAR
// Four columns of the transpose: in each 128-bit block, out[c] holds element c of the four vectors in turn.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void transpose_blocks(D d, V r0, V r1, V r2, V r3, V scale, V (&out)[4]) {
  const hn::Repartition<double, D> pair;
  const auto low01 = hn::BitCast(pair, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(pair, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(pair, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(pair, hn::InterleaveUpper(d, r2, r3));
  out[0] = hn::Mul(scale, hn::BitCast(d, hn::InterleaveLower(pair, low01, low23)));
  out[1] = hn::Mul(scale, hn::BitCast(d, hn::InterleaveUpper(pair, low01, low23)));
  out[2] = hn::Mul(scale, hn::BitCast(d, hn::InterleaveLower(pair, high01, high23)));
  out[3] = hn::Mul(scale, hn::BitCast(d, hn::InterleaveUpper(pair, high01, high23)));
}
#endif

#if HWY_TARGET <= HWY_AVX3
// Block b of the result: four numbers at p + b * step.
HWY_INLINE hn::Vec<hn::ScalableTag<float>> load_blocks(const float* p, std::int64_t step) {
  const hn::Full128<float> quarter;
  const hn::FixedTag<float, 8> half;
  const hn::ScalableTag<float> whole;
  return hn::Combine(whole, hn::Combine(half, hn::LoadU(quarter, p + 3 * step), hn::LoadU(quarter, p + 2 * step)),
                     hn::Combine(half, hn::LoadU(quarter, p + step), hn::LoadU(quarter, p)));
}
#endif

// target[c, r] = factor * source[r, c] for r < rows, c < columns; rows of both any distance apart.
template <typename T>
HWY_INLINE void transpose(const T* source, std::int64_t source_row, std::int64_t rows, std::int64_t columns, T factor,
                          T* target, std::int64_t target_row) {
  std::int64_t done = 0, columns4 = 0;  // rows and columns that vectors took
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    columns4 = columns / 4 * 4;
#if HWY_TARGET <= HWY_AVX3
    for (; done + 16 <= rows; done += 16) {
      const hn::ScalableTag<float> d;
      const float* from = source + done * source_row;
      for (std::int64_t c = 0; c < columns4; c += 4) {
        hn::Vec<decltype(d)> out[4];
        transpose_blocks(d, load_blocks(from + c, 4 * source_row), load_blocks(from + c + source_row, 4 * source_row),
                         load_blocks(from + c + 2 * source_row, 4 * source_row),
                         load_blocks(from + c + 3 * source_row, 4 * source_row), hn::Set(d, factor), out);
        for (int k = 0; k < 4; ++k) hn::StoreU(out[k], d, target + (c + k) * target_row + done);
      }
    }
#endif
    for (; done + 4 <= rows; done += 4) {
      const hn::Full128<float> d;
      const float* from = source + done * source_row;
      for (std::int64_t c = 0; c < columns4; c += 4) {
        hn::Vec<decltype(d)> out[4];
        transpose_blocks(d, hn::LoadU(d, from + c), hn::LoadU(d, from + c + source_row),
                         hn::LoadU(d, from + c + 2 * source_row), hn::LoadU(d, from + c + 3 * source_row),
                         hn::Set(d, factor), out);
        for (int k = 0; k < 4; ++k) hn::StoreU(out[k], d, target + (c + k) * target_row + done);
      }
    }
  }
#endif
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = r < done ? columns4 : 0; c < columns; ++c) {
      target[c * target_row + r] = factor * source[r * source_row + c];
    }
  }
}

// target[width, lanes] = factor * source[count, width]^T, zeros in the lanes beyond count.
template <typename T>
HWY_INLINE void load_columns(const T* source, std::int64_t source_row, std::int64_t count, std::int64_t width, T factor,
                             T* target) {
  const std::int64_t lanes = lanes_of<T>();
  transpose(source, source_row, count, width, factor, target, lanes);
  for (std::int64_t r = count; r < lanes; ++r) {
    for (std::int64_t c = 0; c < width; ++c) target[c * lanes + r] = T{0};
  }
}

// Keys by tiles: target[tile, width, kTileRows] holds source[rows, width], so that the elements which one step of
// dot_tile broadcasts lie side by side. Keys beyond the last are zero.
template <typename T>
HWY_INLINE void pack_tiles(const T* source, std::int64_t source_row, std::int64_t rows, std::int64_t width, T* target) {
  for (std::int64_t j = 0; j < rows; j += kTileRows, target += width * kTileRows) {
    const std::int64_t count = std::min<std::int64_t>(kTileRows, rows - j);
    transpose(source + j * source_row, source_row, count, width, T{1}, target, kTileRows);
    for (std::int64_t r = count; r < kTileRows; ++r) {
      for (std::int64_t c = 0; c < width; ++c) target[c * kTileRows + r] = T{0};
    }
  }
}

// acc[r] = sum over c of tile[c, r] * b[c]: scores of kTileRows keys with a vector of queries. (Rows of keys as they
// lie in memory would need kTileRows pointers, more than there are registers; that was a third slower.)
template <class D, typename T, class V>
HWY_INLINE void dot_tile(D d, std::int64_t width, const T* tile, const T* b, V (&acc)[kTileRows]) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (int r = 0; r < kTileRows; ++r) acc[r] = hn::Zero(d);
  for (std::int64_t c = 0; c < width; ++c) {
    const V x = hn::Load(d, b + c * lanes);
    for (int r = 0; r < kTileRows; ++r) acc[r] = hn::MulAdd(hn::Set(d, tile[c * kTileRows + r]), x, acc[r]);
  }
}

// acc[r] = sum over keys j of a[j, r] * strip[j]: R channels of a weighted sum of the rows of a. Keys from `full` to
// `limit` are seen by some queries only; the others must not meet a NaN there, so the broadcast is masked. (Callers
// that know a to be finite pass limit for full: the strip is 0 where hidden.)
template <int R, class D, typename T, class V>
HWY_INLINE void weigh_tile(D d, std::int64_t full, std::int64_t limit, std::int64_t first, const T* a,
                           std::int64_t a_row, const T* strip, V (&acc)[R]) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (int r = 0; r < R; ++r) acc[r] = hn::Zero(d);
  for (std::int64_t j = 0; j < full; ++j) {
    const V x = hn::Load(d, strip + j * lanes);
    for (int r = 0; r < R; ++r) acc[r] = hn::MulAdd(hn::Set(d, a[j * a_row + r]), x, acc[r]);
  }
  for (std::int64_t j = full; j < limit; ++j) {
    const auto mask = sees(d, first, j);
    const V x = hn::Load(d, strip + j * lanes);
    for (int r = 0; r < R; ++r) {
      acc[r] = hn::MulAdd(hn::IfThenElseZero(mask, hn::Set(d, a[j * a_row + r])), x, acc[r]);
    }
  }
}

// columns[c] = factor * (sum over keys of a[key, c] * strip[key]) for c < width, and what follows up to a whole tile.
template <class D, typename T, class V>
HWY_INLINE void weigh_columns(D d, std::int64_t width, std::int64_t full, std::int64_t limit, std::int64_t first,
                              const T* a, std::int64_t a_row, const T* strip, V factor, T* columns) {
  const auto tile = [&](auto rows, std::int64_t c) HWY_ATTR {
    constexpr int R = decltype(rows)::value;
    V acc[R];
    weigh_tile<R>(d, full, limit, first, a + c, a_row, strip, acc);
    const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
    for (int r = 0; r < R; ++r) hn::Store(hn::Mul(acc[r], factor), d, columns + (c + r) * lanes);
  };
  std::int64_t c = 0;
  for (; c + kTileRows / 2 < width; c += kTileRows) tile(std::integral_constant<int, kTileRows>(), c);
  if (c < width) tile(std::integral_constant<int, kTileRows / 2>(), c);
}

// The keys that a block of queries [first, first + lanes) sees: all queries see keys below `full`, none sees `limit`.
struct KeyRange {
  std::int64_t full, limit;
};
HWY_INLINE KeyRange key_range(const AttentionShape& shape, std::int64_t visible, std::int64_t first,
                              std::int64_t lanes) {
  if (shape.mask == Mask::full) return {visible, visible};
  return {std::min(visible, first + 1), std::min(visible, first + lanes)};
}

}  // namespace attention_detail
}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#endif  // NORMA_OPS_ATTENTION_INL_H_
