// The programs of a formula: one for each outcome of its conditions.
#include "theory/compiler.h"
#include "theory/program.h"

namespace norma {

TheoryProfile compile_profile(const LearnedSpec& learned, const BranchKind* branch,
                              const TheorySurroundings& surroundings, const Variables& place) {
  const Formula formula{.text = print_expression(*learned.profile), .statements = {}};
  return TheoryCompiler(formula, branch, surroundings, place).profile(learned);
}

FormulaPrograms::FormulaPrograms(const Formula& formula, const BranchKind* branch,
                                 const TheorySurroundings& surroundings)
    : formula_(formula), branch_(branch), surroundings_(surroundings) {
  for (const Statement& statement : formula.statements) {
    for (Condition& condition : conditions_in(*statement.value)) conditions_.push_back(std::move(condition));
  }
}

std::vector<FormulaPrograms::Condition> FormulaPrograms::conditions_in(const Expression& e) const {
  if (e.kind == Expression::Kind::conditional) {
    return {{fold(*e.children[0], surroundings_, formula_.text), conditions_in(*e.children[1]),
             conditions_in(*e.children[2])}};
  }
  std::vector<Condition> found;
  for (const ExpressionPtr& child : e.children) {
    for (Condition& condition : conditions_in(*child)) found.push_back(std::move(condition));
  }
  return found;
}

void FormulaPrograms::outcome(const std::vector<Condition>& conditions, const Variables& place, std::string& found) {
  for (const Condition& condition : conditions) {
    const bool yes = value_of(condition.condition, place) != 0;
    found += yes ? 'y' : 'n';
    outcome(yes ? condition.yes : condition.no, place, found);
  }
}

const TheoryProgram& FormulaPrograms::at(const Variables& place) {
  if (only_ != nullptr) return *only_;
  key_.clear();
  outcome(conditions_, place, key_);
  auto found = programs_.find(key_);
  if (found == programs_.end()) {
    TheoryCompiler compiler(formula_, branch_, surroundings_, place);
    found = programs_.emplace(key_, compiler.run()).first;
    if (conditions_.empty()) only_ = &found->second;
  }
  return found->second;
}

}  // namespace norma
