// The schemes that come with norma, compiled in from schemes/*.toml.
#include "schemes/catalogue.h"

#include <algorithm>

#include "norma/schemes/library.h"

namespace norma {

std::shared_ptr<const std::vector<Scheme>> shared_catalogue() {
  static const auto schemes = [] {
    std::vector<Scheme> all;
    for (const EmbeddedScheme& file : embedded_schemes()) all.push_back(parse_scheme(file.name, file.text));
    std::sort(all.begin(), all.end(), [](const Scheme& a, const Scheme& b) { return a.name < b.name; });
    return std::make_shared<const std::vector<Scheme>>(std::move(all));
  }();
  return schemes;
}

std::shared_ptr<const Scheme> catalogued(std::string_view name) {
  const std::shared_ptr<const std::vector<Scheme>> all = shared_catalogue();
  const auto found = std::find_if(all->begin(), all->end(), [&](const Scheme& scheme) { return scheme.name == name; });
  return found == all->end() ? nullptr : std::shared_ptr<const Scheme>(all, &*found);
}

const std::vector<Scheme>& catalogue() { return *shared_catalogue(); }

}  // namespace norma
