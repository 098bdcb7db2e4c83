#include "models/unet/layout.h"

#include <algorithm>
#include <string>

#include "norma/core/error.h"
#include "norma/models/model.h"

namespace norma {
namespace {

constexpr std::int64_t kMostLevels = 6;

std::int64_t levels_of(const ModelConfig& c) {
  const std::int64_t given = size_of(c, "levels");
  std::int64_t height = size_of(c, "image_height"), width = size_of(c, "image_width");
  if (given == 0) {
    std::int64_t levels = 1;
    for (; levels < std::min<std::int64_t>(3, c.layers) && height % 2 == 0 && width % 2 == 0; ++levels)
      height /= 2, width /= 2;
    return levels;
  }
  if (given > kMostLevels) fail("model.sizes.levels is {}; expected 1 to {}", given, kMostLevels);
  if (given > c.layers) fail("layers is {}; expected at least one block for each of {} levels", c.layers, given);
  const std::int64_t halved = std::int64_t{1} << (given - 1);
  if (height % halved != 0 || width % halved != 0)
    fail("images of {} x {} cannot be halved {} times for {} levels; expected multiples of {}, or fewer levels", height,
         width, given - 1, given, halved);
  return given;
}

// Channels of a level behind the first, as given or else `usual`.
std::int64_t level_width(const ModelConfig& c, std::int64_t level, std::int64_t usual) {
  if (level >= 4) return usual;
  const std::int64_t given = size_of(c, "width" + std::to_string(level + 1));
  return given > 0 ? given : usual;
}

}  // namespace

UnetLayout unet_layout(const ModelConfig& c) {
  const std::int64_t levels = levels_of(c);
  UnetLayout layout;
  std::int64_t height = size_of(c, "image_height"), width = size_of(c, "image_width"), in = c.width;
  std::int64_t channels = c.width;
  for (std::int64_t level = 0; level < levels; ++level) {
    if (level > 0) channels = level_width(c, level, 2 * channels);
    const std::int64_t blocks = c.layers / levels + (level < c.layers % levels ? 1 : 0);
    for (std::int64_t block = 0; block < blocks; ++block) {
      const UnetBlock one{
          .height = height, .width = width, .in = in, .out = channels, .stride = level > 0 && block == 0 ? 2 : 1};
      layout.down.push_back(one);
      height = one.out_height(), width = one.out_width(), in = one.out;
    }
  }
  const std::int64_t middle = size_of(c, "middle");
  for (std::int64_t block = 0; block < std::max<std::int64_t>(1, middle); ++block)
    layout.middle.push_back({.height = height, .width = width, .in = in, .out = in});
  for (auto mirrored = layout.down.rbegin(); mirrored != layout.down.rend(); ++mirrored) {
    const bool grows = mirrored->out_height() != height || mirrored->out_width() != width;
    height = mirrored->out_height(), width = mirrored->out_width();
    layout.up.push_back({.height = height,
                         .width = width,
                         .in = in + mirrored->out,
                         .out = mirrored->out,
                         .skip = mirrored->out,
                         .grows = grows});
    in = mirrored->out;
  }
  return layout;
}

}  // namespace norma
