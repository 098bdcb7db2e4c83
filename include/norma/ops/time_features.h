// Features of a timestep: cos and sin of t at frequencies from 1 down to 1 / longest, in geometric steps.
#pragma once

#include "norma/graph/op.h"

namespace norma {

// t[batch] -> [batch, width]: cosines, then sines, and a zero where the width is odd. Frequency i of width / 2 is
// longest^(-i / (width / 2)), as in Ho, Jain, Abbeel 2020. The frequencies are a constant of this name.
Wire time_features(Wire t, std::int64_t width, std::string_view name, double longest = 10000);

}  // namespace norma
