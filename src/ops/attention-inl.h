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

// exp in those units, for t <= 0 or hardly above: 2^t by rounding t into the exponent (adding a large number leaves
// the integer in the low bits) and a polynomial for the fraction (Cephes exp2f). Below 2^-125 it is 0; NaN stays NaN.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp_unit(D d, V t) {
  using T = hn::TFromD<D>;
  if constexpr (sizeof(T) == 8) {
    return exp(d, t);
  } else {
    const hn::RebindToSigned<D> di;
    const V magic = hn::Set(d, 12582912.0f + 127.0f);
    const V shifted = hn::Add(t, magic);
    const V f = hn::Sub(t, hn::Sub(shifted, magic));
    V p = hn::Set(d, 1.535336188319500e-4f);
    p = hn::MulAdd(p, f, hn::Set(d, 1.339887440266574e-3f));
    p = hn::MulAdd(p, f, hn::Set(d, 9.618437357674640e-3f));
    p = hn::MulAdd(p, f, hn::Set(d, 5.550332471162809e-2f));
    p = hn::MulAdd(p, f, hn::Set(d, 2.402264791363012e-1f));
    p = hn::MulAdd(p, f, hn::Set(d, 6.931472028550421e-1f));
    p = hn::MulAdd(p, f, hn::Set(d, 1.0f));
    const V power = hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, shifted)));
    return hn::IfThenZeroElse(hn::Lt(t, hn::Set(d, -125.0f)), hn::Mul(p, power));
  }
}

// Lanes (queries) that see key j when the block of queries starts at `first`: causal, so those at j or later.
template <class D>
HWY_INLINE hn::Mask<D> sees(D d, std::int64_t first, std::int64_t j) {
  using T = hn::TFromD<D>;
  return hn::Ge(hn::Iota(d, T{0}), hn::Set(d, static_cast<T>(j - first)));
}

// target[rows_padded, width_padded] = source[rows, width] with zeros around it.
template <typename T>
HWY_INLINE void copy_padded(const T* source, std::int64_t source_row, std::int64_t rows, std::int64_t width, T* target,
                            std::int64_t rows_padded, std::int64_t width_padded) {
  for (std::int64_t row = 0; row < rows; ++row) {
    T* to = target + row * width_padded;
    const T* from = source + row * source_row;
    for_lanes<T>(width, [&](auto d, std::int64_t i) HWY_ATTR { hn::StoreU(hn::LoadU(d, from + i), d, to + i); });
    for (std::int64_t i = width; i < width_padded; ++i) to[i] = T{0};
  }
  std::fill(target + rows * width_padded, target + rows_padded * width_padded, T{0});
}

// target[columns, rows] = factor * source[rows, columns]^T; with vectors, rows and columns are multiples of 4 in f32.
template <typename T>
HWY_INLINE void transpose_scaled(const T* source, std::int64_t rows, std::int64_t columns, T factor, T* target) {
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    const hn::Full128<float> d;
    const hn::Full128<double> pair;
    const auto scale = hn::Set(d, factor);
    for (std::int64_t c = 0; c < columns; c += 4) {
      for (std::int64_t r = 0; r < rows; r += 4) {
        const float* from = source + r * columns + c;
        const auto r0 = hn::Load(d, from), r1 = hn::Load(d, from + columns), r2 = hn::Load(d, from + 2 * columns),
                   r3 = hn::Load(d, from + 3 * columns);
        const auto low01 = hn::BitCast(pair, hn::InterleaveLower(d, r0, r1));
        const auto low23 = hn::BitCast(pair, hn::InterleaveLower(d, r2, r3));
        const auto high01 = hn::BitCast(pair, hn::InterleaveUpper(d, r0, r1));
        const auto high23 = hn::BitCast(pair, hn::InterleaveUpper(d, r2, r3));
        float* to = target + c * rows + r;
        hn::Store(hn::Mul(scale, hn::BitCast(d, hn::InterleaveLower(pair, low01, low23))), d, to);
        hn::Store(hn::Mul(scale, hn::BitCast(d, hn::InterleaveUpper(pair, low01, low23))), d, to + rows);
        hn::Store(hn::Mul(scale, hn::BitCast(d, hn::InterleaveLower(pair, high01, high23))), d, to + 2 * rows);
        hn::Store(hn::Mul(scale, hn::BitCast(d, hn::InterleaveUpper(pair, high01, high23))), d, to + 3 * rows);
      }
    }
    return;
  }
#endif
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) target[c * rows + r] = factor * source[r * columns + c];
  }
}

// acc[r] = sum over c of a[r, c] * b[c]: scores of kTileRows keys (rows of a) with a vector of queries.
template <class D, typename T, class V>
HWY_INLINE void dot_tile(D d, std::int64_t width, const T* a, std::int64_t a_row, const T* b, V (&acc)[kTileRows]) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (int r = 0; r < kTileRows; ++r) acc[r] = hn::Zero(d);
  for (std::int64_t c = 0; c < width; ++c) {
    const V x = hn::Load(d, b + c * lanes);
    for (int r = 0; r < kTileRows; ++r) acc[r] = hn::MulAdd(hn::Set(d, a[r * a_row + c]), x, acc[r]);
  }
}

// acc[r] = sum over keys j of a[j, r] * strip[j]: kTileRows channels of a weighted sum of the rows of a. Keys from
// `full` to `limit` are seen by some queries only; the others must not meet a NaN there, so the broadcast is masked.
template <class D, typename T, class V>
HWY_INLINE void weigh_tile(D d, std::int64_t full, std::int64_t limit, std::int64_t first, const T* a,
                           std::int64_t a_row, const T* strip, V (&acc)[kTileRows]) {
  const std::int64_t lanes = static_cast<std::int64_t>(hn::Lanes(d));
  for (int r = 0; r < kTileRows; ++r) acc[r] = hn::Zero(d);
  for (std::int64_t j = 0; j < full; ++j) {
    const V x = hn::Load(d, strip + j * lanes);
    for (int r = 0; r < kTileRows; ++r) acc[r] = hn::MulAdd(hn::Set(d, a[j * a_row + r]), x, acc[r]);
  }
  for (std::int64_t j = full; j < limit; ++j) {
    const auto mask = sees(d, first, j);
    const V x = hn::Load(d, strip + j * lanes);
    for (int r = 0; r < kTileRows; ++r) {
      acc[r] = hn::MulAdd(hn::IfThenElseZero(mask, hn::Set(d, a[j * a_row + r])), x, acc[r]);
    }
  }
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
