// Second moments of sequences of tokens.
#pragma once

#include <cstdint>
#include <span>

#include "norma/models/branch_tables.h"

namespace norma {

// Sums of squares over tokens, and of products of different tokens.
class MomentSum {
 public:
  // Sequences of tokens [batch, time, width].
  void add(std::span<const float> values, std::int64_t width, std::int64_t time) {
    const std::size_t sequence = static_cast<std::size_t>(width * time);
    for (std::size_t begin = 0; begin < values.size(); begin += sequence) add(values.subspan(begin, sequence), width);
  }

  void add(std::span<const float> values, std::int64_t width) {
    const std::size_t tokens = values.size() / static_cast<std::size_t>(width);
    double all = 0, own = 0;
    for (std::size_t c = 0; c < static_cast<std::size_t>(width); ++c) {
      double sum = 0;
      for (std::size_t t = 0; t < tokens; ++t) {
        const double value = values[t * static_cast<std::size_t>(width) + c];
        sum += value;
        own += value * value;
      }
      all += sum * sum;
    }
    own_ += own / static_cast<double>(values.size());
    const double pairs = static_cast<double>(values.size()) * static_cast<double>(tokens - 1);
    shared_ += tokens > 1 ? (all - own) / pairs : 0;
    ++count_;
  }

  Moments mean(double scale = 1) const { return {scale * own_ / count_, scale * shared_ / count_}; }

 private:
  double own_ = 0, shared_ = 0;
  int count_ = 0;
};

}  // namespace norma
