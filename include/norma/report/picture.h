// Pictures of samples as PNG files.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace norma {

struct PictureShape {
  std::int64_t count = 0, height = 0, width = 0, channels = 0;
};

// Samples [count, height, width, channels] side by side in a square of rows, with a gap between them, enlarged where
// they are small. One channel is grey, three are red, green and blue, of any other number the first is shown. Black and
// white are where all but one in two hundred numbers lie between. Samples of one pixel and two channels are points of a
// plane instead, drawn from -3 to 3.
std::string samples_png(const PictureShape& shape, std::span<const float> samples);

}  // namespace norma
