// Puts what the theory predicts beside what was measured on initial models.
#pragma once

#include "norma/lab/inspect.h"

namespace norma {

// Stream rms, branch share, angle, amplification and the gradient of single batches of the model's scheme, or a note
// that the theory does not cover it. Exponents are fitted as those of the measurement. Gradients are predicted up to a
// factor, which is taken from the first depth; both stacks of an encoder-decoder share it. What the theory does not say
// of a scheme is left out.
void add_theory_curves(Findings& findings, const ModelConfig& model);

}  // namespace norma
