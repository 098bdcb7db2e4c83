// What a trained classifier says of texts and of images.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "norma/data/source.h"
#include "norma/train/generate.h"

namespace norma {

struct ClassPrediction {
  std::vector<double> probability = {};  // by class
  bool cut = false;                      // the text was longer than the model reads

  std::size_t best() const;  // the likeliest class; the first of equals
};

// Told after every batch what is known so far, in order.
using Classified = std::function<void(std::span<const ClassPrediction>)>;

// Of each text; a second one stands behind a tab. `vocabulary` has the tokenizer and the labels. Throws Error where the
// model classifies no texts.
std::vector<ClassPrediction> classify(const TrainedModel& model, const Source& vocabulary,
                                      std::span<const std::string> texts, const Classified& done = {});

// Of each image, as read for the model. Throws Error where it classifies no images.
std::vector<ClassPrediction> classify_images(const TrainedModel& model, const Source& vocabulary,
                                             const NamedImages& images, const Classified& done = {});

}  // namespace norma
