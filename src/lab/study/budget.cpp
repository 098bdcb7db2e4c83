// "3min", "1h", "2e9tokens", "40000steps": what a study may spend.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "lab/study/parts.h"
#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/lab/study.h"

namespace norma {
namespace {

struct BudgetUnit {
  const char* name;
  StudyBudget::Unit unit;
  double factor;
};

// The first of a unit is how it is printed.
constexpr BudgetUnit kBudgetUnits[] = {
    {"s", StudyBudget::Unit::seconds, 1},        {"sec", StudyBudget::Unit::seconds, 1},
    {"min", StudyBudget::Unit::seconds, 60},     {"m", StudyBudget::Unit::seconds, 60},
    {"h", StudyBudget::Unit::seconds, 3600},     {"d", StudyBudget::Unit::seconds, 86'400},
    {"tokens", StudyBudget::Unit::tokens, 1},    {"ktokens", StudyBudget::Unit::tokens, 1e3},
    {"Mtokens", StudyBudget::Unit::tokens, 1e6}, {"Gtokens", StudyBudget::Unit::tokens, 1e9},
    {"steps", StudyBudget::Unit::steps, 1},
};

// At least half a minute, unless that is most of a short study.
double usual_seconds_for_depth_use(const StudyConfig& config) {
  const double all = config.budget.amount;
  return config.depth_use_time * std::max(0.2 * all, std::min(30.0, all / 3));
}

}  // namespace

StudyBudget parse_budget(std::string_view text) {
  constexpr const char* kExpected = "a time as 3min or 1h, an amount as 2e9tokens or 40000steps, or 0 for none";
  double amount = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), amount);
  std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  if (problem != std::errc() || !std::isfinite(amount) || amount < 0)
    fail("the budget '{}' does not begin with a number; expected {}", text, kExpected);
  if (amount == 0) return {};
  for (const BudgetUnit& known : kBudgetUnits) {
    if (unit == known.name) return {known.unit, amount * known.factor};
  }
  fail("the budget '{}' has {}; expected {}", text, unit.empty() ? "no unit" : fmt::format("the unit '{}'", unit),
       kExpected);
}

std::string print_budget(const StudyBudget& budget) {
  switch (budget.unit) {
    case StudyBudget::Unit::none: return "0";
    case StudyBudget::Unit::seconds: return fmt::format("{}s", budget.amount);
    case StudyBudget::Unit::tokens: return fmt::format("{}tokens", budget.amount);
    case StudyBudget::Unit::steps: return fmt::format("{}steps", budget.amount);
  }
  return "?";
}

std::string describe_budget(const StudyBudget& budget) {
  const double seconds = budget.amount;
  switch (budget.unit) {
    case StudyBudget::Unit::none: return "0";
    case StudyBudget::Unit::seconds:
      return seconds < 120    ? fmt::format("{:.3g} s", seconds)
             : seconds < 7200 ? fmt::format("{:.3g} min", seconds / 60)
                              : fmt::format("{:.3g} h", seconds / 3600);
    case StudyBudget::Unit::tokens: return fmt::format("{:.0f} tokens", budget.amount);
    case StudyBudget::Unit::steps: return fmt::format("{:.0f} steps", budget.amount);
  }
  return "?";
}

// A budget of work must give the same on every machine, so no clock bounds it.
double seconds_for_depth_use(const StudyConfig& config) {
  if (config.budget.unit != StudyBudget::Unit::seconds || config.depth_use_whatever_it_takes)
    return std::numeric_limits<double>::infinity();
  return usual_seconds_for_depth_use(config);
}

double seconds_for_training(const StudyConfig& config) {
  constexpr double kReport = 0.03;
  const double all = config.budget.amount;
  return all * (1 - kReport) - (config.depth_use ? usual_seconds_for_depth_use(config) : 0);
}

}  // namespace norma
