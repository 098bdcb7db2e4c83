#include "theory/plan.h"

#include <algorithm>

#include "theory/pairs.h"

namespace norma {
namespace {

MomentPairs of_streams(const std::vector<bool>& alone) {
  MomentPairs pairs;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j)
      pairs.set(static_cast<int>(i), static_cast<int>(j), i == j || (!alone[i] && !alone[j]));
  }
  return pairs;
}

void clear_missing(MomentSums& plan, const MomentPairs& wanted, const MomentPairs& present) {
  for (int i = 0; i < kMostRegisters; ++i) {
    for (int j = 0; j <= i; ++j) {
      if (wanted.at(i, j) && !present.at(i, j)) begin_sum(plan, moment_slot(i, j));
    }
  }
}

// MomentPairs that are read after each instruction.
std::vector<MomentPairs> pairs_read_after(const std::vector<TheoryInstruction>& instructions,
                                          const MomentPairs& at_end) {
  std::vector<MomentPairs> after(instructions.size());
  MomentPairs read = at_end;
  for (std::size_t i = instructions.size(); i-- > 0;) {
    after[i] = read;
    const TheoryInstruction& instruction = instructions[i];
    read.forget(instruction.to);
    if (instruction.op == TheoryInstruction::Op::branch) continue;
    for (const TheoryInstruction::Term& term : instruction.terms) {
      for (int j = 0; j < kMostRegisters; ++j) {
        if (j != instruction.to && after[i].at(instruction.to, j)) read.set(term.from, j, true);
      }
      for (const TheoryInstruction::Term& other : instruction.terms) read.set(term.from, other.from, true);
    }
  }
  return after;
}

// MomentPairs of gradients that the way back reads, as they are after each instruction: what a branch made needs only
// its square.
std::vector<MomentPairs> pairs_read_before(const std::vector<TheoryInstruction>& instructions,
                                           const MomentPairs& at_start) {
  std::vector<MomentPairs> before;
  MomentPairs read = at_start;
  for (const TheoryInstruction& instruction : instructions) {
    MomentPairs next = read;
    next.forget(instruction.to);
    if (instruction.op != TheoryInstruction::Op::branch) {
      for (const TheoryInstruction::Term& term : instruction.terms) {
        for (int j = 0; j < kMostRegisters; ++j) {
          if (j != instruction.to && (term.from == j || read.at(term.from, j))) next.set(instruction.to, j, true);
        }
      }
    }
    next.set(instruction.to, instruction.to, true);
    before.push_back(read);
    read = next;
  }
  return before;
}

// Register `to` becomes a sum of others, which may include itself. `known`: pairs that may be correlated.
class SumPlan {
 public:
  SumPlan(TheoryInstruction& instruction, const MomentPairs& read, MomentPairs& known)
      : instruction_(instruction),
        plan_(instruction.forward),
        terms_(instruction.terms),
        to_(instruction.to),
        staying_(term_that_stays(instruction)),
        read_(read),
        known_(known) {}

  void plan() {
    if (only_square()) return plan_square();
    std::vector<int> covariance;  // slots: of the sum with each of its terms
    for (std::size_t t = 0; t < terms_.size(); ++t) covariance.push_back(with_term(t));
    MomentPairs after = known_;
    if (staying_ == terms_.size()) after.forget(to_);
    for (int j = 0; j < kMostRegisters; ++j) {
      if (!stays(j)) continue;
      begin_sum(plan_, moment_slot(to_, j));
      plan_.sums.back().onto = staying_ < terms_.size() && known_.at(to_, j);
      add_with(j);
      if (!dropped(plan_)) after.set(to_, j, true);
    }
    begin_sum(plan_, moment_slot(to_, to_));
    plan_.sums.back().onto = staying_ < terms_.size();
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      if (covariance[t] >= 0)
        add_product(plan_, t == staying_ ? kFactorOne : term_factor(t), static_cast<std::uint8_t>(covariance[t]));
    }
    after.set(to_, to_, true);
    known_ = after;
  }

 private:
  bool stays(int j) const { return j != to_ && read_.at(to_, j); }

  bool only_square() const {
    for (int j = 0; j < kMostRegisters; ++j) {
      if (stays(j)) return false;
    }
    return terms_.size() <= kMostPaired;
  }

  void plan_square() {
    instruction_.paired = true;
    begin_sum(plan_, moment_slot(to_, to_));
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      for (std::size_t u = 0; u <= t; ++u) {
        const int a = terms_[t].from, b = terms_[u].from;
        if (a == b || known_.at(a, b)) add_product(plan_, paired_factor(t, u), moment_slot(a, b));
      }
    }
    known_.forget(to_);
    known_.set(to_, to_, true);
  }

  void add_with(int j) {
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      const int from = terms_[t].from;
      if (t != staying_ && (from == j || known_.at(from, j))) add_product(plan_, term_factor(t), moment_slot(from, j));
    }
  }

  // Of a term that stays: without its own square, which is there already; -1: zero.
  int with_term(std::size_t t) {
    if (stays(terms_[t].from)) return moment_slot(to_, terms_[t].from);
    begin_sum(plan_, moment_scratch(scratch_));
    if (t != staying_ && staying_ < terms_.size() && known_.at(to_, terms_[t].from))
      add_product(plan_, kFactorOne, moment_slot(to_, terms_[t].from));
    add_with(terms_[t].from);
    return dropped(plan_) ? -1 : moment_scratch(scratch_++);
  }

  TheoryInstruction& instruction_;
  MomentSums& plan_;
  const std::vector<TheoryInstruction::Term>& terms_;
  int to_;
  std::size_t staying_;
  const MomentPairs& read_;
  MomentPairs& known_;
  int scratch_ = 0;
};

}  // namespace

void plan_moments(std::vector<TheoryInstruction>& instructions, const std::vector<bool>& alone) {
  if (instructions.empty()) return;
  const MomentPairs streams = of_streams(alone);
  const std::vector<MomentPairs> read_after = pairs_read_after(instructions, streams),
                                 read_before = pairs_read_before(instructions, streams);
  MomentPairs known = streams;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    TheoryInstruction& instruction = instructions[i];
    if (instruction.op != TheoryInstruction::Op::branch) {
      SumPlan(instruction, read_after[i], known).plan();
    } else {
      known.forget(instruction.to);
      known.set(instruction.to, instruction.to, true);
    }
  }
  clear_missing(instructions.back().forward, streams, known);
  for (TheoryInstruction& instruction : instructions) {
    if (instruction.paired) pair_factors(instruction.factors, instruction.terms.size());
  }
  known = streams;
  for (std::size_t i = instructions.size(); i-- > 0;) {
    TheoryInstruction& instruction = instructions[i];
    if (instruction.op != TheoryInstruction::Op::branch) {
      plan_adjoint(instruction, read_before[i], known);
      continue;
    }
    const int from = instruction.terms[0].from;
    known.forget(instruction.to);
    if (!known.at(from, from)) begin_sum(instruction.backward, moment_slot(from, from));  // it is added to
    known.set(from, from, true);
  }
  clear_missing(instructions.front().backward, streams, known);
}

}  // namespace norma
