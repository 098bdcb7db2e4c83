#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/winograd_kernels.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"
// After highway.h.
#include "device/cpu/winograd_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace norma {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// At most 16 lanes, so that they divide the columns of a block.
using Floats = hn::CappedTag<float, kWinogradColumns>;
using Vector = hn::Vec<Floats>;
constexpr Floats kFloats;
constexpr std::int64_t kLanes = static_cast<std::int64_t>(hn::MaxLanes(kFloats));
constexpr std::int64_t kVectors = kWinogradColumns / kLanes;

HWY_INLINE Vector number(float value) { return hn::Set(kFloats, value); }

// B^T d
HWY_INLINE void to_points(const Vector (&d)[6], Vector (&t)[6]) {
  const Vector two = number(2), four = number(4), five = number(5);
  t[0] = hn::MulAdd(four, d[0], hn::NegMulAdd(five, d[2], d[4]));
  const Vector even = hn::NegMulAdd(four, d[2], d[4]), odd = hn::NegMulAdd(four, d[1], d[3]);
  t[1] = hn::Add(even, odd);
  t[2] = hn::Sub(even, odd);
  const Vector middle = hn::Sub(d[4], d[2]), twice = hn::Mul(two, hn::Sub(d[3], d[1]));
  t[3] = hn::Add(middle, twice);
  t[4] = hn::Sub(middle, twice);
  t[5] = hn::MulAdd(four, d[1], hn::NegMulAdd(five, d[3], d[5]));
}

// A^T m
HWY_INLINE void from_points(const Vector (&m)[6], Vector (&y)[4]) {
  const Vector sum = hn::Add(m[1], m[2]), difference = hn::Sub(m[1], m[2]);
  const Vector far_sum = hn::Add(m[3], m[4]), far_difference = hn::Sub(m[3], m[4]);
  y[0] = hn::Add(m[0], hn::Add(sum, far_sum));
  y[1] = hn::MulAdd(number(2), far_difference, difference);
  y[2] = hn::MulAdd(number(4), far_sum, sum);
  y[3] = hn::Add(m[5], hn::MulAdd(number(8), far_difference, difference));
}

// A y, the transpose of it.
HWY_INLINE void answer_to_points(const Vector (&y)[4], Vector (&t)[6]) {
  const Vector even = hn::Add(y[0], y[2]), odd = hn::Add(y[1], y[3]);
  const Vector far_even = hn::MulAdd(number(4), y[2], y[0]);
  const Vector far_odd = hn::Mul(number(2), hn::MulAdd(number(4), y[3], y[1]));
  t[0] = y[0];
  t[1] = hn::Add(even, odd);
  t[2] = hn::Sub(even, odd);
  t[3] = hn::Add(far_even, far_odd);
  t[4] = hn::Sub(far_even, far_odd);
  t[5] = y[3];
}

void transform_image(const float* const* pixels, std::int64_t channels, float* to, std::int64_t apart) {
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    Vector half[6][6];  // [row of points][column of pixels]
    for (int column = 0; column < 6; ++column) {
      Vector in[6], out[6];
      for (int row = 0; row < 6; ++row) in[row] = hn::LoadU(kFloats, pixels[row * 6 + column] + c);
      to_points(in, out);
      for (int row = 0; row < 6; ++row) half[row][column] = out[row];
    }
    for (int row = 0; row < 6; ++row) {
      Vector out[6];
      to_points(half[row], out);
      for (int column = 0; column < 6; ++column) hn::StoreU(out[column], kFloats, to + (row * 6 + column) * apart + c);
    }
  }
}

void transform_answer(const float* const* pixels, std::int64_t channels, float* to, std::int64_t apart) {
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    Vector half[6][4];
    for (int column = 0; column < 4; ++column) {
      Vector in[4], out[6];
      for (int row = 0; row < 4; ++row) in[row] = hn::LoadU(kFloats, pixels[row * 4 + column] + c);
      answer_to_points(in, out);
      for (int row = 0; row < 6; ++row) half[row][column] = out[row];
    }
    for (int row = 0; row < 6; ++row) {
      Vector out[6];
      answer_to_points(half[row], out);
      for (int column = 0; column < 6; ++column) hn::StoreU(out[column], kFloats, to + (row * 6 + column) * apart + c);
    }
  }
}

void answer(const float* from, std::int64_t apart, std::int64_t channels, float* const* pixels) {
  for (std::int64_t c = 0; c < channels; c += kLanes) {
    Vector half[4][6];
    for (int column = 0; column < 6; ++column) {
      Vector in[6], out[4];
      for (int row = 0; row < 6; ++row) in[row] = hn::LoadU(kFloats, from + (row * 6 + column) * apart + c);
      from_points(in, out);
      for (int row = 0; row < 4; ++row) half[row][column] = out[row];
    }
    for (int row = 0; row < 4; ++row) {
      Vector out[4];
      from_points(half[row], out);
      for (int column = 0; column < 4; ++column) {
        float* const pixel = pixels[row * 4 + column];
        if (pixel != nullptr) hn::StoreU(out[column], kFloats, pixel + c);
      }
    }
  }
}

// Twelve vectors of sums, of one row of 16 numbers of the weight after another.
void product(const float* x, const float* weight, float* y, std::int64_t tiles, std::int64_t rows,
             std::int64_t columns) {
  constexpr int kTiles = static_cast<int>(kWinogradRows / kVectors);
  for (std::int64_t panel = 0; panel < columns / kWinogradColumns; ++panel) {
    const float* const panel_weight = weight + panel * rows * kWinogradColumns;
    for (std::int64_t tile = 0; tile < tiles; tile += kTiles) {
      Vector sums[kTiles][kVectors];
      for (auto& of_tile : sums) {
        for (Vector& sum : of_tile) sum = hn::Zero(kFloats);
      }
      const float* const from = x + tile * rows;
      for (std::int64_t k = 0; k < rows; ++k) {
        Vector w[kVectors];
        for (int v = 0; v < kVectors; ++v) w[v] = hn::LoadU(kFloats, panel_weight + k * kWinogradColumns + v * kLanes);
        for (int t = 0; t < kTiles; ++t) {
          const Vector value = number(from[t * rows + k]);
          for (int v = 0; v < kVectors; ++v) sums[t][v] = hn::MulAdd(value, w[v], sums[t][v]);
        }
      }
      for (int t = 0; t < kTiles; ++t) {
        for (int v = 0; v < kVectors; ++v)
          hn::StoreU(sums[t][v], kFloats, y + (tile + t) * columns + panel * kWinogradColumns + v * kLanes);
      }
    }
  }
}

void gather(const float* x, const float* dy, float* weight, std::int64_t tiles, std::int64_t rows,
            std::int64_t columns) {
  constexpr int kRows = static_cast<int>(8 / kVectors);
  for (std::int64_t panel = 0; panel < columns / kWinogradColumns; ++panel) {
    for (std::int64_t row = 0; row < rows; row += kRows) {
      float* const to = weight + (panel * rows + row) * kWinogradColumns;
      Vector sums[kRows][kVectors];
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::LoadU(kFloats, to + r * kWinogradColumns + v * kLanes);
      }
      for (std::int64_t tile = 0; tile < tiles; ++tile) {
        Vector of_tile[kVectors];
        for (int v = 0; v < kVectors; ++v)
          of_tile[v] = hn::LoadU(kFloats, dy + tile * columns + panel * kWinogradColumns + v * kLanes);
        for (int r = 0; r < kRows; ++r) {
          const Vector value = number(x[tile * rows + row + r]);
          for (int v = 0; v < kVectors; ++v) sums[r][v] = hn::MulAdd(value, of_tile[v], sums[r][v]);
        }
      }
      for (int r = 0; r < kRows; ++r) {
        for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[r][v], kFloats, to + r * kWinogradColumns + v * kLanes);
      }
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace norma
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace norma {

HWY_EXPORT(transform_image);
HWY_EXPORT(transform_answer);
HWY_EXPORT(answer);
HWY_EXPORT(product);
HWY_EXPORT(gather);

void winograd_transform_image(const float* const* pixels, std::int64_t channels, float* to, std::int64_t apart) {
  HWY_DYNAMIC_DISPATCH(transform_image)(pixels, channels, to, apart);
}
void winograd_transform_answer(const float* const* pixels, std::int64_t channels, float* to, std::int64_t apart) {
  HWY_DYNAMIC_DISPATCH(transform_answer)(pixels, channels, to, apart);
}
void winograd_answer(const float* from, std::int64_t apart, std::int64_t channels, float* const* pixels) {
  HWY_DYNAMIC_DISPATCH(answer)(from, apart, channels, pixels);
}
void winograd_product(const float* x, const float* weight, float* y, std::int64_t tiles, std::int64_t rows,
                      std::int64_t columns) {
  HWY_DYNAMIC_DISPATCH(product)(x, weight, y, tiles, rows, columns);
}
void winograd_gather(const float* x, const float* dy, float* weight, std::int64_t tiles, std::int64_t rows,
                     std::int64_t columns) {
  HWY_DYNAMIC_DISPATCH(gather)(x, dy, weight, tiles, rows, columns);
}

}  // namespace norma
#endif  // HWY_ONCE
