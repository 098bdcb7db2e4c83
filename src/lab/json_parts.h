// Pieces that everything in results.json is made of (docs/results.md).
#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "norma/lab/estimate.h"
#include "norma/lab/results.h"

namespace norma {

// A number, or its name where JSON has none.
inline nlohmann::ordered_json json_number(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

inline nlohmann::ordered_json estimate(const Estimate& e) {
  return {{"mean", json_number(e.mean)}, {"low", json_number(e.low)}, {"high", json_number(e.high)}, {"n", e.n}};
}

inline nlohmann::ordered_json json_numbers(const std::vector<double>& values) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const double v : values) all.push_back(json_number(v));
  return all;
}

// An entry of "schemes".
nlohmann::ordered_json scheme_json(const SchemeSummary& scheme);

}  // namespace norma
