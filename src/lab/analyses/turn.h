// How far a token's vector turns, from the squared distance of its unit vectors before and after. That distance is
// exactly 0 where nothing changed, which the arccos of a rounded cosine is not.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

namespace norma {

// Turns that rounding in double precision alone would make, as of a norm of what is normed already, are none.
inline double without_rounding(double squared_turn) {
  constexpr double kRounding = 1e-24;
  return squared_turn < kRounding ? 0 : squared_turn;
}

// Over pi.
inline double angle_of(double squared_turn) {
  return 2 * std::asin(std::min(1.0, std::sqrt(without_rounding(squared_turn)) / 2)) / std::numbers::pi;
}

// 1 - cosine.
inline double influence_of(double squared_turn) { return without_rounding(squared_turn) / 2; }

}  // namespace norma
