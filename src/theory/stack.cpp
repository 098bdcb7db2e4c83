#include "theory/stack.h"

#include <fmt/format.h>

#include "norma/schemes/trace.h"

namespace norma {

TheoryStack::TheoryStack(const Scheme& scheme, const TheoryConfig& config, StackKind stack, bool measured_normed)
    : scheme_(scheme),
      config_(config),
      surroundings_(theory_surroundings(scheme, config_, stack, measured_normed)),
      place_({{"l", 1.0}, {"k", 1.0}}),
      layer_(&place_["l"]),
      sublayer_(&place_["k"]) {
  const std::int64_t encoder_layers = config.encoder_layers == 0 ? config.layers : config.encoder_layers;
  surroundings_.encoder_depth = static_cast<double>(encoder_layers);
  surroundings_.decoder_depth = static_cast<double>(config.layers);
  if (stack == StackKind::encoder) enter_encoder(encoder_layers);
  const auto options = scheme.branch_options.find("attention");
  carries_ = options != scheme.branch_options.end() && options->second.contains("scores");
  check();
  surroundings_.streams = theory_streams(surroundings_);
  find_formulas();
  for (const TheoryStream& stream : surroundings_.streams) {
    if (stream.grows) place_[count_name(stream.name)] = stream.count;
  }
  for (const LearnedSpec& learned : scheme_.learned) {
    if (learned.profile != nullptr) profiled_.push_back(&learned);
  }
  start_profiled();
}

void TheoryStack::enter_encoder(std::int64_t layers) {
  config_.layers = layers;
  config_.input = config_.source;
  for (const auto& [name, per_layer] : {std::pair{"n", 2.0}, {"N", 1.0}, {"M", 1.0}})
    surroundings_.numbers[name] = per_layer * static_cast<double>(layers);
}

void TheoryStack::check() const {
  if (config_.layers < 1) fail("a stack needs at least one layer, but {} were asked for", config_.layers);
  if (scheme_.weights.unit)
    throw NotPredictedError(
        fmt::format("scheme '{}': the theory has no rule for weights that are kept at unit length", scheme_.name));
  for (const LearnedSpec& learned : scheme_.learned) {
    if (learned.profile == nullptr) continue;
    if (scheme_.formula("layer") != nullptr || learned.per != LearnedSpec::Per::sublayer)
      throw NotPredictedError(
          fmt::format("scheme '{}': '{}' is measured on data, but not per sublayer", scheme_.name, learned.name));
  }
  if (carries_) check_carried();
}

void TheoryStack::check_carried() const {
  const auto refuse = [&](const char* what) {
    return NotPredictedError(fmt::format(
        "scheme '{}': the theory has no rule for scores that are carried from layer to layer {}", scheme_.name, what));
  };
  if (scheme_.branch_options.at("attention").size() > 1) throw refuse("beside other options of attention");
  if (surroundings_.stack == StackKind::decoder) throw refuse("in cross-attention");
  for (const LearnedSpec& learned : scheme_.learned) {
    if (learned.profile != nullptr) throw refuse("beside values that are profiled");
  }
}

void TheoryStack::find_formulas() {
  const bool decoder = surroundings_.stack == StackKind::decoder;
  if (scheme_.formula("layer") != nullptr) {
    const Formula* layer = scheme_.formula(decoder ? "cross_layer" : "layer");
    if (layer == nullptr) throw no_cross_formula();
    formulas_.emplace_back(*layer, "", surroundings_);
    return;
  }
  for (const char* key : {"attention", "cross", "ffn"}) {
    if (key == std::string_view("cross") && !decoder) continue;
    const Formula* own = scheme_.formula(key);
    const Formula* formula = own != nullptr ? own : scheme_.formula("sublayer");
    if (formula == nullptr) throw no_cross_formula();
    formulas_.emplace_back(*formula, key, surroundings_);
    branches_.emplace_back(key);
  }
}

NotPredictedError TheoryStack::no_cross_formula() const {
  return NotPredictedError(fmt::format("scheme '{}' has no formula for decoders with cross-attention", scheme_.name));
}

std::vector<double> TheoryStack::starts() const {
  std::vector<double> factors;
  for (const TheoryStream& stream : surroundings_.streams) {
    for (int r = 0; r < stream.registers; ++r)
      factors.push_back(stream.grows ? stream.factor * stream.count : stream.factor);
  }
  return factors;
}

std::vector<int> TheoryStack::watched() const {
  for (const TheoryStream& stream : surroundings_.streams) {
    if (!stream.copies) continue;
    std::vector<int> registers;
    for (int r = 0; r < stream.registers; ++r) registers.push_back(stream.first + r);
    return registers;
  }
  return {0};
}

void TheoryStack::enter(std::int64_t layer, std::size_t formula) {
  const Place place{.stack = surroundings_.stack};
  *layer_ = static_cast<double>(layer);
  *sublayer_ = static_cast<double>(place.sublayers_per_layer() * (layer - 1) + 1) + static_cast<double>(formula);
}

const TheoryProgram* TheoryStack::final_program() {
  const Formula* formula = scheme_.formula("final");
  if (formula == nullptr) return nullptr;
  if (!final_) final_.emplace(*formula, "attention", surroundings_);
  return &final_->at(place_);
}

void TheoryStack::count_copies(const TheoryProgram& program) {
  if (program.counts.empty()) return;
  std::vector<double> counts;
  for (const auto& [name, count] : program.counts) counts.push_back(value_of(count, place_));
  for (std::size_t i = 0; i < counts.size(); ++i) place_[program.counts[i].first] = counts[i];
}

std::vector<ProfiledValue>& TheoryStack::profiled(std::size_t formula) {
  profiles_.resize(formulas_.size());
  std::vector<ProfiledValue>& found = profiles_[formula];
  if (!found.empty()) return found;
  for (const LearnedSpec* learned : profiled_) {
    ProfiledValue value{.learned = learned,
                        .profile = compile_profile(*learned, branches_[formula], surroundings_, place_),
                        .value = &place_[learned->name]};
    for (const auto& [name, wire] : value.profile.variances) value.variances.push_back(&place_[name]);
    found.push_back(std::move(value));
  }
  return found;
}

void TheoryStack::start_profiled() {
  for (const LearnedSpec* learned : profiled_)
    place_[learned->name] = value_of(fold(*learned->init, surroundings_, print_expression(*learned->init)), place_);
}

void TheoryStack::compile_all() {
  for (std::int64_t layer = 1; layer <= config_.layers; ++layer) {
    for (std::size_t f = 0; f < formulas_.size(); ++f) {
      enter(layer, f);
      if (profiles()) profiled(f);
      const TheoryProgram& at = program(f);
      for (const TheoryInstruction& instruction : at.instructions) {
        for (const TheoryInstruction::Term& term : instruction.terms) value_of(term.coefficient, place_);
      }
      count_copies(at);
    }
  }
  final_program();
}

}  // namespace norma
