// Values that a scheme profiles on data before step 0 (Admin: Liu et al. 2020).
//
// A model built with ModelOptions{.profile = true} runs a forward pass in which every profiled value is a number that
// was measured in the sublayer before it, in the same stack; the first is the value's init. The pass uses each as it is
// found, so one run of one batch gives all of them, with dropout where the model has it. Outputs: "profile.<name>" [1]
// for the parameter <name>. Weights are those of the session: initialise it as the model to be trained.
#pragma once

#include <vector>

#include "norma/device/session.h"
#include "norma/models/parameters.h"

namespace norma {

// Fills each profiled parameter of one member of `target` with what the same member of `profiled` measured.
void apply_profile(Session& profiled, Session& target, const std::vector<ParameterSpec>& specs, int member = 0);

}  // namespace norma
