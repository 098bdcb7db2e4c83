#include "lab/study_theory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "norma/models/branch_gains.h"
#include "norma/schemes/catalogue.h"
#include "norma/schemes/theory.h"

namespace norma {
namespace {

// What is predicted for one scheme at one depth.
struct Predicted {
  double gradient = 0, stream = 0, amplification = 0;
};

// Variance of what enters the stack: tokens, and positions where they are learned alike.
double input_variance(const ModelConfig& model) {
  const double token =
      model.embedding_std * model.embedding_std * (model.scale_embedding ? static_cast<double>(model.width) : 1.0);
  if (model.positions == Positions::learned) return token + model.embedding_std * model.embedding_std;
  return model.positions == Positions::sinusoidal ? token + 0.5 : token;
}

class Predictor {
 public:
  Predictor(const std::string& scheme, const ModelConfig& model)
      : scheme_(find_scheme(scheme)),
        config_{.layers = 1,
                .width = model.width,
                .heads = model.heads,
                .hidden = model.hidden,
                .norm = model.norm,
                .input = {input_variance(model), 0}} {
    check_predicted(scheme_, config_);
    tables_ = measure_branches(scheme_, {.width = model.width,
                                         .heads = model.heads,
                                         .hidden = model.hidden,
                                         .time = model.time,
                                         .activation = model.activation,
                                         .norm = model.norm});
  }

  Predicted at(std::int64_t layers) {
    config_.layers = layers;
    const Theory theory = predict(scheme_, tables_, config_);
    const auto last = std::find_if(theory.branches.rbegin(), theory.branches.rend(),
                                   [](const BranchTheory& branch) { return branch.kind == BranchTheory::Kind::ffn; });
    return {last == theory.branches.rend() ? std::nan("") : last->weight_gradient, theory.streams.back().rms,
            theory.amplification};
  }

 private:
  Scheme scheme_;
  TheoryConfig config_;
  BranchTables tables_;
};

bool usable(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v) && v > 0; });
}

void attach(Series& series, std::vector<double> y, bool anchored) {
  if (y.empty() || !usable(y)) return;
  if (anchored && series.y[0].mean > 0) {
    const double factor = series.y[0].mean / y[0];
    for (double& value : y) value *= factor;
  }
  TheoryCurve curve{.y = y, .exponent = {}};
  if (y.size() > 1) curve.exponent = log_slope(series.x, y);
  series.theory = std::move(curve);
}

}  // namespace

void add_theory(Findings& findings, const ModelConfig& model) {
  std::map<std::string, std::unique_ptr<Predictor>> predictors;
  for (Analysis& analysis : findings.analyses) {
    const bool known = analysis.name == "gradient" || analysis.name == "stream" || analysis.name == "amplification";
    if (!known) continue;
    for (Series& series : analysis.series) {
      if (!predictors.contains(series.scheme)) {
        predictors[series.scheme] = nullptr;
        try {
          predictors[series.scheme] = std::make_unique<Predictor>(series.scheme, model);
        } catch (const NotPredictedError& error) {
          findings.notes.push_back(fmt::format("{}: no theory: {}", series.scheme, error.what()));
        }
      }
      Predictor* predictor = predictors[series.scheme].get();
      if (predictor == nullptr) continue;
      std::vector<double> y;
      for (const double x : series.x) {
        const bool by_sublayers = analysis.x == "sublayers";
        const Predicted predicted = predictor->at(static_cast<std::int64_t>(by_sublayers ? x / 2 : x));
        y.push_back(analysis.name == "gradient"
                        ? predicted.gradient
                        : (analysis.name == "stream" ? predicted.stream : predicted.amplification));
      }
      attach(series, std::move(y), analysis.name != "stream");
      if (analysis.name == "stream" && series.theory)
        series.theory->exponent.reset();  // the measured one is along layers
    }
  }
}

}  // namespace norma
