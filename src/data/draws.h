// Random draws in sequence from one Philox stream, four words a block; cheaper than asking by index.
#pragma once

#include <cstdint>
#include <string_view>

#include "norma/core/random.h"

namespace norma {

class Draws {
 public:
  Draws(std::uint64_t seed, std::uint64_t name_hash, std::uint64_t step, std::uint32_t row)
      : key_(stream_key(seed, name_hash)),
        counter_{0, row, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(step >> 32)} {}

  std::uint32_t word() {
    if (used_ == 4) {
      words_ = Philox::block(counter_, key_);
      ++counter_[0];
      used_ = 0;
    }
    return words_[used_++];
  }

  // In [0, bound); the bias is below bound / 2^32, far under what any loss can show.
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>((std::uint64_t{word()} * bound) >> 32); }

  double unit() { return (word() + 0.5) * 0x1p-32; }

 private:
  Philox::Key key_;
  Philox::Counter counter_;
  Philox::Counter words_{};
  int used_ = 4;
};

}  // namespace norma
