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

std::uint32_t high_word(std::uint64_t product) { return static_cast<std::uint32_t>(product >> 32); }
std::uint32_t low_word(std::uint64_t product) { return static_cast<std::uint32_t>(product); }

}  // namespace

Philox::Counter Philox::block(Counter c, Key k) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c[0];
    const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c[2];
    c = {high_word(p1) ^ c[1] ^ k[0], low_word(p1), high_word(p0) ^ c[3] ^ k[1], low_word(p0)};
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return c;
}

Philox::Key stream_key(std::uint64_t seed, std::uint64_t name_hash) {
  const std::uint64_t key = mix(mix(seed) ^ name_hash);
  return {low_word(key), high_word(key)};
}

RandomStream::RandomStream(std::uint64_t seed, std::uint64_t name_hash, std::uint64_t step)
    : key_(stream_key(seed, name_hash)), step_(step) {}

std::uint32_t RandomStream::bits(std::uint64_t index) const {
  const std::uint64_t block = index / 4;
  const Philox::Counter words =
      Philox::block({low_word(block), high_word(block), low_word(step_), high_word(step_)}, key_);
  return words[index % 4];
}

double RandomStream::uniform(std::uint64_t index) const {
  const std::uint64_t word = (std::uint64_t{bits(2 * index)} << 32) | bits(2 * index + 1);
  return unit_interval(word);
}

double RandomStream::normal(std::uint64_t index) const {
  // Each pair of uniforms gives two normals; consecutive indices share the pair.
  const std::uint64_t pair = index / 2;
  const double radius = std::sqrt(-2.0 * std::log(uniform(2 * pair)));
  const double angle = 2.0 * std::numbers::pi * uniform(2 * pair + 1);
  return radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

std::uint64_t RandomStream::below(std::uint64_t index, std::uint64_t bound) const {
  // Multiply-shift (Lemire 2019) on 64 bits; the bias is below bound / 2^64.
  const std::uint64_t word = (std::uint64_t{bits(2 * index)} << 32) | bits(2 * index + 1);
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(word) * bound) >> 64);
}

}  // namespace norma
