// Puts what the theory predicts beside what was measured on initial models.
#pragma once

#include "norma/lab/inspect.h"

namespace norma {

// Stream rms, amplification and the gradient of the last layer, for every scheme that the theory covers; a note for
// every other. Gradients are predicted up to a factor, which is taken from the first depth; both stacks of an
// encoder-decoder share it.
void add_theory_curves(Findings& findings, const ModelConfig& model, const std::string& scheme);

}  // namespace norma
