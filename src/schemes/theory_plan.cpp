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

// Pairs with its result that are read after each instruction.
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

// Register `to` becomes a sum of others, which may include itself. `known`: pairs that may be correlated.
void plan_sum(TheoryInstruction& instruction, const Pairs& read, Pairs& known) {
  MomentSums& plan = instruction.forward;
  const std::vector<TheoryInstruction::Term>& terms = instruction.terms;
  const int to = instruction.to;
  const auto with = [&](int j) {
    for (std::size_t t = 0; t < terms.size(); ++t) {
      const int from = terms[t].from;
      if (from == j || known.at(from, j)) add(plan, factor(t), moment_slot(from, j));
    }
  };
  const auto stays = [&](int j) { return j != to && read.at(to, j); };
  int scratch = 0;
  std::vector<int> covariance(terms.size(), -1);  // slots: of the sum with each of its terms
  for (std::size_t t = 0; t < terms.size(); ++t) {
    if (stays(terms[t].from)) continue;
    begin(plan, moment_scratch(scratch));
    with(terms[t].from);
    covariance[t] = moment_scratch(scratch++);
  }
  Pairs after = known;
  after.forget(to);
  for (int j = 0; j < kMostRegisters; ++j) {
    if (!stays(j)) continue;
    begin(plan, moment_slot(to, j));
    with(j);
    after.set(to, j, !dropped(plan));
  }
  begin(plan, moment_slot(to, to));
  for (std::size_t t = 0; t < terms.size(); ++t)
    add(plan, factor(t),
        covariance[t] >= 0 ? static_cast<std::uint8_t>(covariance[t]) : moment_slot(to, terms[t].from));
  after.set(to, to, true);
  known = after;
}

// The adjoint: what was added up hands its gradient to each of its terms. With d the square of the gradient g that
// arrives, r its product with another one, and q = r + f d, that of terms a and b grows by f_a q_b + f_b r_a.
class Adjoint {
 public:
  Adjoint(TheoryInstruction& instruction, Pairs& known)
      : plan_(instruction.backward), terms_(instruction.terms), to_(instruction.to), known_(known) {
    arriving_.fill(-1);
    // A term in the same register would be written over what is still to be read.
    const bool same = std::any_of(terms_.begin(), terms_.end(), [&](const auto& term) { return term.from == to_; });
    for (int j = 0; j < kMostRegisters; ++j) {
      if (known_.at(to_, j))
        arriving_[static_cast<std::size_t>(j)] = same ? moved(moment_slot(to_, j)) : moment_slot(to_, j);
    }
    square_ = arriving_[static_cast<std::size_t>(to_)];
    arriving_[static_cast<std::size_t>(to_)] = -1;
    known_.forget(to_);
  }

  void plan() {
    std::vector<int> with_square;
    for (std::size_t t = 0; t < terms_.size(); ++t) with_square.push_back(joined(t));
    for (std::size_t t = 0; t < terms_.size(); ++t) {
      for (std::size_t u = 0; u <= t; ++u) {
        start(terms_[t].from, terms_[u].from);
        if (with_square[u] >= 0) add(plan_, factor(t), static_cast<std::uint8_t>(with_square[u]));
        if (arriving(terms_[t].from) >= 0) add(plan_, factor(u), static_cast<std::uint8_t>(arriving(terms_[t].from)));
        finish(terms_[t].from, terms_[u].from);
      }
      for (int j = 0; j < kMostRegisters; ++j) {
        if (arriving(j) < 0 || is_term(j)) continue;
        start(terms_[t].from, j);
        add(plan_, factor(t), static_cast<std::uint8_t>(arriving(j)));
        finish(terms_[t].from, j);
      }
    }
  }

 private:
  int arriving(int j) const { return arriving_[static_cast<std::size_t>(j)]; }
  bool is_term(int j) const {
    return std::any_of(terms_.begin(), terms_.end(), [&](const auto& term) { return term.from == j; });
  }

  int moved(std::uint8_t slot) {
    begin(plan_, moment_scratch(scratch_));
    add(plan_, kFactorOne, slot);
    return moment_scratch(scratch_++);
  }

  int joined(std::size_t t) {
    begin(plan_, moment_scratch(scratch_));
    if (arriving(terms_[t].from) >= 0) add(plan_, kFactorOne, static_cast<std::uint8_t>(arriving(terms_[t].from)));
    if (square_ >= 0) add(plan_, factor(t), static_cast<std::uint8_t>(square_));
    return dropped(plan_) ? -1 : moment_scratch(scratch_++);
  }

  void start(int i, int j) {
    begin(plan_, moment_slot(i, j));
    plan_.sums.back().onto = known_.at(i, j);
  }
  void finish(int i, int j) {
    if (!dropped(plan_)) known_.set(i, j, true);
  }

  MomentSums& plan_;
  const std::vector<TheoryInstruction::Term>& terms_;
  int to_;
  Pairs& known_;
  std::array<int, kMostRegisters> arriving_ = {};  // slots, by register; -1: zero
  int square_ = -1;
  int scratch_ = 0;
};

}  // namespace

void plan_moments(std::vector<TheoryInstruction>& instructions, const std::vector<bool>& alone) {
  if (instructions.empty()) return;
  const Pairs streams = of_streams(alone);
  const std::vector<Pairs> read = pairs_read_after(instructions, streams);
  Pairs known = streams;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    TheoryInstruction& instruction = instructions[i];
    if (instruction.op != TheoryInstruction::Op::branch) {
      plan_sum(instruction, read[i], known);
    } else {
      known.forget(instruction.to);
      known.set(instruction.to, instruction.to, true);
    }
  }
  clear_missing(instructions.back().forward, streams, known);
  known = streams;
  for (std::size_t i = instructions.size(); i-- > 0;) {
    TheoryInstruction& instruction = instructions[i];
    if (instruction.op != TheoryInstruction::Op::branch) {
      Adjoint(instruction, known).plan();
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
