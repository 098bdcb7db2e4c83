// What parts of a diagram are called.
#include <fmt/format.h>

#include <algorithm>

#include "norma/schemes/branch_kinds.h"
#include "norma/schemes/evaluate.h"
#include "schemes/diagram_parts.h"

namespace norma {

std::string branch_title(const std::string& name) {
  for (const BranchKind& kind : branch_kinds()) {
    if (name == kind.key || name == kind.scope) return kind.title;
  }
  return name;
}

std::string branch_detail(const Scheme& scheme, const std::string& name) {
  const BranchKind* called = branch_called(name);
  const auto found = scheme.branch_options.find(called == nullptr ? name : called->key);
  if (found == scheme.branch_options.end()) return "";
  const std::map<std::string, std::string>& options = found->second;
  std::vector<std::string> said;
  std::string projections;
  for (const char* projection : {"q", "k", "v"}) {
    if (options.contains(projection)) projections += (projections.empty() ? "" : ", ") + std::string(projection);
  }
  if (!projections.empty()) said.push_back("norm on " + projections);
  for (const auto& [option, value] : options) {
    if (option == "inner") said.push_back("inner " + value);
    if (option == "head_gain") said.push_back("gain per head");
    if (option == "scores") said.push_back("carries scores");
  }
  return fmt::format("{}", fmt::join(said, "; "));
}

bool mentions_learned(const Scheme& scheme, const Expression& e) {
  const std::vector<std::string> names = names_in(e);
  return std::any_of(scheme.learned.begin(), scheme.learned.end(), [&](const LearnedSpec& spec) {
    return std::find(names.begin(), names.end(), spec.name) != names.end();
  });
}

std::string factor_text(const Expression& e) {
  const bool loose = e.kind == Expression::Kind::binary || e.kind == Expression::Kind::conditional;
  return loose ? "(" + print_expression(e) + ")" : print_expression(e);
}

}  // namespace norma
