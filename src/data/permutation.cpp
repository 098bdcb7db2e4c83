#include "data/permutation.h"

#include <algorithm>
#include <bit>

#include "norma/core/error.h"
#include "norma/core/random.h"

namespace norma {
namespace {

std::uint64_t scramble(std::uint64_t z) {
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93ull;
  z = (z ^ (z >> 32)) * 0xd6e8feb86659fd93ull;
  return z ^ (z >> 32);
}

}  // namespace

Permutation::Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch) : size_(size) {
  NORMA_ASSERT(size >= 1 && size <= (std::uint64_t{1} << 62));
  const int bits = static_cast<int>(std::bit_width(size - 1));
  half_bits_ = std::max(1, (bits + 1) / 2);
  half_mask_ = (std::uint64_t{1} << half_bits_) - 1;
  const RandomStream stream(seed, "data.permutation", epoch);
  for (std::size_t round = 0; round < keys_.size(); ++round) {
    keys_[round] = (std::uint64_t{stream.bits(2 * round)} << 32) | stream.bits(2 * round + 1);
  }
}

std::uint64_t Permutation::operator()(std::uint64_t i) const {
  NORMA_ASSERT(i < size_);
  do {
    std::uint64_t left = i >> half_bits_, right = i & half_mask_;
    for (const std::uint64_t key : keys_) {
      const std::uint64_t mixed = left ^ (scramble(right + key) & half_mask_);
      left = right;
      right = mixed;
    }
    i = (left << half_bits_) | right;
  } while (i >= size_);
  return i;
}

}  // namespace norma
