#include "lab/theory_curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string_view>

#include "lab/collector.h"
#include "lab/theory_share.h"
#include "norma/core/error.h"
#include "norma/models/branch_gains.h"
#include "norma/models/rules.h"
#include "norma/models/stack.h"
#include "norma/schemes/theory.h"

namespace norma {
namespace {

constexpr const char* kBothStacks =
    "the theory of an encoder-decoder is a mean over networks that scatter, Post-LN's gradients most of all; "
    "docs/theory.md says how far off it was";
constexpr const char* kMeanGradient =
    "no theory for gradients averaged over batches: how much of a gradient batches share changes with depth, and "
    "moments "
    "of one batch do not tell; single batches have one";
constexpr double kPerturbation = 1e-4;  // of measure_amplification

// Of the stream where it enters a stack; schemes may have a say in the table of tokens, which two stacks share.
double input_variance(const ModelConfig& model, const Scheme& scheme, std::int64_t layers) {
  const bool two_stacks = model.family == Family::encoder_decoder;
  const StackConfig stack{.layers = layers,
                          .heads = model.heads,
                          .kind = two_stacks ? StackKind::encoder : StackKind::single,
                          .other_layers = two_stacks ? layers : 0};
  const InitRules rules = rules_of(scheme, stack_numbers(scheme, stack, model.width, 1, 1)).init;
  const double table = rules.deviation_of("embedding").value_or(model.embedding_std) * rules.gain_of("embedding");
  const double tokens = table * table * (model.scale_embedding ? static_cast<double>(model.width) : 1);
  if (model.positions == Positions::sinusoidal) return tokens + 0.5;
  return tokens + (model.positions == Positions::learned ? model.embedding_std * model.embedding_std : 0);
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
  all.profiled.insert(all.profiled.begin(), both.encoder.profiled.begin(), both.encoder.profiled.end());
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
    config_ = {.layers = 1, .width = model.width, .heads = model.heads, .hidden = model.hidden, .norm = model.norm};
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
    config_.input = config_.source = {input_variance(model_, scheme_, layers), 0};
    Theory theory =
        two_stacks_ ? joined(predict(scheme_, tables_of_both_, config_)) : predict(scheme_, tables_, config_);
    return theories_.emplace(layers, std::move(theory)).first->second;
  }

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

  Predicted predicted(const std::string& analysis, const LayerProfile& profile) {
    const Theory& theory = at(profile.depth);
    if (analysis == "amplification") return {squared_change(theory, model_)};
    std::vector<double> along;
    if (analysis == "stream") {
      for (const StreamTheory& stream : theory.streams) along.push_back(stream.rms);
    } else if (theory.branches.empty()) {  // all have the factor 0
      along.assign(profile.sites.size(), 0);
    } else if (analysis == "gradient_batch") {
      along = ffn_gradients(theory);
    } else {
      const double input = std::sqrt(input_variance(model_, scheme_, profile.depth));
      along = predicted_shares(scheme_, model_, profile.depth, theory, input);
      if (analysis == "angle") std::ranges::transform(along, along.begin(), predicted_angle);
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

  const ModelConfig& model_;
  const Scheme& scheme_;
  bool two_stacks_;
  TheoryConfig config_;
  BranchTables tables_;
  EncoderDecoderTables tables_of_both_;
  std::map<std::int64_t, Theory> theories_;
};

}  // namespace

void add_theory_curves(Findings& findings, const ModelConfig& model) {
  const auto predicted = [](const Analysis& analysis) {
    constexpr std::array<std::string_view, 5> kPredicted = {"stream", "branch_share", "angle", "amplification",
                                                            "gradient_batch"};
    return std::ranges::find(kPredicted, analysis.name) != kPredicted.end();
  };
  const auto note = [&](const char* text) {
    if (std::ranges::find(findings.notes, text) == findings.notes.end()) findings.notes.emplace_back(text);
  };
  if (std::ranges::none_of(findings.analyses, predicted)) return;
  try {
    Predictions predictions(model, *model.scheme);
    for (Analysis& analysis : findings.analyses) {
      if (!predicted(analysis)) continue;
      for (Series& series : analysis.series) {
        if (model.scheme == series.scheme) predictions.add_to(analysis, series);
      }
      if (analysis.name == "gradient_batch") note(kMeanGradient);
    }
    if (model.family == Family::encoder_decoder) note(kBothStacks);
  } catch (const NotPredictedError& error) {
    findings.notes.push_back(fmt::format("no theory: {}", error.what()));
  }
}

}  // namespace norma
