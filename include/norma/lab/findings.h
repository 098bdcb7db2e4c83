// What analyses found, as plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "norma/lab/estimate.h"

namespace norma {

// A quantity along the layers of one model.
struct LayerProfile {
  std::int64_t depth = 0;
  std::vector<std::string> sites;  // "layers.0.attn"
  std::vector<Estimate> y;
  std::vector<double> theory = {};  // empty: none
};

// How the values behind one number are distributed over orders of magnitude, in one model.
struct MeasuredHistogram {
  std::int64_t depth = 0;
  bool exact = false;         // all values, not an estimate from random projections
  std::vector<double> edges;  // of the bins, one more than bins; the outer bins hold what lies beyond
  std::vector<Estimate> share;
  Estimate unresolved = {};  // share that is only known to lie below a value
  double unresolved_below = 0;
};

struct TheoryCurve {
  std::vector<double> y;
  std::optional<double> exponent;
};

struct Series {
  std::string scheme;
  std::vector<double> x;  // depths
  std::vector<Estimate> y;
  std::optional<Exponent> exponent = {};
  std::optional<TheoryCurve> theory = {};
  std::vector<LayerProfile> profiles = {};
  std::vector<MeasuredHistogram> histograms = {};
};

struct Analysis {
  std::string name, title;
  std::string x = "layers", unit = "";
  bool log = true;
  std::string about, source;
  std::string exponent_of = "";  // what the exponent is a power of, when not x
  std::vector<Series> series = {};
};

struct SchemeSummary {
  std::string name, title, source;
  std::vector<std::pair<std::string, std::string>> formulas;
  std::int64_t layers = 0;  // the depth that the counts are of
  std::int64_t norm_instances = 0, norm_parameters = 0, parameters = 0;
  std::vector<std::pair<std::string, std::int64_t>> by_role;
  std::string diagram_svg = {}, diagram_text = {};  // one layer; empty: it cannot be drawn so
  std::string diagram_note = {};                    // why one of them is empty
};

// What the layers of one model are worth; see depth_use.h, lens.h and paths.h for each.
struct DepthFinding {
  std::string scheme;
  std::int64_t layers = 0;
  std::vector<std::string> layer_names = {};  // "down.layers.0", where they are of several stacks
  Estimate loss = {}, effective_depth = {};
  std::vector<double> kept_loss = {};  // mean loss with 0, 1, ... layers
  std::vector<Estimate> deletion = {}, swap = {}, width_equivalence = {}, influence = {};
  std::vector<std::vector<double>> angular_distance = {};
  std::vector<double> lens_divergence = {}, lens_agreement = {};  // after 0, 1, ... layers
  std::vector<Estimate> probe = {};                               // after 0, 1, ... layers; empty: not applicable
  std::vector<double> path_share = {};                            // by length; empty: not applicable
};

struct Findings {
  std::vector<SchemeSummary> schemes = {};
  std::vector<Analysis> analyses = {};
  std::vector<DepthFinding> depth_use = {};
  std::vector<std::string> notes = {};
};

}  // namespace norma
