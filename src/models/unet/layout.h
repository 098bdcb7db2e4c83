// The levels of a U-Net: blocks on the way down, each level but the first half as large as the one before and, unless
// told otherwise, twice as wide, and the same blocks in reverse on the way up.
#pragma once

#include <cstdint>
#include <vector>

namespace norma {

struct ModelConfig;

struct UnetBlock {
  std::int64_t height = 0, width = 0, in = 0;  // of the image that it reads
  std::int64_t out = 0;                        // channels that it answers
  std::int64_t stride = 1;
  std::int64_t skip = 0;  // on the way up: channels of the skip connection, which are among those it reads
  bool grows = false;     // on the way up: the image is made twice as large before it

  std::int64_t out_height() const { return height / stride; }
  std::int64_t out_width() const { return width / stride; }
};

struct UnetLayout {
  std::vector<UnetBlock> down, middle, up;
};

// Throws Error for what does not fit.
UnetLayout unet_layout(const ModelConfig& config);

}  // namespace norma
