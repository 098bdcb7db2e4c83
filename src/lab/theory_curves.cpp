#include "lab/theory_curves.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "norma/core/error.h"
#include "norma/models/branch_gains.h"
#include "norma/schemes/catalogue.h"
#include "norma/schemes/theory.h"

namespace norma {
namespace {

constexpr const char* kBothStacks =
    "the theory of an encoder-decoder is a mean over networks that scatter, Post-LN's gradients most of all; "
    "docs/theory.md says how far off it was";
constexpr double kPerturbation = 1e-4;  // of measure_amplification

double input_variance(const ModelConfig& model) {
  const double table = model.embedding_std * model.embedding_std;
  const double tokens = model.scale_embedding ? table * static_cast<double>(model.width) : table;
  if (model.positions == Positions::sinusoidal) return tokens + 0.5;
  return tokens + (model.positions == Positions::learned ? table : 0);
}

double last_ffn_gradient(const Theory& theory) {
  const auto found = std::find_if(theory.branches.rbegin(), theory.branches.rend(),
                                  [](const BranchTheory& one) { return one.kind == BranchTheory::Kind::ffn; });
  return found == theory.branches.rend() ? NAN : found->weight_gradient;
}

// Per token, summed over channels, of an output of rms 1.
double squared_change(const Theory& theory, const ModelConfig& model) {
  return theory.amplification * kPerturbation * kPerturbation * static_cast<double>(model.width) /
         (theory.output_rms * theory.output_rms);
}

std::vector<double> ffn_gradients(const Theory& theory) {
  std::vector<double> all;
  for (const BranchTheory& branch : theory.branches) {
    if (branch.kind == BranchTheory::Kind::ffn) all.push_back(branch.weight_gradient);
  }
  return all;
}

// Both stacks as one, the encoder first, as sites of a model are listed; what is said of the output is the decoder's.
Theory joined(EncoderDecoderTheory both) {
  Theory all = std::move(both.decoder);
  all.streams.insert(all.streams.begin(), both.encoder.streams.begin(), both.encoder.streams.end());
  all.branches.insert(all.branches.begin(), both.encoder.branches.begin(), both.encoder.branches.end());
  return all;
}

BranchShape branch_shape(const ModelConfig& model) {
  return {.width = model.width,
          .heads = model.heads,
          .hidden = model.hidden,
          .time = model.time,
          .activation = model.activation,
          .norm = model.norm,
          .mask = model.family == Family::encoder ? Mask::full : Mask::causal,
          .source_time = model.source_time};
}

class Predictions {
 public:
  Predictions(const ModelConfig& model, const Scheme& scheme)
      : model_(model), scheme_(scheme), two_stacks_(model.family == Family::encoder_decoder) {
    const Moments input = {input_variance(model), 0};
    config_ = {.layers = 1,
               .width = model.width,
               .heads = model.heads,
               .hidden = model.hidden,
               .norm = model.norm,
               .input = input,
               .source = input};
    if (two_stacks_) {
      check_predicted_encoder_decoder(scheme_, config_);
      tables_of_both_ = measure_encoder_decoder(scheme_, branch_shape(model));
    } else {
      check_predicted(scheme_, config_);
      tables_ = measure_branches(scheme_, branch_shape(model));
    }
  }

  // Encoders are as deep as their decoders here.
  const Theory& at(std::int64_t layers) {
    if (const auto known = theories_.find(layers); known != theories_.end()) return known->second;
    config_.layers = layers;
    Theory theory =
        two_stacks_ ? joined(predict(scheme_, tables_of_both_, config_)) : predict(scheme_, tables_, config_);
    return theories_.emplace(layers, std::move(theory)).first->second;
  }

  void add_to(const std::string& analysis, Series& series) {
    std::vector<double> values;
    std::vector<double> depths = series.x;
    for (const LayerProfile& profile : series.profiles) {
      const Theory& theory = at(profile.depth);
      if (analysis == "stream") values.push_back(theory.streams.back().rms);
      if (analysis == "amplification") values.push_back(squared_change(theory, model_));
      if (analysis == "gradient_batch") values.push_back(last_ffn_gradient(theory));
    }
    if (values.size() != depths.size()) return;
    const double factor = analysis == "gradient_batch" ? series.y[0].mean / values[0] : 1;
    for (double& v : values) v *= factor;
    series.theory = TheoryCurve{.y = values, .exponent = {}};
    if (analysis != "stream" && depths.size() > 1) series.theory->exponent = log_slope(depths, values);
    for (LayerProfile& profile : series.profiles) {
      std::vector<double> along;
      if (analysis == "stream") {
        for (const StreamTheory& stream : at(profile.depth).streams) along.push_back(stream.rms);
      } else if (analysis == "gradient_batch") {
        along = ffn_gradients(at(profile.depth));
        for (double& v : along) v *= factor;
      }
      if (along.size() == profile.sites.size()) profile.theory = along;
    }
  }

 private:
  const ModelConfig& model_;
  const Scheme& scheme_;
  bool two_stacks_;
  TheoryConfig config_;
  BranchTables tables_;
  EncoderDecoderTables tables_of_both_;
  std::map<std::int64_t, Theory> theories_;
};

}  // namespace

void add_theory_curves(Findings& findings, const ModelConfig& model, const std::string& name) {
  const auto predicted = [](const Analysis& analysis) {
    return analysis.name == "stream" || analysis.name == "amplification" || analysis.name == "gradient_batch";
  };
  if (std::ranges::none_of(findings.analyses, predicted)) return;
  const Scheme scheme = find_scheme(name);
  try {
    Predictions predictions(model, scheme);
    for (Analysis& analysis : findings.analyses) {
      if (!predicted(analysis)) continue;
      for (Series& series : analysis.series) {
        if (series.scheme == name) predictions.add_to(analysis.name, series);
      }
    }
    const bool said = std::ranges::find(findings.notes, kBothStacks) != findings.notes.end();
    if (model.family == Family::encoder_decoder && !said) findings.notes.emplace_back(kBothStacks);
  } catch (const NotPredictedError& error) {
    findings.notes.push_back(fmt::format("no theory: {}", error.what()));
  }
}

}  // namespace norma
