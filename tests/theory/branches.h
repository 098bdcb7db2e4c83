// Branches whose response is known exactly.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "schemes/named.h"
#include "theory/theory.h"

namespace norma::test {

// A random linear map of each token by itself: every second moment is multiplied by `gain`.
inline BranchTables linear_branches(double gain, std::int64_t time = 16) {
  const double t = static_cast<double>(time);
  const BranchResponse response{.output = {gain, 0},
                                .gradient_own = {gain, 0},
                                .gradient_shared = {gain, gain},
                                .change_own = {gain, 0},
                                .change_shared = {gain, gain},
                                .weight_own = t,
                                .weight_shared = t * t,
                                .noise_last = {1, 0},
                                .noise_first = {0, 0},
                                .noise_scores = {0, 0}};
  // For correlated inputs the outputs are as correlated.
  BranchResponse correlated = response;
  correlated.output.shared = gain;
  correlated.noise_last.shared = 1;
  const BranchTable table(0, 2, 2, {response, correlated, response, correlated});
  return {.plain = {{"attention", table}, {"ffn", table}}, .time = time};
}

// Cross-attention that hands through its memory alone, and does to it what the branches above do.
inline EncoderDecoderTables linear_stacks(double gain) {
  const BranchTables branches = linear_branches(gain);
  CrossResponse response{.query = branches.plain.at("ffn").at(1, 0)};
  response.query.gradient_own = response.query.gradient_shared = {};
  response.query.change_own = response.query.change_shared = {};
  response.gradient_own = response.change_own = {gain, 0};
  response.gradient_shared = response.change_shared = {gain, gain};
  return {.encoder = branches,
          .decoder = branches,
          .cross = CrossTable(0, 2, 2, 2, std::vector<CrossResponse>(8, response))};
}

inline TheoryConfig config(std::int64_t layers, NormKind norm = NormKind::rms) {
  return {.layers = layers, .width = 1 << 20, .heads = 1, .norm = norm, .input = {1, 0}};
}

inline Theory theory_of(const std::string& scheme, std::int64_t layers, double gain = 1) {
  return propagate(test::scheme_named(scheme), linear_branches(gain), config(layers));
}

constexpr double kEps = 1e-4;  // norms add an eps of their own to variances

}  // namespace norma::test
