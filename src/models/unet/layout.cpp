#include "models/unet/layout.h"

#include <algorithm>
#include <string>

#include "norma/core/error.h"
#include "norma/models/model.h"

namespace norma {
namespace {

constexpr std::int64_t kMostLevels = 6;
constexpr std::int64_t kWidths = 4;  // levels whose channels can be given: width, width2 to width4

struct Level {
  std::int64_t height = 0, width = 0, channels = 0;
  std::int64_t blocks = 0;  // on the way down
  bool attends = false;
};

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
    fail("images of {} x {} cannot be halved {} time{} for {} levels; expected multiples of {}, or fewer levels",
         height, width, given - 1, given == 2 ? "" : "s", given, halved);
  return given;
}

// Channels of a level behind the first, as given or else `usual`.
std::int64_t level_width(const ModelConfig& c, std::int64_t level, std::int64_t usual) {
  const std::int64_t given = level < kWidths ? size_of(c, "width" + std::to_string(level + 1)) : 0;
  return given > 0 ? given : usual;
}

std::vector<Level> levels_in(const ModelConfig& c) {
  const std::int64_t count = levels_of(c), attended = size_of(c, "attention");
  for (std::int64_t level = count; level < kWidths; ++level) {
    if (level_width(c, level, 0) > 0)
      fail("model.sizes.width{} is given, but the U-Net has {} level{}", level + 1, count, count == 1 ? "" : "s");
  }
  std::vector<Level> levels;
  std::vector<std::int64_t> heights;
  for (std::int64_t i = 0; i < count; ++i) {
    Level level{.height = size_of(c, "image_height") >> i, .width = size_of(c, "image_width") >> i};
    level.channels = i == 0 ? c.width : level_width(c, i, 2 * levels.back().channels);
    level.blocks = c.layers / count + (i < c.layers % count ? 1 : 0);
    level.attends = level.height == attended;
    heights.push_back(level.height);
    levels.push_back(level);
  }
  if (attended > 0 && std::ranges::find(heights, attended) == heights.end())
    fail("model.sizes.attention is {}, but no level has images of that height; expected one of {}", attended,
         fmt::join(heights, ", "));
  return levels;
}

UnetBlock block_of(const Level& level, std::int64_t in) {
  return {.height = level.height, .width = level.width, .in = in, .out = level.channels, .attends = level.attends};
}

}  // namespace

UnetLayout unet_layout(const ModelConfig& c) {
  const std::vector<Level> levels = levels_in(c);
  UnetLayout layout;
  std::vector<std::int64_t> kept = {c.width};  // channels of what the way up will read, the stem's answer first
  std::int64_t in = c.width;
  for (const Level& level : levels) {
    for (std::int64_t i = 0; i < level.blocks; ++i) {
      UnetBlock block = block_of(level, in);
      block.resized = i == 0 && &level != &levels.front();
      if (block.resized) kept.push_back(in);
      kept.push_back(in = block.out);
      layout.down.push_back(block);
    }
  }
  for (const bool attends : {true, false}) {
    layout.middle.push_back(block_of(levels.back(), in));
    layout.middle.back().attends = attends;
  }
  for (auto level = levels.rbegin(); level != levels.rend(); ++level) {
    for (std::int64_t i = 0; i <= level->blocks; ++i) {
      UnetBlock block = block_of(*level, in + kept.back());
      block.skip = kept.back();
      block.resized = i == 0 && level != levels.rbegin();
      kept.pop_back();
      in = block.out;
      layout.up.push_back(block);
    }
  }
  return layout;
}

}  // namespace norma
