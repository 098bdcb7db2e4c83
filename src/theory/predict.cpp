// The theory of a model: its branches measured, its scheme's moments carried, one number for each question.
#include "norma/theory/predict.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "norma/models/branch_gains.h"
#include "norma/models/rules.h"
#include "norma/models/stack.h"
#include "theory/share.h"
#include "theory/theory.h"

namespace norma {
namespace {

// Wide branches and long sequences scatter less: about as many numbers are averaged as at the shape that tables are
// made for, and at least two sequences.
std::int64_t measured_sequences(const ModelConfig& model) {
  const BranchShape usual;
  const std::int64_t all = usual.batch * usual.seeds;
  return std::clamp<std::int64_t>(all * usual.time * usual.width / (model.time * model.width), 2, all);
}

BranchShape branch_shape(const ModelConfig& model) {
  const std::int64_t sequences = measured_sequences(model);
  const int seeds = sequences > 2 ? BranchShape().seeds : 1;
  return {.width = model.width,
          .heads = model.heads,
          .hidden = model.hidden,
          .time = model.time,
          .activation = model.activation,
          .norm = model.norm,
          .mask = model.family == Family::encoder ? Mask::full : Mask::causal,
          .batch = sequences / seeds,
          .seeds = seeds,
          .source_time = model.source_time};
}

bool has_two_stacks(const ModelConfig& model) { return model.family == Family::encoder_decoder; }

// Of the stream where it enters a stack; schemes may have a say in the table of tokens, which two stacks share.
double input_variance(const ModelConfig& model, const Scheme& scheme, std::int64_t layers,
                      std::int64_t encoder_layers) {
  const bool two_stacks = has_two_stacks(model);
  const StackConfig stack{.layers = two_stacks ? encoder_layers : layers,
                          .heads = model.heads,
                          .kind = two_stacks ? StackKind::encoder : StackKind::single,
                          .other_layers = two_stacks ? layers : 0};
  const InitRules rules = rules_of(scheme, stack_numbers(scheme, stack, model.width, 1, 1)).init;
  const double table = rules.deviation_of("embedding").value_or(model.embedding_std) * rules.gain_of("embedding");
  const double tokens = table * table * (model.scale_embedding ? static_cast<double>(model.width) : 1);
  if (model.positions == Positions::sinusoidal) return tokens + 0.5;
  return tokens + (model.positions == Positions::learned ? model.embedding_std * model.embedding_std : 0);
}

// The scheme with the constants that the model gives instead of its own.
Scheme with_constants(Scheme scheme, const Variables& given) {
  numbers_at(scheme, {}, given);  // throws for a name that the scheme does not have
  for (auto* table : {&scheme.constants.common, &scheme.constants.encoder, &scheme.constants.decoder}) {
    for (NamedExpression& constant : *table) {
      const auto found = given.find(constant.name);
      if (found == given.end()) continue;
      constant.value =
          std::make_shared<const Expression>(Expression{.kind = Expression::Kind::number, .number = found->second});
    }
  }
  return scheme;
}

// Both stacks as one, the encoder first, as sites of a model are listed; what is said of the output is the decoder's.
Theory joined(EncoderDecoderTheory both) {
  Theory all = std::move(both.decoder);
  all.streams.insert(all.streams.begin(), both.encoder.streams.begin(), both.encoder.streams.end());
  all.branches.insert(all.branches.begin(), both.encoder.branches.begin(), both.encoder.branches.end());
  all.profiled.insert(all.profiled.begin(), both.encoder.profiled.begin(), both.encoder.profiled.end());
  return all;
}

}  // namespace

struct ModelTheory::Parts {
  explicit Parts(const ModelConfig& given)
      : model(given), scheme(given.constants.empty() ? *given.scheme : with_constants(*given.scheme, given.constants)) {
    // What has no rule is found before anything is measured.
    if (has_two_stacks(model)) {
      check_predicted_encoder_decoder(scheme, config(1, 1));
      both = measure_encoder_decoder(scheme, branch_shape(model));
    } else {
      check_predicted(scheme, config(1, 1));
      single = measure_branches(scheme, branch_shape(model));
    }
  }

  TheoryConfig config(std::int64_t layers, std::int64_t encoder_layers) const {
    const Moments input = {input_variance(model, scheme, layers, encoder_layers), 0};
    return {.layers = layers,
            .width = model.width,
            .heads = model.heads,
            .hidden = model.hidden,
            .norm = model.norm,
            .input = input,
            .encoder_layers = encoder_layers,
            .source = input};
  }

  Prediction at(std::int64_t layers, std::int64_t encoder_layers) const {
    const TheoryConfig place = config(layers, encoder_layers);
    Theory theory = both ? joined(propagate(scheme, *both, place)) : propagate(scheme, single, place);
    const double output = theory.output_rms * theory.output_rms;
    return {.layers = layers,
            .input_rms = std::sqrt(place.input.own),
            .streams = std::move(theory.streams),
            .branches = std::move(theory.branches),
            .profiled = std::move(theory.profiled),
            .output_rms = theory.output_rms,
            .amplification = theory.amplification * static_cast<double>(model.width) / output};
  }

  ModelConfig model;
  Scheme scheme;
  BranchTables single;
  std::optional<EncoderDecoderTables> both;
};

ModelTheory::ModelTheory(const ModelConfig& model) : parts_(std::make_unique<const Parts>(model)) {}
ModelTheory::ModelTheory(ModelTheory&&) noexcept = default;
ModelTheory& ModelTheory::operator=(ModelTheory&&) noexcept = default;
ModelTheory::~ModelTheory() = default;

Prediction ModelTheory::at(std::int64_t layers) const { return parts_->at(layers, layers); }

std::vector<double> ModelTheory::shares(const Prediction& prediction) const {
  return branch_shares(parts_->scheme, parts_->model, prediction);
}

Prediction predict(const ModelConfig& model) {
  const ModelTheory theory(model);
  return theory.parts_->at(model.layers, model.encoder_layers == 0 ? model.layers : model.encoder_layers);
}

}  // namespace norma
