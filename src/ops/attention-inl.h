// The pieces of the attention kernels, compiled once per instruction set. Forward, lanes are queries and keys come one
// after another; backward it is the other way round. Either way softmax needs no sums across lanes, what lies in lanes
// is packed by columns, and the other side is read one element at a time, broadcast to all lanes.
#if defined(NORMA_OPS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_OPS_ATTENTION_INL_H_
#undef NORMA_OPS_ATTENTION_INL_H_
#else
#define NORMA_OPS_ATTENTION_INL_H_
#endif

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/simd-inl.h"
#include "hwy/highway.h"
#include "norma/core/arena.h"
#include "ops/attention_kernel.h"
#include "ops/attention_lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {
namespace attention_detail {

// body(0) ... body(N - 1) with indices that are constants: arrays of vectors stay in registers, which a loop that the
// compiler unrolls late does not promise.
template <int N, typename Body>
HWY_INLINE void repeat(const Body& body) {
  const auto all = [&]<int... I>(std::integer_sequence<int, I...>)
                       NORMA_INLINED { (body(std::integral_constant<int, I>()), ...); };
  all(std::make_integer_sequence<int, N>());
}

// Rows of one register tile: accumulators for half of the vector registers.
#if HWY_TARGET <= HWY_AVX3
constexpr int kTileRows = 16;
#else
constexpr int kTileRows = 8;
#endif

HWY_INLINE std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

// Channels are summed up by whole groups of so many; those beyond the last hold zeros.
constexpr int kChannels = 8;
HWY_INLINE std::int64_t padded(std::int64_t width) { return round_up(width, kChannels); }

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

// The first n lanes; none if n < 0, and all if there are no more.
template <class D>
HWY_INLINE hn::Mask<D> first_lanes(D d, std::int64_t n) {
  return hn::FirstN(d, static_cast<std::size_t>(std::clamp<std::int64_t>(n, 0, hn::MaxLanes(d))));
}

// The first `count` lanes of v to memory of any alignment.
template <class D, typename T>
HWY_INLINE void store_first(D d, std::int64_t count, hn::Vec<D> v, T* to) {
  if (count >= kLanes<T>) {
    hn::StoreU(v, d, to);
  } else {
    hn::BlendedStore(v, first_lanes(d, count), d, to);
  }
}

// for_lanes for heads narrower than a vector: by eight, then four what is left of one.
template <typename T, typename Body>
HWY_INLINE void for_head(std::int64_t width, const Body& body) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 8> eight;
  const hn::CappedTag<T, 4> few;
  const hn::CappedTag<T, 1> one;
  std::int64_t c = 0;
  const auto by = [&](auto tag) NORMA_INLINED {
    const auto step = static_cast<std::int64_t>(hn::Lanes(tag));
    for (; c + step <= width; c += step) body(tag, c);
  };
  by(d);
  by(eight);
  by(few);
  by(one);
}

// target[rows, target_row] = source[rows, width] with zeros behind it. (A vector is read again as it was written, if it
// can be: what lies in several parts cannot be forwarded to a load that is still waiting for them.)
template <typename T>
HWY_INLINE void copy_rows(const T* source, std::int64_t source_row, std::int64_t rows, std::int64_t width, T* target,
                          std::int64_t target_row) {
  const hn::ScalableTag<T> d;
  for (std::int64_t row = 0; row < rows; ++row, source += source_row, target += target_row) {
    std::int64_t c = 0;
    for (; c + kLanes<T> <= width; c += kLanes<T>) hn::StoreU(hn::LoadU(d, source + c), d, target + c);
#if HWY_TARGET != HWY_SCALAR
    if constexpr (kLanes<T> >= 8) {
      if (width - c == kLanes<T> / 2 && target_row - c == kLanes<T>) {
        hn::StoreU(hn::ZeroExtendVector(d, hn::LoadU(hn::Half<decltype(d)>(), source + c)), d, target + c);
        continue;
      }
    }
#endif
    for (; c < width; ++c) target[c] = source[c];
    for (; c < target_row; ++c) target[c] = T{0};
  }
}

// acc[r] = sum over c of tile[c, r] * columns[c]: scores of R rows of a tile of Tile with what lies in lanes.
// (Rows as they lie in memory would need as many pointers, more than there are registers; that was a third slower.)
template <int R, int Tile, class D, typename T, class V, typename W>
HWY_INLINE void dot_tile(D d, W width, const T* tile, const T* columns, V (&acc)[R]) {
  repeat<R>([&](auto r) NORMA_INLINED { acc[r] = hn::Zero(d); });
  for (std::int64_t c = 0; c < width; ++c) {
    const V x = hn::Load(d, columns + c * kLanes<T>);
    repeat<R>([&](auto r) NORMA_INLINED { acc[r] = hn::MulAdd(hn::Set(d, tile[c * Tile + r]), x, acc[r]); });
  }
}

// body(width), a constant for widths of heads that are common, so that loops over channels are laid out flat.
template <typename T, typename Body>
HWY_INLINE void with_width(std::int64_t width, const Body& body) {
  if constexpr (sizeof(T) == 4) {
    if (width == 8) return body(std::integral_constant<std::int64_t, 8>());
    if (width == 16) return body(std::integral_constant<std::int64_t, 16>());
    if (width == 32) return body(std::integral_constant<std::int64_t, 32>());
  }
  body(width);
}

// Whether all of source[rows, width] is finite.
template <typename T, typename W>
HWY_INLINE bool all_finite(const T* source, std::int64_t source_row, std::int64_t rows, W width) {
  bool finite = true;
  for_head<T>(width, [&](auto d, std::int64_t c) NORMA_INLINED {
    // Sums of 0 * x: NaN as soon as one x is infinite or NaN.
    auto even = hn::Zero(d), odd = hn::Zero(d), last = hn::Zero(d);
    const T* at = source + c;
    std::int64_t row = 0;
    for (; row + 2 <= rows; row += 2, at += 2 * source_row) {
      even = hn::MulAdd(hn::LoadU(d, at), hn::Zero(d), even);
      odd = hn::MulAdd(hn::LoadU(d, at + source_row), hn::Zero(d), odd);
    }
    if (row < rows) last = hn::Mul(hn::LoadU(d, at), hn::Zero(d));
    finite = finite && hn::AllTrue(d, hn::Eq(hn::Add(hn::Add(even, odd), last), hn::Zero(d)));
  });
  return finite;
}

}  // namespace attention_detail
}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#endif  // NORMA_OPS_ATTENTION_INL_H_
