// Whole networks that are built, run and differentiated, for comparison with what the theory says of them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "norma/models/model.h"

namespace norma::test {

// Of all networks here.
constexpr std::int64_t kWidth = 64, kHeads = 4, kTime = 32, kVocabulary = 256;
// Embeddings of tokens and positions, normal with deviation 0.02; two tokens of a text are rarely the same.
constexpr double kInput = 2 * 0.02 * 0.02, kSame = 0.02 * 0.02 / kVocabulary;

struct Measured {
  std::vector<double> rms;              // after each sublayer
  std::vector<double> weight_gradient;  // of each branch's last matrix
  std::vector<double> profiled;         // Admin's omega at each sublayer
  double amplification = 0;
};

// Which networks are looked at: `seeds` of them, from one on.
struct Networks {
  int seeds = 3;
  std::uint64_t first = 100;
};

Measured measure(const std::string& scheme, std::int64_t layers, const Networks& networks, Family family = "decoder");

}  // namespace norma::test
