#include "norma/train/run_schemes.h"

#include <map>
#include <sstream>

#include "norma/core/error.h"
#include "norma/store/run_directory.h"
#include "train/toml_input.h"

namespace norma {
namespace {

using Entries = std::map<std::string, std::string>;

void flatten(const toml::table& table, const std::string& prefix, Entries& entries) {
  for (const auto& [name, node] : table) {
    const std::string key = prefix + std::string(name.str());
    if (const toml::table* inner = node.as_table()) {
      flatten(*inner, key + ".", entries);
      continue;
    }
    std::ostringstream value;
    node.visit([&](const auto& one) { value << one; });
    entries[key] = value.str();
  }
}

Entries entries_of(std::string_view scheme) {
  Entries entries;
  flatten(parse_toml(scheme, "scheme"), "", entries);
  entries.erase("title");
  entries.erase("source");
  return entries;
}

std::string value_of(const Entries& entries, const std::string& key) {
  const auto found = entries.find(key);
  return found == entries.end() ? "nothing" : found->second;
}

SchemeLibrary with_scheme_of(const std::filesystem::path& run, SchemeLibrary library, SchemeLibrary::Rank rank) {
  const RunView view(run);
  if (!view.exists()) return library;
  std::string text = view.scheme();
  if (text.empty()) return library;
  std::string name = scheme_named_in(view);
  try {
    parse_scheme(name, text);
  } catch (const Error& error) {
    fail("'{}' is damaged: {}", view.scheme_path().string(), error.what());
  }
  library.put(name, std::move(text), rank);
  return library;
}

}  // namespace

// Read without the configuration's checks, which would resolve the scheme.
std::string scheme_named_in(const RunView& run) {
  const toml::table config = parse_toml(run.config(), run.config_path().string());
  const std::optional<std::string> name = config["model"]["scheme"].value<std::string>();
  if (!name) fail("'{}' names no scheme", run.config_path().string());
  return *name;
}

SchemeLibrary library_of_run(const std::filesystem::path& run, SchemeLibrary others) {
  return with_scheme_of(run, std::move(others), SchemeLibrary::Rank::first);
}

SchemeLibrary library_to_resume(const std::filesystem::path& run, SchemeLibrary others) {
  return with_scheme_of(run, std::move(others), SchemeLibrary::Rank::last);
}

std::optional<std::string> scheme_difference(std::string_view before, std::string_view now) {
  if (before == now) return std::nullopt;
  const Entries old = entries_of(before), fresh = entries_of(now);
  Entries all = old;
  all.insert(fresh.begin(), fresh.end());
  for (const auto& [key, unused] : all) {
    const std::string was = value_of(old, key), is = value_of(fresh, key);
    if (was != is) return fmt::format("{} was {}, now it is {}", key, was, is);
  }
  return std::nullopt;
}

}  // namespace norma
