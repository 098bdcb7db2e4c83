#include "schemes/start_place.h"

#include <algorithm>

#include "norma/core/error.h"

namespace norma {

std::vector<NamedExpression> start_constants(const Scheme& scheme, StackRole role) {
  if (role == StackRole::alone) return scheme.constants.common;
  std::vector<NamedExpression> all = role == StackRole::encoder ? scheme.constants.encoder : scheme.constants.decoder;
  for (const NamedExpression& common : scheme.constants.common) {
    const bool replaced =
        std::any_of(all.begin(), all.end(), [&](const NamedExpression& own) { return own.name == common.name; });
    if (!replaced) all.push_back(common);
  }
  return all;
}

Variables start_numbers(const Scheme& scheme, const StartPlace& place) {
  Variables known = {{"l", static_cast<double>(place.layer)},
                     {"k", static_cast<double>(place.sublayer)},
                     {"n", static_cast<double>(place.sublayers)},
                     {"N", static_cast<double>(place.layers)},
                     {"M", static_cast<double>(place.decoder)},
                     {"d", static_cast<double>(place.width)},
                     {"heads", static_cast<double>(place.heads)},
                     {"t", 0.0},
                     {"T", 1.0}};
  std::vector<NamedExpression> waiting = start_constants(scheme, place.role);
  const auto is_waiting = [&](const std::string& name) {
    return std::any_of(waiting.begin(), waiting.end(),
                       [&](const NamedExpression& constant) { return constant.name == name; });
  };
  while (!waiting.empty()) {
    const auto ready = std::find_if(waiting.begin(), waiting.end(), [&](const NamedExpression& constant) {
      const std::vector<std::string> names = names_in(*constant.value);
      return std::none_of(names.begin(), names.end(), is_waiting);
    });
    if (ready == waiting.end())
      fail("scheme '{}': the constants '{}' and others need one another", scheme.name, waiting.front().name);
    known[ready->name] = evaluate(*ready->value, known, print_expression(*ready->value));
    waiting.erase(ready);
  }
  return known;
}

}  // namespace norma
