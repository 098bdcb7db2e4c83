#include "norma/lab/sweep_schemes.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "lab/sweep/files.h"
#include "lab/sweep/members.h"
#include "norma/core/error.h"
#include "norma/lab/inspect.h"
#include "norma/store/atomic_file.h"
#include "norma/store/run_directory.h"

namespace norma {
namespace {

namespace fs = std::filesystem;
using SchemeTexts = std::map<std::string, std::string>;

fs::path schemes_path(const fs::path& directory) { return directory / "schemes.json"; }

SchemeTexts read_scheme_texts(const fs::path& directory) {
  const fs::path path = schemes_path(directory);
  std::error_code error;
  if (!fs::exists(path, error)) return {};
  try {
    return parse_json(read_small_file(path)).get<SchemeTexts>();
  } catch (const nlohmann::json::exception&) {
    fail("'{}' is damaged; remove it to go on with the schemes as they are now", path.string());
  }
}

SchemeLibrary with_schemes_of(const fs::path& directory, SchemeLibrary library, SchemeLibrary::Rank rank) {
  for (auto& [name, text] : read_scheme_texts(directory)) library.put(name, text, rank);
  return library;
}

}  // namespace

SchemeLibrary library_of_sweep(const fs::path& directory, SchemeLibrary others) {
  return with_schemes_of(directory, std::move(others), SchemeLibrary::Rank::first);
}

SchemeLibrary library_to_resume_sweep(const fs::path& directory, SchemeLibrary others) {
  return with_schemes_of(directory, std::move(others), SchemeLibrary::Rank::last);
}

void require_same_schemes(const fs::path& directory, const std::vector<SchemeChoice>& schemes) {
  const SchemeTexts before = read_scheme_texts(directory);
  for (const SchemeChoice& scheme : schemes) {
    const auto found = before.find(scheme.asked());
    if (found == before.end()) continue;
    try {
      parse_scheme(found->first, found->second);
    } catch (const Error& error) {
      fail("'{}' is damaged: {}", schemes_path(directory).string(), error.what());
    }
    if (const auto difference = scheme_difference(found->second, scheme->text))
      fail("the sweep in '{}' began with another scheme '{}': {}; choose another directory", directory.string(),
           scheme.asked(), *difference);
  }
}

void keep_schemes(const fs::path& directory, const std::vector<SchemeChoice>& schemes) {
  SchemeTexts texts = read_scheme_texts(directory);
  const std::size_t before = texts.size();
  for (const SchemeChoice& scheme : schemes) {
    if (!scheme->text.empty()) texts.try_emplace(scheme.asked(), scheme->text);
  }
  if (texts.size() > before) write_atomically(schemes_path(directory), nlohmann::json(texts).dump(2) + "\n");
}

std::vector<SchemeSummary> summarise_schemes(const SweepConfig& config, const fs::path& directory) {
  const SweepPaths paths{directory};
  std::vector<std::string> order;
  std::map<std::string, const SweepCell*> deepest;
  const std::vector<SweepCell> cells = sweep_cells(config);
  for (const SweepCell& cell : cells) {
    if (!RunView(paths.run(cell.id)).exists()) continue;
    const auto [found, fresh] = deepest.emplace(cell.config.model.scheme.asked(), &cell);
    if (fresh) order.push_back(cell.config.model.scheme.asked());
    if (cell.config.model.layers > found->second->config.model.layers) found->second = &cell;
  }
  std::vector<SchemeSummary> summaries;
  for (const std::string& scheme : order) {
    // As the run resolved it: the data have told the vocabulary.
    const RunView run(paths.run(deepest.at(scheme)->id));
    summaries.push_back(summarise_scheme(
        parse_config(run.config(), run.config_path().string(), library_of_run(run.path(), config.schemes)).model));
  }
  return summaries;
}

}  // namespace norma
