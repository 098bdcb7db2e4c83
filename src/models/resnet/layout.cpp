#include "models/resnet/layout.h"

#include <algorithm>
#include <string>

#include "norma/core/error.h"
#include "norma/models/model.h"

namespace norma {
namespace {

constexpr std::int64_t kMostStages = 4;

std::int64_t own_size(const ModelConfig& c, const std::string& name, std::int64_t usual) {
  const std::int64_t given = size_of(c, name);
  return given == 0 ? usual : given;
}

// Blocks of each stage: as given, or as even as can be, the first stages taking what is left.
std::vector<std::int64_t> stage_blocks(const ModelConfig& c) {
  const std::int64_t stages = own_size(c, "stages", std::min<std::int64_t>(3, c.layers));
  if (stages > kMostStages) fail("model.sizes.stages is {}; expected 1 to {}", stages, kMostStages);
  if (c.layers < stages) fail("layers is {}; expected at least one block for each of {} stages", c.layers, stages);
  std::vector<std::int64_t> blocks;
  std::int64_t given = 0, total = 0;
  for (std::int64_t stage = 0; stage < kMostStages; ++stage) {
    const std::int64_t own = size_of(c, "blocks" + std::to_string(stage + 1));
    given += own > 0 ? 1 : 0;
    if (stage >= stages && own > 0) fail("model.sizes.blocks{} is given, but there are {} stages", stage + 1, stages);
    if (stage < stages) blocks.push_back(own > 0 ? own : c.layers / stages + (stage < c.layers % stages ? 1 : 0));
  }
  if (given > 0 && given < stages)
    fail("blocks of {} stages are given; expected those of all {} or none", given, stages);
  for (const std::int64_t one : blocks) total += one;
  if (total != c.layers) fail("the stages have {} blocks together, but layers is {}", total, c.layers);
  return blocks;
}

}  // namespace

ImageLayout image_layout(const ModelConfig& c) {
  ImageLayout layout{.stem = own_size(c, "stem", 3), .expansion = own_size(c, "expansion", 1), .layers = {}};
  if (layout.stem != 3 && layout.stem != 7)
    fail(
        "model.sizes.stem is {}; expected 3, a kernel of 3 x 3, or 7, one of 7 x 7 that halves the image and is pooled",
        layout.stem);
  const auto halved = [](std::int64_t size) { return (size + 1) / 2; };
  std::int64_t height = size_of(c, "image_height"), width = size_of(c, "image_width"), in = c.width;
  if (layout.stem == 7) height = halved(halved(height)), width = halved(halved(width));
  std::int64_t channels = c.width;
  const std::vector<std::int64_t> blocks = stage_blocks(c);
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    if (stage > 0) channels = own_size(c, "width" + std::to_string(stage + 1), 2 * channels);
    for (std::int64_t block = 0; block < blocks[stage]; ++block) {
      const ImageLayer layer{.height = height,
                             .width = width,
                             .in = in,
                             .out = channels * layout.expansion,
                             .inner = channels,
                             .stride = stage > 0 && block == 0 ? 2 : 1};
      layout.layers.push_back(layer);
      height = layer.out_height(), width = layer.out_width(), in = layer.out;
    }
  }
  return layout;
}

}  // namespace norma
