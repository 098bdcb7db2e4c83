// What families that read images share: sizes, inputs, checks, and patches as tokens.
#pragma once

#include "models/model_builder.h"

namespace norma {

// Sizes of [model.sizes] that every such family has, and more of its own.
std::vector<FamilyRow::OwnSize> image_sizes(std::initializer_list<const char*> more);

// Axes of a batch of images: batch, height, width, channels.
std::vector<InputSpec::Size> image_axes(const ModelConfig& config);

// Of classifiers: "image" and "targets"; logits; throws Error for what none of them can have.
std::vector<InputSpec> image_inputs(const ModelConfig& config);
OutputSpec class_output(const ModelConfig& config);
void check_image_classifier(const ModelConfig& config);
// Of models that answer with an image.
OutputSpec image_output(const ModelConfig& config);
// That the images' sizes are there.
void check_image_sizes(const ModelConfig& config);

// Squares of `model.sizes.patch` pixels a side, `usual` where that is not given.
struct ImagePatches {
  std::int64_t side, rows, columns, channels;

  explicit ImagePatches(const ModelConfig& config, std::int64_t usual = 4);
  std::int64_t count() const { return rows * columns; }
  std::int64_t numbers() const { return side * side * channels; }
  // Of weights: pixels of variance 1 give a stream of variance 1, unless the scheme wants it otherwise.
  double deviation() const;
  double variance(const SchemeRules& rules) const;      // that it then has
  void check_divides(const ModelConfig& config) const;  // throws Error where images do not divide into them
};

// x[batch, patches, width] of the input of that name, with weight "embedding.patch" and a bias where the model has
// some.
Wire embed_patches(ModelBuilder& builder, const char* input, const ImagePatches& patches, const SchemeRules& rules);
// With what `model.positions` adds to x[batch, positions, width]; patches have no rotary ones (`check_positions`).
Wire with_positions(ModelBuilder& builder, Wire x, const SchemeRules& rules);
void check_positions(const ModelConfig& config);

}  // namespace norma
