// The schemes that come with norma, compiled in from schemes/*.toml, and from schemes/<kind>/*.toml those for stacks of
// one kind of branch.
#include "schemes/catalogue.h"

#include <algorithm>
#include <map>

#include "norma/schemes/library.h"

namespace norma {

namespace {

using Catalogue = std::shared_ptr<const std::vector<Scheme>>;
using Catalogues = std::map<std::string_view, Catalogue>;

// By kind of branch; empty: any.
const Catalogues& shared_catalogues() {
  static const Catalogues schemes = [] {
    std::map<std::string_view, std::vector<Scheme>> all;
    for (const EmbeddedScheme& file : embedded_schemes()) all[file.kind].push_back(parse_scheme(file.name, file.text));
    Catalogues shared;
    for (auto& [kind, some] : all) {
      std::sort(some.begin(), some.end(), [](const Scheme& a, const Scheme& b) { return a.name < b.name; });
      shared[kind] = std::make_shared<const std::vector<Scheme>>(std::move(some));
    }
    return shared;
  }();
  return schemes;
}

}  // namespace

std::shared_ptr<const Scheme> catalogued(std::string_view name) {
  for (const auto& [kind, all] : shared_catalogues()) {
    const auto found = std::find_if(all->begin(), all->end(), [&](const Scheme& one) { return one.name == name; });
    if (found != all->end()) return {all, &*found};
  }
  return nullptr;
}

const std::vector<Scheme>& catalogue(std::string_view kind) {
  static const std::vector<Scheme> none;
  const auto found = shared_catalogues().find(kind);
  return found == shared_catalogues().end() ? none : *found->second;
}

}  // namespace norma
