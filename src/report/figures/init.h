// What figures and sentences about analyses have in common.
#pragma once

#include <string>
#include <vector>

#include "norma/lab/results.h"

namespace norma {

// Gradient, amplification and stream where there are, else the first analysis.
std::vector<const Analysis*> main_analyses(const Results& results);
std::string short_title(const Analysis& analysis);

// Values up to here are nothing but rounding when all of their series are. A whole series, never a point of one: a
// gradient that vanishes with depth becomes as small and is a finding.
double zero_level(const Analysis& analysis);
bool is_zero(const Series& series, double level);

}  // namespace norma
