// What each instruction hands back of second moments of gradients.
#include <algorithm>
#include <cmath>

#include "theory/propagation.h"

namespace norma {

void TheoryPropagation::retrace(const TheoryProgram& program) {
  for (std::size_t i = program.instructions.size(); i-- > 0;) {
    const TheoryInstruction& instruction = program.instructions[i];
    switch (instruction.op) {
      case TheoryInstruction::Op::combine: backward_combine(instruction); break;
      case TheoryInstruction::Op::norm: backward_norm(instruction); break;
      case TheoryInstruction::Op::stop: backward_stop(instruction); break;
      case TheoryInstruction::Op::tanh:
      case TheoryInstruction::Op::relu: backward_squash(instruction); break;
      case TheoryInstruction::Op::branch:
        if (instruction.branch->reads == BranchKind::Reads::memory) {
          backward_cross(instruction);
        } else if (instruction.branch == stack_.carries()) {
          backward_carried(instruction);
        } else {
          backward_branch(instruction);
        }
        break;
    }
  }
}

void TheoryPropagation::backward_combine(const TheoryInstruction& instruction) {
  if (instruction.varying.empty()) {
    if (instruction.idle_without_gradient && gradient_.at(instruction.to) == Backward::Cell{}) return;
    return gradient_.run(instruction.backward, instruction.factors);
  }
  MomentFactors factors = instruction.factors;
  for (std::size_t i = instruction.varying.size(); i-- > 0;) factors[instruction.varying[i]] = take_back<1>()[0];
  gradient_.run(instruction.backward, factors);
}

void TheoryPropagation::backward_stop(const TheoryInstruction& instruction) {
  gradient_.run(instruction.backward, single_factor(0));
}

void TheoryPropagation::backward_norm(const TheoryInstruction& instruction) {
  const double factor = take_back<1>()[0], shared = gradient_.at(instruction.to)[kShared];
  gradient_.run(instruction.backward, single_factor(factor));
  // What all tokens share of a gradient would move the mean alone.
  if (instruction.removes_shared) hand_back(instruction.terms[0].from, -factor * factor, {shared, shared});
}

void TheoryPropagation::backward_squash(const TheoryInstruction& instruction) {
  const auto [mean_slope, slope_own, slope_shared] = take_back<3>();
  const int from = instruction.terms[0].from;
  const Backward::Cell arriving = gradient_.at(instruction.to);
  gradient_.run(instruction.backward, single_factor(mean_slope));
  const double mean = mean_slope * mean_slope;
  hand_back(from, 1, {(slope_own - mean) * arriving[kOwn], (slope_shared - mean) * arriving[kShared]});
}

void TheoryPropagation::backward_branch(const TheoryInstruction& instruction) {
  const auto [corner, scale, correlation, weight_scale, through] = take_back<5>();
  const BranchResponse response = table(instruction).backward({static_cast<int>(corner), scale, correlation});
  const auto [total, common] = arrive(instruction, response, weight_scale);
  hand_back(instruction.terms[0].from, through * kept_,
            spread(total, common, response.gradient_own, response.gradient_shared));
}

void TheoryPropagation::backward_cross(const TheoryInstruction& instruction) {
  const auto [corner, scale, correlation, memory_correlation, weight_scale, through, memory_through] = take_back<7>();
  const CrossResponse response =
      cross_table(instruction).backward({static_cast<int>(corner), scale, correlation, memory_correlation});
  const auto [total, common] = arrive(instruction, response.query, weight_scale);
  hand_back(instruction.terms[0].from, through * kept_,
            spread(total, common, response.query.gradient_own, response.query.gradient_shared));
  hand_back(instruction.terms[1].from, memory_through * kept_,
            spread(total, common, response.gradient_own, response.gradient_shared));
}

void TheoryPropagation::backward_carried(const TheoryInstruction& instruction) {
  const auto [corner, scale, correlation, weight_scale, part, score, through] = take_back<7>();
  const CrossResponse response = tables_.apart.backward({static_cast<int>(corner), scale, correlation, 0});
  const auto [total, common] = arrive(instruction, response.query, weight_scale);
  const Moments scores = spread(total, common, response.query.gradient_own, response.query.gradient_shared);
  carried_.gradient.own += part * scores.own;
  carried_.gradient.shared += part * scores.shared;
  const int from = instruction.terms[0].from;
  hand_back(from, score * kept_, carried_.gradient);
  hand_back(from, through * kept_, spread(total, common, response.gradient_own, response.gradient_shared));
}

Moments TheoryPropagation::arrive(const TheoryInstruction& instruction, const BranchResponse& response,
                                  double weight_scale) {
  const auto [total, common] = gradient_.at(instruction.to);
  const Moments weight = spread(total, common, {response.weight_own, 0}, {response.weight_shared, 0});
  theory_.branches[--branches_left_].weight_gradient = std::sqrt(std::max(0.0, weight_scale * weight.own));
  gradient_.run(instruction.backward, instruction.factors);
  return {total, common};
}

void TheoryPropagation::hand_back(int from, double through, const Moments& arriving) {
  const Backward::Cell& there = gradient_.at(from);
  gradient_.set(from, {there[kOwn] + through * arriving.own, there[kShared] + through * arriving.shared});
}

double TheoryPropagation::watched_gradient() const {
  double sum = 0;
  for (std::size_t i = 0; i < watched_.size(); ++i) {
    sum += gradient_.at(watched_[i])[kOwn];
    for (std::size_t j = 0; j < i; ++j) sum += 2 * gradient_.at(watched_[i], watched_[j])[kOwn];
  }
  return sum;
}

}  // namespace norma
