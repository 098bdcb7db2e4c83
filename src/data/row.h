// A row of a generated task while it is written: `time` inputs, and targets that count only where put_answer was used.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "data/draws.h"
#include "norma/data/source.h"

namespace norma {

class Row {
 public:
  Row(std::int32_t* tokens, std::int32_t* targets, std::int64_t time, std::int32_t filler)
      : tokens_(tokens), targets_(targets), time_(time) {
    std::fill_n(tokens, time, filler);
    std::fill_n(targets, time, kIgnored);
  }

  void put(std::int32_t token) {
    if (at_ < time_) tokens_[at_] = token;
    ++at_;
  }
  // A token that is to be predicted from all before it.
  void put_answer(std::int32_t token) {
    if (at_ >= 1 && at_ <= time_) targets_[at_ - 1] = token;
    put(token);
  }

 private:
  std::int32_t *tokens_, *targets_;
  std::int64_t time_, at_ = 0;
};

// The first `count` of 0..size-1 in random order (Fisher-Yates), in place at the front of `out`.
template <std::size_t Capacity>
void draw_distinct(Draws& draws, std::int64_t size, std::int64_t count, std::array<std::int32_t, Capacity>& out) {
  for (std::int64_t i = 0; i < size; ++i) out[i] = static_cast<std::int32_t>(i);
  for (std::int64_t i = 0; i < count; ++i) {
    std::swap(out[i], out[i + draws.below(static_cast<std::uint32_t>(size - i))]);
  }
}

}  // namespace norma
