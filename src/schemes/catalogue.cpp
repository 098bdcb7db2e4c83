#include "norma/schemes/catalogue.h"

#include <algorithm>
#include <cctype>

#include "norma/core/names.h"
#include "schemes/embedded.h"

namespace norma {

const std::vector<Scheme>& catalogue() {
  static const std::vector<Scheme> schemes = [] {
    std::vector<Scheme> all;
    for (const EmbeddedScheme& file : embedded_schemes()) all.push_back(parse_scheme(file.name, file.text));
    std::sort(all.begin(), all.end(), [](const Scheme& a, const Scheme& b) { return a.name < b.name; });
    return all;
  }();
  return schemes;
}

Scheme find_scheme(std::string_view name_or_formula) {
  std::vector<std::string> names;
  for (const Scheme& scheme : catalogue()) {
    if (scheme.name == name_or_formula) return scheme;
    names.push_back(scheme.name);
  }
  const bool is_name = std::all_of(name_or_formula.begin(), name_or_formula.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
  });
  if (is_name) fail("there is no scheme named '{}'{}", name_or_formula, did_you_mean(name_or_formula, names));
  Scheme scheme;
  scheme.name = "formula";
  scheme.title = "a formula";
  scheme.formulas.emplace("sublayer", parse_formula(name_or_formula));
  return scheme;
}

}  // namespace norma
