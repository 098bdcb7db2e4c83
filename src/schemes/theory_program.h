// A formula compiled for the theory: a few instructions over registers, one program per wiring. Registers 0, 1, ...
// hold x and the other streams.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "norma/norms/norm.h"
#include "norma/schemes/evaluate.h"
#include "norma/schemes/scheme.h"
#include "norma/schemes/theory.h"

namespace norma {

constexpr int kMostRegisters = 8;

// A number known at a place: once and for all, or an expression of l and k.
struct Coefficient {
  double value = 0;
  ExpressionPtr expression = nullptr;  // null: value
};

struct TheoryInstruction {
  enum class Op { combine, norm, tanh, branch, stop };
  struct Term {
    int from = 0;
    Coefficient coefficient = {};
  };
  Op op = Op::combine;
  int to = 0;
  std::vector<Term> terms = {};  // combine: any number; otherwise one, with coefficient 1
  double eps = 0;                // norm
  bool centres = false;          // norm: removes the mean
  double slope = 1;              // tanh: tanh(slope*x)
  BranchTheory::Kind branch = BranchTheory::Kind::attention;
  bool normed = false;  // branch: together with the norm that follows it
};

struct TheoryProgram {
  std::vector<TheoryInstruction> instructions = {};
  int registers = 0;
  bool centres = false;  // whether one of its norms removes the mean
};

// What stays the same in the whole stack.
struct TheorySurroundings {
  const Scheme& scheme;
  const TheoryConfig& config;
  Variables numbers;  // all but l and k, and constants that need neither
  bool measured_normed = false;
};

TheorySurroundings theory_surroundings(const Scheme& scheme, const TheoryConfig& config, bool measured_normed);

// An expression with everything but l and k filled in: constants, learned values at their start, schedules at t = 0.
Coefficient fold(const Expression& expression, const TheorySurroundings& surroundings, const std::string& text);

double value_of(const Coefficient& coefficient, const Variables& layer_and_sublayer);

// Programs of one formula, by the outcome of its conditions.
class FormulaPrograms {
 public:
  // `branch` is what f stands for: "attention", "ffn", or "" where branches are called by name.
  FormulaPrograms(const Formula& formula, std::string branch, const TheorySurroundings& surroundings);

  const TheoryProgram& at(const Variables& layer_and_sublayer);

 private:
  struct Condition {
    Coefficient condition;
    std::vector<Condition> yes, no;
  };
  std::vector<Condition> conditions_in(const Expression& e) const;
  static void outcome(const std::vector<Condition>& conditions, const Variables& place, std::string& found);

  const Formula& formula_;
  std::string branch_;
  const TheorySurroundings& surroundings_;
  std::vector<Condition> conditions_;
  std::map<std::string, TheoryProgram> programs_;
  const TheoryProgram* only_ = nullptr;  // where there are no conditions
  std::string key_;                      // kept for its memory
};

}  // namespace norma
