// What Winograd's convolution is made of, for one instruction set or another. Tiles lie as [36][tiles][channels],
// transformed weights as [36][columns / 16][rows][16].
#pragma once

#include <cstdint>

namespace norma {

inline constexpr std::int64_t kWinogradPoints = 36, kWinogradColumns = 16;
inline constexpr std::int64_t kWinogradRows = 12;  // tiles of a block are a multiple of it

// 6 x 6 (or 4 x 4) pixels of one tile, [row][column], each with `channels` numbers; to[point * apart + channel].
void winograd_transform_image(const float* const* pixels, std::int64_t channels, float* to, std::int64_t apart);
void winograd_transform_answer(const float* const* pixels, std::int64_t channels, float* to, std::int64_t apart);
// Back to 4 x 4 pixels; null where there is none.
void winograd_answer(const float* from, std::int64_t apart, std::int64_t channels, float* const* pixels);
// y[tiles][columns] = x[tiles][rows] weight, of one point; tiles are a multiple of kWinogradRows.
void winograd_product(const float* x, const float* weight, float* y, std::int64_t tiles, std::int64_t rows,
                      std::int64_t columns);
// weight += x^T dy, of one point.
void winograd_gather(const float* x, const float* dy, float* weight, std::int64_t tiles, std::int64_t rows,
                     std::int64_t columns);

}  // namespace norma
