// Counter-based random numbers: Philox4x32-10 (Salmon et al. 2011). A number is a pure function of
// (seed, name, step, index), so it depends on nothing that ran before it, nor on threads or members.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "norma/core/names.h"

namespace norma {

struct Philox {
  using Counter = std::array<std::uint32_t, 4>;
  using Key = std::array<std::uint32_t, 2>;

  static constexpr Counter block(Counter c, Key k) {
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t p0 = std::uint64_t{0xD2511F53u} * c[0];
      const std::uint64_t p1 = std::uint64_t{0xCD9E8D57u} * c[2];
      c = {high_word(p1) ^ c[1] ^ k[0], low_word(p1), high_word(p0) ^ c[3] ^ k[1], low_word(p0)};
      k[0] += 0x9E3779B9u;
      k[1] += 0xBB67AE85u;
    }
    return c;
  }

  static constexpr std::uint32_t high_word(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32); }
  static constexpr std::uint32_t low_word(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
};

// 64 random bits as a number strictly inside (0, 1): the middles of 2^52 equal intervals. One bit more and the last
// middle would round to 1.
constexpr double unit_interval(std::uint64_t word) { return (static_cast<double>(word >> 12) + 0.5) * 0x1p-52; }

// The stream of one named consumer ("layer.3.attn.out", "dropout") under one seed at one step.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view name, std::uint64_t step = 0)
      : RandomStream(seed, hash_name(name), step) {}
  RandomStream(std::uint64_t seed, std::uint64_t name_hash, std::uint64_t step);

  std::uint32_t bits(std::uint64_t index) const { return block(index / 4)[index % 4]; }  // index-th 32-bit word
  double uniform(std::uint64_t index) const;                                             // in (0, 1), 52-bit resolution
  double normal(std::uint64_t index) const;                                              // standard normal, Box-Muller
  std::uint64_t below(std::uint64_t index, std::uint64_t bound) const;                   // integer in [0, bound)

  // Many at once, for less: words 4 index to 4 index + 3, and normals 2 index and 2 index + 1.
  Philox::Counter block(std::uint64_t index) const {
    return Philox::block(
        {Philox::low_word(index), Philox::high_word(index), Philox::low_word(step_), Philox::high_word(step_)}, key_);
  }
  std::array<double, 2> normal_pair(std::uint64_t index) const;
  // put(i, i-th normal) for i in [0, count).
  template <typename Put>
  void each_normal(std::uint64_t count, const Put& put) const {
    for (std::uint64_t i = 0; i < count; i += 2) {
      const std::array<double, 2> pair = normal_pair(i / 2);
      put(i, pair[0]);
      if (i + 1 < count) put(i + 1, pair[1]);
    }
  }

  Philox::Key key() const { return key_; }
  std::uint64_t step() const { return step_; }

 private:
  Philox::Key key_;
  std::uint64_t step_;
};

// Key of a stream: seed and name mixed so that neighbouring seeds share nothing.
Philox::Key stream_key(std::uint64_t seed, std::uint64_t name_hash);

}  // namespace norma
