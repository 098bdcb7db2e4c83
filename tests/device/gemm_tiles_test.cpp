// A product in tiles: every element once, and the same bits whether tiles run one by one or several together.
#include "device/cpu/gemm_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "device/cpu/sequential_library.h"
#include "norma/core/random.h"

namespace norma {
namespace {

std::vector<float> operand(std::int64_t count, const char* name) {
  std::vector<float> values(static_cast<std::size_t>(count));
  const RandomStream stream(1, name);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(stream.normal(i));
  return values;
}

struct ProductSizes {
  std::int64_t m, n, k;
};

constexpr ProductSizes kSizes[] = {{128, 128, 1024}, {128, 512, 1024}, {512, 128, 1024}, {128, 384, 1024},
                                   {64, 100, 700},   {96, 487, 1100},  {33, 5, 9}};

TEST(GemmTiles, CoverEveryElementOnce) {
  for (const auto& [m, n, k] : kSizes) {
    SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
    const GemmTiles tiles(row_major_gemm(m, n, k, true, false), DType::f32, GemmTiles::Cut::rows_and_columns);
    std::vector<int> times(static_cast<std::size_t>(m * n), 0);
    for (std::int64_t tile = 0; tile < tiles.count(); ++tile) {
      const GemmTiles::Block block = tiles.block(tile);
      for (std::int64_t i = 0; i < block.rows; ++i) {
        for (std::int64_t j = 0; j < block.columns; ++j)
          ++times[static_cast<std::size_t>((block.row + i) * n + block.column + j)];
      }
    }
    EXPECT_EQ(times, std::vector<int>(times.size(), 1));
  }
}

TEST(GemmTiles, HaveTheSameBitsTogetherAndOneByOne) {
  const SequentialLibrary sequential;  // as inside a team
  for (const auto& [m, n, k] : kSizes) {
    for (const bool accumulate : {false, true}) {
      SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << (accumulate ? " accumulate" : ""));
      GemmShape shape = row_major_gemm(m, n, k, true, false);
      shape.accumulate = accumulate;
      const GemmTiles tiles(shape, DType::f32, GemmTiles::Cut::rows_and_columns);
      const std::vector<float> a = operand(m * k, "a"), b = operand(k * n, "b");
      std::vector<std::byte> worker(static_cast<std::size_t>(tiles.worker_bytes()) + 1);
      const auto in_pieces_of = [&](std::int64_t piece) {
        std::vector<float> c = operand(m * n, "c");
        for (std::int64_t tile = 0; tile < tiles.count(); tile += piece)
          tiles.run(tile, std::min(tile + piece, tiles.count()), a.data(), b.data(), c.data(), worker.data());
        return c;
      };
      const std::vector<float> one_by_one = in_pieces_of(1);
      for (const std::int64_t piece : {std::int64_t{2}, std::int64_t{3}, std::int64_t{5}, tiles.count()})
        EXPECT_EQ(in_pieces_of(piece), one_by_one) << piece;
    }
  }
}

}  // namespace
}  // namespace norma
