#include "lab/analyses/theory_curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numbers>
#include <string_view>

#include "lab/analyses/collector.h"
#include "norma/core/error.h"
#include "norma/theory/predict.h"

namespace norma {
namespace {

constexpr const char* kBothStacks =
    "networks of an encoder-decoder scatter about the theory, Post-LN's gradients most of all; "
    "docs/theory.md says how far off it was";
constexpr const char* kWideNetworks =
    "the theory of amplification is the limit of wide networks; narrow networks scatter around it and lie above it, "
    "those of Post-LN the more so the deeper they are (docs/theory.md says by how much)";
constexpr const char* kMeanGradient =
    "gradients averaged over batches have no theory, because how much of a gradient the batches share changes with "
    "depth, which the moments of one batch do not show; gradients of single batches have one";
constexpr double kPerturbation = 1e-4;  // of measure_amplification

// The angle over pi between a x and a x + b f, whose parts the theory takes to be uncorrelated.
double angle_of(double share) { return std::atan(share) / std::numbers::pi; }

class Predictions {
 public:
  explicit Predictions(const ModelConfig& model) : theory_(model) {}

  void add_to(const Analysis& analysis, Series& series) {
    std::vector<Predicted> all;
    for (const LayerProfile& profile : series.profiles) all.push_back(predicted(analysis.name, profile));
    if (all.empty() || all.size() != series.x.size()) return;
    if (analysis.name == "gradient_batch") scale_to(series.y[0].mean, all);
    if (std::ranges::any_of(all, [](const Predicted& one) { return !std::isfinite(one.value); })) return;
    series.theory = TheoryCurve{};
    for (std::size_t i = 0; i < all.size(); ++i) {
      series.theory->y.push_back(all[i].value);
      LayerProfile& profile = series.profiles[i];
      if (all[i].along.size() == profile.sites.size()) profile.theory = all[i].along;
    }
    const std::optional<Exponent> law = analysis.exponent_of.empty()
                                            ? power_law(series.x, by_seed(series.theory->y))
                                            : law_along(series.profiles.back().sites, by_seed(all.back().along));
    if (law) series.theory->exponent = law->value;
  }

 private:
  // What an analysis should find in one model; NaN: the theory does not say.
  struct Predicted {
    double value = NAN;
    std::vector<double> along = {};  // by site
  };

  // Encoders are as deep as their decoders here.
  const Prediction& at(std::int64_t layers) {
    const auto known = predictions_.find(layers);
    return known != predictions_.end() ? known->second : predictions_.emplace(layers, theory_.at(layers)).first->second;
  }

  Predicted predicted(const std::string& analysis, const LayerProfile& profile) {
    const Prediction& theory = at(profile.depth);
    if (analysis == "amplification") return {theory.amplification * kPerturbation * kPerturbation};
    std::vector<double> along;
    if (analysis == "stream") {
      for (const StreamTheory& stream : theory.streams) along.push_back(stream.rms);
    } else if (theory.branches.empty()) {  // all have the factor 0
      along.assign(profile.sites.size(), 0);
    } else if (analysis == "gradient_batch") {
      along = closing_gradients(theory);
    } else {
      along = theory_.shares(theory);
      if (analysis == "angle") std::ranges::transform(along, along.begin(), angle_of);
    }
    return {along.empty() ? NAN : along.back(), along};
  }

  // Gradients are known up to a factor; where all are zero it does not matter.
  static void scale_to(double first, std::vector<Predicted>& all) {
    if (std::ranges::all_of(all, [](const Predicted& one) { return one.value == 0; })) return;
    const double factor = first > 0 ? first / all[0].value : NAN;
    for (Predicted& one : all) {
      one.value *= factor;
      for (double& v : one.along) v *= factor;
    }
  }

  static std::vector<std::vector<double>> by_seed(const std::vector<double>& values) {
    std::vector<std::vector<double>> all;
    for (const double v : values) all.push_back({v});
    return all;
  }

  ModelTheory theory_;
  std::map<std::int64_t, Prediction> predictions_;
};

}  // namespace

void add_theory_curves(Findings& findings, const ModelConfig& model) {
  const auto predicted = [](const Analysis& analysis) {
    constexpr std::array<std::string_view, 5> kPredicted = {"stream", "branch_share", "angle", "amplification",
                                                            "gradient_batch"};
    return std::ranges::find(kPredicted, analysis.name) != kPredicted.end();
  };
  const auto note = [&](const std::string& text) {
    if (std::ranges::find(findings.notes, text) == findings.notes.end()) findings.notes.emplace_back(text);
  };
  if (std::ranges::none_of(findings.analyses, predicted)) return;
  try {
    Predictions predictions(model);
    for (Analysis& analysis : findings.analyses) {
      if (!predicted(analysis)) continue;
      for (Series& series : analysis.series) {
        if (model.scheme == series.scheme) predictions.add_to(analysis, series);
      }
      if (analysis.name == "gradient_batch") note(kMeanGradient);
      if (analysis.name == "amplification") note(kWideNetworks);
    }
    if (model.family->sites(model).size() > 1) note(kBothStacks);
  } catch (const NotPredictedError& error) {
    note(fmt::format("no theory: {}", error.what()));
  }
}

}  // namespace norma
