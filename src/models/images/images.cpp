#include "models/images/images.h"

#include <cmath>

#include "norma/core/error.h"
#include "norma/ops/convolution.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/embedding.h"
#include "norma/ops/views.h"

namespace norma {

std::vector<FamilyRow::OwnSize> image_sizes(std::initializer_list<const char*> more) {
  std::vector<FamilyRow::OwnSize> sizes = {
      {"image_height", 16}, {"image_width", 16}, {"image_channels", 1}, {"classes", 10}};
  for (const char* const name : more) sizes.push_back({name});
  return sizes;
}

std::vector<InputSpec::Size> image_axes(const ModelConfig& c) {
  std::vector<InputSpec::Size> axes = {{"batch", c.batch}};
  for (const char* name : {"image_height", "image_width", "image_channels"}) axes.push_back({name, size_of(c, name)});
  return axes;
}

std::vector<InputSpec> image_inputs(const ModelConfig& c) {
  return {{"image", InputSpec::Content::numbers, image_axes(c)},
          {"targets", InputSpec::Content::targets, {{"batch", c.batch}}, c.classes}};
}

OutputSpec class_output(const ModelConfig& c) { return {.shape = {c.batch, c.classes}}; }

OutputSpec image_output(const ModelConfig& c) {
  return {OutputSpec::Kind::numbers,
          {c.batch, size_of(c, "image_height"), size_of(c, "image_width"), size_of(c, "image_channels")}};
}

void check_image_sizes(const ModelConfig& c) {
  for (const char* name : {"image_height", "image_width", "image_channels"}) {
    if (size_of(c, name) < 1) fail("model.sizes.{} is not given; expected that of the images", name);
  }
}

void check_image_classifier(const ModelConfig& c) {
  check_image_sizes(c);
  const std::string& family = c.family->name;
  if (c.classes < 2) fail("classes is {}; a {} is a classifier and needs at least 2", c.classes, family);
  if (c.tied) fail("a {} has no token table that its head could be tied to", family);
}

ImagePatches::ImagePatches(const ModelConfig& c, std::int64_t usual)
    : side(size_of(c, "patch") == 0 ? usual : size_of(c, "patch")),
      rows(size_of(c, "image_height") / side),
      columns(size_of(c, "image_width") / side),
      channels(size_of(c, "image_channels")) {}

double ImagePatches::deviation() const { return std::sqrt(1 / static_cast<double>(numbers())); }

double ImagePatches::variance(const SchemeRules& rules) const {
  const double made = rules.init.deviation_of("embedding").value_or(deviation()) * rules.init.gain_of("embedding");
  return made * made / (deviation() * deviation());
}

void ImagePatches::check_divides(const ModelConfig& c) const {
  for (const char* name : {"image_height", "image_width"}) {
    if (size_of(c, name) % side != 0)
      fail("model.sizes.{} is {}, which does not divide into patches of {}; expected a multiple", name,
           size_of(c, name), side);
  }
}

// Patches side by side are a convolution whose stride is its kernel.
Wire embed_patches(ModelBuilder& b, const char* input, const ImagePatches& patches, const SchemeRules& rules) {
  const ModelConfig& c = b.config();
  const Wire weight =
      b.parameters().make({patches.side, patches.side, patches.channels, c.width},
                          b.outer("embedding.patch", "embedding", patches.deviation(), rules, UnitVectors::none));
  const Wire x = reshape(conv2d(b.input(input), weight, {.stride = patches.side}), {c.batch, patches.count(), c.width});
  if (!c.biases || !b.scheme().weights.biases) return x;
  ParameterSpec spec{.name = "embedding.bias", .init = Init::constant(0), .role = "bias"};
  rules.optimiser.apply("bias", spec);
  return x + b.parameters().make({c.width}, spec);
}

Wire with_positions(ModelBuilder& b, Wire x, const SchemeRules& rules) {
  const ModelConfig& c = b.config();
  const std::int64_t positions = x.shape()[1];
  if (c.positions == Positions::learned) {
    ParameterSpec spec{.name = "embedding.position", .init = Init::normal(c.embedding_std), .role = "position"};
    rules.optimiser.apply("position", spec);
    return add_positions(x, b.parameters().make({positions, c.width}, spec));
  }
  if (c.positions != Positions::sinusoidal) return x;
  return add_positions(x, sinusoidal_positions(b.graph(), "embedding.position", positions, c.width, c.dtype));
}

void check_positions(const ModelConfig& c) {
  if (c.positions == Positions::rope)
    fail("rotary positions are of rows of tokens; expected learned, sinusoidal or none");
}

}  // namespace norma
