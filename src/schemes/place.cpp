#include "norma/schemes/place.h"

#include <algorithm>
#include <functional>

#include "norma/core/error.h"
#include "norma/core/names.h"

namespace norma {
namespace {

const std::vector<NamedExpression>& own_constants(const Scheme& scheme, StackKind stack) {
  static const std::vector<NamedExpression> none;
  if (stack == StackKind::encoder) return scheme.constants.encoder;
  return stack == StackKind::decoder ? scheme.constants.decoder : none;
}

const NamedExpression* find(const std::vector<NamedExpression>& all, const std::string& name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const NamedExpression& entry) { return entry.name == name; });
  return found == all.end() ? nullptr : &*found;
}

// Names of constants that depend on the step, directly or through one another.
std::set<std::string> step_names(const std::vector<NamedExpression>& constants, const Variables& given) {
  std::set<std::string> found = {"t", "T"};
  for (bool grew = true; grew;) {
    grew = false;
    for (const NamedExpression& constant : constants) {
      const std::vector<std::string> names = names_in(*constant.value);
      const bool depends =
          !given.contains(constant.name) &&
          std::any_of(names.begin(), names.end(), [&](const auto& name) { return found.contains(name); });
      if (depends && found.insert(constant.name).second) grew = true;
    }
  }
  found.erase("t");
  found.erase("T");
  return found;
}

void check_given(const Scheme& scheme, const Variables& given) {
  std::vector<std::string> known;
  for (const auto* table : {&scheme.constants.common, &scheme.constants.encoder, &scheme.constants.decoder}) {
    for (const NamedExpression& constant : *table) known.push_back(constant.name);
  }
  for (const auto& [name, value] : given) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail("scheme '{}' has no constant named '{}'{}", scheme.name, name, did_you_mean(name, known));
  }
}

}  // namespace

std::vector<NamedExpression> constants_of(const Scheme& scheme, StackKind stack) {
  std::vector<NamedExpression> all = own_constants(scheme, stack);
  for (const NamedExpression& constant : scheme.constants.common) {
    if (find(all, constant.name) == nullptr) all.push_back(constant);
  }
  return all;
}

Variables numbers_at(const Scheme& scheme, const Place& place, const Variables& given) {
  check_given(scheme, given);
  const auto number = [](std::int64_t value) { return static_cast<double>(value); };
  Variables known = {{"l", number(place.layer)},
                     {"k", number(place.sublayer)},
                     {"n", number(place.sublayers > 0 ? place.sublayers : 2 * place.layers)},
                     {"N", number(place.layers)},
                     {"M", number(place.layers)},
                     {"d", number(place.width)},
                     {"heads", number(place.heads)},
                     {"since", number(place.since < 0 ? place.sublayer - 1 : place.since)}};
  const bool encoder = place.stack == StackKind::encoder;
  const double both[] = {number(encoder ? place.layers : place.other_layers),
                         number(encoder ? place.other_layers : place.layers)};
  std::vector<NamedExpression> waiting = constants_of(scheme, place.stack);
  const std::set<std::string> schedules = step_names(waiting, given);
  std::erase_if(waiting, [&](const NamedExpression& constant) { return schedules.contains(constant.name); });
  while (!waiting.empty()) {
    const auto ready = std::find_if(waiting.begin(), waiting.end(), [&](const NamedExpression& constant) {
      const std::vector<std::string> names = names_in(*constant.value);
      return given.contains(constant.name) ||
             std::none_of(names.begin(), names.end(), [&](const auto& name) { return find(waiting, name) != nullptr; });
    });
    if (ready == waiting.end())
      fail("scheme '{}': the constants '{}' and others need one another", scheme.name, waiting.front().name);
    Variables here = known;
    if (find(own_constants(scheme, place.stack), ready->name) != nullptr) {
      here["N"] = both[0];
      here["M"] = both[1];
    }
    const auto replaced = given.find(ready->name);
    known[ready->name] =
        replaced != given.end() ? replaced->second : evaluate(*ready->value, here, print_expression(*ready->value));
    waiting.erase(ready);
  }
  return known;
}

std::vector<StepSchedule> schedules_of(const Scheme& scheme, StackKind stack, const Variables& given) {
  const std::vector<NamedExpression> constants = constants_of(scheme, stack);
  const std::set<std::string> names = step_names(constants, given);
  std::vector<StepSchedule> result;
  for (const std::string& name : names) {
    StepSchedule schedule{.name = name, .chain = {}, .names = {}};
    std::set<std::string> open;
    const std::function<void(const std::string&)> add = [&](const std::string& link) {
      const NamedExpression* constant = find(constants, link);
      schedule.names.insert(link);
      if (constant == nullptr || given.contains(link) || find(schedule.chain, link) != nullptr) return;
      if (!open.insert(link).second) fail("scheme '{}': the schedule '{}' needs itself", scheme.name, name);
      for (const std::string& needed : names_in(*constant->value)) add(needed);
      if (!names.contains(link)) {
        open.erase(link);
        return;
      }
      const bool own = find(own_constants(scheme, stack), link) != nullptr;
      if (own && (schedule.names.contains("N") || schedule.names.contains("M")))
        fail("scheme '{}': the schedule '{}' of one stack cannot depend on the depth of the other", scheme.name, link);
      schedule.chain.push_back(*constant);
    };
    add(name);
    result.push_back(std::move(schedule));
  }
  return result;
}

Variables numbers_at_start(const Scheme& scheme, const Place& place, const Variables& given) {
  Variables known = numbers_at(scheme, place, given);
  known["t"] = 0;
  known["T"] = 1;
  for (const StepSchedule& schedule : schedules_of(scheme, place.stack, given)) {
    for (const NamedExpression& link : schedule.chain)
      known[link.name] = evaluate(*link.value, known, print_expression(*link.value));
  }
  return known;
}

}  // namespace norma
