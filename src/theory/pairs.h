// What plans of moments are made with.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "theory/program.h"

namespace norma {

// Which pairs of registers something is known of.
class MomentPairs {
 public:
  bool at(int i, int j) const { return held_[moment_slot(i, j)]; }
  void set(int i, int j, bool value) { held_[moment_slot(i, j)] = value; }
  void forget(int i) {
    for (int j = 0; j < kMostRegisters; ++j) set(i, j, false);
  }

 private:
  std::array<bool, kMomentPairs> held_ = {};
};

inline void begin_sum(MomentSums& plan, std::uint8_t target) { plan.sums.push_back({.target = target}); }
inline void add_product(MomentSums& plan, std::uint8_t factor, std::uint8_t source) {
  plan.products.push_back({factor, source});
  ++plan.sums.back().products;
}
// Takes back a sum without products.
inline bool dropped(MomentSums& plan) {
  if (plan.sums.back().products > 0) return false;
  plan.sums.pop_back();
  return true;
}

inline std::uint8_t term_factor(std::size_t term) { return static_cast<std::uint8_t>(term); }

// The term, if any, that a sum only adds others to: it stays in its register, with factor 1.
inline std::size_t term_that_stays(const TheoryInstruction& instruction) {
  if (instruction.op != TheoryInstruction::Op::combine) return instruction.terms.size();
  const auto found = std::find_if(instruction.terms.begin(), instruction.terms.end(), [&](const auto& term) {
    return term.from == instruction.to && term.coefficient.expression == nullptr && term.coefficient.value == 1;
  });
  return static_cast<std::size_t>(found - instruction.terms.begin());
}

// The backward half of a plan, for one instruction that is not a branch. `read`: pairs that the way back reads below
// it; `known`: pairs whose gradients may be correlated.
void plan_adjoint(TheoryInstruction& instruction, const MomentPairs& read, MomentPairs& known);

}  // namespace norma
