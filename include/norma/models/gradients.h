// Gradients of a model's loss.
#pragma once

#include <span>

#include "norma/graph/op.h"
#include "norma/models/model.h"

namespace norma {

// As differentiate(), for the loss of a model. Where it does not depend on one of `wrt`, the Error says which part of
// the scheme's formula leads nowhere.
Wires differentiate_model(const ModelConfig& config, Wire loss, std::span<const Wire> wrt);

}  // namespace norma
