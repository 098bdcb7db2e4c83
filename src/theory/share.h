// What moments and formulas together say of the shares of branches.
#pragma once

#include <vector>

#include "norma/theory/predict.h"

namespace norma {

// See ModelTheory::shares. Reads both stacks of an encoder-decoder as equally deep.
std::vector<double> branch_shares(const Scheme& scheme, const ModelConfig& model, const Prediction& prediction);

}  // namespace norma
