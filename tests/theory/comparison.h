// Predictions for the networks of measured_networks.h, and how far apart both are.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "norma/models/branch_gains.h"
#include "schemes/named.h"
#include "theory/measured_networks.h"
#include "theory/theory.h"

namespace norma::test {

// Schemes without options of their own share one measurement.
inline std::string measured_alike(const Scheme& scheme) {
  std::string key = norm_on_branches(scheme);
  for (const auto& [branch, options] : scheme.branch_options) {
    for (const auto& [option, value] : options) key += "|" + branch + "." + option + "=" + value;
  }
  return key;
}

template <typename Tables, typename Measure>
const Tables& tables_for(const std::string& name, Measure measure_tables) {
  static std::map<std::string, Tables> known;
  const Scheme scheme = test::scheme_named(name);
  const auto [entry, fresh] = known.try_emplace(measured_alike(scheme));
  if (fresh) entry->second = measure_tables(scheme, BranchShape{.width = kWidth, .heads = kHeads, .time = kTime});
  return entry->second;
}

inline const BranchTables& tables_for(const std::string& name) {
  return tables_for<BranchTables>(name, measure_branches);
}

inline TheoryConfig network_config(std::int64_t layers, Moments input = {kInput, kSame}) {
  return {.layers = layers, .width = kWidth, .heads = kHeads, .input = input, .source = input};
}

// Where a scheme scales tokens, they enter at 1, beside positions of 1/sqrt(width).
inline TheoryConfig network_config(const Scheme& scheme, std::int64_t layers) {
  return scheme.embedding.scale == nullptr ? network_config(layers)
                                           : network_config(layers, {1 + 1.0 / kWidth, 1.0 / kVocabulary});
}

inline Theory network_theory(const std::string& scheme, std::int64_t layers) {
  const Scheme read = test::scheme_named(scheme);
  return propagate(read, tables_for(scheme), network_config(read, layers));
}

// Both stacks in one, the encoder first, as a model lists its sublayers.
Theory theory_of_both(const std::string& scheme, std::int64_t layers) {
  const auto& tables = tables_for<EncoderDecoderTables>(scheme, [](const Scheme& read, BranchShape shape) {
    shape.branches = transformer_layer(Memory::present);
    return measure_encoder_decoder(read, shape, transformer_layer(Memory::absent, Mask::full));
  });
  const Scheme named = test::scheme_named(scheme);
  EncoderDecoderTheory both = propagate(named, tables, network_config(named, layers));
  Theory all = std::move(both.encoder);
  const Theory& above = both.decoder;
  all.streams.insert(all.streams.end(), above.streams.begin(), above.streams.end());
  all.branches.insert(all.branches.end(), above.branches.begin(), above.branches.end());
  all.profiled.insert(all.profiled.end(), above.profiled.begin(), above.profiled.end());
  all.amplification = above.amplification;
  all.output_rms = above.output_rms;
  return all;
}

inline double ratio_of(double predicted, double measured) {
  const double ratio = std::exp(std::abs(std::log(predicted / measured)));
  return std::isfinite(ratio) ? ratio : std::numeric_limits<double>::infinity();
}

// How far apart prediction and measurement are at most: ratios, always from 1 on.
struct Ratios {
  double rms = 1;            // of the stream, after any sublayer
  double gradient = 1;       // of any branch but the next, relative to the last of its kind
  double first = 1;          // of the first attention under a causal mask
  double amplification = 1;  // of the output
  double profiled = 1;       // of profiled values

  void widen(const Ratios& other) {
    rms = std::max(rms, other.rms);
    gradient = std::max(gradient, other.gradient);
    first = std::max(first, other.first);
    amplification = std::max(amplification, other.amplification);
    profiled = std::max(profiled, other.profiled);
  }
};

// The last branch of the same kind.
inline std::size_t last_of_kind(const Theory& theory, std::size_t k) {
  std::size_t last = theory.branches.size() - 1;
  while (theory.branches[last].kind != theory.branches[k].kind) --last;
  return last;
}

// The first attention that does not see every token: few tokens look back on few.
inline std::size_t first_causal(const Theory& theory) {
  const auto cross = std::ranges::find(theory.branches, &branch_kind("cross"), &BranchTheory::kind);
  return cross == theory.branches.end() ? 0 : static_cast<std::size_t>(cross - theory.branches.begin()) - 1;
}

// Branches before `from` are left out of the comparison of gradients.
inline Ratios ratios(const Theory& theory, const Measured& measured, std::size_t from = 0) {
  Ratios worst;
  const std::size_t sites = theory.branches.size(), formulas = theory.streams.size();  // some span a whole layer
  EXPECT_EQ(measured.weight_gradient.size(), sites);
  EXPECT_EQ(measured.profiled.size(), theory.profiled.size());
  if (measured.weight_gradient.size() != sites || measured.profiled.size() != theory.profiled.size()) return {};
  for (std::size_t k = 0; k < sites; ++k) {
    worst.rms = std::max(worst.rms, ratio_of(theory.streams[k * formulas / sites].rms, measured.rms[k]));
    if (k < from) continue;
    const std::size_t last = last_of_kind(theory, k);
    double& gradient = k == first_causal(theory) ? worst.first : worst.gradient;
    gradient = std::max(gradient, ratio_of(theory.branches[k].weight_gradient / theory.branches[last].weight_gradient,
                                           measured.weight_gradient[k] / measured.weight_gradient[last]));
  }
  for (std::size_t k = 0; k < theory.profiled.size(); ++k)
    worst.profiled = std::max(worst.profiled, ratio_of(theory.profiled[k].value, measured.profiled[k]));
  worst.amplification = ratio_of(theory.amplification, measured.amplification);
  return worst;
}

inline void expect_within(const Ratios& found, const Ratios& allowed) {
  EXPECT_LT(found.rms, allowed.rms) << "stream rms";
  EXPECT_LT(found.gradient, allowed.gradient) << "gradient by layer";
  EXPECT_LT(found.first, allowed.first) << "gradient of the first causal attention";
  EXPECT_LT(found.amplification, allowed.amplification) << "amplification";
  EXPECT_LE(found.profiled, allowed.profiled) << "profiled values";
}

}  // namespace norma::test
