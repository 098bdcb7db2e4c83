// bfloat16 as a storage type: the upper half of an IEEE float.
#pragma once

#include <bit>
#include <cstdint>

namespace norma {

struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;

  // Round to nearest, ties to even; NaN stays NaN (quiet), infinities stay infinite.
  explicit BFloat16(float value) {
    const std::uint32_t word = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (word & 0x7fffffffu) > 0x7f800000u;
    const std::uint32_t rounded = word + 0x7fffu + ((word >> 16) & 1u);
    bits = static_cast<std::uint16_t>((is_nan ? (word | 0x00400000u) : rounded) >> 16);
  }

  explicit operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
};

static_assert(sizeof(BFloat16) == 2);

}  // namespace norma
