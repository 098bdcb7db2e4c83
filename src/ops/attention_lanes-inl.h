// Transposes of small matrices and sums of their rows, compiled once per instruction set: how the attention kernels
// bring queries and keys into lanes and out of them.
#if defined(NORMA_OPS_ATTENTION_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef NORMA_OPS_ATTENTION_LANES_INL_H_
#undef NORMA_OPS_ATTENTION_LANES_INL_H_
#else
#define NORMA_OPS_ATTENTION_LANES_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "core/simd-inl.h"
#include "hwy/highway.h"

// Of a lambda: for the instruction set that the file is compiled for, and always inlined.
#ifndef NORMA_INLINED
#define NORMA_INLINED HWY_ATTR __attribute__((always_inline))
#endif

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {
namespace attention_detail {

template <typename T>
constexpr int kLanes = static_cast<int>(hn::MaxLanes(hn::ScalableTag<T>()));

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

// Block b of the result: four numbers at p + b * step.
template <int Lanes>
HWY_INLINE hn::Vec<hn::CappedTag<float, Lanes>> load_blocks(const float* p, std::int64_t step) {
  const hn::CappedTag<float, Lanes> d;
  if constexpr (Lanes == 4) {
    return hn::LoadU(d, p);
  } else {
    return hn::Combine(d, load_blocks<Lanes / 2>(p + Lanes / 8 * step, step), load_blocks<Lanes / 2>(p, step));
  }
}

// transpose() for rows by so many lanes at a time, from row `done` on, and columns by four; returns the rows taken.
template <int Lanes>
HWY_INLINE std::int64_t transpose_by(std::int64_t done, const float* source, std::int64_t source_row, std::int64_t rows,
                                     std::int64_t columns, float factor, float* target, std::int64_t target_row) {
  const hn::CappedTag<float, Lanes> d;
  for (; done + Lanes <= rows; done += Lanes) {
    const float* from = source + done * source_row;
    for (std::int64_t c = 0; c + 4 <= columns; c += 4) {
      hn::Vec<decltype(d)> out[4];
      transpose_blocks(d, load_blocks<Lanes>(from + c, 4 * source_row),
                       load_blocks<Lanes>(from + c + source_row, 4 * source_row),
                       load_blocks<Lanes>(from + c + 2 * source_row, 4 * source_row),
                       load_blocks<Lanes>(from + c + 3 * source_row, 4 * source_row), hn::Set(d, factor), out);
      for (int k = 0; k < 4; ++k) hn::StoreU(out[k], d, target + (c + k) * target_row + done);
    }
  }
  return done;
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
    constexpr int most = static_cast<int>(hn::MaxLanes(hn::ScalableTag<float>()));
    if constexpr (most >= 16)
      done = transpose_by<16>(done, source, source_row, rows, columns, factor, target, target_row);
    if constexpr (most >= 8)
      done = transpose_by<8>(done, source, source_row, rows, columns, factor, target, target_row);
    done = transpose_by<4>(done, source, source_row, rows, columns, factor, target, target_row);
  }
#endif
  if (done == rows && columns4 == columns) return;
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = r < done ? columns4 : 0; c < columns; ++c)
      target[c * target_row + r] = factor * source[r * source_row + c];
  }
}

// target[tile, width, Tile] = factor * source[rows, width] by tiles of so many rows, each transposed: a column of a
// tile lies side by side, and so do, at distances known to the compiler, the elements of a row. Rows beyond the last
// are zero.
template <int Tile, typename T>
HWY_INLINE void pack_tiles(const T* source, std::int64_t source_row, std::int64_t rows, std::int64_t width, T factor,
                           T* target, std::int64_t tile_size) {
  for (std::int64_t j = 0; j < rows; j += Tile, target += tile_size) {
    const std::int64_t count = std::min<std::int64_t>(Tile, rows - j);
    transpose(source + j * source_row, source_row, count, width, factor, target, Tile);
    for (std::int64_t c = 0; count < Tile && c < width; ++c) {
      for (std::int64_t r = count; r < Tile; ++r) target[c * Tile + r] = T{0};
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
// The sum of the 128-bit blocks of v.
template <class D>
HWY_INLINE hn::Vec<hn::CappedTag<float, 4>> add_blocks(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(d) == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return add_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}
#endif

// sums[r] = sum of the lanes of rows[r], a vector each; Rows is a multiple of four.
template <int Rows, typename T>
HWY_INLINE void sum_rows(const T* rows, T* sums) {
  const hn::ScalableTag<T> d;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    const hn::Repartition<double, decltype(d)> pair;
    const auto merge = [&](const T* two) NORMA_INLINED {
      const auto a = hn::Load(d, two), b = hn::Load(d, two + kLanes<T>);
      return hn::BitCast(pair, hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b)));
    };
    for (int r = 0; r < Rows; r += 4) {
      const auto ab = merge(rows + r * kLanes<T>), ce = merge(rows + (r + 2) * kLanes<T>);
      const auto four =
          hn::Add(hn::BitCast(d, hn::InterleaveLower(pair, ab, ce)), hn::BitCast(d, hn::InterleaveUpper(pair, ab, ce)));
      hn::Store(add_blocks(d, four), hn::CappedTag<float, 4>(), sums + r);
    }
    return;
  }
#endif
  for (int r = 0; r < Rows; ++r) sums[r] = sum_lanes(d, hn::Load(d, rows + r * kLanes<T>));
}

}  // namespace attention_detail
}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#endif  // NORMA_OPS_ATTENTION_LANES_INL_H_
