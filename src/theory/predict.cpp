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
// made for, and at least two sequences. Where nothing reads a sequence, rows stand for its tokens.
std::int64_t measured_sequences(const ModelConfig& model, const StackSites& sites) {
  const BranchShape usual;
  const auto alone = [](const LayerBranch& branch) { return branch.kind->reads == BranchKind::Reads::position; };
  const std::int64_t all = usual.batch * usual.seeds;
  const std::int64_t most = std::ranges::all_of(sites.branches, alone) ? all * usual.time : all;
  return std::clamp<std::int64_t>(all * usual.time * usual.width / (model.family->positions(model) * model.width), 2,
                                  most);
}

BranchShape branch_shape(const ModelConfig& model, const StackSites& sites) {
  const std::int64_t sequences = measured_sequences(model, sites);
  // What images share is removed by norms over the batch; one image at a time, pixels share nothing but that.
  const bool images = sites.branches.front().kind->key == "conv";
  const int seeds = images ? static_cast<int>(sequences) : sequences > 2 ? BranchShape().seeds : 1;
  return {.branches = sites.branches,
          .width = model.width,
          .heads = model.heads,
          .hidden = model.hidden,
          .time = model.family->positions(model),
          .activation = model.activation,
          .norm = model.norm,
          .batch = sequences / seeds,
          .seeds = seeds,
          .source_time = model.source_time};
}

// Of the stream where it enters the first stack; schemes may have a say in it.
double input_variance(ModelConfig model, const Scheme& scheme, std::int64_t layers, std::int64_t encoder_layers) {
  model.layers = layers;
  model.encoder_layers = encoder_layers;
  const StackSites first = model.family->sites(model).front();
  const StackConfig stack{.branches = first.branches,
                          .layers = first.layers,
                          .heads = model.heads,
                          .kind = first.kind,
                          .other_layers = first.other_layers};
  return model.family->start(model, rules_of(scheme, stack_numbers(scheme, stack, model.width, 1, 1)));
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
    check_family();
    if (sites.size() == 2) {
      check_predicted_encoder_decoder(scheme, config(1, 1));
      both = measure_encoder_decoder(scheme, branch_shape(model, sites.back()), sites.front().branches);
    } else {
      check_predicted(scheme, config(1, 1));
      single = measure_branches(scheme, branch_shape(model, sites.back()));
    }
  }

  // One stack, or one that reads the memory of another.
  void check_family() const {
    const bool alone = sites.size() == 1 && !reads_memory(sites.front().branches);
    const bool pair = sites.size() == 2 && !reads_memory(sites.front().branches) && reads_memory(sites.back().branches);
    const bool known = model.family->start != nullptr;
    if (known)
      input_variance(model, scheme, model.layers, model.encoder_layers);  // families say what they do not cover
    if (!known || !(alone || pair))
      throw NotPredictedError(
          fmt::format("the theory has no prediction for models of the family {}", model.family->name));
    if (model.family->positions(model) < 1)
      fail("the theory asks for the sizes of a {}'s data, which are not given", model.family->name);
    const WeightForm form = model.weight_form == WeightForm::plain ? scheme.weights.form : model.weight_form;
    if (form != WeightForm::plain)
      throw NotPredictedError("the theory has no rule for weights that are standardised or normed");
  }

  TheoryConfig config(std::int64_t layers, std::int64_t encoder_layers) const {
    const Moments input = {input_variance(model, scheme, layers, encoder_layers), 0};
    return {.branches = sites.back().kinds(),
            .layers = layers,
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
            .closing = &sites.back().closing(),
            .streams = std::move(theory.streams),
            .branches = std::move(theory.branches),
            .profiled = std::move(theory.profiled),
            .output_rms = theory.output_rms,
            .amplification = theory.amplification * static_cast<double>(model.width) / output};
  }

  ModelConfig model;
  std::vector<StackSites> sites = model.family->sites(model);
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
