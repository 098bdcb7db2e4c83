// What each instruction hands back of second moments of gradients.
#include <algorithm>
#include <cmath>

#include "schemes/theory_propagation.h"

namespace norma {

void TheoryPropagation::retrace(std::size_t begin, std::size_t end) {
  for (std::size_t i = end; i-- > begin;) {
    const TheoryRecord& record = records_[i];
    const TheoryInstruction& instruction = *record.instruction;
    const int from = instruction.terms.empty() ? -1 : instruction.terms[0].from, to = instruction.to;
    switch (instruction.op) {
      case TheoryInstruction::Op::combine: backward_linear(instruction, &coefficients_[record.coefficients]); break;
      case TheoryInstruction::Op::norm: backward_linear(instruction, &record.first); break;
      case TheoryInstruction::Op::stop: {
        const double nothing = 0;
        backward_linear(instruction, &nothing);
        break;
      }
      case TheoryInstruction::Op::tanh: backward_squash(instruction, record); break;
      case TheoryInstruction::Op::branch:
        if (instruction.branch == BranchTheory::Kind::cross) {
          backward_cross(instruction, record);
        } else if (stack_.carries() && instruction.branch == BranchTheory::Kind::attention) {
          backward_carried(instruction, record);
        } else {
          const BranchResponse response = table(instruction).at(record.first, record.second);
          backward_branch(response, record, from, to);
        }
        break;
    }
  }
}

void TheoryPropagation::backward_linear(const TheoryInstruction& instruction, const double* factors) {
  gradient_.pull_back(instruction.to, instruction.terms, factors, registers_);
}

void TheoryPropagation::backward_squash(const TheoryInstruction& instruction, const TheoryRecord& record) {
  const SquashResponse response = squash_response(instruction.slope, record.first, record.second);
  const int from = instruction.terms[0].from;
  const Backward::Cell arriving = gradient_.at(instruction.to);
  backward_linear(instruction, &response.mean_slope);
  const double mean = response.mean_slope * response.mean_slope;
  const Backward::Cell& passed = gradient_.at(from);
  gradient_.set(from, {passed[kOwn] + (response.slope.own - mean) * arriving[kOwn],
                       passed[kShared] + (response.slope.shared - mean) * arriving[kShared]});
}

void TheoryPropagation::backward_branch(const BranchResponse& response, const TheoryRecord& record, int from, int to) {
  const BranchScale& scale = scales_[record.scale];
  const auto [total, common] = gradient_.at(to);
  const Moments weight = spread(total, common, {response.weight_own, 0}, {response.weight_shared, 0});
  theory_.branches[static_cast<std::size_t>(record.branch)].weight_gradient =
      std::sqrt(std::max(0.0, scale.weight * record.first * weight.own));
  gradient_.isolate(to, {}, registers_);
  hand_back(from, scale.input * scale.output * kept_,
            spread(total, common, response.gradient_own, response.gradient_shared));
}

void TheoryPropagation::backward_cross(const TheoryInstruction& instruction, const TheoryRecord& record) {
  const CrossResponse response = cross_table(instruction).at(record.first, record.second, record.third);
  const auto [total, common] = gradient_.at(instruction.to);
  backward_branch(response.query, record, instruction.terms[0].from, instruction.to);
  hand_back(instruction.terms[1].from, record.fourth * scales_[record.scale].output * kept_,
            spread(total, common, response.gradient_own, response.gradient_shared));
}

void TheoryPropagation::backward_carried(const TheoryInstruction& instruction, const TheoryRecord& record) {
  const BranchScale& scale = scales_[record.scale];
  const CrossResponse response = tables_.attention_split.at(record.first, record.second, 0);
  const auto [total, common] = gradient_.at(instruction.to);
  const Moments weight = spread(total, common, {response.query.weight_own, 0}, {response.query.weight_shared, 0});
  theory_.branches[static_cast<std::size_t>(record.branch)].weight_gradient =
      std::sqrt(std::max(0.0, scale.weight * weight.own));
  const Moments scores = spread(total, common, response.query.gradient_own, response.query.gradient_shared);
  const double part = record.fourth * scale.input / (record.first * record.first);
  carried_.gradient.own += part * scores.own;
  carried_.gradient.shared += part * scores.shared;
  gradient_.isolate(instruction.to, {}, registers_);
  const int from = instruction.terms[0].from;
  hand_back(from, record.third * kept_, carried_.gradient);
  hand_back(from, record.fourth * kept_, spread(total, common, response.gradient_own, response.gradient_shared));
}

void TheoryPropagation::hand_back(int from, double through, const Moments& arriving) {
  const Backward::Cell& there = gradient_.at(from);
  gradient_.set(from, {there[kOwn] + through * arriving.own, there[kShared] + through * arriving.shared});
}

double TheoryPropagation::watched_gradient() const {
  double sum = 0;
  for (const int i : watched_) {
    for (const int j : watched_) sum += gradient_.at(i, j)[kOwn];
  }
  return sum;
}

}  // namespace norma
