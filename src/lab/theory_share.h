// What the theory's moments say of branch shares and angles.
#pragma once

#include <vector>

#include "norma/models/model.h"
#include "norma/schemes/theory.h"

namespace norma {

// b rms(f) / (a rms(x)) at every sublayer in order, where all formulas read [norm](a x + b [norm](f(..))): the theory
// gives the rms of stream and branch, the formula a and b. Empty for other schemes. Of an encoder-decoder both stacks,
// the encoder first, as in `theory`; `input`: rms of the stream where it enters a stack.
std::vector<double> predicted_shares(const Scheme& scheme, const ModelConfig& model, std::int64_t layers,
                                     const Theory& theory, double input);

// The angle over pi between a x and a x + b f, whose parts the theory takes to be uncorrelated.
double predicted_angle(double share);

}  // namespace norma
