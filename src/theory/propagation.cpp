#include "theory/propagation.h"

#include <algorithm>
#include <cmath>

namespace norma {
namespace {

bool measured_normed(const BranchTables& tables, const EncoderDecoderTables* cross) {
  return !tables.normed.empty() && (cross == nullptr || !cross->cross_normed.empty());
}

}  // namespace

TheoryPropagation::TheoryPropagation(const Scheme& scheme, const BranchTables& tables, const TheoryConfig& config,
                                     StackKind stack, const EncoderDecoderTables* cross)
    : tables_(tables),
      cross_(cross),
      stack_(scheme, config, stack, measured_normed(tables, cross)),
      gains_(stack_.surroundings()),
      watched_(stack_.watched()) {
  for (const BranchKind& kind : branch_kinds()) {
    for (const BranchTables::ByKind* measured : {&tables.plain, &tables.normed}) {
      const auto found = measured->find(kind.key);
      branches_.push_back({.table = found == measured->end() ? nullptr : &found->second});
    }
  }
  gains_.read();
  constant_gains_ = gains_.constant();
  const std::vector<double> starts = stack_.starts();
  const Moments& input = stack_.config().input;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    for (std::size_t j = 0; j < starts.size(); ++j) {
      const double both = starts[i] * starts[j];
      forward_.set(static_cast<int>(i), static_cast<int>(j), {both * input.own, both * input.shared, 0, 0});
    }
  }
}

void TheoryPropagation::forward() {
  const auto steps = static_cast<std::size_t>(stack_.config().layers) * stack_.formulas();
  theory_.streams.reserve(steps);
  theory_.branches.reserve(3 * static_cast<std::size_t>(stack_.config().layers));
  if (stack_.profiles()) theory_.profiled.reserve(steps);
  ran_.reserve(steps + 1);
  make_room(16 * steps);
  for (std::int64_t layer = 1; layer <= stack_.config().layers; ++layer) {
    for (std::size_t f = 0; f < stack_.formulas(); ++f) {
      stack_.enter(layer, f);
      if (stack_.profiles()) {
        execute_profiled(f, layer);
      } else {
        execute(stack_.program(f), layer);
      }
      theory_.streams.push_back(
          {.layer = layer, .rms = std::sqrt(forward_.at(0)[kOwn]), .correlation = correlation(0), .gradient_rms = 0});
    }
  }
  stack_.start_profiled();  // those of the final formula are its own
  if (const TheoryProgram* program = stack_.final_program()) execute(*program, stack_.config().layers);
  theory_.output_rms = std::sqrt(forward_.at(0)[kOwn]);
  theory_.amplification = forward_.at(0)[kChangeOwn];
}

void TheoryPropagation::backward(const Moments& gradient) {
  gradient_.set(0, {gradient.own, gradient.shared});
  branches_left_ = theory_.branches.size();
  const std::size_t steps = theory_.streams.size();
  if (ran_.size() > steps) retrace(*ran_.back());
  for (std::size_t i = steps; i-- > 0;) {
    retrace(*ran_[i]);
    theory_.streams[i].gradient_rms = std::sqrt(std::max(0.0, watched_gradient()));
  }
}

void TheoryPropagation::execute_profiled(std::size_t formula, std::int64_t layer) {
  std::vector<ProfiledValue>& values = stack_.profiled(formula);
  next_.clear();
  const std::size_t left = left_;
  for (const ProfiledValue& value : values) {
    theory_.profiled.push_back({.name = value.learned->name, .layer = layer, .value = *value.value});
    for (const TheoryInstruction& instruction : value.profile.program.instructions) step(instruction);
    for (std::size_t i = 0; i < value.variances.size(); ++i)
      *value.variances[i] = forward_.at(value.profile.variances[i].second)[kOwn];
    next_.push_back(value_of(value.profile.next, stack_.place()));
  }
  left_ = left;
  execute(stack_.program(formula), layer);
  for (std::size_t i = 0; i < values.size(); ++i) *values[i].value = next_[i];
}

void TheoryPropagation::execute(const TheoryProgram& program, std::int64_t layer) {
  ran_.push_back(&program);
  if (program.centres) kept_ = 1 - 1 / static_cast<double>(stack_.config().width);
  for (const TheoryInstruction& instruction : program.instructions) {
    step(instruction);
    if (instruction.op == TheoryInstruction::Op::branch) {
      theory_.branches.push_back({.layer = layer,
                                  .kind = instruction.branch,
                                  .rms = std::sqrt(forward_.at(instruction.to)[kOwn]),
                                  .weight_gradient = 0});
    }
  }
  stack_.count_copies(program);
}

void TheoryPropagation::make_room(std::size_t numbers) {
  std::unique_ptr<double[]> wider = std::make_unique_for_overwrite<double[]>(numbers);
  std::copy_n(tape_.get(), left_, wider.get());
  tape_ = std::move(wider);
  room_ = numbers;
}

Moments TheoryPropagation::memory_gradient() const {
  const Backward::Cell& cell = gradient_.at(stack_.surroundings().memory());
  return {cell[kOwn], cell[kShared]};
}

}  // namespace norma
