// What each instruction does to second moments of wires and of their changes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "schemes/theory_propagation.h"

namespace norma {

void TheoryPropagation::step(const TheoryInstruction& instruction, TheoryRecord& record) {
  switch (instruction.op) {
    case TheoryInstruction::Op::combine: combine(instruction, record); break;
    case TheoryInstruction::Op::stop: forward_linear(instruction, {{1.0}}); break;
    case TheoryInstruction::Op::norm: norm(instruction, record); break;
    case TheoryInstruction::Op::tanh: squash(instruction, record); break;
    case TheoryInstruction::Op::branch:
      if (instruction.branch == BranchTheory::Kind::cross) {
        cross(instruction, record);
      } else if (stack_.carries() && instruction.branch == BranchTheory::Kind::attention) {
        carried(instruction, record);
      } else {
        branch(instruction, record);
      }
      break;
  }
}

void TheoryPropagation::forward_linear(const TheoryInstruction& instruction,
                                       const std::array<double, kMostRegisters>& factors) {
  forward_.assign_sum(instruction.to, instruction.terms, factors.data(), registers_);
}

void TheoryPropagation::combine(const TheoryInstruction& instruction, TheoryRecord& record) {
  if (instruction.terms.size() > kMostRegisters) fail("scheme '{}': a sum is too long", stack_.scheme().name);
  std::array<double, kMostRegisters> factors = {};
  record.coefficients = static_cast<std::uint32_t>(coefficients_.size());
  for (std::size_t i = 0; i < instruction.terms.size(); ++i) {
    factors[i] = value_of(instruction.terms[i].coefficient, stack_.place());
    coefficients_.push_back(factors[i]);
  }
  forward_linear(instruction, factors);
}

void TheoryPropagation::norm(const TheoryInstruction& instruction, TheoryRecord& record) {
  const int from = instruction.terms[0].from;
  const double variance = forward_.at(from)[kOwn] + instruction.eps;
  if (!(variance > 0)) fail("scheme '{}': a norm reads a stream that is zero", stack_.scheme().name);
  record.first = 1 / std::sqrt(variance);
  forward_linear(instruction, {{record.first}});
}

void TheoryPropagation::squash(const TheoryInstruction& instruction, TheoryRecord& record) {
  const int from = instruction.terms[0].from;
  record.first = forward_.at(from)[kOwn];
  record.second = correlation(from);
  const SquashResponse response = squash_response(instruction.slope, record.first, record.second);
  const Forward::Cell before = forward_.at(from);
  forward_linear(instruction, {{response.mean_slope}});
  forward_.set(instruction.to, {response.output.own, response.output.shared, before[kChangeOwn] * response.slope.own,
                                before[kChangeShared] * response.slope.shared});
}

double TheoryPropagation::correlation(int wire) const {
  const auto& cell = forward_.at(wire);
  return cell[kOwn] > 0 ? std::clamp(cell[kShared] / cell[kOwn], 0.0, 1.0) : 0;
}

const BranchTable& TheoryPropagation::table(const TheoryInstruction& instruction) const {
  if (instruction.branch == BranchTheory::Kind::ffn) return instruction.normed ? tables_.ffn_normed : tables_.ffn;
  return instruction.normed ? tables_.attention_normed : tables_.attention;
}

const CrossTable& TheoryPropagation::cross_table(const TheoryInstruction& instruction) const {
  return instruction.normed ? cross_->cross_normed : cross_->cross;
}

std::uint32_t TheoryPropagation::scale_of(const TheoryInstruction& instruction) {
  const std::size_t kind = (instruction.branch == BranchTheory::Kind::ffn ? 2u : 0u) + (instruction.normed ? 1u : 0u);
  if (constant_gains_ && fixed_scale_[kind] >= 0) return static_cast<std::uint32_t>(fixed_scale_[kind]);
  scales_.push_back(gains_.scale(instruction.branch, instruction.normed, stack_.place()));
  fixed_scale_[kind] = static_cast<int>(scales_.size()) - 1;
  return static_cast<std::uint32_t>(scales_.size() - 1);
}

void TheoryPropagation::branch(const TheoryInstruction& instruction, TheoryRecord& record) {
  const int from = instruction.terms[0].from, to = instruction.to;
  record.scale = scale_of(instruction);
  const BranchScale& scale = scales_[record.scale];
  const double variance = scale.input * forward_.at(from)[kOwn];
  record.first = variance;
  record.second = correlation(from);
  const BranchResponse response = table(instruction).at(variance, record.second);
  const Moments change = spread(forward_.at(from)[kChangeOwn], forward_.at(from)[kChangeShared], response.change_own,
                                response.change_shared);
  answer(to, response, scale, variance, change, {});
}

void TheoryPropagation::cross(const TheoryInstruction& instruction, TheoryRecord& record) {
  const int from = instruction.terms[0].from, memory = instruction.terms[1].from;
  const double size = forward_.at(from)[kOwn], memory_size = forward_.at(memory)[kOwn];
  if (!(memory_size > 0)) fail("scheme '{}': cross-attention reads a memory that is zero", stack_.scheme().name);
  const CrossScale scale = gains_.cross(instruction.normed, size, memory_size, stack_.place());
  record.scale = static_cast<std::uint32_t>(scales_.size());
  scales_.push_back(scale.query);
  record.first = scale.memory * memory_size;
  record.second = correlation(from);
  record.third = correlation(memory);
  record.fourth = scale.memory;
  const CrossResponse response = cross_table(instruction).at(record.first, record.second, record.third);
  const Moments change = spread(forward_.at(from)[kChangeOwn], forward_.at(from)[kChangeShared],
                                response.query.change_own, response.query.change_shared);
  const Moments moved = spread(forward_.at(memory)[kChangeOwn], forward_.at(memory)[kChangeShared], response.change_own,
                               response.change_shared);
  const double through = scale.memory * scale.query.output * kept_;
  answer(instruction.to, response.query, scale.query, record.first, change,
         {through * moved.own, through * moved.shared});
}

void TheoryPropagation::carried(const TheoryInstruction& instruction, TheoryRecord& record) {
  if (instruction.normed)
    throw NotPredictedError(fmt::format("scheme '{}': the theory has no rule for a norm on carried scores' attention",
                                        stack_.scheme().name));
  if (tables_.attention_split.empty())
    throw NotPredictedError(
        fmt::format("scheme '{}': branches were not measured for scores that are carried", stack_.scheme().name));
  const int from = instruction.terms[0].from;
  const Forward::Cell& in = forward_.at(from);
  const AttentionGains gain = gains_.attention(stack_.place());
  const double sharpness = gain.query * gain.key, size = in[kOwn], score = sharpness * sharpness * size;
  carried_.square += score * size;
  carried_.own += score * in[kChangeOwn];
  carried_.shared += score * in[kChangeShared];
  carried_.noise += size * size * (gain.query * gain.query + gain.key * gain.key) / 2;
  const double variance = std::sqrt(carried_.square), all = carried_.square;
  const double value = gain.value * gain.value, out = gain.out * gain.out;
  record.first = variance;
  record.second = correlation(from);
  record.third = score;
  record.fourth = value * out;
  record.scale = static_cast<std::uint32_t>(scales_.size());
  scales_.push_back({.input = size, .weight = value * size});
  const CrossResponse response = tables_.attention_split.at(variance, record.second, 0);
  const Moments by_scores =
      spread(carried_.own, carried_.shared, response.query.change_own, response.query.change_shared);
  const Moments by_values = spread(in[kChangeOwn], in[kChangeShared], response.change_own, response.change_shared);
  const auto change = [&](double Moments::*part) {
    const BranchResponse& r = response.query;
    return value * out * kept_ * (size / all * (by_scores.*part) + by_values.*part) +
           size * (value * (r.noise_last.*part) + out * (r.noise_first.*part) +
                   value * out * carried_.noise / all * (r.noise_scores.*part));
  };
  const double strength = value * out * size;
  forward_.isolate(instruction.to,
                   {strength * response.query.output.own, strength * response.query.output.shared,
                    change(&Moments::own), change(&Moments::shared)},
                   registers_);
}

void TheoryPropagation::answer(int to, const BranchResponse& response, const BranchScale& scale, double variance,
                               const Moments& change, const Moments& moved) {
  const double through = scale.input * scale.output * kept_, strength = scale.output * variance;
  const auto noise = [&](double Moments::*part) {
    return variance * (scale.noise_last * response.noise_last.*part + scale.noise_first * response.noise_first.*part +
                       scale.noise_scores * response.noise_scores.*part);
  };
  forward_.isolate(to,
                   {strength * response.output.own, strength * response.output.shared,
                    through * change.own + noise(&Moments::own) + moved.own,
                    through * change.shared + noise(&Moments::shared) + moved.shared},
                   registers_);
}

Moments TheoryPropagation::spread(double total, double common, const Moments& own, const Moments& shared) {
  common = std::clamp(common, 0.0, total);
  const double single = total - common;
  return {single * own.own + common * shared.own, single * own.shared + common * shared.shared};
}

}  // namespace norma
