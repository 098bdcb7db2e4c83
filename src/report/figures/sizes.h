// How large figures are.
#pragma once

namespace norma {

// Units are CSS pixels on a screen; a journal's column and page in print.
inline constexpr double kPageUnits = 720, kColumnUnits = 340;
inline constexpr double kPageMillimetres = 180, kColumnMillimetres = 85;
inline constexpr double kPngScale = 3;  // pixels of a unit

}  // namespace norma
