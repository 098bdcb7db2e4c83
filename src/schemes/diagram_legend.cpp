#include <fmt/format.h>

#include <algorithm>

#include "norma/schemes/trace.h"
#include "schemes/diagram_parts.h"
#include "schemes/diagram_sections.h"

namespace norma {
namespace {

// A number where an initial value is one; the expression where it differs by element or is drawn at random.
std::string start_text(const Expression& init, const Variables& numbers) {
  const std::vector<std::string> names = names_in(init);
  const bool by_element =
      std::any_of(names.begin(), names.end(), [](const auto& name) { return name == "i" || name == "j"; });
  if (by_element || (init.kind == Expression::Kind::call && init.name == "normal")) return print_expression(init);
  return fmt::format("{:.4g}", evaluate(init, numbers, print_expression(init)));
}

}  // namespace

std::vector<std::string> diagram_legend(const Scheme& scheme, const DiagramOptions& options, std::int64_t layer) {
  std::vector<std::string> used;
  for (const auto& [key, formula] : scheme.formulas) {
    for (const Statement& statement : formula.statements) {
      for (const std::string& name : names_in(*statement.value)) used.push_back(name);
    }
  }
  for (const NamedExpression& stream : scheme.streams) {
    for (const std::string& name : names_in(*stream.value)) used.push_back(name);
  }
  const auto is_used = [&](const std::string& name) { return std::find(used.begin(), used.end(), name) != used.end(); };
  std::vector<std::string> notes;
  const Place place = place_of(options, layer, 0);
  const Variables numbers = numbers_at_start(scheme, place);
  for (const NamedExpression& constant : constants_of(scheme, place.stack)) {
    if (!is_used(constant.name)) continue;
    const std::string text = print_expression(*constant.value);
    const std::vector<std::string> names = names_in(*constant.value);
    const bool scheduled = std::find(names.begin(), names.end(), "t") != names.end();
    notes.push_back(scheduled ? fmt::format("{} = {}, t the step", constant.name, text)
                              : fmt::format("{} = {} = {:.4g}", constant.name, text, numbers.at(constant.name)));
  }
  for (const LearnedSpec& spec : scheme.learned) {
    if (!is_used(spec.name)) continue;
    constexpr const char* kShapes[] = {"", " vector", " tensor"};
    notes.push_back(
        fmt::format("{}: learned{}, {}", spec.name, kShapes[static_cast<int>(spec.extent)],
                    spec.profile != nullptr ? "set on a first batch" : "starts at " + start_text(*spec.init, numbers)));
  }
  return notes;
}

}  // namespace norma
