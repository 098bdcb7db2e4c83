// Compiles one wiring of a formula: wires become values, sums of scaled wires become one instruction.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "norma/schemes/functions.h"
#include "theory/fold.h"
#include "theory/program.h"
#include "theory/registers.h"
#include "theory/weights.h"
#include "theory/wires.h"

namespace norma {

// A learned value, of which only its use tells whether it is a number, weights, or what weights are read off a stream
// with.
struct TheoryLearned {
  const LearnedSpec* spec = nullptr;
  const Expression* where = nullptr;
};

// The algebra of moments (walk.h): numbers are folded, weights of copies are small matrices, and wires are sums of
// values, which instructions make.
class TheoryCompiler {
 public:
  using Value = std::variant<ExpressionPtr, TheoryLearned, TheoryWeights, TheoryWires>;

  TheoryCompiler(const Formula& formula, const BranchKind* branch, const TheorySurroundings& surroundings,
                 const Variables& place);

  TheoryProgram run();
  TheoryProfile profile(const LearnedSpec& learned);

  Value number(const Expression& e) { return folding_.number(e); }
  Value text(const Expression& e) const { throw not_predicted(e); }
  Value name(const Expression& e);
  Value unary(const Expression& e, const Value& a);
  Value binary(const Expression& e, const Value& a, const Value& b);
  std::optional<Value> answered(const Expression& e, const Value& a);
  void expects(const Expression& e) const;
  Value call(const Expression& e, const std::vector<Value>& arguments);
  std::optional<bool> decides(const Expression& e, const Value& condition);
  Value either(const Expression& e, const Value& condition, const Value& yes, const Value& no) const;

 private:
  TheoryRegisters registers(std::vector<int> ends, std::vector<int> kept);
  static Coefficient named(const std::string& name);
  static bool keeps_form(const TheoryWires& value, const TheoryStream& stream);

  NotPredictedError not_predicted(const std::string& what) const;
  NotPredictedError not_predicted(const Expression& e) const;
  NotPredictedError reads_otherwise(const Expression& e) const;  // than by var, in a profile

  // What a value is, and what it is taken for; `e` is where it came from.
  static bool is_wire(const Value& value) { return std::holds_alternative<TheoryWires>(value); }
  static bool is_weights(const Value& value);
  static bool is_number(const Value& value) { return !is_wire(value) && !is_weights(value); }
  ExpressionPtr folded(const Expression& e, const Value& value);
  Coefficient number(const Expression& e, const Value& value) { return coefficient_of(folded(e, value)); }
  TheoryWires wires(const Expression& e, const Value& value) const;
  TheoryWeights weights(const Expression& e, const Value& value);
  TheorySum linear(const Expression& e, const Value& value) const;  // one wire [batch, time, d]
  TheoryWires wire_binary(const Expression& e, const Value& left, const Value& right);

  // The value that holds a sum; a single unscaled wire is its own.
  int materialise(TheorySum sum);
  int emit(TheoryInstruction instruction);

  // compiler_calls.cpp
  bool is_branch(const std::string& name) const;
  TheoryWires image_norm(const NormInfo& info, int from);
  TheoryWires norm_call(const Expression& e, const Value& argument);
  TheoryWires branch_call(const Expression& e, const Value& argument);
  Value function_call(const Expression& e, const Function& function, const std::vector<Value>& arguments);
  Value of_variance(const Expression& e, const Value& argument);
  TheoryWires of_wire(const Expression& e, MomentRule rule, const Value& argument);
  // Copies, or all of them in a row: followed only as far as weights are made of them.
  TheoryWires only_read(TheoryWires value, bool normed) const;
  TheoryWires flat(const Expression& e, TheoryWires value) const;
  TheoryWires sum_of(const Expression& e, const TheoryWires& value) const;
  TheoryWires of_copies(const Expression& e, MomentRule rule, const std::vector<Value>& arguments);
  TheoryWires spread(const Expression& e, const TheoryWeights& by, const TheorySum& y) const;
  TheoryWires weighed(const Expression& e, const TheoryWeights& by, const TheoryWires& value) const;
  TheoryWires mixed(const Expression& e, const TheoryWeights& by, const TheoryWires& value) const;

  // compiler_weights.cpp
  TheoryWeights of_weights(const Expression& e, const Function& function, const std::vector<Value>& arguments);
  TheoryWeights refused_if_none(const Expression& e, std::optional<TheoryWeights> by) const;
  // What the stream adds to weights is left out where it is small, and has no rule where it is not.
  TheoryWeights settled(const Expression& e, TheoryWeights by) const;
  TheoryWeights matrix(const Expression& e, TheoryWeights by) const;
  // A learned vector or matrix at its start.
  TheoryWeights listed(const TheoryLearned& learned) const;
  int size_of(const Expression& size, const Expression& e) const;
  // dot(x, w), matmul(x, W): zero where the learned w starts at zero, and scattered where it starts at random.
  TheoryWeights read_from(const Expression& e, const std::vector<Value>& arguments) const;
  double random_part(const Expression& e, const LearnedSpec& spec) const;

  const Formula& formula_;
  const BranchKind* branch_;
  const TheorySurroundings& s_;
  const Variables& place_;
  FoldingAlgebra folding_;
  std::map<std::string, TheoryWires> wires_;
  std::map<std::string, TheoryWeights> weights_;
  std::vector<TheoryInstruction> instructions_;
  int values_ = 0;
  // Of a profile: the values whose variance it asks for, and the names that stand for them.
  std::vector<int> kept_;
  TheoryProfile* profile_ = nullptr;
};

}  // namespace norma
