// Measures what the theory must know about branches: how one block of a model answers inputs, gradients and changes.
#pragma once

#include <cstdint>

#include "norma/models/branch_tables.h"
#include "norma/models/stack.h"

namespace norma {

struct BranchShape {
  LayerBranches branches = transformer_layer();  // of a layer
  std::int64_t width = 64;
  std::int64_t heads = 4;
  std::int64_t hidden = 0;  // 0: four times the width
  std::int64_t time = 32;
  Activation activation = Activation::gelu;
  NormKind norm = NormKind::layer;
  std::int64_t batch = 4;  // sequences for each set of weights
  int seeds = 2;           // independent weights and inputs to average over
  std::uint64_t seed = 1;
  std::int64_t source_time = 0;  // of an encoder-decoder: what the encoder reads; 0: as long as time
};

// Runs the branches of a layer one by one with the options of the scheme and Xavier gains of 1, at input scales
// 2^-4 ... 2^4 and token correlations 0 ... 1. Gains are not measured: the theory scales by them.
BranchTables measure_branches(const Scheme& scheme, const BranchShape& shape);

// The branches of both stacks of an encoder-decoder; those of `shape` are the decoder's. What reads the memory is
// measured at scales 2^-2 ... 2^2 of queries and memory.
EncoderDecoderTables measure_encoder_decoder(const Scheme& scheme, const BranchShape& shape,
                                             const LayerBranches& encoder);

}  // namespace norma
