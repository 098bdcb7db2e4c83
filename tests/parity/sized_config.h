// The configuration of a case of a model with sizes of its own.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "norma/models/model.h"
#include "norma/norms/norm.h"
#include "parity/graph_cases.h"

namespace norma::test {

inline ModelConfig sized_config(const nlohmann::json& test, Family family, const char* usual, DType dtype) {
  const nlohmann::json& a = test.at("attributes");
  const std::string scheme = a.value("scheme", usual);
  ModelConfig config{.family = family,
                     .layers = a.at("layers"),
                     .width = a.at("width"),
                     .classes = a.at("classes"),
                     .batch = a.at("batch"),
                     .scheme = scheme,
                     .norm = NormKind::batch,
                     .dtype = dtype};
  config.sizes = a.at("sizes").get<std::map<std::string, double>>();
  config.norm_groups = a.value("norm_groups", 0);
  if (a.contains("heads")) config.heads = a.at("heads");
  if (a.contains("hidden")) config.hidden = a.at("hidden");
  set_graph_options(a, config);
  config.norm = norm(a.value("norm", scheme == "pre" ? "layer" : "batch")).kind;
  const std::string form = a.value("weight_form", "plain");
  if (form == "standardised") config.weight_form = WeightForm::standardised;
  if (form == "weight_norm") config.weight_form = WeightForm::weight_norm;
  if (form == "spectral") config.weight_form = WeightForm::spectral;
  return config;
}

}  // namespace norma::test
