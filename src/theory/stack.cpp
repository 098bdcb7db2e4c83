#include "theory/stack.h"

#include <fmt/format.h>

#include <algorithm>

#include "norma/schemes/trace.h"
#include "theory/gains.h"

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
  for (const BranchKind* kind : surroundings_.branches) {
    const auto options = scheme.branch_options.find(kind->key);
    if (kind->reads == BranchKind::Reads::sequence && options != scheme.branch_options.end() &&
        options->second.contains("scores"))
      carries_ = kind;
  }
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
  const auto branches = static_cast<double>(surroundings_.branches.size());
  for (const auto& [name, per_layer] : {std::pair{"n", branches}, {"N", 1.0}, {"M", 1.0}})
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
  if (carries_ != nullptr) check_carried();
  check_laws();
}

void TheoryStack::check_laws() const {
  for (const BranchKind* kind : surroundings_.branches) {
    if (!has_gain_law(*kind))
      throw NotPredictedError(fmt::format("scheme '{}': the theory has no rule for what init gains do to a {} branch",
                                          scheme_.name, kind->title));
  }
}

void TheoryStack::check_carried() const {
  const auto refuse = [&](const char* what) {
    return NotPredictedError(fmt::format(
        "scheme '{}': the theory has no rule for scores that are carried from layer to layer {}", scheme_.name, what));
  };
  if (scheme_.branch_options.at(carries_->key).size() > 1)
    throw refuse(("beside other options of " + carries_->title).c_str());
  if (surroundings_.reads_memory()) throw refuse("in cross-attention");
  for (const LearnedSpec& learned : scheme_.learned) {
    if (learned.profile != nullptr) throw refuse("beside values that are profiled");
  }
}

void TheoryStack::find_formulas() {
  const std::vector<const BranchKind*>& branches = surroundings_.branches;
  const auto reads = [](const BranchKind* kind) { return kind->reads == BranchKind::Reads::memory; };
  if (scheme_.formula("layer") != nullptr) {
    const Formula* layer = scheme_.formula(surroundings_.reads_memory() ? "cross_layer" : "layer");
    if (layer == nullptr) throw no_formula(**std::ranges::find_if(branches, reads));
    formulas_.emplace_back(*layer, nullptr, surroundings_);
    return;
  }
  for (const BranchKind* kind : branches) {
    const Formula* own = scheme_.formula(kind->key);
    const Formula* formula = own != nullptr ? own : scheme_.formula("sublayer");
    if (formula == nullptr) throw no_formula(*kind);
    formulas_.emplace_back(*formula, kind, surroundings_);
    branches_.push_back(kind);
  }
}

NotPredictedError TheoryStack::no_formula(const BranchKind& kind) const {
  const char* where = kind.reads == BranchKind::Reads::memory ? "decoders with " : "";
  return NotPredictedError(fmt::format("scheme '{}' has no formula for {}{}", scheme_.name, where, kind.title));
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
  *layer_ = static_cast<double>(layer);
  *sublayer_ = static_cast<double>(std::ssize(surroundings_.branches) * (layer - 1) + 1) + static_cast<double>(formula);
}

const TheoryProgram* TheoryStack::final_program() {
  const Formula* formula = scheme_.formula("final");
  if (formula == nullptr) return nullptr;
  if (!final_) final_.emplace(*formula, surroundings_.branches.front(), surroundings_);
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
