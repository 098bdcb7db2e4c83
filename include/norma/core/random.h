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

  static Counter block(Counter counter, Key key);
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

  std::uint32_t bits(std::uint64_t index) const;                        // index-th 32-bit word
  double uniform(std::uint64_t index) const;                            // in (0, 1), 52-bit resolution
  double normal(std::uint64_t index) const;                             // standard normal, Box-Muller
  std::uint64_t below(std::uint64_t index, std::uint64_t bound) const;  // integer in [0, bound)

  Philox::Key key() const { return key_; }
  std::uint64_t step() const { return step_; }

 private:
  Philox::Key key_;
  std::uint64_t step_;
};

// Key of a stream: seed and name mixed so that neighbouring seeds share nothing.
Philox::Key stream_key(std::uint64_t seed, std::uint64_t name_hash);

}  // namespace norma
