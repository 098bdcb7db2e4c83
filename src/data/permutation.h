// A keyed permutation of 0..n-1 that is evaluated at single points in O(1): a Feistel network on the next even number
// of bits, walked along its cycle until it lands below n (Black and Rogaway 2002).
#pragma once

#include <array>
#include <cstdint>

namespace norma {

class Permutation {
 public:
  Permutation(std::uint64_t size, std::uint64_t seed, std::uint64_t epoch);

  std::uint64_t operator()(std::uint64_t i) const;  // i in [0, size)

 private:
  static constexpr int kRounds = 6;

  std::uint64_t size_;
  int half_bits_;
  std::uint64_t half_mask_;
  std::array<std::uint64_t, kRounds> keys_;
};

}  // namespace norma
