#include "norma/lab/sweep_schemes.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/json.h"
#include "lab/sweep_files.h"
#include "lab/sweep_members.h"
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

KeptSchemes hold_schemes(const SchemeTexts& texts, bool only_missing) {
  KeptSchemes schemes;
  for (const auto& [name, text] : texts) {
    if (!only_missing || !has_scheme(name)) schemes.push_back(std::make_shared<const KeptScheme>(name, text));
  }
  return schemes;
}

}  // namespace

KeptSchemes schemes_of_sweep(const fs::path& directory) { return hold_schemes(read_scheme_texts(directory), false); }
KeptSchemes schemes_to_resume(const fs::path& directory) { return hold_schemes(read_scheme_texts(directory), true); }

void require_same_schemes(const fs::path& directory, const std::vector<std::string>& names) {
  const SchemeTexts before = read_scheme_texts(directory);
  for (const std::string& name : names) {
    const auto found = before.find(name);
    if (found == before.end()) continue;
    if (const auto difference = scheme_difference(found->second, scheme_to_keep(name)))
      fail("the sweep in '{}' began with another scheme '{}': {}; choose another directory", directory.string(), name,
           *difference);
  }
}

void keep_schemes(const fs::path& directory, const std::vector<std::string>& names) {
  SchemeTexts texts = read_scheme_texts(directory);
  const std::size_t before = texts.size();
  for (const std::string& name : names) {
    if (std::string text = scheme_to_keep(name); !text.empty()) texts.try_emplace(name, std::move(text));
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
    const auto [found, fresh] = deepest.emplace(cell.config.model.scheme, &cell);
    if (fresh) order.push_back(cell.config.model.scheme);
    if (cell.config.model.layers > found->second->config.model.layers) found->second = &cell;
  }
  std::vector<SchemeSummary> summaries;
  for (const std::string& scheme : order) {
    // As the run resolved it: the data have told the vocabulary.
    const RunView run(paths.run(deepest.at(scheme)->id));
    summaries.push_back(summarise_scheme(parse_config(run.config(), run.config_path().string()).model));
  }
  return summaries;
}

}  // namespace norma
