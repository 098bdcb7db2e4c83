// Plans what every instruction of a program does to second moments: only for pairs of wires that something reads later,
// and without those that are known to be uncorrelated.
#pragma once

#include <vector>

#include "theory/program.h"

namespace norma {

// `alone`: by stream, whether only its own square is ever asked for. Before and after a program the moments of all
// pairs of other streams are in place, and nothing else is.
void plan_moments(std::vector<TheoryInstruction>& instructions, const std::vector<bool>& alone);

}  // namespace norma
