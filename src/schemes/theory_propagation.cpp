#include "schemes/theory_propagation.h"

#include <algorithm>
#include <cmath>

namespace norma {
namespace {

bool measured_normed(const BranchTables& tables, const EncoderDecoderTables* cross) {
  return !tables.attention_normed.empty() && !tables.ffn_normed.empty() &&
         (cross == nullptr || !cross->cross_normed.empty());
}

}  // namespace

TheoryPropagation::TheoryPropagation(const Scheme& scheme, const BranchTables& tables, const TheoryConfig& config,
                                     StackKind stack, const EncoderDecoderTables* cross)
    : tables_(tables),
      cross_(cross),
      stack_(scheme, config, stack, measured_normed(tables, cross)),
      gains_(stack_.surroundings()),
      watched_(stack_.watched()) {
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
  registers_ = std::max(registers_, stack_.surroundings().stream_registers() + (cross_ != nullptr ? 1 : 0));
}

void TheoryPropagation::forward() {
  const auto steps = static_cast<std::size_t>(stack_.config().layers) * stack_.formulas();
  theory_.streams.reserve(steps);
  theory_.branches.reserve(3 * static_cast<std::size_t>(stack_.config().layers));
  records_.reserve(4 * steps);
  coefficients_.reserve(2 * steps);
  begins_.reserve(steps);
  for (std::int64_t layer = 1; layer <= stack_.config().layers; ++layer) {
    for (std::size_t f = 0; f < stack_.formulas(); ++f) {
      stack_.enter(layer, f);
      begins_.push_back(records_.size());
      if (stack_.profiled().empty()) {
        execute(stack_.program(f), layer);
      } else {
        execute_profiled(f, layer);
      }
      theory_.streams.push_back(
          {.layer = layer, .rms = std::sqrt(forward_.at(0)[kOwn]), .correlation = correlation(0), .gradient_rms = 0});
    }
  }
  closing_ = records_.size();
  stack_.start_profiled();  // those of the final formula are its own
  if (const TheoryProgram* program = stack_.final_program()) execute(*program, stack_.config().layers);
  theory_.output_rms = std::sqrt(forward_.at(0)[kOwn]);
  theory_.amplification = forward_.at(0)[kChangeOwn];
}

void TheoryPropagation::backward(const Moments& gradient) {
  gradient_.set(0, {gradient.own, gradient.shared});
  retrace(closing_, records_.size());
  for (std::size_t i = begins_.size(); i-- > 0;) {
    retrace(begins_[i], i + 1 < begins_.size() ? begins_[i + 1] : closing_);
    theory_.streams[i].gradient_rms = std::sqrt(std::max(0.0, watched_gradient()));
  }
}

void TheoryPropagation::execute_profiled(std::size_t formula, std::int64_t layer) {
  std::vector<double> next;
  const std::size_t scales = scales_.size(), coefficients = coefficients_.size();
  for (const LearnedSpec* learned : stack_.profiled()) {
    const TheoryProfile& measured = stack_.profile(*learned, formula);
    theory_.profiled.push_back({.name = learned->name, .layer = layer, .value = stack_.place().at(learned->name)});
    registers_ = std::max(registers_, measured.program.registers);
    for (const TheoryInstruction& instruction : measured.program.instructions) {
      TheoryRecord unused{.instruction = &instruction};
      step(instruction, unused);
    }
    for (const auto& [name, wire] : measured.variances) stack_.set(name, forward_.at(wire)[kOwn]);
    next.push_back(value_of(measured.next, stack_.place()));
  }
  coefficients_.resize(coefficients);
  if (!constant_gains_) scales_.resize(scales);
  execute(stack_.program(formula), layer);
  for (std::size_t i = 0; i < next.size(); ++i) stack_.set(stack_.profiled()[i]->name, next[i]);
}

void TheoryPropagation::execute(const TheoryProgram& program, std::int64_t layer) {
  registers_ = std::max(registers_, program.registers);
  centres_ = centres_ || program.centres;
  kept_ = centres_ ? 1 - 1 / static_cast<double>(stack_.config().width) : 1;
  for (const TheoryInstruction& instruction : program.instructions) {
    TheoryRecord record{.instruction = &instruction};
    step(instruction, record);
    if (instruction.op == TheoryInstruction::Op::branch) {
      record.branch = static_cast<int>(theory_.branches.size());
      theory_.branches.push_back({.layer = layer,
                                  .kind = instruction.branch,
                                  .rms = std::sqrt(forward_.at(instruction.to)[kOwn]),
                                  .weight_gradient = 0});
    }
    records_.push_back(record);
  }
  stack_.count_copies(program);
}

Moments TheoryPropagation::memory_gradient() const {
  const Backward::Cell& cell = gradient_.at(stack_.surroundings().memory());
  return {cell[kOwn], cell[kShared]};
}

}  // namespace norma
