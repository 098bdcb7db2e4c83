// Theory beside measurement: what second moments predict for the analyses of a study.
#pragma once

#include "norma/lab/results.h"
#include "norma/models/model.h"

namespace norma {

// Adds curves to the analyses gradient, stream and amplification for every scheme that the theory covers, and a note
// for each that it does not. Gradient and amplification are predicted up to a factor: their curves meet the measurement
// at the shallowest depth.
void add_theory(Findings& findings, const ModelConfig& model);

}  // namespace norma
