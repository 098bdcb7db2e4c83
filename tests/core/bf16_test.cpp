// bfloat16 rounding: to nearest, ties to even, specials kept.
#include "norma/core/bf16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace norma {
namespace {

std::uint16_t round_bits(std::uint32_t word) { return BFloat16(std::bit_cast<float>(word)).bits; }

TEST(BFloat16, EveryValueSurvivesTheRoundTrip) {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    BFloat16 value;
    value.bits = static_cast<std::uint16_t>(bits);
    const float wide = static_cast<float>(value);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(wide)))) << bits;
      EXPECT_EQ(BFloat16(wide).bits & 0x8000, bits & 0x8000) << bits;
    } else {
      EXPECT_EQ(BFloat16(wide).bits, bits);
    }
  }
}

TEST(BFloat16, RoundsToNearest) {
  EXPECT_EQ(round_bits(0x3f807fff), 0x3f80);  // just below the middle
  EXPECT_EQ(round_bits(0x3f808001), 0x3f81);  // just above
  EXPECT_EQ(round_bits(0xbf808001), 0xbf81);
}

TEST(BFloat16, TiesGoToTheEvenNeighbour) {
  EXPECT_EQ(round_bits(0x3f808000), 0x3f80);
  EXPECT_EQ(round_bits(0x3f818000), 0x3f82);
  EXPECT_EQ(round_bits(0xbf818000), 0xbf82);
}

TEST(BFloat16, SpecialValues) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(BFloat16(infinity).bits, 0x7f80);
  EXPECT_EQ(BFloat16(-infinity).bits, 0xff80);
  EXPECT_EQ(BFloat16(0.0f).bits, 0x0000);
  EXPECT_EQ(BFloat16(-0.0f).bits, 0x8000);
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::numeric_limits<float>::quiet_NaN()))));
  // NaNs whose payload sits in the lower half must not round to infinity.
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(0x7fffffffu)))));
  EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(std::bit_cast<float>(0xffffffffu)))));
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::max()).bits, 0x7f80);         // rounds past the largest bf16
  EXPECT_EQ(BFloat16(std::numeric_limits<float>::denorm_min()).bits, 0x0000);  // rounds to zero
  EXPECT_EQ(round_bits(0x00010000), 0x0001);                                   // bf16 has its own denormals
}

}  // namespace
}  // namespace norma
