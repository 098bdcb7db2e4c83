// What each instruction does to second moments of wires and of their changes.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "theory/propagation.h"

namespace norma {

void TheoryPropagation::step(const TheoryInstruction& instruction) {
  switch (instruction.op) {
    case TheoryInstruction::Op::combine: combine(instruction); break;
    case TheoryInstruction::Op::stop: forward_.run(instruction.forward, instruction.factors); break;
    case TheoryInstruction::Op::norm: norm(instruction); break;
    case TheoryInstruction::Op::tanh:
    case TheoryInstruction::Op::relu: squash(instruction); break;
    case TheoryInstruction::Op::branch:
      if (instruction.branch->reads == BranchKind::Reads::memory) {
        cross(instruction);
      } else if (instruction.branch == stack_.carries()) {
        carried(instruction);
      } else {
        branch(instruction);
      }
      forward_.run(instruction.forward, instruction.factors);
      break;
  }
}

void TheoryPropagation::combine(const TheoryInstruction& instruction) {
  if (instruction.varying.empty()) return forward_.run(instruction.forward, instruction.factors);
  MomentFactors factors = instruction.factors;
  for (const std::uint8_t term : instruction.varying) {
    factors[term] = value_of(instruction.terms[term].coefficient, stack_.place());
    leave(factors[term]);
  }
  if (instruction.paired) pair_factors(factors, instruction.terms.size());
  forward_.run(instruction.forward, factors);
}

void TheoryPropagation::norm(const TheoryInstruction& instruction) {
  const Forward::Cell& in = forward_.at(instruction.terms[0].from);
  const double variance = in[kOwn] - (instruction.removes_shared ? in[kShared] : 0) + instruction.eps;
  if (!(variance > 0)) fail("scheme '{}': a norm reads a stream that is zero", stack_.scheme().name);
  const double factor = 1 / std::sqrt(variance);
  leave(factor);
  forward_.run(instruction.forward, single_factor(factor));
  if (!instruction.removes_shared) return;
  const Forward::Cell out = forward_.at(instruction.to);
  forward_.set(instruction.to, {out[kOwn] - out[kShared], 0, out[kChangeOwn] - out[kChangeShared], 0});
}

void TheoryPropagation::squash(const TheoryInstruction& instruction) {
  const int from = instruction.terms[0].from;
  const Forward::Cell before = forward_.at(from);
  const SquashResponse response = instruction.op == TheoryInstruction::Op::relu
                                      ? relu_response(before[kOwn], correlation(from))
                                      : squash_response(instruction.slope, before[kOwn], correlation(from));
  leave(response.mean_slope, response.slope.own, response.slope.shared);
  forward_.run(instruction.forward, single_factor(response.mean_slope));
  forward_.set(instruction.to, {response.output.own, response.output.shared, before[kChangeOwn] * response.slope.own,
                                before[kChangeShared] * response.slope.shared});
}

double TheoryPropagation::correlation(int wire) const {
  const auto& cell = forward_.at(wire);
  return cell[kOwn] > 0 ? std::clamp(cell[kShared] / cell[kOwn], 0.0, 1.0) : 0;
}

const BranchTable& TheoryPropagation::table(const TheoryInstruction& instruction) const {
  return *branches_[2 * instruction.branch->index() + (instruction.normed ? 1 : 0)].table;
}

const CrossTable& TheoryPropagation::cross_table(const TheoryInstruction& instruction) const {
  return instruction.normed ? cross_->cross_normed : cross_->cross;
}

const BranchScale& TheoryPropagation::scale_of(const TheoryInstruction& instruction) {
  std::optional<BranchScale>& scale = branches_[2 * instruction.branch->index() + (instruction.normed ? 1 : 0)].scale;
  if (!constant_gains_ || !scale) scale = gains_.scale(*instruction.branch, instruction.normed, stack_.place());
  return *scale;
}

void TheoryPropagation::branch(const TheoryInstruction& instruction) {
  const int from = instruction.terms[0].from;
  BranchScale scale = scale_of(instruction);
  const Forward::Cell& in = forward_.at(from);
  // Asked at the middle of the table, and not between its points, where what falls as the square is not a line.
  if (gains_.forgets_size(*instruction.branch) && in[kOwn] > 0) scale.input = 1 / in[kOwn];
  const double variance = scale.input * in[kOwn];
  const BranchTable::Spot spot = table(instruction).spot(variance, correlation(from));
  leave(spot.corner, spot.scale, spot.correlation, scale.weight * variance, scale.input * scale.output);
  const BranchResponse response = table(instruction).forward(spot);
  const Moments change = spread(in[kChangeOwn], in[kChangeShared], response.change_own, response.change_shared);
  answer(instruction.to, response, scale, variance, change, {});
}

void TheoryPropagation::cross(const TheoryInstruction& instruction) {
  const int from = instruction.terms[0].from, memory = instruction.terms[1].from;
  const Forward::Cell &in = forward_.at(from), &read = forward_.at(memory);
  if (!(read[kOwn] > 0)) fail("scheme '{}': cross-attention reads a memory that is zero", stack_.scheme().name);
  const CrossScale scale = gains_.cross(instruction.normed, in[kOwn], read[kOwn], stack_.place());
  const BranchScale& query = scale.query;
  const double variance = scale.memory * read[kOwn], through = scale.memory * query.output;
  const CrossTable::Spot spot = cross_table(instruction).spot(variance, correlation(from), correlation(memory));
  leave(spot.corner, spot.scale, spot.correlation, spot.memory_correlation, query.weight * variance,
        query.input * query.output, through);
  const CrossResponse response = cross_table(instruction).forward(spot);
  const Moments change =
      spread(in[kChangeOwn], in[kChangeShared], response.query.change_own, response.query.change_shared);
  const Moments moved = spread(read[kChangeOwn], read[kChangeShared], response.change_own, response.change_shared);
  answer(instruction.to, response.query, query, variance, change,
         {through * kept_ * moved.own, through * kept_ * moved.shared});
}

void TheoryPropagation::carried(const TheoryInstruction& instruction) {
  if (instruction.normed)
    throw NotPredictedError(fmt::format("scheme '{}': the theory has no rule for a norm on carried scores' attention",
                                        stack_.scheme().name));
  if (tables_.apart.empty())
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
  const CrossTable::Spot spot = tables_.apart.spot(variance, correlation(from), 0);
  leave(spot.corner, spot.scale, spot.correlation, value * size, value * out * size / all, score, value * out);
  const CrossResponse response = tables_.apart.forward(spot);
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
  forward_.set(instruction.to, {strength * response.query.output.own, strength * response.query.output.shared,
                                change(&Moments::own), change(&Moments::shared)});
}

void TheoryPropagation::answer(int to, const BranchResponse& response, const BranchScale& scale, double variance,
                               const Moments& change, const Moments& moved) {
  const double through = scale.input * scale.output * kept_, strength = scale.output * variance;
  const auto noise = [&](double Moments::*part) {
    return variance * (scale.noise_last * response.noise_last.*part + scale.noise_first * response.noise_first.*part +
                       scale.noise_scores * response.noise_scores.*part);
  };
  forward_.set(to, {strength * response.output.own, strength * response.output.shared,
                    through * change.own + noise(&Moments::own) + moved.own,
                    through * change.shared + noise(&Moments::shared) + moved.shared});
}

}  // namespace norma
