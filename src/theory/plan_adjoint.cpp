#include <algorithm>

#include "theory/pairs.h"

namespace norma {
namespace {

// The adjoint: what was added up hands its gradient to each of its terms. With d the square of the gradient g that
// arrives, r its product with another one, and q = r + f d, that of terms a and b grows by f_a q_b + f_b r_a.
class AdjointPlan {
 public:
  AdjointPlan(TheoryInstruction& instruction, const MomentPairs& read, MomentPairs& known)
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
      add_product(plan_, term_factor(t), static_cast<std::uint8_t>(arriving(j)));
      finish(from, j);
    }
  }

  void plan_pair(std::size_t t, std::size_t u) {
    const int a = terms_[t].from, b = terms_[u].from;
    if (b == to_ || !read_.at(a, b)) return;
    start(a, b);
    if (joined_[u] >= 0) add_product(plan_, term_factor(t), static_cast<std::uint8_t>(joined_[u]));
    if (arriving(a) >= 0) add_product(plan_, term_factor(u), static_cast<std::uint8_t>(arriving(a)));
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
    begin_sum(plan_, moment_slot(to_, j));
    add_product(plan_, term_factor(same), static_cast<std::uint8_t>(slot));
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
    begin_sum(plan_, moment_scratch(scratch_));
    if (other >= 0) add_product(plan_, kFactorOne, static_cast<std::uint8_t>(other));
    add_product(plan_, term_factor(t), static_cast<std::uint8_t>(square_));
    return moment_scratch(scratch_++);
  }

  void start(int i, int j) {
    begin_sum(plan_, moment_slot(i, j));
    plan_.sums.back().onto = known_.at(i, j);
  }
  void finish(int i, int j) {
    if (!dropped(plan_)) known_.set(i, j, true);
  }

  TheoryInstruction& instruction_;
  MomentSums& plan_;
  const std::vector<TheoryInstruction::Term>& terms_;
  int to_;
  const MomentPairs& read_;
  MomentPairs& known_;
  std::array<int, kMostRegisters> arriving_ = {};  // r: slots, by register; -1: zero
  int square_ = -1;                                // d
  std::vector<int> joined_;                        // q: slots, by term
  int scratch_ = 0;
};

}  // namespace

void plan_adjoint(TheoryInstruction& instruction, const MomentPairs& read, MomentPairs& known) {
  AdjointPlan(instruction, read, known).plan();
}

}  // namespace norma
