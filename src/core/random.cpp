#include "norma/core/random.h"

#include <cmath>
#include <numbers>

namespace norma {
namespace {

// SplitMix64 finaliser (Steele et al. 2014): a bijection with full avalanche.
std::uint64_t mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// Two words of a block as one number of 64 bits.
std::uint64_t wide_word(const Philox::Counter& words, std::size_t first) {
  return (std::uint64_t{words[first]} << 32) | words[first + 1];
}

}  // namespace

Philox::Key stream_key(std::uint64_t seed, std::uint64_t name_hash) {
  const std::uint64_t key = mix(mix(seed) ^ name_hash);
  return {Philox::low_word(key), Philox::high_word(key)};
}

RandomStream::RandomStream(std::uint64_t seed, std::uint64_t name_hash, std::uint64_t step)
    : key_(stream_key(seed, name_hash)), step_(step) {}

double RandomStream::uniform(std::uint64_t index) const {
  return unit_interval(wide_word(block(index / 2), index % 2 * 2));
}

// Box-Muller: two uniforms, which are one block, give two normals.
std::array<double, 2> RandomStream::normal_pair(std::uint64_t index) const {
  const Philox::Counter words = block(index);
  const double radius = std::sqrt(-2.0 * std::log(unit_interval(wide_word(words, 0))));
  const double angle = 2.0 * std::numbers::pi * unit_interval(wide_word(words, 2));
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

double RandomStream::normal(std::uint64_t index) const { return normal_pair(index / 2)[index % 2]; }

std::uint64_t RandomStream::below(std::uint64_t index, std::uint64_t bound) const {
  // Multiply-shift (Lemire 2019) on 64 bits; the bias is below bound / 2^64.
  const std::uint64_t word = wide_word(block(index / 2), index % 2 * 2);
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(word) * bound) >> 64);
}

}  // namespace norma
