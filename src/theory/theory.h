// Second moments carried through the formulas of a scheme, with branches that were measured: one stack, or the two of
// an encoder-decoder.
#pragma once

#include <cstdint>
#include <vector>

#include "norma/models/branch_tables.h"
#include "norma/norms/norm.h"
#include "norma/schemes/scheme.h"
#include "norma/theory/predict.h"

namespace norma {

struct TheoryConfig {
  // Of a layer, in order; empty: a transformer's.
  std::vector<const BranchKind*> branches = {};
  std::int64_t layers = 12;
  std::int64_t width = 512;
  std::int64_t heads = 8;
  std::int64_t hidden = 0;  // of the feed-forward branch; 0: four times the width
  NormKind norm = NormKind::layer;
  Moments input = {1, 0};  // of x where it enters the stack
  // Of an encoder-decoder, whose decoder is described above:
  std::int64_t encoder_layers = 0;  // 0: as many as layers
  Moments source = {1, 0};          // of x where it enters the encoder
};

struct Theory {
  std::vector<StreamTheory> streams;
  std::vector<BranchTheory> branches;
  std::vector<ProfiledTheory> profiled;
  double output_rms = 0;
  // Variance of the output's change, over that of independent changes to every weight of every branch.
  double amplification = 0;
};

// Throws NotPredictedError for what no rule covers, Error for what has no meaning.
void check_predicted(const Scheme& scheme, const TheoryConfig& config);  // needs no branches

// The same errors.
Theory propagate(const Scheme& scheme, const BranchTables& branches, const TheoryConfig& config);

// Both stacks of an encoder-decoder. The encoder's gradients are for a gradient of rms 1 by the decoder's output; the
// decoder's amplification counts the weights of both stacks, the encoder's is that of what the decoder reads.
struct EncoderDecoderTheory {
  Theory encoder, decoder;
};
void check_predicted_encoder_decoder(const Scheme& scheme, const TheoryConfig& config);
EncoderDecoderTheory propagate(const Scheme& scheme, const EncoderDecoderTables& branches, const TheoryConfig& config);

}  // namespace norma
