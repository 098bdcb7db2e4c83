// What a comparison of runs begins with.
#pragma once

#include <limits>

namespace norma {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace norma
