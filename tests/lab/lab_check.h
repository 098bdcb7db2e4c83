// What tests of the laboratory share: models under the settings of the theories, with seeds as members.
#pragma once

#include <cmath>

#include "norma/lab/estimate.h"
#include "norma/lab/subject.h"

namespace norma::test {

// Stream and logits start at rms 1, the feed-forward branch is as wide as the stream, tokens are independent.
inline ModelConfig theory_model(const std::string& scheme, std::int64_t layers, std::int64_t width = 64,
                                std::int64_t time = 16, Family family = "encoder") {
  ModelConfig model{.family = family, .layers = layers, .width = width, .heads = 4, .hidden = width};
  model.vocabulary = 256;
  model.batch = 4;
  model.time = time;
  model.scheme = scheme;
  model.activation = Activation::relu;
  model.positions = Positions::none;
  model.scale_embedding = true;
  model.embedding_std = 1 / std::sqrt(static_cast<double>(width));
  return model;
}

inline Subject theory_subject(const ModelConfig& model, int seeds) {
  std::vector<std::uint64_t> all;
  for (int seed = 1; seed <= seeds; ++seed) all.push_back(static_cast<std::uint64_t>(seed));
  return initial_subject(model, random_data(model), all);
}

}  // namespace norma::test
