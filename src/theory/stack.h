// What runs at which place of a stack: its formulas compiled, numbers of the place, and how its streams begin.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "theory/program.h"

namespace norma {

// A value that is profiled, in one formula. Numbers of the place are written where they are kept.
struct ProfiledValue {
  const LearnedSpec* learned = nullptr;
  TheoryProfile profile = {};
  double* value = nullptr;
  std::vector<double*> variances = {};  // as in the profile
};

class TheoryStack {
 public:
  // Throws NotPredictedError for what no rule covers.
  TheoryStack(const Scheme& scheme, const TheoryConfig& config, StackKind stack, bool measured_normed);
  TheoryStack(const TheoryStack&) = delete;
  TheoryStack& operator=(const TheoryStack&) = delete;

  const Scheme& scheme() const { return scheme_; }
  const TheoryConfig& config() const { return config_; }
  const TheorySurroundings& surroundings() const { return surroundings_; }
  const Variables& place() const { return place_; }
  // Whose scores are carried from layer to layer; null: nobody's.
  const BranchKind* carries() const { return carries_; }
  std::size_t formulas() const { return formulas_.size(); }

  // What each register of the streams is a multiple of x0 by.
  std::vector<double> starts() const;
  // Registers whose gradient counts as that of x: where a scheme keeps copies of it, all of them.
  std::vector<int> watched() const;

  void enter(std::int64_t layer, std::size_t formula);
  const TheoryProgram& program(std::size_t formula) { return formulas_[formula].at(place_); }
  const TheoryProgram* final_program();
  void count_copies(const TheoryProgram& program);

  // Values that are profiled, and what measures the next one.
  bool profiles() const { return !profiled_.empty(); }
  std::vector<ProfiledValue>& profiled(std::size_t formula);
  void start_profiled();

  // Compiles every formula at every layer, which finds what no rule covers.
  void compile_all();

 private:
  void enter_encoder(std::int64_t layers);
  void check() const;
  void check_carried() const;
  void find_formulas();
  void check_laws() const;
  NotPredictedError no_formula(const BranchKind& kind) const;

  const Scheme& scheme_;
  TheoryConfig config_;
  TheorySurroundings surroundings_;
  std::vector<FormulaPrograms> formulas_;
  std::vector<const BranchKind*> branches_;  // what f is in each
  std::optional<FormulaPrograms> final_;
  Variables place_;
  double *layer_ = nullptr, *sublayer_ = nullptr;  // of place_
  std::vector<const LearnedSpec*> profiled_;
  std::vector<std::vector<ProfiledValue>> profiles_;  // by formula, from its first use on
  const BranchKind* carries_ = nullptr;
};

}  // namespace norma
