// What formulas say of branches where they call them: norms put directly on them, and options, which move to the tables
// of their branches, where theory and measured branches read them.
#include <algorithm>
#include <set>

#include "norma/models/branch_tables.h"
#include "norma/schemes/branch_kinds.h"
#include "norma/schemes/trace.h"
#include "norma/schemes/walk.h"

namespace norma {
namespace {

using OptionsOfCalls = std::map<std::string, std::set<BranchOptions>>;  // by kind of branch

bool is_branch_call(const Expression& e) {
  return e.kind == Expression::Kind::call && (e.name == "f" || branch_called(e.name) != nullptr);
}

// Which branches a name means in a formula.
std::vector<const BranchKind*> kinds_called(const Scheme& scheme, std::string_view key, const std::string& name) {
  if (name != "f") return {branch_called(name)};
  std::vector<const BranchKind*> kinds;
  for (const BranchKind& kind : branch_kinds()) {
    if (key == "sublayer" ? scheme.formula(kind.key) == nullptr : key == kind.key) kinds.push_back(&kind);
  }
  return kinds;
}

void collect(const Scheme& scheme, std::string_view key, const Expression& e, OptionsOfCalls& found) {
  if (!is_branch_call(e)) return;
  for (const BranchKind* kind : kinds_called(scheme, key, e.name)) {
    const std::vector<std::string>& known = kind->options;
    BranchOptions options;
    for (const NamedArgument& argument : e.named) {
      if (std::find(known.begin(), known.end(), argument.name) == known.end()) continue;  // of another kind
      const Expression& value = *argument.value;
      options[argument.name] = value.kind == Expression::Kind::text ? value.name : print_expression(value);
    }
    found[kind->key].insert(std::move(options));
  }
}

ExpressionPtr without_options(const ExpressionPtr& e) {
  Expression plain = *e;
  for (ExpressionPtr& child : plain.children) child = without_options(child);
  if (is_branch_call(plain)) plain.named.clear();
  return std::make_shared<const Expression>(std::move(plain));
}

}  // namespace

std::string norm_on_branches(const Scheme& scheme) {
  std::string found;
  for (const auto& [key, formula] : scheme.formulas) {
    visit(formula, [&](const Expression& e) {
      if (!found.empty() || e.kind != Expression::Kind::call || !is_norm_name(e.name) || e.children.size() != 1) return;
      const Expression& inner = *e.children[0];
      if (!is_branch_call(inner)) return;
      const BranchKind* called = branch_called(inner.name);
      if (called == nullptr || called->reads != BranchKind::Reads::memory) found = e.name;
    });
  }
  return found;
}

Scheme with_options_in_tables(const Scheme& scheme) {
  OptionsOfCalls found;
  for (const auto& [key, formula] : scheme.formulas) {
    visit(formula, [&, of = std::string_view(key)](const Expression& e) { collect(scheme, of, e, found); });
  }
  Scheme plain = scheme;
  for (const auto& [kind, options] : found) {
    if (options.size() > 1) {
      throw NotPredictedError(
          fmt::format("scheme '{}': the theory has no rule for {} that is called with different "
                      "options in one stack",
                      scheme.name, kind));
    }
    for (const auto& [option, value] : *options.begin()) plain.branch_options[kind][option] = value;
  }
  for (auto& [key, formula] : plain.formulas) {
    for (Statement& statement : formula.statements) statement.value = without_options(statement.value);
  }
  for (LearnedSpec& learned : plain.learned) {
    if (learned.profile != nullptr) learned.profile = without_options(learned.profile);
  }
  return plain;
}

}  // namespace norma
