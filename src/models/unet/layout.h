// The levels of a U-Net: blocks on the way down, each level but the first half as large as the one before and, unless
// told otherwise, twice as wide; and on the way up the same levels in reverse, with one more block each, because what
// is kept of a level is the answers of its blocks and what it begins with.
#pragma once

#include <cstdint>
#include <vector>

namespace norma {

struct ModelConfig;

struct UnetBlock {
  std::int64_t height = 0, width = 0;  // of the image that it reads
  std::int64_t in = 0, out = 0;        // channels that it reads and answers
  std::int64_t skip = 0;               // on the way up: of those it reads, the channels that were kept
  bool resized = false;                // the image is halved before it on the way down, doubled on the way up
  bool attends = false;                // attention follows it
};

struct UnetLayout {
  std::vector<UnetBlock> down, middle, up;
};

// Throws Error for what does not fit.
UnetLayout unet_layout(const ModelConfig& config);

}  // namespace norma
