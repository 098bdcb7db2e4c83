// A product in tiles: every element of C is written once, by the product of the whole.
#include "device/cpu/tiled_product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "norma/core/arena.h"
#include "norma/core/random.h"

namespace norma {
namespace {

template <typename T>
std::vector<T> numbers(std::int64_t count, const char* name) {
  const RandomStream stream(1, name);
  std::vector<T> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(stream.uniform(i) - 0.5);
  return values;
}

template <typename T>
void check_product(std::int64_t m, std::int64_t n, std::int64_t k, bool a_transposed, bool b_transposed, bool bias) {
  SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << (a_transposed ? " A'" : "")
                                  << (b_transposed ? " B'" : "") << (bias ? " + bias" : ""));
  GemmShape shape = row_major_gemm(m, n, k, a_transposed, b_transposed);
  shape.bias = bias;
  const TiledProduct product(shape, dtype_of<T>());
  const std::vector<T> a = numbers<T>(m * k, "a"), b = numbers<T>(k * n, "b"), row = numbers<T>(n, "bias");
  std::vector<T> c(static_cast<std::size_t>(m * n), std::numeric_limits<T>::quiet_NaN());
  std::vector<int> written(c.size(), 0);
  Arena worker(product.worker_bytes() + kArenaAlignment);
  const auto bytes = [](const std::vector<T>& values) { return reinterpret_cast<const std::byte*>(values.data()); };
  for (std::int64_t tile = 0; tile < product.tiles(); ++tile) {
    product.run(tile, bytes(a), bytes(b), bias ? bytes(row) : nullptr, reinterpret_cast<std::byte*>(c.data()),
                worker.data());
    const TiledProduct::Block at = product.block(tile);
    for (std::int64_t i = at.row; i < at.row + at.rows; ++i) {
      for (std::int64_t j = at.column; j < at.column + at.columns; ++j) ++written[static_cast<std::size_t>(i * n + j)];
    }
  }
  const double tolerance = 4 * epsilon_of(dtype_of<T>()) * std::sqrt(static_cast<double>(k));
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double expected = bias ? static_cast<double>(row[static_cast<std::size_t>(j)]) : 0;
      for (std::int64_t p = 0; p < k; ++p) {
        expected += static_cast<double>(a[static_cast<std::size_t>(i * shape.a_row + p * shape.a_column)]) *
                    static_cast<double>(b[static_cast<std::size_t>(p * shape.b_row + j * shape.b_column)]);
      }
      const auto at = static_cast<std::size_t>(i * n + j);
      ASSERT_EQ(written[at], 1) << "row " << i << " column " << j;
      ASSERT_NEAR(static_cast<double>(c[at]), expected, tolerance) << "row " << i << " column " << j;
    }
  }
}

TEST(TiledProduct, IsThatOfTheWholeAtAwkwardSizes) {
  for (const auto& [m, n, k] : {std::tuple{1, 1, 1},
                                {1, 31, 33},
                                {33, 1, 31},
                                {31, 33, 1},
                                {65, 63, 64},
                                {129, 257, 100},
                                {48, 200, 512},
                                {1030, 70, 9}}) {
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) check_product<float>(m, n, k, a_transposed, b_transposed, false);
    }
    check_product<float>(m, n, k, false, false, true);
  }
  check_product<double>(65, 63, 17, true, false, false);
  check_product<double>(129, 130, 33, false, true, true);
}

TEST(TiledProduct, OfAWeightGradientKeepsManyThreadsBusy) {
  for (const std::int64_t n : {128, 384, 512}) {
    EXPECT_GE(TiledProduct(row_major_gemm(128, n, 1024, true, false), DType::f32).tiles(), 8) << n;
  }
  EXPECT_GE(TiledProduct(row_major_gemm(128, 512, 1024, true, false), DType::f32).tiles(), 16);
  EXPECT_GE(TiledProduct(row_major_gemm(256, 64, 64, false, false), DType::f32).tiles(), 4);
  EXPECT_EQ(TiledProduct(row_major_gemm(8, 16, 16, false, false), DType::f32).tiles(), 1);
}

}  // namespace
}  // namespace norma
