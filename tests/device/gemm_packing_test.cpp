// A product whose B was packed once has the bits of one that takes B as it is.
#include "device/cpu/gemm_packing.h"

#include <gtest/gtest.h>

#include <vector>

#include "norma/core/random.h"

namespace norma {
namespace {

std::vector<float> numbers(std::int64_t count, const char* name) {
  std::vector<float> values(static_cast<std::size_t>(count));
  const RandomStream stream(1, name);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(stream.normal(i));
  return values;
}

std::vector<float> product(const GemmShape& shape, const std::vector<float>& a, const float* b,
                           const std::vector<float>& bias) {
  const auto gemm = make_gemm(shape, DType::f32);
  std::vector<float> c = numbers(shape.m * shape.n, "c");
  std::vector<std::byte> worker(static_cast<std::size_t>(gemm->worker_bytes()) + 1);
  gemm->run(a.data(), b, shape.bias ? bias.data() : nullptr, c.data(), worker.data());
  return c;
}

struct Sizes {
  std::int64_t m, n, k;
};

TEST(GemmPacking, GivesTheSameBits) {
  int packed_products = 0;
  for (const auto& [m, n, k] :
       {Sizes{64, 128, 512}, {64, 512, 128}, {16, 64, 64}, {33, 65, 31}, {48, 100, 129}, {5, 1, 1}}) {
    for (const bool transposed : {false, true}) {
      for (const bool accumulate : {false, true}) {
        SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << (transposed ? " transposed" : ""));
        GemmShape shape = row_major_gemm(m, n, k, false, transposed);
        shape.accumulate = accumulate;
        shape.bias = !accumulate;
        const std::vector<float> a = numbers(m * k, "a"), b = numbers(k * n, "b"), bias = numbers(n, "bias");
        const std::vector<float> plain = product(shape, a, b.data(), bias);
        shape.packed = true;
        const GemmPanels panels = make_gemm(shape, DType::f32)->panels();
        if (panels.width == 0) continue;
        ++packed_products;
        const GemmPacking packing(shape, panels);
        std::vector<float> panel_data(static_cast<std::size_t>(panels.elements()), -7.0f);  // padding must become zero
        for (std::int64_t tile = 0; tile < packing.tiles(); ++tile) packing.run(tile, b.data(), panel_data.data());
        EXPECT_EQ(product(shape, a, panel_data.data(), bias), plain);
      }
    }
  }
  if (packed_products == 0) GTEST_SKIP() << "the library takes every B as it is here";
}

// The layout itself, on any machine: panel by panel, row by row, zeros where there is nothing.
TEST(GemmPacking, FillsPanelsRowByRow) {
  const std::int64_t k = 19, n = 11;
  const std::vector<float> b = numbers(k * n, "b");
  for (const bool transposed : {false, true}) {
    const GemmShape shape = row_major_gemm(1, n, k, false, transposed);
    const GemmPanels panels{.width = 4, .depth = 32, .count = 3};
    const GemmPacking packing(shape, panels);
    EXPECT_EQ(packing.bytes(), 4 * 32 * 4 * 3);
    std::vector<float> packed(static_cast<std::size_t>(panels.elements()), -7.0f);
    for (std::int64_t tile = 0; tile < packing.tiles(); ++tile) packing.run(tile, b.data(), packed.data());
    for (std::int64_t panel = 0; panel < 3; ++panel) {
      for (std::int64_t row = 0; row < 32; ++row) {
        for (std::int64_t column = 0; column < 4; ++column) {
          const std::int64_t at = panel * 4 + column;
          const float expected =
              row < k && at < n ? b[static_cast<std::size_t>(row * shape.b_row + at * shape.b_column)] : 0.0f;
          EXPECT_EQ(packed[static_cast<std::size_t>((panel * 32 + row) * 4 + column)], expected);
        }
      }
    }
  }
}

}  // namespace
}  // namespace norma
