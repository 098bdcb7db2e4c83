// Gain and bias as optional inputs.
#pragma once

#include "norma/norms/row.h"

namespace norma {

// Appends those that are given, gain first, and says which.
inline Affine append_affine(Wires& in, Wire gain, Wire bias) {
  if (gain) in.push_back(gain);
  if (bias) in.push_back(bias);
  return gain ? (bias ? Affine::gain_and_bias : Affine::gain) : (bias ? Affine::bias : Affine::none);
}

}  // namespace norma
