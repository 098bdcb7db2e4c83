// Names of a formula that are given a value which nothing reads.
#include <algorithm>

#include "norma/schemes/scheme.h"
#include "norma/schemes/walk.h"

namespace norma {
namespace {

bool mentions(const Expression& value, const std::string& name) {
  bool found = false;
  visit(value, [&](const Expression& e) { found = found || (e.kind == Expression::Kind::name && e.name == name); });
  return found;
}

// Before it is given another value, or, of what a formula leaves behind, before its end.
bool is_read(const Formula& formula, std::size_t index, bool left_behind) {
  const std::string& name = formula.statements[index].target;
  for (std::size_t later = index + 1; later < formula.statements.size(); ++later) {
    const Statement& statement = formula.statements[later];
    if (mentions(*statement.value, name)) return true;
    if (statement.target == name || (statement.target.empty() && name == "x")) return false;
  }
  return left_behind;
}

}  // namespace

std::optional<std::string> unread_name(const Scheme& scheme) {
  for (const auto& [key, formula] : scheme.formulas) {
    for (std::size_t i = 0; i < formula.statements.size(); ++i) {
      const Statement& statement = formula.statements[i];
      const bool left_behind =
          statement.target.empty() || statement.target == "x" ||
          std::ranges::any_of(scheme.streams, [&](const auto& stream) { return stream.name == statement.target; });
      if (is_read(formula, i, left_behind)) continue;
      const bool last = i + 1 == formula.statements.size();
      const FormulaError error(
          formula.text, statement.target_span,
          last ? fmt::format("nothing reads this '{}': a formula ends with the new x, as in x + f(x)", statement.target)
               : fmt::format("nothing reads this '{}': use it in what follows, or leave it out", statement.target));
      return fmt::format("{}: {}", key, error.what());
    }
  }
  return std::nullopt;
}

}  // namespace norma
