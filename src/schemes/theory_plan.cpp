#include "schemes/theory_plan.h"

#include <algorithm>

namespace norma {
namespace {

// Which pairs of registers something is known of.
class Pairs {
 public:
  bool at(int i, int j) const { return held_[moment_slot(i, j)]; }
  void set(int i, int j, bool value) { held_[moment_slot(i, j)] = value; }
  void forget(int i) {
    for (int j = 0; j < kMostRegisters; ++j) set(i, j, false);
  }

 private:
  std::array<bool, kMomentPairs> held_ = {};
};

Pairs of_streams(const std::vector<bool>& alone) {
  Pairs pairs;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j)
      pairs.set(static_cast<int>(i), static_cast<int>(j), i == j || (!alone[i] && !alone[j]));
  }
  return pairs;
}

void begin(MomentSums& plan, std::uint8_t target) { plan.sums.push_back({.target = target}); }
void add(MomentSums& plan, std::uint8_t factor, std::uint8_t source) {
  plan.products.push_back({factor, source});
  ++plan.sums.back().products;
}
// Takes back a sum without products.
bool dropped(MomentSums& plan) {
  if (plan.sums.back().products > 0) return false;
  plan.sums.pop_back();
  return true;
}

void clear_missing(MomentSums& plan, const Pairs& wanted, const Pairs& present) {
  for (int i = 0; i < kMostRegisters; ++i) {
    for (int j = 0; j <= i; ++j) {
      if (wanted.at(i, j) && !present.at(i, j)) begin(plan, moment_slot(i, j));
    }
  }
}

std::uint8_t factor(std::size_t term) { return static_cast<std::uint8_t>(term); }

// Pairs that are read after each instruction.
std::vector<Pairs> pairs_read_after(const std::vector<TheoryInstruction>& instructions, const Pairs& at_end) {
  std::vector<Pairs> after(instructions.size());
  Pairs read = at_end;
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

// Pairs of gradients that the way back reads, as they are after each instruction: what a branch made needs only its
// square.
std::vector<Pairs> pairs_read_before(const std::vector<TheoryInstruction>& instructions, const Pairs& at_start) {
  std::vector<Pairs> before;
  Pairs read = at_start;
  for (const TheoryInstruction& instruction : instructions) {
    Pairs next = read;
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

// The term, if any, that a sum only adds others to: it stays in its register, with factor 1.
std::size_t term_that_stays(const TheoryInstruction& instruction) {
  if (instruction.op != TheoryInstruction::Op::combine) return instruction.terms.size();
  const auto found = std::find_if(instruction.terms.begin(), instruction.terms.end(), [&](const auto& term) {
    return term.from == instruction.to && term.coefficient.expression == nullptr && term.coefficient.value == 1;
  });
  return static_cast<std::size_t>(found - instruction.terms.begin());
}

// Register `to` becomes a sum of others, which may include itself. `known`: pairs that may be correlated.
class SumPlan {
 public:
  SumPlan(TheoryInstruction& instruction, const Pairs& read, Pairs& known)
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
    Pairs after = known_;
    if (staying_ == terms_.size()) after.forget(to_);
    for (int j = 0; j < kMostRegisters; ++j) {
      if (!stays(j)) continue;
      begin(plan_, moment_slot(to_, j));
      plan_.sums.back().onto = staying_ < terms_.size() && known_.at(to_, j);
      add_with(j);
      if (!dropped(plan_)) after.set(to_, j, true);
    }
    begin(plan_, moment_slot(to_, to_));
    plan_.sums.back().onto = staying_ < terms_.size();
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      if (covariance[t] >= 0)
        add(plan_, t == staying_ ? kFactorOne : factor(t), static_cast<std::uint8_t>(covariance[t]));
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
    begin(plan_, moment_slot(to_, to_));
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      for (std::size_t u = 0; u <= t; ++u) {
        const int a = terms_[t].from, b = terms_[u].from;
        if (a == b || known_.at(a, b)) add(plan_, paired_factor(t, u), moment_slot(a, b));
      }
    }
    known_.forget(to_);
    known_.set(to_, to_, true);
  }

  void add_with(int j) {
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      const int from = terms_[t].from;
      if (t != staying_ && (from == j || known_.at(from, j))) add(plan_, factor(t), moment_slot(from, j));
    }
  }

  // Of a term that stays: without its own square, which is there already; -1: zero.
  int with_term(std::size_t t) {
    if (stays(terms_[t].from)) return moment_slot(to_, terms_[t].from);
    begin(plan_, moment_scratch(scratch_));
    if (t != staying_ && staying_ < terms_.size() && known_.at(to_, terms_[t].from))
      add(plan_, kFactorOne, moment_slot(to_, terms_[t].from));
    add_with(terms_[t].from);
    return dropped(plan_) ? -1 : moment_scratch(scratch_++);
  }

  TheoryInstruction& instruction_;
  MomentSums& plan_;
  const std::vector<TheoryInstruction::Term>& terms_;
  int to_;
  std::size_t staying_;
  const Pairs& read_;
  Pairs& known_;
  int scratch_ = 0;
};

// The adjoint: what was added up hands its gradient to each of its terms. With d the square of the gradient g that
// arrives, r its product with another one, and q = r + f d, that of terms a and b grows by f_a q_b + f_b r_a.
class AdjointPlan {
 public:
  AdjointPlan(TheoryInstruction& instruction, const Pairs& read, Pairs& known)
      : instruction_(instruction),
        plan_(instruction.backward),
        terms_(instruction.terms),
        to_(instruction.to),
        read_(read),
        known_(known) {
    arriving_.fill(-1);
    for (int j = 0; j < kMostRegisters; ++j) {
      if (j != to_ && known_.at(to_, j)) arriving_[static_cast<std::size_t>(j)] = moment_slot(to_, j);
    }
    if (known_.at(to_, to_)) square_ = moment_slot(to_, to_);
    known_.forget(to_);
  }

  void plan() {
    for (std::size_t t = 0; t < terms_.size(); ++t) joined_.push_back(joined(t));
    std::size_t same = terms_.size();  // the term in the same register, which is written over what the others read
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      if (terms_[t].from == to_) {
        same = t;
      } else {
        plan_term(t);
      }
    }
    if (same < terms_.size()) plan_same(same);
    find_whether_idle();
  }

 private:
  void plan_term(std::size_t t) {
    const int from = terms_[t].from;
    for (std::size_t u = 0; u <= t; ++u) plan_pair(t, u);
    for (int j = 0; j < kMostRegisters; ++j) {
      if (arriving(j) < 0 || is_term(j) || !read_.at(from, j)) continue;
      start(from, j);
      add(plan_, factor(t), static_cast<std::uint8_t>(arriving(j)));
      finish(from, j);
    }
  }

  void plan_pair(std::size_t t, std::size_t u) {
    const int a = terms_[t].from, b = terms_[u].from;
    if (b == to_ || !read_.at(a, b)) return;
    start(a, b);
    if (joined_[u] >= 0) add(plan_, factor(t), static_cast<std::uint8_t>(joined_[u]));
    if (arriving(a) >= 0) add(plan_, factor(u), static_cast<std::uint8_t>(arriving(a)));
    finish(a, b);
  }

  // It has nothing of its own yet: r with wires that are no terms, q with terms. With factor 1 all is where it was.
  void plan_same(std::size_t same) {
    const bool unit = term_that_stays(instruction_) == same;
    for (int j = 0; j < kMostRegisters; ++j) {
      if (arriving(j) < 0 || is_term(j) || !read_.at(to_, j)) continue;
      if (!unit) hand(same, j, arriving(j));
      known_.set(to_, j, true);
    }
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      if (joined_[t] < 0 || (unit && t == same) || !read_.at(to_, terms_[t].from)) continue;
      hand(same, terms_[t].from, joined_[t]);
    }
    if (unit && square_ >= 0) known_.set(to_, to_, true);
  }

  void hand(std::size_t same, int j, int slot) {
    begin(plan_, moment_slot(to_, j));
    add(plan_, factor(same), static_cast<std::uint8_t>(slot));
    known_.set(to_, j, true);
  }

  // Where only a square arrives and everything is added to, a gradient of zero changes nothing.
  void find_whether_idle() {
    bool idle = std::all_of(arriving_.begin(), arriving_.end(), [](int slot) { return slot < 0; });
    for (const MomentSums::Sum& sum : plan_.sums) idle = idle && (sum.onto || sum.target >= kMomentPairs);
    instruction_.idle_without_gradient = idle;
  }

  int arriving(int j) const { return arriving_[static_cast<std::size_t>(j)]; }
  bool is_term(int j) const {
    return std::any_of(terms_.begin(), terms_.end(), [&](const auto& term) { return term.from == j; });
  }

  // q of a term.
  int joined(std::size_t t) {
    const int other = arriving(terms_[t].from);
    if (square_ < 0) return other;
    begin(plan_, moment_scratch(scratch_));
    if (other >= 0) add(plan_, kFactorOne, static_cast<std::uint8_t>(other));
    add(plan_, factor(t), static_cast<std::uint8_t>(square_));
    return moment_scratch(scratch_++);
  }

  void start(int i, int j) {
    begin(plan_, moment_slot(i, j));
    plan_.sums.back().onto = known_.at(i, j);
  }
  void finish(int i, int j) {
    if (!dropped(plan_)) known_.set(i, j, true);
  }

  TheoryInstruction& instruction_;
  MomentSums& plan_;
  const std::vector<TheoryInstruction::Term>& terms_;
  int to_;
  const Pairs& read_;
  Pairs& known_;
  std::array<int, kMostRegisters> arriving_ = {};  // r: slots, by register; -1: zero
  int square_ = -1;                                // d
  std::vector<int> joined_;                        // q: slots, by term
  int scratch_ = 0;
};

}  // namespace

void plan_moments(std::vector<TheoryInstruction>& instructions, const std::vector<bool>& alone) {
  if (instructions.empty()) return;
  const Pairs streams = of_streams(alone);
  const std::vector<Pairs> read_after = pairs_read_after(instructions, streams),
                           read_before = pairs_read_before(instructions, streams);
  Pairs known = streams;
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
      AdjointPlan(instruction, read_before[i], known).plan();
      continue;
    }
    const int from = instruction.terms[0].from;
    known.forget(instruction.to);
    if (!known.at(from, from)) begin(instruction.backward, moment_slot(from, from));  // it is added to
    known.set(from, from, true);
  }
  clear_missing(instructions.front().backward, streams, known);
}

}  // namespace norma
