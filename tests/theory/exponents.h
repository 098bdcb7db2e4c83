// How propagated moments go with depth.
#pragma once

#include <vector>

#include "theory/theory.h"

namespace norma::test {

// Exponents over depths, each stack as deep as the other.
template <typename Tables>
Exponents exponents_over(const Scheme& scheme, const Tables& tables, TheoryConfig config,
                         const std::vector<std::int64_t>& depths) {
  std::vector<Prediction> all;
  for (const std::int64_t depth : depths) {
    config.layers = depth;
    const Theory theory = propagate(scheme, tables, config);
    all.push_back({.layers = depth,
                   .closing = usual_branches().back(),
                   .streams = theory.streams,
                   .branches = theory.branches,
                   .profiled = {},
                   .amplification = theory.amplification});
  }
  return exponents_of(all);
}

}  // namespace norma::test
