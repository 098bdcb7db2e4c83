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

// What layers are made of, without the layers.
ImageLayout empty_layout(const ModelConfig& c) {
  const auto options = c.scheme->branch_options.find("conv");
  const bool inverted = options != c.scheme->branch_options.end() && options->second.contains("form") &&
                        options->second.at("form") == "inverted";
  ImageLayout layout{.stem = own_size(c, "stem", 3),
                     .deep_stem = size_of(c, "deep_stem") > 0,
                     .inverted = inverted,
                     .kernel = own_size(c, "kernel", inverted ? 7 : 3),
                     .expansion = own_size(c, "expansion", inverted ? 4 : 1),
                     .layers = {}};
  if (!layout.patches() && layout.stem != 3 && layout.stem != 7)
    fail(
        "model.sizes.stem is {}; expected 3, a kernel of 3 x 3, 7, one of 7 x 7 that halves the image and is pooled, "
        "or "
        "2 or 4, patches of so many pixels",
        layout.stem);
  if (layout.deep_stem && layout.stem != 7)
    fail("model.sizes.deep_stem is given, but stem is {}; expected 7, whose kernel three of 3 x 3 replace",
         layout.stem);
  if (layout.deep_stem && c.width % 2 != 0) fail("width is {}; a deep stem needs an even one", c.width);
  if (layout.kernel % 2 == 0) fail("model.sizes.kernel is {}; expected an odd number", layout.kernel);
  return layout;
}

}  // namespace

ImageLayout image_layout(const ModelConfig& c) {
  ImageLayout layout = empty_layout(c);
  const auto divided = [](std::int64_t size, std::int64_t by) { return (size + by - 1) / by; };
  std::int64_t height = size_of(c, "image_height"), width = size_of(c, "image_width"), in = c.width;
  if (layout.patches()) {
    if (height % layout.stem != 0 || width % layout.stem != 0)
      fail("images of {} x {} do not divide into patches of {}, which model.sizes.stem asks for", height, width,
           layout.stem);
    height /= layout.stem, width /= layout.stem;
  }
  if (layout.pooled()) height = divided(divided(height, 2), 2), width = divided(divided(width, 2), 2);
  std::int64_t channels = c.width;
  const std::vector<std::int64_t> blocks = stage_blocks(c);
  for (std::size_t stage = 0; stage < blocks.size(); ++stage) {
    if (stage > 0) channels = own_size(c, "width" + std::to_string(stage + 1), 2 * channels);
    for (std::int64_t block = 0; block < blocks[stage]; ++block) {
      const ImageLayer layer{.height = height,
                             .width = width,
                             .in = in,
                             .out = layout.inverted ? channels : channels * layout.expansion,
                             .inner = layout.inverted ? channels * layout.expansion : channels,
                             .stride = stage > 0 && block == 0 ? 2 : 1};
      layout.layers.push_back(layer);
      height = layer.out_height(), width = layer.out_width(), in = layer.out;
    }
  }
  return layout;
}

std::vector<std::int64_t> ImageLayout::since() const {
  std::vector<std::int64_t> counts;
  std::int64_t added = 0;
  for (const ImageLayer& layer : layers) {
    // A block that begins a stage reads what the stage before has gathered, and the projection of it counts for
    // nothing.
    counts.push_back(inverted && layer.changes_shape() ? 0 : added);
    added = layer.changes_shape() ? 1 : added + 1;
  }
  return counts;
}

}  // namespace norma
