#include "cli/explanation.h"

namespace norma::cli {

std::string_view name_of(LearnedSpec::Per per) {
  constexpr std::string_view kNames[] = {"sublayer", "layer", "stack"};
  return kNames[static_cast<int>(per)];
}

std::string headline(const Scheme& scheme) {
  std::vector<std::string> keys = {"sublayer", "layer"};
  for (const BranchKind& kind : branch_kinds()) keys.push_back(kind.key);
  for (const std::string& key : keys) {
    if (const Formula* formula = scheme.formula(key)) return print_formula(*formula);
  }
  return "";
}

}  // namespace norma::cli
