// Compiles one wiring of a formula: wires become values, sums of scaled wires become one instruction.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "theory/program.h"
#include "theory/registers.h"
#include "theory/weights.h"
#include "theory/wires.h"

namespace norma {

class TheoryCompiler {
 public:
  TheoryCompiler(const Formula& formula, const std::string& branch, const TheorySurroundings& surroundings,
                 const Variables& place);

  TheoryProgram run();
  TheoryProfile profile(const LearnedSpec& learned);

 private:
  enum class Sort { number, weights, wire };

  TheoryRegisters registers(std::vector<int> ends, std::vector<int> kept);
  static Coefficient named(const std::string& name);
  static bool keeps_form(const TheoryWires& value, const TheoryStream& stream);
  static bool chooses(const Expression& e);
  // An expression in which var(wire) is a name for what that wire's variance will be.
  ExpressionPtr with_variances(const ExpressionPtr& e, std::vector<int>& kept, TheoryProfile& result);

  NotPredictedError not_predicted(const std::string& what) const;
  NotPredictedError not_predicted(const Expression& e) const;

  // What an expression is.
  bool is_branch(const std::string& name) const;
  const Expression& chosen(const Expression& e) const;
  const LearnedSpec* learned(const Expression& e) const;
  Sort sort_of(const Expression& e) const;
  bool is_wire(const Expression& e) const { return sort_of(e) == Sort::wire; }
  // Whether a wire holds several copies, or all of them in a row.
  bool is_several(const Expression& e) const;
  bool is_weights(const Expression& e) const { return sort_of(e) == Sort::weights; }
  Coefficient number(const Expression& e) const;

  // One wire [batch, time, d].
  TheorySum linear(const Expression& e);
  TheoryWires wires(const Expression& e);
  TheoryWires binary(const Expression& e);
  // The value that holds a sum; a single unscaled wire is its own.
  int materialise(TheorySum sum);
  int emit(TheoryInstruction instruction);

  // theory_compiler_calls.cpp
  TheoryWires call(const Expression& e);
  int norm_call(const Expression& e, const Expression& argument);
  int branch_call(const Expression& e, const Expression& argument, bool normed);
  // Copies, or all of them in a row: followed only as far as weights are made of them.
  TheoryWires only_read(TheoryWires value, bool normed) const;
  TheoryWires flat(const Expression& e, TheoryWires value) const;
  TheoryWires sum_of(const Expression& e, const TheoryWires& value) const;
  TheoryWires of_copies(const Expression& e);
  TheoryWires spread(const Expression& e, const TheoryWeights& by, const TheorySum& y) const;
  TheoryWires weighed(const Expression& e, const TheoryWeights& by, const TheoryWires& value) const;
  TheoryWires mixed(const Expression& e, const TheoryWeights& by, const TheoryWires& value) const;

  // theory_compiler_weights.cpp
  // What the stream adds to weights is left out where it is small, and has no rule where it is not.
  TheoryWeights settled(TheoryWeights by, const Expression& e) const;
  TheoryWeights weights(const Expression& e);
  TheoryWeights matrix(const Expression& e, TheoryWeights by) const;
  // A learned vector or matrix at its start.
  TheoryWeights listed(const LearnedSpec& spec, const Expression& e) const;
  int size_of(const Expression& size, const Expression& e) const;
  // dot(x, w), matmul(x, W): zero where the learned w starts at zero, and scattered where it starts at random.
  TheoryWeights read_from(const Expression& e, const Expression& stream, const Expression& by);
  double random_part(const Expression& e, const LearnedSpec& spec) const;

  const Formula& formula_;
  const std::string& branch_;
  const TheorySurroundings& s_;
  const Variables& place_;
  std::map<std::string, TheoryWires> wires_;
  std::map<std::string, TheoryWeights> weights_;
  std::vector<TheoryInstruction> instructions_;
  int values_ = 0;
};

inline bool is_one_of(const std::string& name, std::initializer_list<std::string_view> names) {
  for (const std::string_view known : names) {
    if (name == known) return true;
  }
  return false;
}

}  // namespace norma
