#include "norma/schemes/library.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>

#include "norma/core/names.h"
#include "norma/schemes/branch_kinds.h"
#include "schemes/catalogue.h"
#include "schemes/formula_scheme.h"

namespace norma {
namespace {

bool same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) { return lower(x) == lower(y); });
}

// "Peri-LN" of "Peri-LN (Sandwich-LN)"
std::string_view short_title(const Scheme& scheme) {
  return std::string_view(scheme.title).substr(0, scheme.title.find(" ("));
}

namespace fs = std::filesystem;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n\r";
  const std::size_t begin = text.find_first_not_of(kSpaces);
  return begin == std::string_view::npos ? "" : text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

constexpr std::string_view kFormulaName = "formula";

bool is_file_name(std::string_view asked) { return asked.ends_with(".toml"); }

// A file is called by its stem, however it was asked for.
std::string scheme_name(std::string_view asked) {
  return is_file_name(asked) ? fs::path(asked).stem().string() : std::string(asked);
}

std::string read_file(const fs::path& file) {
  std::error_code failed;
  if (!fs::is_regular_file(file, failed)) fail("there is no scheme file '{}'", file.string());
  const std::uintmax_t size = fs::file_size(file, failed);
  if (failed) fail("cannot read '{}': {}", file.string(), failed.message());
  if (size > kLargestSchemeFile)
    fail("'{}' has {} bytes; a scheme file has at most {}", file.string(), size, kLargestSchemeFile);
  std::ifstream stream(file, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(stream), {});
  if (!stream) fail("cannot read '{}'", file.string());
  return text;
}

SchemeEntry read_entry(const fs::path& file) {
  SchemeEntry entry{.name = file.stem().string(), .file = file};
  try {
    entry.scheme = std::make_shared<const Scheme>(parse_scheme(entry.name, read_file(file)));
    const std::shared_ptr<const Scheme> same = catalogued(entry.name);
    entry.replaces = same != nullptr && same->text != entry->text;
  } catch (const Error& error) {
    entry.error = fmt::format("{}: {}", file.string(), error.what());
  }
  return entry;
}

SchemeEntry usable(SchemeEntry entry) {
  if (entry.scheme == nullptr) throw Error(entry.error);
  return entry;
}

SchemeEntry entry_of(std::string_view asked, const std::string& text) {
  const std::string name = scheme_name(asked);
  return {.name = name, .scheme = std::make_shared<const Scheme>(parse_scheme(name, text))};
}

// Files of one folder; throws where it cannot be read.
std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code failed;
  fs::directory_iterator at(folder, failed);
  for (; !failed && at != fs::directory_iterator(); at.increment(failed)) {
    if (at->path().extension() == ".toml") files.push_back(at->path());
  }
  if (failed) fail("cannot read the folder of schemes '{}': {}", folder.string(), failed.message());
  std::sort(files.begin(), files.end());
  return files;
}

// A folder that cannot be read keeps nobody from the others; SchemeLibrary::all reports it.
std::vector<fs::path> readable_files_in(const fs::path& folder) {
  try {
    return files_in(folder);
  } catch (const Error&) {
    return {};
  }
}

// The catalogues of all stacks, of every kind of branch, and of models with a condition.
std::vector<const Scheme*> every_scheme() {
  std::vector<const Scheme*> all;
  const auto add = [&](const std::vector<Scheme>& schemes) {
    for (const Scheme& scheme : schemes) all.push_back(&scheme);
  };
  add(catalogue());
  for (const BranchKind& kind : branch_kinds()) add(catalogue(kind.key));
  add(catalogue("condition"));
  return all;
}

fs::path file_in(const fs::path& folder, std::string_view name) { return folder / (std::string(name) + ".toml"); }

// By its title, with or without what is in brackets, or by its name in other case; files of users come first.
std::optional<SchemeEntry> titled(const std::vector<fs::path>& folders, std::string_view asked) {
  const auto called = [&](const Scheme& scheme) {
    return same_word(asked, scheme.name) || same_word(asked, scheme.title) || same_word(asked, short_title(scheme));
  };
  for (const fs::path& folder : folders) {
    for (const fs::path& file : readable_files_in(folder)) {
      SchemeEntry entry = read_entry(file);
      if (entry.scheme != nullptr && called(*entry.scheme)) return entry;
    }
  }
  for (const Scheme* const scheme : every_scheme()) {
    if (called(*scheme)) return SchemeEntry{.name = scheme->name, .scheme = catalogued(scheme->name)};
  }
  return std::nullopt;
}

bool is_plain_name(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; });
}

}  // namespace

SchemeChoice::SchemeChoice(const char* asked) : SchemeChoice(std::string(asked)) {}
SchemeChoice::SchemeChoice(const std::string& asked) : SchemeChoice(SchemeLibrary().find(asked)) {}

struct SchemeLibrary::Found {
  std::mutex mutex = {};
  std::map<std::string, SchemeEntry, std::less<>> entries = {};
};

SchemeLibrary::SchemeLibrary() : found_(std::make_shared<Found>()) {}

SchemeLibrary SchemeLibrary::of_environment() {
  SchemeLibrary library;
  const char* variable = std::getenv("NORMA_SCHEMES");
  std::string_view text = variable == nullptr ? "" : variable;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(':'), text.size());
    if (end > 0) library.folders_.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return library;
}

void SchemeLibrary::add_folder(const fs::path& folder) {
  files_in(folder);
  folders_.insert(folders_.begin(), folder);
  found_ = std::make_shared<Found>();
}

void SchemeLibrary::put(const std::string& asked, std::string toml, Rank rank) {
  (rank == Rank::first ? first_ : last_).insert_or_assign(std::string(trimmed(asked)), std::move(toml));
  found_ = std::make_shared<Found>();
}

void SchemeLibrary::put(const SchemeChoice& choice) {
  chosen_.insert_or_assign(std::string(trimmed(choice.asked())), choice.shared());
}

bool SchemeLibrary::has(std::string_view asked) const {
  std::error_code failed;
  if (is_file_name(asked)) return fs::exists(fs::path(asked), failed);
  return catalogued(asked) != nullptr || std::any_of(folders_.begin(), folders_.end(), [&](const fs::path& folder) {
           return fs::exists(file_in(folder, asked), failed);
         });
}

SchemeEntry SchemeLibrary::locate(std::string_view name_file_or_formula) const {
  const std::string_view asked = trimmed(name_file_or_formula);
  if (const auto chosen = chosen_.find(asked); chosen != chosen_.end())
    return {.name = chosen->second->name, .scheme = chosen->second};
  const std::lock_guard lock(found_->mutex);
  const auto known = found_->entries.find(asked);
  if (known != found_->entries.end()) return known->second;
  return found_->entries.emplace(asked, resolve(asked)).first->second;
}

SchemeChoice SchemeLibrary::find(const std::string& name_file_or_formula) const {
  const std::string_view asked = trimmed(name_file_or_formula);
  const SchemeEntry entry = locate(asked);
  const bool by_name = is_plain_name(asked) || (entry.name != kFormulaName && !is_file_name(asked));
  return {by_name ? entry.name : name_file_or_formula, entry.scheme};
}

SchemeEntry SchemeLibrary::resolve(std::string_view asked) const {
  if (const auto text = first_.find(asked); text != first_.end()) return entry_of(asked, text->second);
  if (const auto text = last_.find(asked); text != last_.end() && !has(asked)) return entry_of(asked, text->second);
  if (is_file_name(asked)) {
    SchemeEntry entry = usable(read_entry(fs::path(asked)));
    entry.replaces = false;  // it was asked for by its file
    return entry;
  }
  if (is_plain_name(asked)) return named(asked);
  if (std::optional<SchemeEntry> found = titled(folders_, asked)) return *std::move(found);
  return {.name = std::string(kFormulaName), .scheme = std::make_shared<const Scheme>(formula_scheme(asked))};
}

SchemeEntry SchemeLibrary::named(std::string_view name) const {
  std::vector<std::string> names;
  for (const fs::path& folder : folders_) {
    const fs::path file = file_in(folder, name);
    std::error_code failed;
    if (fs::exists(file, failed)) return usable(read_entry(file));
    for (const fs::path& other : readable_files_in(folder)) names.push_back(other.stem().string());
  }
  if (std::shared_ptr<const Scheme> scheme = catalogued(name)) return {.name = scheme->name, .scheme = scheme};
  if (std::optional<SchemeEntry> found = titled(folders_, name)) return *std::move(found);
  for (const Scheme* const scheme : every_scheme()) names.push_back(scheme->name);
  fail("there is no scheme named '{}'{}", name, did_you_mean(name, names));
}

std::vector<SchemeEntry> SchemeLibrary::all() const {
  std::map<std::string, SchemeEntry> entries;
  for (const fs::path& folder : folders_) {
    try {
      for (const fs::path& file : files_in(folder)) entries.try_emplace(file.stem().string(), read_entry(file));
    } catch (const Error& error) {
      entries.try_emplace(folder.string(), SchemeEntry{.name = folder.string(), .file = folder, .error = error.what()});
    }
  }
  for (const Scheme& scheme : catalogue())
    entries.try_emplace(scheme.name, SchemeEntry{.name = scheme.name, .scheme = catalogued(scheme.name)});
  std::vector<SchemeEntry> all;
  for (auto& [name, entry] : entries) all.push_back(std::move(entry));
  return all;
}

}  // namespace norma
