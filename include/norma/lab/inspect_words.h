// What an inspection found, in a few plain sentences with the numbers they rest on.
#pragma once

#include <string>
#include <vector>

#include "norma/lab/findings.h"

namespace norma {

// The weightiest first: amplification, gradients with depth and along it, the stream, attention, use of depth. A
// difference between schemes is claimed only where their intervals do not overlap. Empty where nothing of this was
// measured.
std::vector<std::string> conclude(const Findings& findings);

}  // namespace norma
