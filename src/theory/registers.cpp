#include "theory/registers.h"

#include <fmt/format.h>

#include <algorithm>

#include "theory/plan.h"

namespace norma {

TheoryRegisters::TheoryRegisters(const std::string& scheme, TheoryValues values)
    : scheme_(scheme), values_(std::move(values)) {
  drop_unread();
  check_repeated();
  assign();
  move_ends();
  if (free_at_.size() > kMostRegisters)
    throw not_predicted(fmt::format("a formula that keeps {} wires at once", free_at_.size()));
  program_.centres = std::any_of(kept_.begin(), kept_.end(), [](const TheoryInstruction& i) {
    return i.op == TheoryInstruction::Op::norm && i.centres;
  });
  collect_factors();
  plan_moments(kept_, values_.alone);
  program_.instructions = std::move(kept_);
}

void TheoryRegisters::drop_unread() {
  last_use_.assign(static_cast<std::size_t>(values_.count), -1);
  const int end = static_cast<int>(values_.instructions.size());
  for (const int value : values_.ends) last_use_[static_cast<std::size_t>(value)] = end;
  for (const int value : values_.kept) last_use_[static_cast<std::size_t>(value)] = end;
  for (int i = end; i-- > 0;) {
    TheoryInstruction& instruction = values_.instructions[static_cast<std::size_t>(i)];
    if (last_use_[static_cast<std::size_t>(instruction.to)] < 0) continue;
    for (const TheoryInstruction::Term& term : instruction.terms) {
      int& use = last_use_[static_cast<std::size_t>(term.from)];
      use = std::max(use, i);
    }
    kept_.push_back(std::move(instruction));
    order_.push_back(i);
  }
  std::reverse(kept_.begin(), kept_.end());
  std::reverse(order_.begin(), order_.end());
}

void TheoryRegisters::check_repeated() const {
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (kept_[i].op == TheoryInstruction::Op::branch && kept_[j].op == TheoryInstruction::Op::branch &&
          kept_[i].branch == kept_[j].branch)
        throw not_predicted("a branch that is called twice with the same weights");
    }
  }
}

// A stream's last value takes the stream's own register where it can.
void TheoryRegisters::assign() {
  register_of_.assign(static_cast<std::size_t>(values_.count), -1);
  for (std::size_t s = 0; s < values_.ends.size(); ++s) {
    register_of_[s] = static_cast<int>(s);
    free_at_.push_back(last_use_[s]);
  }
  if (values_.memory) {
    register_of_[values_.ends.size()] = static_cast<int>(values_.ends.size());
    free_at_.push_back(static_cast<int>(values_.instructions.size()) + 1);
  }
  held_ = free_at_.size();
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const std::size_t value = static_cast<std::size_t>(kept_[i].to);
    const int target = free_register(kept_[i].to, order_[i]);
    if (target == static_cast<int>(free_at_.size())) free_at_.push_back(0);
    register_of_[value] = target;
    free_at_[static_cast<std::size_t>(target)] = last_use_[value];
    for (TheoryInstruction::Term& term : kept_[i].terms) term.from = of(term.from);
    kept_[i].to = target;
  }
}

int TheoryRegisters::free_register(int value, int at) const {
  for (std::size_t s = values_.ends.size(); s-- > 0;) {
    if (values_.ends[s] == value && free_at_[s] <= at) return static_cast<int>(s);
  }
  for (std::size_t r = held_; r < free_at_.size(); ++r) {
    if (free_at_[r] <= at) return static_cast<int>(r);
  }
  return static_cast<int>(free_at_.size());
}

void TheoryRegisters::move_ends() {
  for (std::size_t s = 0; s < values_.ends.size(); ++s) {
    const int held = of(values_.ends[s]);
    if (held == static_cast<int>(s)) continue;
    if (held < static_cast<int>(s)) throw not_predicted("a stream that takes the place of another");
    kept_.push_back({.op = TheoryInstruction::Op::combine, .to = static_cast<int>(s), .terms = {{held, {1.0}}}});
  }
}

void TheoryRegisters::collect_factors() {
  for (TheoryInstruction& instruction : kept_) {
    instruction.factors[kFactorOne] = 1;
    for (std::size_t t = 0; t < instruction.terms.size(); ++t) {
      const Coefficient& coefficient = instruction.terms[t].coefficient;
      instruction.factors[t] = coefficient.value;
      if (coefficient.expression != nullptr) instruction.varying.push_back(static_cast<std::uint8_t>(t));
    }
  }
}

NotPredictedError TheoryRegisters::not_predicted(const std::string& what) const {
  return NotPredictedError(fmt::format("scheme '{}': the theory has no rule for {}", scheme_, what));
}

}  // namespace norma
